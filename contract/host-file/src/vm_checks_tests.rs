use std::path::Path;

use crate::{ApiError, HostConfig, Plan, parse_toml, to_toml};

const AROUND: &str = r#"
[[switch]]
name = "lan"
kind = "private"
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
[[nic]]
name = "tap"
switch = "lan"
backend = "tap"
[[store]]
name = "fast"
path = "/srv/fast"
[[disk]]
name = "web"
store = "fast"
format = "raw"
"#;

fn read(vm: &str) -> Result<HostConfig, Vec<ApiError>> {
    parse_toml(&format!("{AROUND}{vm}"), None)
}

fn vm(keys: &str) -> String {
    format!("[[vm]]\nname = \"web\"\nmemory_bytes = \"1 GiB\"\nnics = [\"web\"]\n{keys}\n")
}

/// Returns the faults without lines; empty if valid.
fn errors_of(vm: &str) -> Vec<String> {
    let errors = read(vm).err().unwrap_or_default();
    errors
        .into_iter()
        .map(|mut error| {
            error.line = None;
            error.to_string()
        })
        .collect()
}

#[test]
fn nics_and_disks_of_a_vm_need_no_socket() {
    let config = read(&vm("disks = [\"web\"]")).unwrap();
    let full = config.with_derived_sockets();
    let (nic, disk) = (&full.nics[0], &full.disks[0]);
    assert_eq!(nic.socket.as_deref().unwrap().to_str(), Some("/run/suimon/vms/web/n-web"));
    let socket = &disk.vhost_user.as_ref().unwrap().socket;
    assert_eq!(socket.to_str(), Some("/run/suimon/vms/web/d-web"));
    assert_eq!(full.nics[1], config.nics[1], "a TAP is what it was");
    let alone = read("").unwrap();
    assert_eq!(alone.with_derived_sockets(), alone, "a NIC that nobody has waits for a VM");
    assert_eq!(full.with_derived_sockets(), full);

    let in_vm_folder = read(&format!("[host]\nvm_folder = \"/v\"\n{}", vm("")));
    let full = in_vm_folder.unwrap().with_derived_sockets();
    assert_eq!(full.nics[0].socket.as_deref().unwrap().to_str(), Some("/v/web/n-web"));
    assert_eq!(full.disks[0].vhost_user, None);
}

/// Legacy NIC with keys that do not apply to it.
const OLD_NIC: &str = "[[nic]]\nname = \"old\"\nswitch = \"lan\"\nbackend = \"legacy\"\nqueues = 2\n\
                       netns = \"a\"\nmode = \"client\"\noffload.segmentation = false\n";

/// Returns `count` disks on this controller, with these keys.
fn emulated(controller: &str, count: usize, keys: &str) -> String {
    let disk = |number| {
        format!(
            "[[disk]]\nname = \"d{number}\"\nstore = \"fast\"\nformat = \"raw\"\n\
             controller = \"{controller}\"\n{keys}\n"
        )
    };
    (0..count).map(disk).collect()
}

#[test]
fn emulated_devices_have_sockets_in_the_folder_of_their_vm() {
    let legacy = "[[nic]]\nname = \"old\"\nswitch = \"lan\"\nbackend = \"legacy\"\n";
    let text = vm("disks = [\"d0\"]").replace("[\"web\"]", "[\"old\"]");
    let config = read(&format!("{legacy}{}{text}", emulated("ide", 1, ""))).unwrap();
    let full = config.with_derived_sockets();
    let nic = full.nics.iter().find(|nic| nic.name.as_str() == "old").unwrap();
    assert_eq!(nic.socket.as_deref(), Some(Path::new("/run/suimon/vms/web/n-old")));
    let disk = full.disks.iter().find(|disk| disk.name.as_str() == "d0").unwrap();
    assert_eq!(disk.vhost_user, None);
    let socket = config.emulated_disk_socket(disk);
    assert_eq!(socket.as_deref(), Some(Path::new("/run/suimon/vms/web/d-d0")));
    assert_eq!(parse_toml(&to_toml(&config), None).unwrap(), config);
}

#[test]
fn contradicting_keys_are_reported() {
    let long = "x".repeat(63);
    let cases = [
        vm("cpus = 4\ncpus_max = 2"),
        vm("cpus = 0"),
        vm("initrd = \"/boot/initrd\"\ncommand_line = \"quiet\""),
        vm("kernel = \"vmlinuz\""),
        vm("kernel = \"/vmlinuz\"\ncommand_line = \"a\\nb\""),
        vm("disks = [\"web\", \"web\"]"),
        vm("disks = [\"wab\"]"),
        vm("disks = []"),
        vm("").replace("nics = [\"web\"]", "nics = [\"old\"]"),
        format!("{OLD_NIC}{}", vm("")),
        format!(
            "{}{}",
            emulated("ide", 5, ""),
            vm("disks = [\"d0\", \"d1\", \"d2\", \"d3\", \"d4\"]")
        ),
        emulated("sata", 1, "read_only = true\nlogical_sector = 4096"),
        emulated("ide", 1, "[disk.vhost_user]\nsocket = \"/run/d\""),
        vm("firmware = \"efi\"\naccelerator = \"hvf\""),
        vm("").replace("1 GiB", "1 MiB"),
        vm("").replace("1 GiB", "1025 KiB"),
        vm("").replace("nics = [\"web\"]", "nics = [\"web\", \"tap\"]"),
        format!("{}{}", vm(""), vm("").replace("name = \"web\"", "name = \"other\"")),
        format!("{}{}", vm(""), vm("").replace("nics = [\"web\"]\n", "")),
        vm("").replace("name = \"web\"", &format!("name = \"{long}\""))
            + &format!("\n[host]\nvm_folder = \"/{long}\"\n"),
    ];
    let errors: Vec<_> = cases.iter().map(|case| errors_of(case).join("\n")).collect();
    insta::assert_snapshot!(errors.join("\n---\n"));
}

#[test]
fn a_vm_is_written_as_it_was_read() {
    let text = vm("disks = [\"web\"]\ncpus = 2\nkernel = \"/boot/vmlinuz\"\nautostart = true");
    let config = read(&text).unwrap();
    assert_eq!(parse_toml(&to_toml(&config), None).unwrap(), config);
    assert!(to_toml(&config).contains("memory_bytes = \"1 GiB\""));
}

#[test]
fn plans_list_changes_for_the_next_start() {
    let plan = |from: &str, to: &str| {
        let plan = Plan::between(&read(from).unwrap(), &read(to).unwrap());
        plan.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let small = vm("");
    let large = small.replace("1 GiB", "2 GiB");
    let plans = [
        plan(&small, &format!("{small}[[vm]]\nname = \"b\"\nmemory_bytes = 16777216")),
        plan(&small, &large),
        plan(&small, &vm("disks = [\"web\"]\nautostart = true\ncpus_max = 1")),
    ];
    insta::assert_snapshot!(plans.join("\n---\n"));
}
