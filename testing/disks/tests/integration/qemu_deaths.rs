//! The process that serves a VM's disk dies under load, again and again, and QEMU goes on
//! with the next one.
//!
//! `SUIMON_DISK_DEATHS` is how often, for each form of ring.

use std::time::Duration;

use crate::served::{MIB, ServedDisk, guest};
use suimon_rig::{GuestDisk, Rig, until};

/// How often the process dies unless told otherwise.
const DEATHS: u64 = 4;
/// From one death to the next: QEMU waits for a second before it connects again.
const SECONDS_PER_DEATH: u64 = 3;

fn deaths() -> u64 {
    std::env::var("SUIMON_DISK_DEATHS").ok().map_or(DEATHS, |text| text.parse().unwrap())
}

/// The guest sees pauses; nothing is lost, done twice, or answered with an error.
fn survives(change: impl FnOnce(&mut GuestDisk), options: &str) {
    let rig = Rig::new().unwrap();
    let mut served = ServedDisk::raw(&rig, "disk", 64 * MIB, options);
    let mut disk = served.disk("");
    change(&mut disk);
    let mut vm = guest(&rig, vec![disk], &[]);
    let seconds = deaths() * SECONDS_PER_DEATH + 2;
    vm.begin_verifying("/dev/vda", seconds, "").unwrap();
    for death in 0..deaths() {
        until("VM that is back", Duration::from_secs(20), || {
            Ok(served.log().contains("Negotiated"))
        })
        .unwrap();
        // A different moment of the load each time.
        std::thread::sleep(Duration::from_millis(300 + death * 37 % 500));
        served.kill_and_restart(&rig);
    }
    let said = vm.finish_verifying(Duration::from_secs(seconds + 120)).unwrap();
    println!("{} deaths: {said}", deaths());
    vm.check_disks().unwrap();
    let longest = said.split("longest_ms=").nth(1).unwrap().parse::<u64>().unwrap();
    assert!(longest < 10_000, "a pause, not a standstill: {said}");
}

#[test]
fn with_a_split_ring() {
    survives(|_| (), "");
}

#[test]
fn with_packed_rings() {
    let change = |disk: &mut GuestDisk| {
        disk.queues = 2;
        disk.properties = ",packed=on".to_owned();
    };
    survives(change, "--queues 2");
}

#[test]
fn with_split_rings_without_indirect_descriptors() {
    let change = |disk: &mut GuestDisk| {
        disk.queues = 2;
        disk.properties = ",indirect_desc=off,event_idx=off".to_owned();
    };
    survives(change, "--queues 2");
}

/// What finds nothing above does find what it is for.
#[test]
fn lost_and_doubled_writes_would_be_found() {
    let rig = Rig::new().unwrap();
    for fault in ["lose:5000", "double:500"] {
        let served = ServedDisk::raw(
            &rig,
            fault.split(':').next().unwrap(),
            64 * MIB,
            &format!("--fault {fault}"),
        );
        let mut vm = guest(&rig, vec![served.disk("")], &[]);
        vm.begin_verifying("/dev/vda", 60, "").unwrap();
        let said = vm.finish_verifying(Duration::from_secs(120)).unwrap_err().to_string();
        assert!(said.contains(" in place of "), "{fault}: {said}");
        println!("{fault}: {said}");
    }
}
