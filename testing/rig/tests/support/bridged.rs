//! A team of two uplinks whose far ends are ports of the kernel's bridge, which has no team.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use suimon_rig::{DaemonOptions, Namespace, Rig, Veth};

use crate::team_of_two::TeamOfTwo;

/// Address of the bridge.
pub const FAR: &str = "10.77.0.100";
const BRIDGE: &str = "outside";

pub struct Bridged {
    // Declared first, so that the daemon ends before its devices are removed.
    pub team: TeamOfTwo,
    pub far: Namespace,
    /// Far ends of the team's links, which are ports of the bridge.
    ends: [String; 2],
    _wires: [Veth; 2],
}

impl Bridged {
    /// Starts the team, and waits until both guests reach the bridge.
    ///
    /// # Panics
    ///
    /// A component does not start, or a guest does not reach the bridge.
    pub fn start(rig: &Rig, keys: &str) -> Self {
        Self::start_with(rig, keys, "", &DaemonOptions::default())
    }

    /// As [`Bridged::start`], with further tables of the host file and options of the daemon.
    ///
    /// # Panics
    ///
    /// As [`Bridged::start`].
    pub fn start_with(rig: &Rig, keys: &str, extra: &str, options: &DaemonOptions) -> Self {
        let far = Namespace::new(rig, "far").unwrap();
        far.run(&["ip", "link", "add", BRIDGE, "type", "bridge"]).unwrap();
        far.run(&["ip", "link", "set", BRIDGE, "up"]).unwrap();
        far.address(BRIDGE, &format!("{FAR}/24")).unwrap();
        let nears = [rig.device("n"), rig.device("n")];
        let ends = [rig.device("f"), rig.device("f")];
        let wires = [0, 1].map(|index| Veth::new(&nears[index], &ends[index], &far).unwrap());
        for end in &ends {
            far.run(&["ip", "link", "set", end, "master", BRIDGE]).unwrap();
        }
        let team = TeamOfTwo::start_with(rig, (keys, "", extra), &nears, options);
        let bridged = Self { team, far, ends, _wires: wires };
        bridged.all_reach();
        bridged
    }

    /// Asserts that both guests reach the bridge.
    pub fn all_reach(&self) {
        for guest in &self.team.guests {
            assert!(guest.namespace.reaches(FAR), "{} reaches {FAR}", guest.nic);
        }
    }

    /// Sets the bridge's end of a link up or down.
    pub fn set_link(&self, link: usize, up: bool) {
        let state = if up { "up" } else { "down" };
        self.far.run(&["ip", "link", "set", &self.ends[link], state]).unwrap();
    }
}
