//! A team of two that leads to a bond of Open vSwitch.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use suimon_rig::ovs::{Lacp, OvsBonds};
use suimon_rig::{Namespace, NamespaceGuest, Rig, run};

use crate::team_of_two::{MEMBERS, TeamOfTwo, USABLE};

pub struct Teamed {
    // Ends before the peer does.
    pub team: TeamOfTwo,
    pub peer: OvsBonds,
    /// Behind the bond.
    pub address: String,
}

impl Teamed {
    /// Waits until both ends use both links.
    ///
    /// # Panics
    /// They do not, or something does not start.
    pub fn start(rig: &Rig, keys: &str, lacp: Lacp) -> Self {
        Self::over(rig, keys, "", lacp)
    }

    /// The same with these lines in each `[[uplink]]`.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub fn over(rig: &Rig, keys: &str, of_uplinks: &str, lacp: Lacp) -> Self {
        let far = Namespace::new(rig, "far").unwrap();
        let mut peer = OvsBonds::start(rig).unwrap();
        let (ends, address) = peer.add(rig, &far, lacp).unwrap();
        // The kernel there would answer for the address of the bridge with that of a link, at
        // which nobody takes what is sent.
        for link in peer.links().iter().flatten() {
            peer.namespace().run(&["ip", "link", "set", link, "arp", "off"]).unwrap();
        }
        let own_process = std::process::id().to_string();
        for end in &ends {
            far.run(&["ip", "link", "set", end, "netns", &own_process]).unwrap();
            run(&["ip", "link", "set", end, "up"]).unwrap();
            // The peer hands frames on as they are, and has to find whole ones.
            run(&["ethtool", "-K", end, "tx", "off", "tso", "off", "gso", "off"]).unwrap();
        }
        let team = TeamOfTwo::start(rig, keys, of_uplinks, &ends);
        let teamed = Self { team, peer, address };
        for number in 0..teamed.team.guests.len() {
            let own_address = format!("{}/24", teamed.address_of(number));
            let guest = &teamed.team.guests[number];
            guest.namespace.address(NamespaceGuest::DEVICE, &own_address).unwrap();
        }
        for member in MEMBERS {
            teamed.team.wait_events(USABLE, member, 1);
        }
        teamed.team.daemon.wait_up("switch", "wan").unwrap();
        for guest in &teamed.team.guests {
            assert!(guest.namespace.reaches(&teamed.address));
        }
        teamed
    }

    /// Where a guest is reached from behind the bond.
    pub fn address_of(&self, guest: usize) -> String {
        let (network, _) = self.address.rsplit_once('.').unwrap();
        format!("{network}.{}", guest + 11)
    }

    /// Sets a link up or down at the bond's end.
    pub fn set_link(&self, link: usize, up: bool) {
        self.peer.set_link(0, link, up).unwrap();
    }
}
