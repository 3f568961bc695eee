//! A team of two members whose links lead to a bond of Open vSwitch.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use suimon_rig::ovs::{Lacp, OvsBonds};
use suimon_rig::{Namespace, NamespaceGuest, Rig, run};

use crate::team_of_two::{MEMBERS, TeamOfTwo, USABLE};

pub struct Teamed {
    // Declared first, so that the daemon ends before the peer.
    pub team: TeamOfTwo,
    pub peer: OvsBonds,
    /// Address of the bridge behind the bond.
    pub address: String,
}

impl Teamed {
    /// Starts the team and the bond, and waits until both ends use both links.
    ///
    /// # Panics
    ///
    /// A component does not start, or a link is not used.
    pub fn start(rig: &Rig, keys: &str, lacp: Lacp) -> Self {
        Self::over(rig, keys, "", lacp)
    }

    /// As [`Self::start`], with these lines in each `[[uplink]]`.
    ///
    /// # Panics
    ///
    /// As [`Self::start`].
    pub fn over(rig: &Rig, keys: &str, of_uplinks: &str, lacp: Lacp) -> Self {
        let far = Namespace::new(rig, "far").unwrap();
        let mut peer = OvsBonds::start(rig).unwrap();
        let (ends, address) = peer.add(rig, &far, lacp).unwrap();
        // Otherwise the kernel would reply to ARP requests for the bridge's address with the
        // address of a link, whose frames are not delivered.
        for link in peer.links().iter().flatten() {
            peer.namespace().run(&["ip", "link", "set", link, "arp", "off"]).unwrap();
        }
        let own_process = std::process::id().to_string();
        for end in &ends {
            far.run(&["ip", "link", "set", end, "netns", &own_process]).unwrap();
            run(&["ip", "link", "set", end, "up"]).unwrap();
            // The peer forwards frames unchanged, so they need complete checksums and no more than
            // the MTU.
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

    /// Returns the address of a guest in the network behind the bond.
    pub fn address_of(&self, guest: usize) -> String {
        let (network, _) = self.address.rsplit_once('.').unwrap();
        format!("{network}.{}", guest + 11)
    }

    /// Sets the bond's end of a link up or down.
    pub fn set_link(&self, link: usize, up: bool) {
        self.peer.set_link(0, link, up).unwrap();
    }
}
