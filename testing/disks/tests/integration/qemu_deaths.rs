//! Tests that QEMU continues with a restarted process after the process that serves a VM's disk
//! dies repeatedly under load.
//!
//! `SUIMON_DISK_DEATHS` is the number of kills for each ring format.

use std::time::Duration;

use crate::served::{MIB, ServedDisk, guest};
use suimon_rig::{Guest, GuestDisk, Rig, wait_until};

/// Number of kills, unless `SUIMON_DISK_DEATHS` is set.
const DEATHS: u64 = 30;
/// Minimum number of writes that the guest completes between two kills.
const WRITES_PER_LIFE: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(180);

/// Returns the number of completed writes to the disk according to the guest's kernel.
fn written(vm: &mut Guest) -> u64 {
    let output = vm.run("grep ' vda ' /proc/diskstats").unwrap();
    output.split_whitespace().nth(7).unwrap().parse().unwrap()
}

/// The guest observes delays only: no write is lost, repeated or completed with an error.
fn assert_survives(deaths: u64, change: impl FnOnce(&mut GuestDisk), options: &str) {
    let rig = Rig::new().unwrap();
    let mut served_disk = ServedDisk::raw(&rig, "disk", 64 * MIB, options);
    let mut disk = served_disk.disk("");
    change(&mut disk);
    let mut vm = guest(&rig, vec![disk], &[]);
    // The load continues until the test ends it, regardless of the duration of the restarts.
    vm.start_verifying("/dev/vda").unwrap();
    for death in 0..deaths {
        wait_until("reconnected VM", PATIENCE, || Ok(served_disk.log().contains("Negotiated")))
            .unwrap();
        let before = written(&mut vm);
        wait_until("writes", PATIENCE, || Ok(written(&mut vm) > before + WRITES_PER_LIFE)).unwrap();
        // A different moment of the load each time.
        std::thread::sleep(Duration::from_millis(death * 37 % 200));
        served_disk.kill_and_restart(&rig);
    }
    let output = vm.end_verifying(PATIENCE).unwrap();
    // Prints also the longest delay, most of which is the second before QEMU reconnects.
    println!("{deaths} deaths: {output}");
    vm.check_disks().unwrap();
}

fn packed(disk: &mut GuestDisk) {
    disk.queues = 2;
    disk.properties = ",packed=on".to_owned();
}

fn direct(disk: &mut GuestDisk) {
    disk.queues = 2;
    disk.properties = ",indirect_desc=off,event_idx=off".to_owned();
}

mod full {
    use super::{DEATHS, assert_survives, direct, find_lost_and_doubled_writes, packed};

    fn deaths() -> u64 {
        std::env::var("SUIMON_DISK_DEATHS").map_or(DEATHS, |text| text.parse().unwrap())
    }

    #[test]
    fn with_a_split_ring() {
        assert_survives(deaths(), |_| (), "");
    }

    #[test]
    fn with_packed_rings() {
        assert_survives(deaths(), packed, "--queues 2");
    }

    #[test]
    fn with_split_rings_without_indirect_descriptors() {
        assert_survives(deaths(), direct, "--queues 2");
    }

    /// The verification of the tests above detects the faults that it is meant to detect.
    #[test]
    fn lost_and_doubled_writes_would_be_found() {
        find_lost_and_doubled_writes();
    }
}

fn find_lost_and_doubled_writes() {
    let rig = Rig::new().unwrap();
    for fault in ["lose:5000", "double:500"] {
        let served_disk = ServedDisk::raw(
            &rig,
            fault.split(':').next().unwrap(),
            64 * MIB,
            &format!("--fault {fault}"),
        );
        let mut vm = guest(&rig, vec![served_disk.disk("")], &[]);
        vm.begin_verifying("/dev/vda", 600, "").unwrap();
        let output = vm.finish_verifying(Duration::from_secs(700)).unwrap_err().to_string();
        assert!(output.contains(" in place of "), "{fault}: {output}");
        println!("{fault}: {output}");
    }
}
