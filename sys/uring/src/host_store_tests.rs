//! Tests that names do not lead out of the store, that only regular files are opened, and that an
//! image has one writer.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode};
use suimon_image::FileError;
use suimon_ports::{FileLockMode, FileName, StoreFault, StoreFileError, StoreFiles, StoreOpener};
use tempfile::TempDir;

use crate::host_file_tests::folder;
use crate::{HostStore, HostStores};

fn store() -> (TempDir, HostStore) {
    let folder = folder();
    let store = HostStore::open(folder.path()).unwrap();
    (folder, store)
}

fn name(name: &str) -> FileName {
    FileName::new(name).unwrap()
}

fn create_file(store: &HostStore, file_name: &str, bytes: &[u8]) {
    let file = store.create(&name(file_name), 512).unwrap();
    file.write_at(0, bytes).unwrap();
    file.flush().unwrap();
}

/// Returns the name of the fault's variant.
fn fault<T>(result: Result<T, StoreFileError>) -> String {
    let text = format!("{:?}", result.err().expect("an error").fault);
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

#[test]
fn links_and_irregular_files_are_refused_for_every_operation() {
    let (folder, store) = store();
    let outside = crate::host_file_tests::folder();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, [7; 512]).unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/image"), [1; 512]).unwrap();
    symlink(&secret, folder.path().join("absolute")).unwrap();
    symlink("sub/image", folder.path().join("inside")).unwrap();
    symlink(outside.path(), folder.path().join("out")).unwrap();
    symlink("/proc/self/root", folder.path().join("magic")).unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, folder.path().join("fifo"), FileType::Fifo, mode, 0).unwrap();
    let _listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let device = rustix::fs::makedev(1, 3);
    let device = folder.path().join("device").to_str().map(|path| {
        rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, mode, device).is_ok()
    });
    let mut cases = vec![
        ("absolute", "SymbolicLink"),
        ("inside", "SymbolicLink"),
        ("out/secret", "SymbolicLink"),
        ("magic/etc/passwd", "SymbolicLink"),
        ("dangling", "SymbolicLink"),
        ("fifo", "NotRegular"),
        ("socket", "NotRegular"),
        ("sub", "NotRegular"),
        ("gone", "Missing"),
        ("gone/image", "Missing"),
    ];
    if device == Some(true) {
        cases.push(("device", "NotRegular"));
    }
    for (file, expected) in cases {
        let file_name = name(file);
        for used in [FileLockMode::Read, FileLockMode::Write] {
            assert_eq!(fault(store.open(&file_name, used, 512)), expected, "open {file}");
        }
        assert_eq!(fault(store.status(&file_name)), expected, "status {file}");
        assert_eq!(fault(store.reserve(&file_name)), expected, "reserve {file}");
        assert_eq!(fault(store.remove(&file_name)), expected, "remove {file}");
        assert_eq!(fault(store.rename(&file_name, &name("new"))), expected, "rename {file}");
    }
    for file in ["absolute", "dangling", "fifo", "sub", "sub/image"] {
        assert_eq!(fault(store.create(&name(file), 512)), "Exists", "create {file}");
    }
    for file in ["out/new", "magic/new"] {
        assert_eq!(fault(store.create(&name(file), 512)), "SymbolicLink", "create {file}");
        assert_eq!(fault(store.rename(&name("sub/image"), &name(file))), "SymbolicLink", "{file}");
        assert_eq!(fault(store.replace(&name("sub/image"), &name(file))), "SymbolicLink", "{file}");
    }
    assert_eq!(std::fs::read(&secret).unwrap(), [7; 512]);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(store.open(&name("sub/image"), FileLockMode::Read, 512).is_ok());
}

#[test]
fn a_store_is_a_directory_or_a_block_device() {
    let (folder, store) = store();
    let path = folder.path().join("gone");
    assert_eq!(fault(HostStore::open(&path)), "Missing");
    std::fs::write(&path, "").unwrap();
    assert_eq!(fault(HostStore::open(&path)), "WrongStoreType");
    assert_eq!(fault(store.open_device(FileLockMode::Read, 512)), "WrongStoreType");
    let space = store.space().unwrap();
    assert!(space.total_bytes > space.free_bytes && space.free_bytes > 0, "{space:?}");
    // The sum is constant regardless of concurrent writes to the file system.
    let df = Command::new("df").args(["-B1", "--output=used,avail"]).arg(folder.path()).output();
    let df = String::from_utf8(df.unwrap().stdout).unwrap();
    let sum: u64 = df.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum();
    assert_eq!(space.total_bytes, sum, "{df}");
    // The store's own path may contain a link: the operator has configured it.
    let link = folder.path().join("link");
    symlink(folder.path(), &link).unwrap();
    HostStore::open(&link).unwrap().status(&name("gone")).unwrap();
}

#[test]
fn one_writes_or_many_read() {
    let (folder, store) = store();
    let reopened = HostStore::open(folder.path()).unwrap();
    let image = name("image");
    let writer = store.create(&image, 512).unwrap();
    for used in [FileLockMode::Read, FileLockMode::Write] {
        let error = reopened.open(&image, used, 512).err().unwrap();
        assert!(matches!(error.fault, StoreFault::InUse { .. }), "{error}");
    }
    writer.write_at(0, &[7; 512]).unwrap();
    let mut bytes = [0; 512];
    let unlocked = reopened.open_unlocked(&image, 512).unwrap();
    unlocked.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 512]);
    drop(unlocked);
    assert_eq!(fault(reopened.open(&image, FileLockMode::Read, 512)), "InUse");
    drop(writer);
    let first = store.open(&image, FileLockMode::Read, 512).unwrap();
    let second = reopened.open(&image, FileLockMode::Read, 512).unwrap();
    assert_eq!(fault(reopened.open(&image, FileLockMode::Write, 512)), "InUse");
    drop(first);
    assert_eq!(fault(reopened.open(&image, FileLockMode::Write, 512)), "InUse");
    assert!(second.write_at(0, &[1; 512]).is_err());
    drop(second);
    reopened.open(&image, FileLockMode::Write, 512).unwrap().write_at(0, &[1; 512]).unwrap();
}

#[test]
fn a_lock_ends_with_its_file_while_processes_are_started() {
    let (_folder, store) = store();
    let image = name("image");
    drop(store.create(&image, 512).unwrap());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Each forked process has a copy of all descriptors for a short time.
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        let opened = (0..3000).map(|_| store.open(&image, FileLockMode::Write, 512).map(drop));
        let failed: Vec<StoreFileError> = opened.filter_map(Result::err).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(failed.is_empty(), "{failed:?}");
    });
}

/// Returns true if a QEMU program succeeded on the image, false if it was locked.
fn qemu(program: &str, arguments: &[&str], folder: &TempDir) -> bool {
    let output = Command::new(program).args(arguments).arg(folder.path().join("image")).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; run scripts/setup"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || stderr.contains("lock"), "{stderr}");
    output.status.success()
}

#[test]
fn locks_exclude_qemu_and_the_reverse() {
    let (folder, store) = store();
    let image = name("image");
    let path = folder.path().join("image");
    let status = Command::new("qemu-img")
        .args(["create", "-q", "-f", "vhdx"])
        .args([path.as_os_str(), "8M".as_ref()])
        .status();
    assert!(status.unwrap().success());
    let write = ["-f", "vhdx", "-c", "write -P 1 0 512"];
    let read = ["-r", "-f", "vhdx", "-c", "read 0 512"];
    let writer = store.open(&image, FileLockMode::Write, 512).unwrap();
    assert!(!qemu("qemu-io", &write, &folder));
    assert!(!qemu("qemu-io", &read, &folder));
    assert!(!qemu("qemu-img", &["check", "-f", "vhdx"], &folder));
    drop(writer);
    let reader = store.open(&image, FileLockMode::Read, 512).unwrap();
    assert!(!qemu("qemu-io", &write, &folder));
    assert!(qemu("qemu-io", &read, &folder));
    assert!(qemu("qemu-img", &["check", "-f", "vhdx"], &folder));
    drop(reader);
    // QEMU keeps the image locked until its input ends.
    let mut child = Command::new("qemu-io")
        .args(["-f", "vhdx"])
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_locked = || store.open(&image, FileLockMode::Read, 512).is_err();
    let waited = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        is_locked()
    });
    assert!(waited, "QEMU took no lock in two minutes");
    assert_eq!(fault(store.open(&image, FileLockMode::Write, 512)), "InUse");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(store.open(&image, FileLockMode::Write, 512).is_ok());
}

#[test]
fn files_are_renamed_and_replace_others() {
    let (folder, store) = store();
    std::fs::create_dir_all(folder.path().join("sub/below")).unwrap();
    create_file(&store, "a.vhd", &[1; 512]);
    create_file(&store, "b.vhd", &[2; 512]);
    let (a, b) = (name("a.vhd"), name("b.vhd"));
    assert_eq!(fault(store.rename(&a, &b)), "Exists");
    let open = store.open(&a, FileLockMode::Read, 512).unwrap();
    store.rename(&a, &name("sub/c.vhd")).unwrap();
    assert_eq!(fault(store.status(&a)), "Missing");
    store.replace(&b, &name("sub/c.vhd")).unwrap();
    let mut bytes = [0; 512];
    open.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 512], "the descriptor does not refer to the replaced file");
    assert_eq!(std::fs::read(folder.path().join("sub/c.vhd")).unwrap(), [2; 512]);
    create_file(&store, "sub/below/d.vhd", &[3; 512]);
    create_file(&store, "e.raw", &[3; 512]);
    symlink("e.raw", folder.path().join("f.vhd")).unwrap();
    let names = store.names(".vhd").unwrap();
    assert_eq!(names, [name("sub/below/d.vhd"), name("sub/c.vhd")]);
    let names = store.names_with(&[".vhd", ".raw"]).unwrap();
    assert_eq!(names, [name("e.raw"), name("sub/below/d.vhd"), name("sub/c.vhd")]);
    store.remove(&name("sub/c.vhd")).unwrap();
    assert_eq!(store.names("").unwrap().len(), 2);
}

#[test]
fn reserved_space_is_allocated_and_holes_are_not() {
    let (_folder, store) = store();
    let image = name("image");
    let file = store.create(&image, 512).unwrap();
    file.set_len(4 << 20).unwrap();
    file.write_at(512, &[5; 512]).unwrap();
    let holes = store.status(&image).unwrap();
    assert!(holes.len == 4 << 20 && holes.allocated_bytes < 1 << 20, "{holes:?}");
    store.reserve(&image).unwrap();
    let full = store.status(&image).unwrap();
    assert!(full.len == 4 << 20 && full.allocated_bytes >= 4 << 20, "{full:?}");
    assert!(full.modified_unix_s > 1_600_000_000, "{full:?}");
    store.set_modified(&image, 1_000_000_000).unwrap();
    assert_eq!(store.status(&image).unwrap().modified_unix_s, 1_000_000_000);
    let mut bytes = [0; 1024];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!((bytes[0], bytes[512]), (0, 5));
    let FileError::BeyondEnd { len, .. } = file.read_at(4 << 20, &mut bytes).unwrap_err() else {
        panic!("it ends there");
    };
    assert_eq!(len, 4 << 20);
}

#[test]
fn a_directory_that_replaces_the_open_one_has_another_identity() {
    let folder = folder();
    let path = folder.path().join("store");
    std::fs::create_dir(&path).unwrap();
    let store = HostStore::open(&path).unwrap();
    assert_eq!(HostStores.identity(&path).unwrap(), store.identity());
    std::fs::rename(&path, folder.path().join("hidden")).unwrap();
    let missing = HostStores.identity(&path).unwrap_err();
    assert!(missing.is_missing(), "{missing}");
    std::fs::create_dir(&path).unwrap();
    assert_ne!(HostStores.identity(&path).unwrap(), store.identity());
    assert_ne!(HostStores.identity(folder.path()).unwrap(), store.identity());
}

/// Loop device of a file. [`Loop::new`] returns `None` without the necessary rights.
struct Loop(std::path::PathBuf);

impl Loop {
    fn new(file: &std::path::Path) -> Option<Self> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let path = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(Self(path.trim().into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

#[test]
fn a_block_device_is_one_file_and_has_one_writer() {
    let folder = folder();
    let file = folder.path().join("device");
    std::fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
    let Some(device) = Loop::new(&file) else {
        eprintln!("no loop devices here: nothing was tried");
        return;
    };
    let store = HostStore::open(&device.0).unwrap();
    assert_eq!(store.space().unwrap().total_bytes, 8 << 20);
    assert!(store.names("").unwrap().is_empty());
    assert_eq!(fault(store.open(&name("a"), FileLockMode::Read, 512)), "WrongStoreType");
    assert_eq!(fault(store.create(&name("a"), 512)), "WrongStoreType");
    let writer = store.open_device(FileLockMode::Write, 512).unwrap();
    assert!(writer.properties().is_block_device && writer.properties().len == 8 << 20);
    writer.write_at(4096, &[7; 512]).unwrap();
    writer.flush().unwrap();
    for used in [FileLockMode::Read, FileLockMode::Write] {
        assert_eq!(fault(store.open_device(used, 512)), "InUse", "{used:?}");
    }
    drop(writer);
    let reader = store.open_device(FileLockMode::Read, 512).unwrap();
    let mut bytes = [0; 512];
    reader.read_at(4096, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 512]);
    assert!(store.open_device(FileLockMode::Read, 512).is_ok());
    assert_eq!(fault(store.open_device(FileLockMode::Write, 512)), "InUse");
}
