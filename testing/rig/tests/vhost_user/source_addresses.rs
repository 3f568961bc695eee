//! A guest whose NIC has no configured `mac`, and another guest that sends with the same source
//! address.

use std::time::Duration;

use suimon_rig::{Daemon, Guest, GuestNic, GuestSpec, NamespaceGuest, Rig, wait_until};

const VM_MAC: &str = "52:54:00:aa:00:01";
const VM: &str = "10.77.0.9";
/// Deadline of every condition. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(240);

fn wait_bound(daemon: &Daemon, mac: Option<&str>) {
    wait_until("the address of the VM's NIC", LIMIT, || {
        Ok(daemon.json(&["nic", "show", "vm"])?["bound_mac"].as_str() == mac)
    })
    .unwrap();
}

/// Waits for an event with this id about a NIC that names the VM's address, and returns it.
fn wait_event(daemon: &Daemon, id: &str, nic: &str) -> serde_json::Value {
    let mut event = None;
    wait_until("the event", LIMIT, || {
        let events = daemon.json(&["event", "list", "--id", id])?;
        let all_events = events.as_array().into_iter().flatten();
        let mut of_nic = all_events.filter(|event| event["subject"] == format!("nic/{nic}"));
        event = of_nic.find(|event| event["fields"]["mac"] == VM_MAC).cloned();
        Ok(event.is_some())
    })
    .unwrap();
    event.unwrap()
}

fn another_guest_cannot_send_with_a_guests_address_unless_spoofing_is_permitted() {
    let rig = Rig::new().unwrap();
    let peer = NamespaceGuest::new(&rig, "peer", 1).unwrap();
    let thief = NamespaceGuest::new(&rig, "thief", 2).unwrap();
    let socket = rig.path("vm.sock");
    let host = format!(
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n{}{}[[nic]]\nname = \"vm\"\n\
         switch = \"lan\"\nbackend = \"vhost-user\"\nsocket = \"{socket}\"\n",
        peer.nic_toml("lan", ""),
        thief.nic_toml("lan", "mac_spoofing = true"),
    );
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    peer.bring_up().unwrap();
    thief.bring_up().unwrap();
    let nics = vec![GuestNic::new(&socket, VM_MAC)];
    let spec = GuestSpec { name: "vm".to_owned(), nics, cpus: 1, ..GuestSpec::default() };
    let mut vm = Guest::start(&rig, &spec).unwrap();
    vm.address("eth0", &format!("{VM}/24")).unwrap();
    assert!(vm.reaches(&peer.address()).unwrap());
    wait_bound(&daemon, Some(VM_MAC));
    wait_event(&daemon, "3014", "vm");

    let take = ["ip", "link", "set", NamespaceGuest::DEVICE, "address", VM_MAC];
    thief.namespace.run(&take).unwrap();
    assert!(thief.namespace.cannot_reach(&peer.address()).unwrap());
    wait_event(&daemon, "3010", &thief.nic);
    assert!(peer.namespace.reaches(VM), "beside a guest that sends with its address");

    daemon.kill();
    daemon.restart(&rig).unwrap();
    let nic = daemon.json(&["nic", "show", "vm"]).unwrap();
    assert_eq!(nic["bound_mac"], VM_MAC, "{nic}");
    assert!(thief.namespace.cannot_reach(&peer.address()).unwrap(), "before the VM has sent");
    assert!(peer.namespace.reaches(VM), "after a restart");
    wait_bound(&daemon, Some(VM_MAC));

    daemon.stop().unwrap();
    daemon.restart(&rig).unwrap();
    let nic = daemon.json(&["nic", "show", "vm"]).unwrap();
    assert_eq!(nic["bound_mac"], VM_MAC, "after a stop in order: {nic}");

    daemon.ok(&["nic", "set", "vm", "--mac-spoofing=true"]).unwrap();
    wait_bound(&daemon, None);
    assert!(vm.reaches(&peer.address()).unwrap());
    assert!(thief.namespace.reaches(&peer.address()));
    let moved = wait_event(&daemon, "3013", &thief.nic);
    assert_eq!(moved["fields"]["from"], "vm", "{moved}");
}

mod full {
    #[test]
    fn another_guest_cannot_send_with_a_guests_address_unless_spoofing_is_permitted() {
        super::another_guest_cannot_send_with_a_guests_address_unless_spoofing_is_permitted();
    }
}
