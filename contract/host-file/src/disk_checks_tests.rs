use crate::{
    ApiError, DiskConfig, DiskKind, HostConfig, STORE_DISKS_MAX, SocketMode, StoreCapacity,
    parse_toml, validate,
};

const STORES: &str = "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n[[store]]\n\
                      name = \"slow\"\npath = \"/srv/slow\"\n";

fn disk(name: &str, keys: &str) -> String {
    format!("[[disk]]\nname = \"{name}\"\nstore = \"fast\"\n{keys}\n")
}

fn read(tables: &str) -> Result<HostConfig, Vec<ApiError>> {
    parse_toml(&format!("{STORES}{tables}"), None)
}

/// Returns the faults without lines; empty if valid.
fn errors_of(tables: &str) -> Vec<String> {
    let errors = read(tables).err().unwrap_or_default();
    errors
        .into_iter()
        .map(|mut error| {
            error.line = None;
            error.to_string()
        })
        .collect()
}

fn single_disk(keys: &str) -> DiskConfig {
    read(&disk("web", keys)).unwrap().disks.remove(0)
}

#[test]
fn defaults_depend_on_the_format() {
    for (format, kind, file) in [
        ("raw", DiskKind::Fixed, Some("web.raw")),
        ("vhd", DiskKind::Dynamic, Some("web.vhd")),
        ("vhdx", DiskKind::Dynamic, Some("web.vhdx")),
        ("pass-through", DiskKind::Fixed, None),
    ] {
        let config = read(&disk("web", &format!("format = \"{format}\""))).unwrap();
        let (disk, store) = (&config.disks[0], &config.stores[0]);
        assert_eq!(disk.kind_of_new_file(), kind, "{format}");
        assert_eq!(disk.effective_file().as_ref().map(|file| file.as_str()), file, "{format}");
        let path = file.map_or("/srv/fast".to_owned(), |file| format!("/srv/fast/{file}"));
        assert_eq!(disk.path_in(store).to_str(), Some(path.as_str()), "{format}");
        assert_eq!((disk.logical_sector_bytes, disk.physical_sector_bytes), (512, 4096));
        assert!(!disk.read_only && disk.vhost_user.is_none() && disk.nbd.is_none());
    }
    let store = &read("").unwrap().stores[0];
    assert_eq!((store.normalization_bytes.bytes(), store.queue_depth_max), (8192, 256));
    assert_eq!(store.capacity_iops, None);
}

#[test]
fn the_capacity_of_a_store_is_a_number_or_measured() {
    let capacity_of = |value: &str| {
        let text = format!("[[store]]\nname = \"s\"\npath = \"/s\"\ncapacity_iops = {value}\n");
        parse_toml(&text, None).unwrap().stores[0].capacity_iops
    };
    assert_eq!(capacity_of("12000"), Some(StoreCapacity::Declared(12_000)));
    assert_eq!(capacity_of("\"measure\""), Some(StoreCapacity::MEASURED));
}

#[test]
fn written_keys_replace_defaults() {
    let web = single_disk(
        "format = \"vhdx\"\nkind = \"differencing\"\nparent = \"base/web.vhdx\"\n\
         file = \"vms/web 0.vhdx\"\nsize_bytes = \"10 GiB\"\nblock_bytes = 1048576\n\
         serial = \"S/N 0815\"\nread_only = true\nlogical_sector = 4096\n\
         nbd = { socket = \"/run/nbd.sock\" }\n[disk.vhost_user]\nsocket = \"/run/web.sock\"",
    );
    assert_eq!(web.kind_of_new_file(), DiskKind::Differencing);
    let kinds = |keys: &str| {
        let disk = single_disk(&format!("format = \"vhdx\"\n{keys}"));
        (disk.required_kind(), disk.kind_of_new_file())
    };
    assert_eq!(kinds(""), (None, DiskKind::Dynamic));
    assert_eq!(
        kinds("parent = \"p.vhdx\""),
        (Some(DiskKind::Differencing), DiskKind::Differencing)
    );
    assert_eq!(
        kinds("kind = \"differencing\""),
        (Some(DiskKind::Differencing), DiskKind::Differencing)
    );
    assert_eq!(web.effective_file().unwrap().as_str(), "vms/web 0.vhdx");
    assert_eq!(web.size_bytes.unwrap().bytes(), 10 << 30);
    assert_eq!(web.block_bytes.unwrap().bytes(), 1 << 20);
    assert_eq!(web.effective_serial(), "S/N 0815");
    let vhost_user = web.vhost_user.unwrap();
    assert_eq!((vhost_user.mode, vhost_user.queues), (SocketMode::Server, 1));
    let long = "x".repeat(30);
    let config = read(&disk(&long, "format = \"raw\"")).unwrap();
    assert_eq!(config.disks[0].effective_serial(), "x".repeat(20));
}

const PASS_THROUGH_HAS_NONE: &str = "a pass-through disk is its store's whole block device and \
                                     has no file; remove this key or set another format";
const ONLY_DIFFERENCING: &str = "applies only to differencing disks; remove this key, or remove kind and set format = \
     \"vhdx\"";
const NO_BLOCKS: &str = "a raw file and a fixed VHD have no blocks; remove this key or set kind = \
                         \"dynamic\" and format = \"vhd\" or \"vhdx\"";
const STORE_FILE: &str = "must be a path relative to the store's directory, like vms/web.vhdx, without `/` at its \
     start, `.` and `..`";

#[test]
fn keys_that_do_not_go_together_are_refused() {
    for (keys, message) in [
        ("format = \"qcow2\"", "format: must be one of `raw`, `vhd`, `vhdx`, `pass-through`, not \"qcow2\"".to_owned()),
        ("", "format: missing; set it to one of `raw`, `vhd`, `vhdx`, `pass-through`".to_owned()),
        ("format = \"pass-through\"\nfile = \"a\"", format!("file: {PASS_THROUGH_HAS_NONE}")),
        ("format = \"pass-through\"\nsize_bytes = 512", format!("size_bytes: {PASS_THROUGH_HAS_NONE}")),
        ("format = \"pass-through\"\nparent = \"a\"", format!("parent: {PASS_THROUGH_HAS_NONE}")),
        ("format = \"pass-through\"\nblock_bytes = 1048576", format!("block_bytes: {PASS_THROUGH_HAS_NONE}")),
        ("format = \"pass-through\"\nkind = \"dynamic\"", "kind: all space of a pass-through disk \
                                                           is allocated; remove this key or set \
                                                           it to \"fixed\"".to_owned()),
        ("format = \"raw\"\nkind = \"differencing\"", "kind: a raw file has no parent; set kind \
                                                       to \"fixed\" or \"dynamic\" (a sparse \
                                                       file), or set format = \"vhdx\"".to_owned()),
        ("format = \"raw\"\nparent = \"a\"", format!("parent: {ONLY_DIFFERENCING}")),
        ("format = \"vhdx\"\nkind = \"dynamic\"\nparent = \"a\"", format!("parent: {ONLY_DIFFERENCING}")),
        ("format = \"vhd\"\nkind = \"differencing\"\nparent = \"web.vhd\"", "parent: `web.vhd` is the disk's own file; name another file as its parent".to_owned()),
        ("format = \"raw\"\nfile = \"../a\"", format!("file: {STORE_FILE}, not \"../a\"")),
        ("format = \"raw\"\nfile = \"/a\"", format!("file: {STORE_FILE}, not \"/a\"")),
        ("format = \"vhd\"\nlogical_sector = 4096", "logical_sector: a VHD has sectors of 512 \
                                                     bytes; remove this key or set format = \
                                                     \"vhdx\"".to_owned()),
        ("format = \"raw\"\nlogical_sector = 4096\nphysical_sector = 512", "physical_sector: 512 is below logical_sector 4096; set 4096 or more".to_owned()),
        ("format = \"raw\"\nlogical_sector = 1024", "logical_sector: must be one of 512, 4096, not 1024".to_owned()),
        ("format = \"raw\"\nsize_bytes = \"513 B\"", "size_bytes: must be a size from 512 B to 1024 TiB, a multiple of 512 B, as a number of bytes or like \"10 GiB\" (B, KiB, MiB, GiB, TiB), not \"513 B\"".to_owned()),
        ("format = \"raw\"\nlogical_sector = 4096\nsize_bytes = 4608", "size_bytes: 4608 B is not a multiple of logical_sector 4096; round it up".to_owned()),
        ("format = \"vhd\"\nsize_bytes = \"2041 GiB\"", "size_bytes: 2041 GiB exceeds 2040 GiB, \
                                                         the maximum of a VHD; set a smaller \
                                                         size, or format = \"vhdx\"".to_owned()),
        ("format = \"vhdx\"\nsize_bytes = \"65 TiB\"", "size_bytes: 65 TiB exceeds 64 TiB, the \
                                                        maximum of a VHDX; set a smaller size, or \
                                                        format = \"raw\"".to_owned()),
        ("format = \"raw\"\nblock_bytes = \"1 MiB\"", format!("block_bytes: {NO_BLOCKS}")),
        ("format = \"vhd\"\nkind = \"fixed\"\nblock_bytes = \"1 MiB\"", format!("block_bytes: {NO_BLOCKS}")),
        ("format = \"vhd\"\nblock_bytes = \"4 MiB\"", "block_bytes: 4 MiB is not a power of two \
                                                       from 512 KiB to 2 MiB; set one that is".to_owned()),
        ("format = \"vhdx\"\nblock_bytes = \"3 MiB\"", "block_bytes: 3 MiB is not a power of two \
                                                        from 1 MiB to 256 MiB; set one that is".to_owned()),
        ("format = \"raw\"\nserial = \"\"", "serial: must be 1 to 20 printable ASCII characters without spaces at the ends, not \"\"".to_owned()),
        ("format = \"raw\"\nqos_policy = \"gold\"", "qos_policy: there is no qos_policy `gold`; \
                                                     add a [[qos_policy]] of that name, or \
                                                     correct the name".to_owned()),
        ("format = \"raw\"\nvhost_user = {}", "vhost_user.socket: missing; set it to an absolute path of at most 107 bytes, or remove the table".to_owned()),
        ("format = \"raw\"\nnbd.socket = \"run\"", "nbd.socket: must be an absolute path of at most 107 bytes, not \"run\"".to_owned()),
        ("format = \"raw\"\nvhost_user = { socket = \"/v\", queues = 65 }", "vhost_user.queues: must be a whole number from 1 to 64, not 65".to_owned()),
        ("format = \"raw\"\nqos.min_ops = 1", "qos.min_ops: the key does not exist; did you mean \
                                               `min_iops`?".to_owned()),
    ] {
        assert_eq!(errors_of(&disk("web", keys)), [format!("disk/web: {message}")], "{keys}");
    }
}

#[test]
fn stores_are_checked() {
    for (keys, message) in [
        ("path = \"srv\"", "path: must be an absolute path, not \"srv\""),
        (
            "path = \"/s\"\ncapacity_iops = 0",
            "capacity_iops: must be a whole number from 1 to 1000000000, or `measure`, not 0",
        ),
        (
            "path = \"/s\"\ncapacity_iops = \"measured\"",
            "capacity_iops: must be a whole number from 1 to 1000000000, or `measure`, not \"measured\"",
        ),
        (
            "path = \"/s\"\ncapacity_iops = 1.5",
            "capacity_iops: must be a whole number from 1 to 1000000000, or `measure`, not 1.5",
        ),
        (
            "path = \"/s\"\nnormalization_bytes = 1000",
            "normalization_bytes: must be a size from 512 B to 1 MiB, a multiple of 512 B, as a number of bytes or like \"10 GiB\" (B, KiB, MiB, GiB, TiB), not 1000",
        ),
        (
            "path = \"/s\"\nnormalization_bytes = 1536",
            "normalization_bytes: 1536 B is not a power of two from 512 B to 1 MiB; set one that \
             is",
        ),
        (
            "path = \"/s\"\ndepth_max = 1025",
            "depth_max: must be a whole number from 1 to 1024, not 1025",
        ),
        (
            "path = \"/srv/fast/\"",
            "path: path `/srv/fast/` is already used by store/fast (its `path`); use another path",
        ),
    ] {
        let store = format!("[[store]]\nname = \"new\"\n{keys}\n");
        assert_eq!(errors_of(&store), [format!("store/new: {message}")], "{keys}");
    }
    let duplicate = "[[store]]\nname = \"fast\"\npath = \"/s\"\n";
    assert_eq!(
        errors_of(duplicate),
        ["store/fast: name: `fast` is also the name of the 1st store; rename one of them"]
    );
}

#[test]
fn a_disk_has_either_own_limits_or_a_policy() {
    let policy = "[[qos_policy]]\nname = \"gold\"\n";
    let both = disk("web", "format = \"raw\"\nqos_policy = \"gold\"\nqos.min_iops = 1");
    assert_eq!(
        errors_of(&format!("{policy}{both}")),
        ["disk/web: qos: the disk already gets its limits from qos_policy `gold`; remove one of \
          the two keys"]
    );
    // An explicit default is no contradiction.
    let empty = disk("web", "format = \"raw\"\nqos_policy = \"gold\"\nqos.weight = 100");
    assert_eq!(errors_of(&format!("{policy}{empty}")), [""; 0]);
    let misspelt = disk("web", "format = \"raw\"\nqos_policy = \"golt\"");
    assert_eq!(
        errors_of(&format!("{policy}{misspelt}")),
        ["disk/web: qos_policy: there is no qos_policy `golt`; did you mean `gold`?"]
    );
    let unknown_store = disk("web", "format = \"raw\"").replace("fast", "fasst");
    assert_eq!(
        errors_of(&unknown_store),
        ["disk/web: store: there is no store `fasst`; did you mean `fast`?"]
    );
}

/// Returns two disks with these keys in store `fast`.
fn pair(first: &str, second: &str) -> String {
    disk("a", first) + &disk("b", second)
}

#[test]
fn nothing_is_used_by_two_disks() {
    let socket = "format = \"raw\"\nvhost_user.socket = \"/run/x\"";
    let server = "format = \"raw\"\nnbd.socket = \"/run/x\"";
    for (tables, message) in [
        (
            pair("format = \"raw\"\nfile = \"x\"", "format = \"vhdx\"\nfile = \"x\""),
            "disk/b: file: file `/srv/fast/x` is already used by disk/a (its `file`); use another \
             file",
        ),
        (
            pair("format = \"raw\"", "format = \"raw\"\nfile = \"a.raw\""),
            "disk/b: file: file `/srv/fast/a.raw` is already used by disk/a (its `file`); use \
             another file",
        ),
        (
            pair(socket, socket),
            "disk/b: vhost_user.socket: socket `/run/x` is already used by disk/a (its \
             `vhost_user.socket`); use another path",
        ),
        (
            pair(server, socket),
            "disk/b: vhost_user.socket: socket `/run/x` is already used by disk/a (its \
             `nbd.socket`); use another path",
        ),
        (
            disk("a", &format!("{socket}\nnbd.socket = \"/run/x\"")),
            "disk/a: nbd.socket: socket `/run/x` is already used by disk/a (its \
             `vhost_user.socket`); use another path",
        ),
        (
            "[[switch]]\nname = \"s\"\nkind = \"private\"\n[[nic]]\nname = \"n\"\nswitch = \"s\"\n\
             backend = \"vhost-user\"\nsocket = \"/run/x\"\n"
                .to_owned()
                + &disk("a", server),
            "disk/a: nbd.socket: socket `/run/x` is already used by nic/n (its `socket`); use \
             another path",
        ),
        (
            pair("format = \"pass-through\"", "format = \"pass-through\""),
            "disk/b: store: the block device of store `fast` is already used by disk/a (its \
             `store`); a pass-through disk uses all of its store; use another store",
        ),
        (
            pair("format = \"raw\"", "format = \"pass-through\""),
            "disk/a: store: store `fast` is a block device and disk/b already uses all of it; \
             name a store that is a directory",
        ),
    ] {
        assert_eq!(errors_of(&tables), [message], "{tables}");
    }
    assert_eq!(errors_of(&pair(server, server)), [""; 0], "disks share an NBD server");
    let other_store = disk("b", "format = \"raw\"\nfile = \"a.raw\"").replace("fast", "slow");
    assert_eq!(errors_of(&(disk("a", "format = \"raw\"") + &other_store)), [""; 0]);
    // One store may contain another; a file in both is still the same file.
    let nested = "[[store]]\nname = \"in\"\npath = \"/srv/fast/in\"\n".to_owned();
    let tables = nested
        + &disk("a", "format = \"raw\"\nfile = \"in/x\"")
        + &disk("b", "format = \"raw\"\nfile = \"x\"").replace("fast", "in");
    assert_eq!(
        errors_of(&tables),
        ["disk/b: file: file `/srv/fast/in/x` is already used by disk/a (its `file`); use \
             another file"]
    );
}

#[test]
fn writing_to_a_parent_is_refused() {
    let child = "format = \"vhdx\"\nkind = \"differencing\"\nparent = \"base.vhdx\"";
    let base = "format = \"vhdx\"\nfile = \"base.vhdx\"";
    assert_eq!(
        errors_of(&pair(child, base)),
        ["disk/a: parent: disk/b writes to `base.vhdx`, which would damage this differencing \
          disk; set read_only = true of that disk, or name another parent"]
    );
    assert_eq!(errors_of(&pair(child, &format!("{base}\nread_only = true"))), [""; 0]);
    assert_eq!(errors_of(&pair(child, child)), [""; 0], "children share a parent");
}

#[test]
fn a_store_has_room_for_so_many_disks() {
    let mut config = read(&disk("web", "format = \"raw\"")).unwrap();
    let first = config.disks[0].clone();
    config.disks = (0..STORE_DISKS_MAX)
        .map(|index| DiskConfig { name: format!("d{index}").parse().unwrap(), ..first.clone() })
        .collect();
    validate(&config).unwrap();
    config.disks.push(DiskConfig { name: "last".parse().unwrap(), ..first });
    let errors = validate(&config).unwrap_err();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["disk/last: store: store `fast` has 4096 disks, the most it can have; name another \
             store, or delete a disk"]
    );
    config.disks.last_mut().unwrap().store = "slow".parse().unwrap();
    validate(&config).unwrap();
}

#[test]
fn values_are_validated_like_files() {
    let mut config = read(&disk("web", "format = \"raw\"")).unwrap();
    config.disks[0].kind = Some(DiskKind::Differencing);
    config.disks[0].logical_sector_bytes = 1024;
    config.disks[0].qos.burst_s = Some(1);
    config.stores[0].queue_depth_max = 0;
    let mut actual: Vec<_> =
        validate(&config).unwrap_err().iter().map(ToString::to_string).collect();
    actual.sort_unstable();
    assert_eq!(
        actual,
        [
            "disk/web: kind: a raw file has no parent; set kind to \"fixed\" or \"dynamic\" (a \
             sparse file), or set format = \"vhdx\"",
            "disk/web: logical_sector: must be one of 512, 4096, not 1024",
            "disk/web: qos.burst_iops: missing; `burst_s` needs a rate: set this key, or remove \
             `burst_s`",
            "store/fast: depth_max: must be a whole number from 1 to 1024, not 0",
        ]
    );
}
