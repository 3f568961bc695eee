//! Teams of uplinks whose far ends are ports of the kernel's bridge, which has no team: every
//! setting of such a team is changed during connections.

use suimon_rig::{Rig, iperf, wait_until};

use crate::bridged::{Bridged, FAR};
use crate::team_of_two::LIMIT;

/// Changes a setting of the team, and waits until both guests reach the bridge.
fn set(bridged: &Bridged, key: &str, value: &str) {
    bridged.team.daemon.ok(&["team", "set", "both", key, value]).unwrap();
    bridged.all_reach();
}

const ALGORITHMS: [&str; 5] =
    ["hyper-v-port", "transport-ports", "ip-addresses", "mac-addresses", "dynamic"];

#[test]
fn connections_survive_every_change_of_mode_algorithm_and_members() {
    let rig = Rig::new().unwrap();
    let bridged = Bridged::start(&rig, "mode = \"switch-independent\"");
    let _server = iperf::serve(&rig, &bridged.far).unwrap();
    let client = &bridged.team.guests[0].namespace;
    let mut streams = iperf::Client::begin(&rig, client, FAR, 4, &["-b", "20M"]).unwrap();
    for mode in ["switch-independent", "static", "switch-independent"] {
        set(&bridged, "--mode", mode);
        for algorithm in ALGORITHMS {
            set(&bridged, "--algorithm", algorithm);
        }
        streams.wait_flow(mode).unwrap();
    }
    for members in ["right", "right,left", "left", "left,right"] {
        set(&bridged, "--members", members);
        streams.wait_flow(members).unwrap();
    }
    let report = streams.end().unwrap();
    println!("{} bit/s, {} sent again", report.bits_per_second, report.retransmits);
}

#[test]
fn a_standby_replaces_a_member_without_carrier_until_it_recovers() {
    let rig = Rig::new().unwrap();
    let bridged = Bridged::start(&rig, "mode = \"switch-independent\"\nstandby = \"right\"");
    bridged.team.wait_state(0, "active");
    bridged.team.wait_state(1, "waiting");
    bridged.set_link(0, false);
    bridged.team.wait_state(0, "failed");
    bridged.team.wait_state(1, "active");
    bridged.all_reach();
    bridged.set_link(0, true);
    bridged.team.wait_state(0, "active");
    bridged.team.wait_state(1, "waiting");
    bridged.all_reach();
    // Events of a team are recorded after its status changes.
    for id in [4108, 4109] {
        wait_until(&format!("event {id}"), LIMIT, || Ok(bridged.team.events(id, None) > 0))
            .unwrap();
    }
}

#[test]
fn with_fewer_members_than_it_needs_a_team_carries_nothing_until_it_has_them() {
    let rig = Rig::new().unwrap();
    let bridged = Bridged::start(&rig, "mode = \"static\"\nmin_links = 2");
    bridged.set_link(1, false);
    bridged.team.wait_state(1, "failed");
    bridged.team.wait_state(0, "waiting");
    assert!(bridged.team.guests[0].namespace.cannot_reach(FAR).unwrap());
    bridged.team.daemon.ok(&["team", "set", "both", "--min-links", "1"]).unwrap();
    bridged.team.wait_state(0, "active");
    bridged.all_reach();
}
