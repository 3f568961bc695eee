//! Tests of the NIC with a front-end written from the specification alone, over a real socket, with
//! real memory and rings.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::bench::rig::{Driver, GUEST_BASE, USER_BASE, Vm, event};
use crate::bench::{
    BYTES, Bench, CSUM, FrontEnd, GUEST_CSUM, LIMIT, PROTOCOL_FEATURES, VERSION_1, session,
    wait_for,
};
use suimon_ports::{OffloadToggles, PortDevice, PortDeviceSpec, VhostUserMode, VhostUserNicSpec};

#[test]
fn frames_go_round_and_the_next_front_end_finds_the_nic_new() {
    let bench = Bench::new(2);
    for _ in 0..3 {
        session(&bench, FrontEnd::connect(&bench.socket));
    }
}

#[test]
fn as_client_it_connects_again_and_again() {
    let bench = Bench::with(1, VhostUserMode::Client);
    for _ in 0..2 {
        let listener = std::os::unix::net::UnixListener::bind(&bench.socket).unwrap();
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        std::fs::remove_file(&bench.socket).unwrap();
        session(&bench, FrontEnd::over(stream));
    }
}

#[test]
fn questions_are_answered() {
    let mut bench = Bench::new(4);
    let mut front_end = FrontEnd::connect(&bench.socket);
    assert_eq!(front_end.get_number(17), 4);
    assert_eq!(front_end.get_number(36), suimon_ring::REGIONS_MAX as u64);
    front_end.negotiate(VERSION_1);
    assert!(front_end.set(39, &7_u64.to_ne_bytes(), &[]));
    assert_eq!(front_end.get_number(40), 7);
    let config_request = |offset: u32, size: u32| {
        let header = [offset, size, 0].map(u32::to_ne_bytes).concat();
        [header, vec![0; size as usize]].concat()
    };
    let config = front_end.get(24, &config_request(0, 12));
    assert_eq!(config[12..], [0x52, 0x54, 0, 0x12, 0x34, 0x56, 1, 0, 4, 0, 0x28, 0x23]);
    assert_eq!(front_end.get(24, &config_request(20, 12)).len(), 12, "outside: no bytes");
    // Rejected; the connection stays open.
    assert!(front_end.set(20, &1500_u64.to_ne_bytes(), &[]));
    assert!(!front_end.set(20, &9001_u64.to_ne_bytes(), &[]));
    assert!(!front_end.set(25, &[config_request(0, 0), vec![]].concat(), &[]));
    assert!(front_end.set(34, &[], &[]));
    assert_eq!(front_end.get_number(40), 0);
    // A second front-end is disconnected and the first one stays.
    let mut second = UnixStream::connect(&bench.socket).unwrap();
    second.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(second.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(front_end.get_number(17), 4);
    let status = bench.nic().status();
    assert_eq!(
        (status.link_up, status.virtio_features),
        (false, Some(VERSION_1 | PROTOCOL_FEATURES))
    );
    drop(bench.nic.take());
    assert!(!bench.socket.exists());
}

/// A close that waited for the front-end would take at least two seconds. Load on the machine may
/// delay a close by a second, with probability p. Unless p is above 0.06, all five closes are
/// delayed with a probability below 10^-6.
#[test]
fn closing_a_nic_waits_for_no_front_end() {
    let closing = || {
        let mut bench = Bench::new(1);
        let mut front_end = FrontEnd::connect(&bench.socket);
        front_end.negotiate(VERSION_1);
        // The front-end stops in the middle of a message.
        front_end.send_raw(&FrontEnd::message(2, 1, &[0; 8])[..15], &[]);
        let before = Instant::now();
        drop(bench.nic.take());
        before.elapsed()
    };
    let mut took = Vec::new();
    for _ in 0..5 {
        took.push(closing());
        if took.last() < Some(&Duration::from_secs(1)) {
            return;
        }
    }
    panic!("closing took {took:?}");
}

#[test]
fn offloads_change_live_and_stay_offered_to_a_vm_that_has_them() {
    let mut bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let tx = Driver::placed(&vm, 16, 0, GUEST_BASE + 0x2000);
    let (kick, call) = (event(), event());
    let no_checksum =
        OffloadToggles { rx_checksum: false, tx_checksum: false, ..Default::default() };
    for _ in 0..2 {
        let mut front_end = FrontEnd::connect(&bench.socket);
        front_end.negotiate(VERSION_1 | CSUM | GUEST_CSUM);
        assert!(front_end.share_memory(&vm, BYTES));
        front_end.start_ring(0, &rx, &kick, &call);
        front_end.start_ring(1, &tx, &kick, &call);
        let changed = VhostUserNicSpec { offload: no_checksum, mtu: 1500, ..bench.spec.clone() };
        assert_eq!(bench.nic().apply_spec(&PortDeviceSpec::VhostUser(changed)).ok(), Some(true));
        let status = bench.nic().status();
        assert!(
            status.ingress_offloads.checksum
                && !status.egress_offloads.checksum
                && status.mtu == 1500
        );
        let sinks = bench.host.sinks.lock().unwrap();
        assert!(!sinks[&0].offloads().checksum);
        drop(sinks);
        let more_queues = VhostUserNicSpec { queue_pairs: 2, ..bench.spec.clone() };
        assert_eq!(
            bench.nic().apply_spec(&PortDeviceSpec::VhostUser(more_queues)).ok(),
            Some(false)
        );
        drop(front_end);
        wait_for("the rings to be detached", || bench.host.queues() == (0, 0));
    }
}

/// Each of these attacks ends the front-end's connection with an error that names the message, and
/// the next front-end is served.
#[test]
fn hostile_front_ends_are_disconnected_and_the_nic_continues() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    type Attack<'a> = &'a dyn Fn(&mut FrontEnd);
    let table = |regions: &[[u64; 4]]| {
        let words = [&[regions.len() as u64], regions.as_flattened()].concat();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
    };
    let file = vm.file.as_fd();
    let message = FrontEnd::message;
    let attacks: [(&str, Attack<'_>); 14] = [
        ("request 99 is unknown", &|fe| fe.send_raw(&message(99, 1, &[]), &[])),
        ("SET_FEATURES: `size` 4096", &|fe| {
            let header = [2_u32, 1, 4096].map(u32::to_ne_bytes).concat();
            fe.send_raw(&header, &[]);
        }),
        ("SET_FEATURES: feature bits 0x200000000 were not offered", &|fe| {
            fe.send_raw(&message(2, 1, &(1_u64 << 33).to_ne_bytes()), &[]);
        }),
        ("SET_PROTOCOL_FEATURES: feature bits 0x100 were not", &|fe| {
            fe.send_raw(&message(16, 1, &0x100_u64.to_ne_bytes()), &[]);
        }),
        ("SET_VRING_NUM: vring 2 does not exist, this NIC has 2 vrings", &|fe| {
            fe.send_raw(&message(8, 1, &FrontEnd::state(2, 16)), &[]);
        }),
        ("GET_FEATURES: 1 descriptors, 0 expected", &|fe| {
            fe.send_raw(&message(1, 1, &[]), &[file]);
        }),
        ("more than 8 descriptors", &|fe| fe.send_raw(&message(1, 1, &[]), &[file; 12])),
        ("the connection ended after 7 of 12 bytes", &|fe| {
            fe.send_raw(&message(1, 1, &[])[..7], &[]);
            fe.stream.shutdown(std::net::Shutdown::Both).unwrap();
        }),
        ("the connection ended after 15 of 20 bytes", &|fe| {
            fe.send_raw(&message(2, 1, &[0; 8])[..15], &[]);
            fe.stream.shutdown(std::net::Shutdown::Write).unwrap();
        }),
        ("memory regions overlap at guest address", &|fe| {
            let table = table(&[[0, 0x2000, 0, 0], [0x1000, 0x1000, 0x9000, 0]]);
            fe.send_raw(&message(5, 1, &table), &[file, file]);
        }),
        ("memory region 0: the file has 0x800000 bytes", &|fe| {
            fe.send_raw(&message(5, 1, &table(&[[0, BYTES + 1, 0, 0]])), &[file]);
        }),
        ("SET_VRING_KICK: vring 0: the descriptor is not an eventfd", &|fe| {
            fe.send_raw(&message(12, 1, &[0; 8]), &[file]);
        }),
        ("is not within one memory region", &|fe| {
            assert!(fe.share_memory(&vm, 0x1000));
            fe.set(8, &FrontEnd::state(1, 1024), &[]);
            let addresses = [1_u64, USER_BASE, USER_BASE, USER_BASE, 0];
            fe.set(9, &addresses.map(u64::to_ne_bytes).concat(), &[]);
            fe.set(12, &1_u64.to_ne_bytes(), &[event().as_fd()]);
        }),
        ("REM_MEM_REG: no memory region", &|fe| {
            fe.set(38, &[0; 40], &[]);
        }),
    ];
    for (expected, attack) in attacks {
        let mut front_end = FrontEnd::connect(&bench.socket);
        attack(&mut front_end);
        bench.expect_violation(expected);
    }
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// The front-end replaces the memory with an invalid table while rings run.
#[test]
fn a_bad_table_while_rings_run_takes_them_back() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let driver = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1);
    assert!(front_end.share_memory(&vm, BYTES));
    front_end.start_ring(1, &driver, &event(), &event());
    assert_eq!(bench.host.queues(), (1, 0));
    assert!(!front_end.share_memory(&vm, 0));
    bench.expect_violation("memory region 0: size 0");
    let mut byte = front_end.stream;
    assert_eq!(byte.read(&mut [0]).unwrap(), 0);
    let _ = byte.write(&[0]);
    session(&bench, FrontEnd::connect(&bench.socket));
}

/// QEMU 7.2 has a vhost device for each queue pair, and each adds all regions.
#[test]
fn a_region_that_is_added_again_changes_nothing() {
    let bench = Bench::new(2);
    let vm = Vm::with_regions(vec![BYTES]);
    let driver = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1);
    let region = [0, GUEST_BASE, BYTES, USER_BASE, 0_u64].map(u64::to_ne_bytes).concat();
    for _ in 0..2 {
        assert!(front_end.set(37, &region, &[vm.file.as_fd()]));
        front_end.start_ring(1, &driver, &event(), &event());
        assert_eq!(bench.host.queues(), (1, 0));
    }
}
