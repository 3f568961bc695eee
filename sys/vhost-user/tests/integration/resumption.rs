//! Tests of state that a VM keeps when its front-end or the process of the NIC is replaced, and of
//! the log of written pages for migrations.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::bench;
use crate::bench::rig::{Driver, GUEST_BASE, Vm, event};
use crate::bench::{BYTES, Bench, CSUM, FrontEnd, GUEST_CSUM, Loopback, MERGEABLE, VERSION_1};
use crate::resilience::{echo, frame, start};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use suimon_ports::{DeviceNotice, NegotiatedFeatures, OffloadToggles, VhostUserNicSpec};
use suimon_quantity::PortId;
use suimon_vhost_user::VhostUserNic;

const LOG_ALL: u64 = 1 << 26;
const USO: u64 = 7 << 54;

/// Negotiated features are recorded for the VM until it stops its rings and disconnects. A NIC that
/// lacks them does not open.
#[test]
fn negotiated_features_are_kept_for_the_vm() {
    let bench = Bench::new(2);
    let vm = Vm::with_regions(vec![BYTES]);
    let promise = |bench: &Bench| loop {
        if let DeviceNotice::FeaturesCommitted(promise) = bench.notice() {
            return promise;
        }
    };
    let features = VERSION_1 | CSUM | GUEST_CSUM | USO;
    let mut front_end = FrontEnd::connect(&bench.socket);
    let _rings = start(&mut front_end, &vm, features);
    let promised = promise(&bench);
    assert_eq!(promised.features & features, features);
    assert_eq!(promised.queue_pairs, 1);
    // The front-end's process dies without stopping the rings, so it may reconnect.
    drop(front_end);
    let socket = bench.socket.clone();
    let spec = VhostUserNicSpec {
        socket: socket.with_extension("next"),
        offload: OffloadToggles {
            tx_checksum: false,
            rx_checksum: false,
            segmentation: false,
            ..OffloadToggles::default()
        },
        negotiated: promised,
        ..bench.spec.clone()
    };
    // The next process offers the features although they are disabled.
    let (sender, _notices) = std::sync::mpsc::channel();
    let observer = Arc::new(bench::NoticeSender(std::sync::Mutex::new(sender)));
    let host = Arc::new(Loopback::default());
    let nic = VhostUserNic::open(PortId(8), &spec, host, observer, &bench::threads()).unwrap();
    let mut returned = FrontEnd::connect(&spec.socket);
    assert_eq!(returned.get_number(1) & promised.features, promised.features);
    drop(nic);
    let fewer =
        VhostUserNicSpec { negotiated: NegotiatedFeatures { queue_pairs: 3, ..promised }, ..spec };
    let error = VhostUserNic::probe(&fewer).unwrap_err();
    assert!(error.field == "queues" && error.detail.contains("uses 3 queue pairs"), "{error}");
    let unknown = NegotiatedFeatures { features: promised.features | 1 << 50, queue_pairs: 1 };
    let error =
        VhostUserNic::probe(&VhostUserNicSpec { negotiated: unknown, ..fewer }).unwrap_err();
    assert!(error.detail.contains("of which 0x4000000000000 would be missing"), "{error}");

    // A VM that stops its rings and disconnects keeps no reservation of features.
    let mut front_end = FrontEnd::connect(&bench.socket);
    let _rings = start(&mut front_end, &vm, features);
    front_end.ring_base(0);
    front_end.ring_base(1);
    drop(front_end);
    assert_eq!(promise(&bench), NegotiatedFeatures::default());
}

/// After the process died, the in-flight record takes precedence over a front-end that does not
/// know the positions of its rings.
#[test]
fn rings_continue_at_the_recorded_position() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1 | MERGEABLE);
    let payload = [vec![0; 16], [2_u16, 16].map(u16::to_ne_bytes).concat(), vec![0; 4]].concat();
    front_end.send_raw(&FrontEnd::message(31, 1, &payload), &[]);
    let (description, file) = front_end.reply_with_fd(31);
    let bytes = u64::from_ne_bytes(description[..8].try_into().unwrap());
    assert_eq!(description.len(), 24);
    assert!(bytes > 0 && rustix::fs::fstat(&file).unwrap().st_size as u64 == bytes);
    assert!(front_end.set(32, &description, &[file.as_fd()]));
    let mut rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut tx = Driver::placed(&vm, 16, 0, GUEST_BASE + 0x2000);
    assert!(front_end.share_memory(&vm, BYTES));
    front_end.start_ring(0, &rx, &event(), &event());
    front_end.start_ring(1, &tx, &event(), &event());
    for byte in 0..20 {
        echo(&bench.host, &mut rx, &mut tx, byte);
    }
    // Death of the process: changes made by the orderly shutdown are undone.
    let file = std::fs::File::from(file);
    let mut at_death = vec![0; bytes as usize];
    file.read_exact_at(&mut at_death, 0).unwrap();
    drop(front_end);
    bench::wait_for("the rings to be detached", || bench.host.queues() == (0, 0));
    file.write_all_at(&at_death, 0).unwrap();

    let mut front_end = FrontEnd::connect(&bench.socket);
    front_end.negotiate(VERSION_1 | MERGEABLE);
    assert!(front_end.set(32, &description, &[file.as_fd()]));
    assert!(front_end.share_memory(&vm, BYTES));
    let (avail_rx, avail_tx) = (rx.avail, tx.avail);
    // The front-end has no better positions than the first time.
    (rx.avail, tx.avail) = (0, 0);
    front_end.start_ring(0, &rx, &event(), &event());
    front_end.start_ring(1, &tx, &event(), &event());
    (rx.avail, tx.avail) = (avail_rx, avail_tx);
    for byte in 20..40 {
        echo(&bench.host, &mut rx, &mut tx, byte);
    }
    assert_eq!(front_end.ring_base(1), 40);
}

/// During a migration, the NIC marks every page that it writes in the log.
#[test]
fn written_pages_are_in_the_log() {
    let bench = Bench::new(1);
    let vm = Vm::with_regions(vec![BYTES]);
    let mut front_end = FrontEnd::connect(&bench.socket);
    let (mut rx, mut tx) = start(&mut front_end, &vm, VERSION_1 | MERGEABLE);
    echo(&bench.host, &mut rx, &mut tx, 1);
    let log = memfd_create("log", MemfdFlags::CLOEXEC).unwrap();
    let log_bytes = (GUEST_BASE + BYTES) / 4096 / 8;
    ftruncate(&log, log_bytes).unwrap();
    let marked = || {
        let mut bits = vec![0; log_bytes as usize];
        let log = std::fs::File::from(log.try_clone().unwrap());
        log.read_exact_at(&mut bits, 0).unwrap();
        log.write_all_at(&vec![0; log_bytes as usize], 0).unwrap();
        let page = |page: &u64| bits[(page / 8) as usize] & 1 << (page % 8) != 0;
        (0..log_bytes * 8).filter(page).collect::<Vec<_>>()
    };
    let region = [log_bytes, 0].map(u64::to_ne_bytes).concat();
    front_end.send_raw(&FrontEnd::message(6, 1, &region), &[log.as_fd()]);
    assert!(front_end.reply(6).is_empty());
    echo(&bench.host, &mut rx, &mut tx, 2);
    assert!(marked().is_empty(), "pages are logged before logging is enabled");
    let features = VERSION_1 | MERGEABLE | bench::PROTOCOL_FEATURES;
    assert!(front_end.set(2, &(features | LOG_ALL).to_ne_bytes(), &[]));
    for (index, driver) in [(0, &rx), (1, &tx)] {
        front_end.set_addresses(index, driver, Some(driver.used_at.0));
    }
    marked();
    rx.add(&[1600], false, true, &[]).unwrap();
    tx.add(&[112], false, false, &frame(3)).unwrap();
    let pages = [rx.used_at.0 / 4096, tx.used_at.0 / 4096];
    assert_eq!(bench.host.turn(), 1);
    let head = rx.reap()[0].head;
    let buffer = rx.pieces[usize::from(head)][0].addr;
    let mut expected: Vec<u64> = (buffer / 4096..=(buffer + 111) / 4096).chain(pages).collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(marked(), expected);
    tx.reap();
    assert!(front_end.set(2, &features.to_ne_bytes(), &[]));
    marked();
    echo(&bench.host, &mut rx, &mut tx, 4);
    assert!(marked().is_empty(), "pages are logged after logging was disabled");
    // An invalid log is rejected with an error that names the request.
    let short = [log_bytes * 2, 0].map(u64::to_ne_bytes).concat();
    front_end.send_raw(&FrontEnd::message(6, 1, &short), &[log.as_fd()]);
    bench.expect_violation("SET_LOG_BASE");
}
