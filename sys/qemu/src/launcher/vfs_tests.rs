use std::fs::{create_dir_all, read_to_string, write};
use std::os::unix::fs::symlink;
use std::time::Instant;

use rustix::fs::{CWD, mkfifoat};
use rustix::process::{WaitId, WaitIdOptions, getrlimit, setrlimit, waitid};

use super::*;

const ADDRESS: &str = "0000:01:10.0";

/// Creates a sysfs tree with one VF, bound to `driver` and alone in its group. Writes to its files
/// have no further effect.
fn tree(driver: &str) -> (tempfile::TempDir, Vfs) {
    let root = tempfile::tempdir().unwrap();
    let path_to = |path: &str| root.path().join(path);
    let folder = path_to("sys/bus/pci/devices").join(ADDRESS);
    for path in ["sys/kernel/iommu_groups/7/devices/x", "dev", "sys/pf", "sys/drivers"] {
        create_dir_all(path_to(path)).unwrap();
    }
    create_dir_all(path_to("sys/drivers").join(driver)).unwrap();
    create_dir_all(&folder).unwrap();
    write(folder.join("class"), "0x020000\n").unwrap();
    symlink(path_to("sys/pf"), folder.join("physfn")).unwrap();
    symlink(path_to("sys/kernel/iommu_groups/7"), folder.join("iommu_group")).unwrap();
    symlink(path_to("sys/drivers").join(driver), folder.join("driver")).unwrap();
    write(path_to("dev/7"), "").unwrap();
    let vfs = Vfs { sysfs: path_to("sys"), groups: path_to("dev"), ..Vfs::default() };
    (root, vfs)
}

fn error(vfs: &Vfs) -> String {
    vfs.find(ADDRESS.parse().unwrap()).unwrap_err().text
}

#[test]
fn only_an_isolated_function_of_an_adapter_is_given() {
    let (root, vfs) = tree("igbvf");
    let path_to = |path: &str| root.path().join(path);
    assert_eq!(vfs.find(ADDRESS.parse().unwrap()).unwrap().group, "7");
    create_dir_all(path_to("sys/kernel/iommu_groups/7/devices/y")).unwrap();
    assert!(error(&vfs).contains("with 1 more devices"));
    let folder = path_to("sys/bus/pci/devices").join(ADDRESS);
    fs::remove_file(folder.join("iommu_group")).unwrap();
    assert!(error(&vfs).contains("intel_iommu=on"));
    fs::remove_file(folder.join("physfn")).unwrap();
    assert!(error(&vfs).contains("not a VF"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(error(&vfs).contains("any more"));
    // A VF that no longer exists does not have to be removed from the VM.
    vfs.remove_from_vm(ADDRESS.parse().unwrap(), "web").unwrap();
}

#[test]
fn a_function_refused_by_vfio_is_reported_and_a_released_one_is_unassigned() {
    let (root, vfs) = tree("igbvf");
    let path_to = |path: &str| root.path().join(path);
    let vf = vfs.find(ADDRESS.parse().unwrap()).unwrap();
    let text = vfs.bind(&vf, &lock(&vf).unwrap()).unwrap_err().text;
    assert!(text.contains("modprobe vfio-pci"), "{text}");
    let folder = path_to("sys/bus/pci/devices").join(ADDRESS);
    assert_eq!(read_to_string(folder.join("driver_override")).unwrap(), VFIO);
    assert_eq!(read_to_string(path_to("sys/drivers/igbvf/unbind")).unwrap(), ADDRESS);
    assert_eq!(read_to_string(path_to("sys/bus/pci/drivers_probe")).unwrap(), ADDRESS);
    if LauncherUser::current() == LauncherUser::Unprivileged {
        return;
    }
    let (root, vfs) = tree(VFIO);
    let vf = vfs.find(ADDRESS.parse().unwrap()).unwrap();
    vfs.own_group(&vf, 70_000).unwrap();
    let owner = || {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(root.path().join("dev/7")).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o777)
    };
    assert_eq!(owner(), (70_000, 70_000, 0o600));
    vfs.remove_from_vm(ADDRESS.parse().unwrap(), "web").unwrap();
    assert_eq!(owner(), (0, 0, 0o600));
    assert_eq!(read_to_string(root.path().join("sys/drivers/vfio-pci/unbind")).unwrap(), ADDRESS);
}

/// Makes a write to `unbind` of `vfio-pci` block, as the kernel does while QEMU has the VF open,
/// and shortens the time limit. Returns the path of the file. Reading it simulates that QEMU closes
/// the VF.
fn hold(root: &Path, vfs: &mut Vfs) -> PathBuf {
    let unbind = root.join("sys/drivers/vfio-pci/unbind");
    mkfifoat(CWD, &unbind, Mode::from_raw_mode(0o600)).unwrap();
    vfs.limit = Duration::from_millis(100);
    unbind
}

fn error_of_take(vfs: &Vfs) -> VmError {
    vfs.remove_from_vm(ADDRESS.parse().unwrap(), "web").unwrap_err()
}

#[test]
fn a_qemu_that_keeps_a_vf_open_blocks_no_thread_and_one_change_is_pending() {
    let (root, mut vfs) = tree(VFIO);
    let unbind = hold(root.path(), &mut vfs);
    let probed = root.path().join("sys/bus/pci/drivers_probe");
    for _ in 0..3 {
        let started_at = Instant::now();
        let error = error_of_take(&vfs);
        assert!(started_at.elapsed() < Duration::from_secs(60));
        assert_eq!(error.kind, VmErrorKind::Busy);
        for part in [ADDRESS, "VM web", "`suimon vm kill web`"] {
            assert!(error.text.contains(part), "{}", error.text);
        }
    }
    assert_eq!(vfs.unfinished.lock().unwrap().len(), 1);
    // A launcher that is started meanwhile does not block either.
    let limit = Duration::from_secs(600);
    let next =
        Vfs { sysfs: vfs.sysfs.clone(), groups: vfs.groups.clone(), limit, ..Vfs::default() };
    let started_at = Instant::now();
    assert_eq!(error_of_take(&next).kind, VmErrorKind::Busy);
    assert!(started_at.elapsed() < limit / 2);
    assert!(!probed.exists());
    // QEMU closes the VF: the pending change continues, and the VF is free afterwards.
    fs::remove_file(root.path().join("sys/bus/pci/devices").join(ADDRESS).join("driver")).unwrap();
    assert_eq!(read_to_string(&unbind).unwrap(), ADDRESS);
    // From here on changes end, and their child processes need CPU time.
    vfs.limit = Duration::from_secs(60);
    let limit = Instant::now() + Duration::from_secs(60);
    while vfs.remove_from_vm(ADDRESS.parse().unwrap(), "web").is_err() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
    vfs.remove_from_vm(ADDRESS.parse().unwrap(), "web").unwrap();
    assert_eq!(read_to_string(probed).unwrap(), ADDRESS);
    vfs.maintain();
    assert!(vfs.unfinished.lock().unwrap().is_empty());
}

#[test]
fn a_vf_that_is_open_is_not_unbound() {
    let (root, mut vfs) = tree(VFIO);
    vfs.is_open = |group| group.ends_with("7");
    let error = error_of_take(&vfs);
    assert_eq!(error.kind, VmErrorKind::Busy);
    assert!(error.text.contains("VM web"), "{}", error.text);
    let unbound = root.path().join("sys/drivers/vfio-pci/unbind");
    assert!(!unbound.exists());
    assert!(vfs.unfinished.lock().unwrap().is_empty());
    vfs.is_open = is_group_open;
    vfs.remove_from_vm(ADDRESS.parse().unwrap(), "web").unwrap();
    assert_eq!(read_to_string(unbound).unwrap(), ADDRESS);
}

#[test]
fn errors_of_writes_are_reported() {
    let (root, vfs) = tree(VFIO);
    create_dir_all(root.path().join("sys/bus/pci/drivers_probe")).unwrap();
    let error = error_of_take(&vfs);
    assert_eq!(error.kind, VmErrorKind::Host);
    assert!(error.text.contains("Is a directory"), "{}", error.text);
}

/// Returns true if this process, which runs one test only, has no child process, not even one that
/// is not reaped.
fn has_no_child() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Runs `work` while this process can open or poll no descriptor.
fn without_descriptors<T>(work: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).unwrap();
    let result = work();
    setrlimit(Resource::Nofile, limit).unwrap();
    result
}

#[test]
fn every_child_is_reaped_also_after_errors() {
    let (root, mut vfs) = tree(VFIO);
    let vf = vfs.find(ADDRESS.parse().unwrap()).unwrap();
    let lock_of_vf = lock(&vf).unwrap();
    let texts = [SysfsWrite::new(&root.path().join("sys/written"), "x").unwrap()];
    // Without a descriptor, no child is started.
    let started =
        without_descriptors(|| vfs.writers.start(&texts, lock_of_vf.as_fd(), CHANGES_MAX));
    assert!(started.is_err() && has_no_child());
    // A failed wait keeps the child, which is reaped later.
    let writer = vfs.writers.start(&texts, lock_of_vf.as_fd(), CHANGES_MAX).unwrap();
    assert!(without_descriptors(|| writer.wait(Duration::from_secs(1))).is_none());
    writer.wait(Duration::from_secs(20)).unwrap().unwrap();
    assert!(has_no_child());
    drop((writer, lock_of_vf));
    // The same for a change that has exceeded its time limit.
    let unbind = hold(root.path(), &mut vfs);
    assert_eq!(error_of_take(&vfs).kind, VmErrorKind::Busy);
    without_descriptors(|| vfs.maintain());
    assert_eq!(vfs.unfinished.lock().unwrap().len(), 1);
    assert_eq!(read_to_string(&unbind).unwrap(), ADDRESS);
    let limit = Instant::now() + Duration::from_secs(20);
    while !vfs.unfinished.lock().unwrap().is_empty() {
        assert!(Instant::now() < limit, "the child is not reaped");
        vfs.maintain();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(has_no_child());
    // A write that fails.
    create_dir_all(root.path().join("sys/directory")).unwrap();
    let texts = [SysfsWrite::new(&root.path().join("sys/directory"), "x").unwrap()];
    let lock_of_vf = lock(&vf).unwrap();
    let writer = vfs.writers.start(&texts, lock_of_vf.as_fd(), CHANGES_MAX).unwrap();
    assert!(writer.wait(Duration::from_secs(20)).unwrap().is_err());
    assert!(has_no_child());
}

#[test]
fn the_number_of_changes_in_progress_is_bounded() {
    let (root, mut vfs) = tree(VFIO);
    vfs.changes_max = 1;
    let unbind = hold(root.path(), &mut vfs);
    assert_eq!(error_of_take(&vfs).kind, VmErrorKind::Busy);
    // Another VF.
    let vf = vfs.find(ADDRESS.parse().unwrap()).unwrap();
    let set = Vf { folder: root.path().join("sys/pf"), ..vf };
    let lock_of_other = lock(&set).unwrap();
    let writes = [(root.path().join("sys/written"), "x".to_owned())];
    let error = vfs.write(&set, &lock_of_other, &writes).unwrap_err();
    assert_eq!(error.kind, VmErrorKind::Busy);
    assert!(error.text.contains("1 changes of drivers have not ended"), "{}", error.text);
    assert_eq!(read_to_string(&unbind).unwrap(), ADDRESS);
    let limit = Instant::now() + Duration::from_secs(20);
    while vfs.write(&set, &lock_of_other, &writes).is_err() {
        assert!(Instant::now() < limit, "ended changes count");
        std::thread::sleep(Duration::from_millis(5));
    }
}
