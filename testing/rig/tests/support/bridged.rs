//! A team of two whose other ends are ports of the kernel's bridge, which knows nothing of
//! teams.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use suimon_rig::{DaemonOptions, Namespace, Rig, Veth};

use crate::team_of_two::TeamOfTwo;

/// The bridge's address.
pub const FAR: &str = "10.77.0.100";
const BRIDGE: &str = "outside";

pub struct Bridged {
    // Ends before its devices go.
    pub team: TeamOfTwo,
    pub far: Namespace,
    /// The bridge's ends of the team's links.
    ends: [String; 2],
    _wires: [Veth; 2],
}

impl Bridged {
    /// Waits until both guests reach the bridge.
    ///
    /// # Panics
    /// They do not, or something does not start.
    pub fn start(rig: &Rig, keys: &str) -> Self {
        Self::start_with(rig, keys, "", &DaemonOptions::default())
    }

    /// The same, with more of the host file and a daemon with options.
    ///
    /// # Panics
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

    /// Both guests reach what is behind the team.
    pub fn all_reach(&self) {
        for guest in &self.team.guests {
            assert!(guest.namespace.reaches(FAR), "{} reaches {FAR}", guest.nic);
        }
    }

    /// Sets a link up or down at the bridge's end.
    pub fn set_link(&self, link: usize, up: bool) {
        let state = if up { "up" } else { "down" };
        self.far.run(&["ip", "link", "set", &self.ends[link], state]).unwrap();
    }
}
