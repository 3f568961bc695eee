//! Tests with trees like `/sys`, valid and invalid. Real ones are tested in a VM with an adapter
//! (`testing/rig/tests/sriov/adapters.rs`).

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use suimon_ports::SriovSupport;

use super::*;

/// Simulated sysfs tree in a temporary directory.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        let root = std::env::temp_dir().join(crate::testing::unique("sysfs"));
        fs::create_dir_all(root.join("bus/pci/devices")).unwrap();
        Self(root)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.0.join("devices/pci0000:00").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.0.join("devices/pci0000:00").join(path);
        let _ = fs::remove_file(&path);
        symlink(to, path).unwrap();
    }

    /// Adds an adapter with two VFs at 0000:01:00.0, behind a port with the buses 1 to 2.
    fn adapter(&self) {
        let port = "0000:00:01.0";
        self.write(&format!("{port}/subordinate_bus_number"), "2\n");
        let pf = format!("{port}/0000:01:00.0");
        for (file, content) in [
            ("class", "0x020000\n"),
            ("sriov_totalvfs", "7\n"),
            ("sriov_numvfs", "2\n"),
            ("sriov_offset", "128\n"),
            ("sriov_stride", "2\n"),
            ("numa_node", "-1\n"),
        ] {
            self.write(&format!("{pf}/{file}"), content);
        }
        let bar = "0x00000000fe000000 0x00000000fe003fff 0x0000000000140204\n";
        let none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
        let resource = format!("{}{bar}{}", none.repeat(7), none.repeat(5));
        self.write(&format!("{pf}/resource"), &resource);
        self.link(&format!("{pf}/driver"), "../../../../bus/pci/drivers/igb");
        self.link(&format!("{pf}/iommu_group"), "../../../../kernel/iommu_groups/12");
        self.top(&pf);
        for index in 0..2 {
            let vf = format!("{port}/0000:01:10.{}", index * 2);
            self.write(&format!("{vf}/class"), "0x020000\n");
            self.link(&format!("{vf}/driver"), "../../../../bus/pci/drivers/igbvf");
            self.link(&format!("{pf}/virtfn{index}"), &format!("../0000:01:10.{}", index * 2));
            self.top(&vf);
        }
        let group = self.0.join("kernel/iommu_groups/12/devices");
        fs::create_dir_all(&group).unwrap();
        symlink("../../../../bus/pci/devices/0000:01:00.0", group.join("0000:01:00.0")).unwrap();
    }

    /// Adds a function to the list of PCI devices.
    fn top(&self, path: &str) {
        let name = path.rsplit('/').next().unwrap();
        let to = format!("../../../devices/pci0000:00/{path}");
        symlink(to, self.0.join("bus/pci/devices").join(name)).unwrap();
    }

    fn adapters(&self) -> SriovAdapters {
        SriovAdapters::new(&self.0)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PF: &str = "0000:00:01.0/0000:01:00.0";

#[test]
fn an_adapter_and_its_vfs_are_found() {
    let tree = Tree::new();
    assert_eq!(tree.adapters().adapters().unwrap(), []);
    tree.adapter();
    let actual = tree.adapters().adapters().unwrap();
    let [pf] = actual.as_slice() else { panic!("{actual:?}") };
    assert_eq!(pf.address.to_string(), "0000:01:00.0");
    assert_eq!((pf.vfs_max, pf.iommu_group, pf.numa_node), (7, Some(12), None));
    assert_eq!(pf.driver.as_deref(), Some("igb"));
    assert_eq!(pf.support, SriovSupport::Supported);
    let vfs: Vec<_> = pf.vfs.iter().map(|vf| (vf.index, vf.address.to_string())).collect();
    assert_eq!(vfs, [(0, "0000:01:10.0".to_owned()), (1, "0000:01:10.2".to_owned())]);
    assert_eq!(pf.vfs[1].driver.as_deref(), Some("igbvf"));
    let file = tree.0.join("bus/pci/devices/0000:01:00.0/sriov_numvfs");
    assert_eq!(tree.adapters().count_files(), [file]);
}

#[test]
fn each_reason_against_support_is_reported() {
    let tree = Tree::new();
    tree.adapter();
    let support = || tree.adapters().adapters().unwrap()[0].support;
    let group = tree.0.join("kernel/iommu_groups/12/devices/0000:05:00.0");
    fs::create_dir(&group).unwrap();
    fs::write(group.join("class"), "0x060400\n").unwrap();
    assert_eq!(support(), SriovSupport::Supported, "a bridge does not count");
    fs::write(group.join("class"), "0x010802\n").unwrap();
    assert_eq!(support(), SriovSupport::MissingAcs);
    fs::remove_file(tree.0.join(format!("devices/pci0000:00/{PF}/iommu_group"))).unwrap();
    assert_eq!(support(), SriovSupport::NoIommu);
    tree.write(&format!("{PF}/sriov_offset"), "256\n");
    tree.write("0000:00:01.0/subordinate_bus_number", "1\n");
    assert_eq!(support(), SriovSupport::NoBusResources);
    let none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    tree.write(&format!("{PF}/resource"), &none.repeat(13));
    assert_eq!(support(), SriovSupport::NoVfBarSpace);
    tree.link(&format!("{PF}/driver"), "../../../../bus/pci/drivers/vfio-pci");
    assert_eq!(support(), SriovSupport::MissingPfDriver);
    fs::remove_file(tree.0.join(format!("devices/pci0000:00/{PF}/driver"))).unwrap();
    assert_eq!(support(), SriovSupport::MissingPfDriver);
}

#[test]
fn a_changed_vf_count_is_written_after_zero_and_refusals_contain_a_remedy() {
    let tree = Tree::new();
    tree.adapter();
    let adapters = tree.adapters();
    let pf: PciAddress = "0000:01:00.0".parse().unwrap();
    let file = tree.0.join("bus/pci/devices/0000:01:00.0/sriov_numvfs");
    adapters.set_vf_count(pf, 2).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "2\n");
    adapters.set_vf_count(pf, 5).unwrap();
    // A regular file contains the result of the last write, while sysfs processes each write.
    assert_eq!(fs::read_to_string(&file).unwrap(), "5\n");
    let error = adapters.set_vf_count("0000:09:00.0".parse().unwrap(), 1).unwrap_err();
    assert_eq!((error.kind, error.field), (DeviceErrorKind::Missing, "device"));
    for (errno, kind, part) in [
        (Errno::NOENT, DeviceErrorKind::Unsupported, "load the driver"),
        (Errno::RANGE, DeviceErrorKind::Unsupported, "at most 7 VFs"),
        (Errno::NOMEM, DeviceErrorKind::Unsupported, "pci=realloc"),
        (Errno::BUSY, DeviceErrorKind::Busy, "a VM may use"),
        (Errno::ROFS, DeviceErrorKind::Denied, "restart it"),
        (Errno::IO, DeviceErrorKind::Host, "5 VFs"),
    ] {
        let error = refused_count(pf, 5, 7, &errno.into());
        assert_eq!((error.kind, error.field), (kind, "vfs"));
        assert!(error.detail.contains(part), "{}", error.detail);
    }
}

#[test]
fn fifos_in_place_of_sysfs_files_do_not_block() {
    let tree = Tree::new();
    tree.adapter();
    let pf = tree.0.join(format!("devices/pci0000:00/{PF}"));
    for file in ["resource", "numa_node", "sriov_offset"] {
        fs::remove_file(pf.join(file)).unwrap();
        crate::testing::run(&format!("mkfifo {}", pf.join(file).display()));
    }
    fs::remove_file(pf.join("driver")).unwrap();
    symlink("driver", pf.join("driver")).unwrap();
    symlink("/", pf.join("virtfn9")).unwrap();
    symlink(".", pf.join("virtfn70000")).unwrap();
    fs::write(pf.join("class"), [0xff; 9000]).unwrap();
    assert_eq!(tree.adapters().adapters().unwrap(), []);
    fs::write(pf.join("class"), "0x020000").unwrap();
    assert_eq!(tree.adapters().adapters().unwrap()[0].vfs.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_content_causes_a_panic(
        contents in prop::collection::vec("[0-9a-fx \\n-]{0,40}", 6),
        link in "[a-z0-9:./]{1,20}",
    ) {
        let tree = Tree::new();
        tree.adapter();
        let files = [
            "sriov_totalvfs", "sriov_numvfs", "sriov_offset", "sriov_stride", "numa_node",
            "resource",
        ];
        for (file, content) in files.iter().zip(&contents) {
            tree.write(&format!("{PF}/{file}"), content);
        }
        tree.link(&format!("{PF}/virtfn1"), &link);
        tree.link(&format!("{PF}/iommu_group"), &link);
        let adapters = tree.adapters().adapters().unwrap();
        prop_assert!(adapters.len() <= 1);
        let _ = tree.adapters().set_vf_count("0000:01:00.0".parse().unwrap(), 1);
    }
}
