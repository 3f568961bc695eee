//! Teams of uplinks against a switch that nobody here wrote.

use std::thread;
use std::time::Duration;

use suimon_rig::ovs::{Lacp, OvsBonds};
use suimon_rig::{Daemon, LightGuest, Namespace, Rig, iperf, run, until};

const LIMIT: Duration = Duration::from_secs(30);

/// Two light guests on a switch whose way out is a team of two, which leads to a bond of
/// Open vSwitch.
struct Teamed {
    daemon: Daemon,
    guests: [LightGuest; 2],
    peer: OvsBonds,
    /// Behind the bond.
    address: String,
}

impl Teamed {
    fn new(rig: &Rig, keys: &str) -> Self {
        let far = Namespace::new(rig, "far").unwrap();
        let mut peer = OvsBonds::start(rig).unwrap();
        let (ends, address) = peer.add(rig, &far, Lacp::Active).unwrap();
        // The kernel there would answer for the address of the bridge with that of a link, at
        // which nobody takes what is sent.
        for link in peer.links().iter().flatten() {
            peer.namespace().run(&["ip", "link", "set", link, "arp", "off"]).unwrap();
        }
        let here = std::process::id().to_string();
        for end in &ends {
            far.run(&["ip", "link", "set", end, "netns", &here]).unwrap();
            run(&["ip", "link", "set", end, "up"]).unwrap();
            // The peer hands frames on as they are, and has to find whole ones.
            run(&["ethtool", "-K", end, "tx", "off", "tso", "off", "gso", "off"]).unwrap();
        }
        let guests = [("one", 1), ("two", 2)];
        let guests = guests.map(|(name, number)| LightGuest::new(rig, name, number).unwrap());
        let mut host = format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"both\"\n\
             [[team]]\nname = \"both\"\nmembers = [\"left\", \"right\"]\n{keys}\n"
        );
        for (name, end) in ["left", "right"].iter().zip(&ends) {
            host.push_str(&format!("[[uplink]]\nname = \"{name}\"\ndevice = \"{end}\"\n"));
        }
        for guest in &guests {
            host.push_str(&guest.nic_toml("wan", ""));
        }
        let daemon = Daemon::start(rig, &host).unwrap();
        for (number, guest) in (11..).zip(&guests) {
            guest.bring_up().unwrap();
            let own = format!("10.99.1.{number}/24");
            guest.namespace.address(LightGuest::DEVICE, &own).unwrap();
        }
        Self { daemon, guests, peer, address }
    }

    /// How many events of a kind there are, and about which member.
    fn events(&self, id: u64, member: &str) -> usize {
        let events = self.daemon.json(&["event", "list"]).unwrap();
        let of_member =
            |event: &&serde_json::Value| event["id"] == id && event["fields"]["member"] == member;
        events.as_array().unwrap().iter().filter(of_member).count()
    }

    fn wait_events(&self, id: u64, member: &str, count: usize) {
        let what = format!("{count} events {id} of {member}");
        until(&what, LIMIT, || Ok(self.events(id, member) >= count)).unwrap();
    }

    fn sent_by(&self, uplink: &str) -> u64 {
        let status = self.daemon.json(&["uplink", "show", uplink]).unwrap();
        assert_eq!(status["switch"], "wan");
        status["counters"]["tx_frames"].as_u64().unwrap()
    }

    /// Has a guest ping every 10 ms for `seconds`, while `act` is done after a second.
    /// Returns how many were sent and lost.
    fn pings(&self, seconds: u32, act: impl FnOnce()) -> (u64, u64) {
        let count = (seconds * 100).to_string();
        let words =
            ["ping", "-q", "-n", "-i", "0.01", "-W", "1", "-c", &count, self.address.as_str()];
        let limit = Duration::from_secs(u64::from(seconds) + 10);
        let said = thread::scope(|scope| {
            let pinging = scope.spawn(|| self.guests[0].namespace.run_any(&words, limit).unwrap());
            thread::sleep(Duration::from_secs(1));
            act();
            pinging.join().unwrap()
        });
        let line = said.stdout.lines().find(|line| line.contains("packets transmitted")).unwrap();
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        println!("{line}");
        (numbers[0], numbers[0] - numbers[1])
    }
}

/// Both ends agree, guests' frames pass, and go on when a carrier is lost and comes back.
#[test]
fn a_team_in_lacp_mode_carries_frames_to_a_bond_and_survives_a_lost_carrier() {
    let rig = Rig::new().unwrap();
    let keys = "mode = \"lacp\"\nlacp_timer = \"fast\"\nalgorithm = \"transport-ports\"";
    let teamed = Teamed::new(&rig, keys);
    teamed.wait_events(4106, "left", 1);
    teamed.wait_events(4106, "right", 1);
    teamed.daemon.wait_up("switch", "wan").unwrap();
    for guest in &teamed.guests {
        assert!(guest.namespace.reaches(&teamed.address));
    }
    let _server = iperf::serve(&rig, teamed.peer.namespace()).unwrap();
    let before = ["left", "right"].map(|uplink| teamed.sent_by(uplink));
    for direction in [&["-P", "8"][..], &["-P", "8", "--reverse"]] {
        let report =
            iperf::measure(&teamed.guests[1].namespace, &teamed.address, 2, direction).unwrap();
        println!("{direction:?}: {} bit/s", report.bits_per_second);
        assert!(report.bits_per_second > 1e7, "{direction:?}");
    }
    for (uplink, before) in ["left", "right"].into_iter().zip(before) {
        assert!(teamed.sent_by(uplink) > before + 100, "flows leave by {uplink} too");
    }
    // Whichever member the pings leave by: each is cut once.
    for (link, uplink) in [(0, "left"), (1, "right")] {
        let (sent, lost) = teamed.pings(4, || teamed.peer.set_link(0, link, false).unwrap());
        assert!(sent == 400 && lost <= 50, "{lost} of {sent} pings were lost with {uplink}");
        teamed.wait_events(4107, uplink, 1);
        assert!(teamed.guests[1].namespace.reaches(&teamed.address));
        teamed.peer.set_link(0, link, true).unwrap();
        teamed.wait_events(4106, uplink, 2);
    }
    assert_eq!(
        teamed.daemon.json(&["switch", "show", "wan"]).unwrap()["condition"]["health"],
        "up"
    );
}
