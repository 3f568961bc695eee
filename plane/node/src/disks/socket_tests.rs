//! Tests of changes that move sockets between disks, or between disks and NICs.

use suimon_contract::{HostConfig, OperationState};

use crate::testing::{Harness, host};

/// Returns a configuration with an NBD disk, a vhost-user disk and a NIC, each with a socket.
fn config(nbd: &str, vm: &str, nic: &str) -> HostConfig {
    host(&format!(
        r#"
        [[switch]]
        name = "lan"
        kind = "private"
        [[nic]]
        name = "web"
        switch = "lan"
        backend = "vhost-user"
        socket = "{nic}"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        [[disk]]
        name = "a"
        store = "fast"
        format = "raw"
        size_bytes = 1048576
        nbd = {{ socket = "{nbd}" }}
        [[disk]]
        name = "b"
        store = "fast"
        format = "raw"
        size_bytes = 1048576
        vhost_user = {{ socket = "{vm}" }}
        "#
    ))
}

const SOCKETS: [&str; 3] = ["/run/1.sock", "/run/2.sock", "/run/3.sock"];

/// Asserts that every socket is where the configuration has it.
fn assert_at(harness: &Harness, [nbd, vm, nic]: [&str; 3]) {
    let (disks, listeners) = harness.disks.sockets();
    assert_eq!(listeners.into_keys().collect::<Vec<_>>(), [std::path::PathBuf::from(nbd)]);
    assert_eq!(harness.offered(), ["a"]);
    assert_eq!(disks, [std::path::PathBuf::from(vm)]);
    assert_eq!(harness.devices.sockets(), [nic.into()].into());
    assert_eq!(harness.disks.served_counts().0, 2);
    harness.assert_consistent(&[]);
}

#[test]
fn sockets_are_exchanged_between_disks_and_nics() {
    let [x, y, z] = SOCKETS;
    let orders = [[x, y, z], [y, x, z], [x, z, y], [z, y, x], [y, z, x], [z, x, y]];
    let harness = Harness::with_store();
    for from in orders {
        for to in orders {
            for [nbd, vm, nic] in [from, to] {
                harness.apply_ok(&config(nbd, vm, nic));
            }
            assert_at(&harness, to);
        }
    }
}

#[test]
fn a_failed_change_restores_every_socket() {
    let [x, y, z] = SOCKETS;
    let harness = Harness::with_store();
    harness.apply_ok(&config(x, y, z));
    for [nbd, vm, nic] in [[y, x, z], [x, z, y], [z, y, x], [y, z, x], [z, x, y]] {
        // The last step fails, after all sockets have been moved.
        let mut after = config(nbd, vm, nic);
        let refused_path = "/run/refused.sock";
        let mut last = after.disks[1].clone();
        last.name = "last".parse().unwrap();
        last.vhost_user.as_mut().unwrap().socket = refused_path.into();
        after.disks.push(last);
        harness.disks.refuse(refused_path, true);
        assert_eq!(harness.apply(&after).state, OperationState::Failed);
        assert_at(&harness, SOCKETS);
        let failed = harness.events(suimon_contract::EventKind::DiskFailed.id());
        assert!(failed.is_empty(), "{failed:?}");
    }
}

#[test]
fn a_removed_device_releases_its_socket_before_a_new_one_opens_it() {
    let [x, y, z] = SOCKETS;
    let harness = Harness::with_store();
    let all_disks = config(x, y, z);
    for removed in 0..3 {
        for heir in (0..3).filter(|heir| *heir != removed) {
            harness.apply_ok(&all_disks);
            let mut sockets = SOCKETS;
            sockets[heir] = SOCKETS[removed];
            sockets[removed] = "/run/nobody.sock";
            let mut after = config(sockets[0], sockets[1], sockets[2]);
            match removed {
                2 => after.nics.clear(),
                disk => drop(after.disks.remove(disk)),
            }
            harness.apply_ok(&after);
            harness.assert_consistent(&[]);
        }
    }
}

/// Clients of a disk stay connected when its socket is given to another object.
#[test]
fn a_disk_whose_nbd_socket_moves_stays_in_service() {
    let [x, y, z] = SOCKETS;
    let harness = Harness::with_store();
    harness.apply_ok(&config(x, y, z));
    let (_, served) = harness.disks.served_counts();
    harness.apply_ok(&config(z, y, x));
    assert_eq!(harness.disks.served_counts(), (2, served));
}
