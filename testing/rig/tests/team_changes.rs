//! Teams of uplinks whose other ends are ports of the kernel's bridge, which knows nothing
//! of them: everything about such a team changes while connections go on.

use std::thread;
use std::time::Duration;

use suimon_rig::{Daemon, LightGuest, Namespace, Rig, Veth, iperf, until};

const FAR: &str = "10.77.0.100";
const BRIDGE: &str = "outside";
const LIMIT: Duration = Duration::from_secs(30);

struct Bridged {
    daemon: Daemon,
    guests: [LightGuest; 2],
    far: Namespace,
    /// The bridge's ends of the team's links.
    ends: [String; 2],
    _wires: [Veth; 2],
}

impl Bridged {
    fn new(rig: &Rig, keys: &str) -> Self {
        let far = Namespace::new(rig, "far").unwrap();
        far.run(&["ip", "link", "add", BRIDGE, "type", "bridge"]).unwrap();
        far.run(&["ip", "link", "set", BRIDGE, "up"]).unwrap();
        far.address(BRIDGE, &format!("{FAR}/24")).unwrap();
        let nears = [rig.device("n"), rig.device("n")];
        let ends = [rig.device("f"), rig.device("f")];
        let wires = [0, 1].map(|at| Veth::new(&nears[at], &ends[at], &far).unwrap());
        for end in &ends {
            far.run(&["ip", "link", "set", end, "master", BRIDGE]).unwrap();
        }
        let guests = [("one", 1), ("two", 2)];
        let guests = guests.map(|(name, number)| LightGuest::new(rig, name, number).unwrap());
        let mut host = format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"both\"\n\
             [[team]]\nname = \"both\"\nmembers = [\"left\", \"right\"]\n{keys}\n"
        );
        for (name, near) in ["left", "right"].iter().zip(&nears) {
            host += &format!("[[uplink]]\nname = \"{name}\"\ndevice = \"{near}\"\n");
        }
        for guest in &guests {
            host += &guest.nic_toml("wan", "");
        }
        let daemon = Daemon::start(rig, &host).unwrap();
        for guest in &guests {
            guest.bring_up().unwrap();
        }
        let bridged = Self { daemon, guests, far, ends, _wires: wires };
        bridged.all_reach();
        bridged
    }

    /// Both guests reach what is behind the team.
    fn all_reach(&self) {
        for guest in &self.guests {
            assert!(guest.namespace.reaches(FAR), "{} reaches {FAR}", guest.nic);
        }
    }

    fn set(&self, key: &str, value: &str) {
        self.daemon.ok(&["team", "set", "both", key, value]).unwrap();
        self.all_reach();
    }

    fn state(&self, member: usize) -> String {
        let team = self.daemon.json(&["team", "show", "both"]).unwrap();
        team["members"][member]["state"].as_str().unwrap().to_owned()
    }

    fn wait_state(&self, member: usize, state: &str) {
        let what = format!("member {member} being {state}");
        until(&what, LIMIT, || Ok(self.state(member) == state)).unwrap();
    }
}

const ALGORITHMS: [&str; 5] =
    ["hyper-v-port", "transport-ports", "ip-addresses", "mac-addresses", "dynamic"];

#[test]
fn connections_survive_every_change_of_mode_algorithm_and_members() {
    let rig = Rig::new().unwrap();
    let bridged = Bridged::new(&rig, "mode = \"switch-independent\"");
    let _server = iperf::serve(&rig, &bridged.far).unwrap();
    let report = thread::scope(|scope| {
        let client = &bridged.guests[0].namespace;
        let running = scope.spawn(|| iperf::measure(client, FAR, 12, &["-P", "4"]).unwrap());
        for mode in ["switch-independent", "static", "switch-independent"] {
            bridged.set("--mode", mode);
            for algorithm in ALGORITHMS {
                bridged.set("--algorithm", algorithm);
            }
        }
        for members in ["right", "right,left", "left", "left,right"] {
            bridged.set("--members", members);
        }
        running.join().unwrap()
    });
    println!("{} bit/s, {} sent again", report.bits_per_second, report.retransmits);
    let streams = report.json["end"]["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 4);
    for stream in streams {
        assert!(stream["receiver"]["bytes"].as_u64().unwrap() > 100_000, "{stream}");
    }
}

#[test]
fn a_standby_takes_over_from_a_member_without_carrier_and_gives_way_again() {
    let rig = Rig::new().unwrap();
    let bridged = Bridged::new(&rig, "mode = \"switch-independent\"\nstandby = \"right\"");
    bridged.wait_state(0, "active");
    bridged.wait_state(1, "waiting");
    bridged.far.run(&["ip", "link", "set", &bridged.ends[0], "down"]).unwrap();
    bridged.wait_state(0, "failed");
    bridged.wait_state(1, "active");
    bridged.all_reach();
    bridged.far.run(&["ip", "link", "set", &bridged.ends[0], "up"]).unwrap();
    bridged.wait_state(0, "active");
    bridged.wait_state(1, "waiting");
    bridged.all_reach();
    let events = bridged.daemon.json(&["event", "list", "--limit", "100"]).unwrap();
    for id in [4108, 4109] {
        assert!(events.as_array().unwrap().iter().any(|event| event["id"] == id), "{id}");
    }
}

#[test]
fn with_fewer_members_than_it_needs_a_team_carries_nothing_until_it_has_them() {
    let rig = Rig::new().unwrap();
    let bridged = Bridged::new(&rig, "mode = \"static\"\nmin_links = 2");
    bridged.far.run(&["ip", "link", "set", &bridged.ends[1], "down"]).unwrap();
    bridged.wait_state(1, "failed");
    bridged.wait_state(0, "waiting");
    assert!(bridged.guests[0].namespace.is_cut_from(FAR).unwrap());
    bridged.daemon.ok(&["team", "set", "both", "--min-links", "1"]).unwrap();
    bridged.wait_state(0, "active");
    bridged.all_reach();
}
