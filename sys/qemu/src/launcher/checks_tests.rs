use std::path::PathBuf;

use suimon_ports::{VmBoot, VmErrorKind, VmSpec};

use super::check_memory;

const MEMINFO: &str = "MemTotal:       8000000 kB\nMemFree:         100000 kB\n\
    MemAvailable:   1048576 kB\nHugePages_Total:      10\nHugePages_Free:        6\n\
    HugePages_Rsvd:        2\nHugepagesize:       2048 kB\n";

fn spec(mib: u64, huge_pages: bool) -> VmSpec {
    VmSpec {
        name: "a".to_owned(),
        uuid: [0; 16],
        folder: PathBuf::from("/run/vms/a"),
        uid: 3_000_000,
        cpus: 1,
        cpus_max: 1,
        memory_bytes: mib << 20,
        huge_pages,
        accelerator: None,
        boot: VmBoot::Bios,
        nics: Vec::new(),
        disks: Vec::new(),
        cdrom: None,
        migration_requirements: None,
    }
}

#[test]
fn memory_that_is_left_is_enough() {
    check_memory(&spec(1024, false), MEMINFO).unwrap();
    let error = check_memory(&spec(1025, false), MEMINFO).unwrap_err();
    assert_eq!(error.kind, VmErrorKind::Host);
    assert!(error.text.contains("1025 MiB") && error.text.contains("1024 MiB"), "{error}");
}

#[test]
fn unreserved_huge_pages_are_enough() {
    check_memory(&spec(8, true), MEMINFO).unwrap();
    let error = check_memory(&spec(10, true), MEMINFO).unwrap_err();
    assert!(error.text.contains("5 huge pages") && error.text.contains("4 are free"), "{error}");
    check_memory(&spec(7, true), MEMINFO).unwrap_err();
    check_memory(&spec(8, true), "").unwrap_err();
}
