//! A switch `wan` with two namespace guests, whose uplink is a team of two members.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_rig::{Daemon, DaemonOptions, NamespaceGuest, Rig, wait_until};

/// Deadline for any change of a team. The machine may be loaded.
pub const LIMIT: Duration = Duration::from_secs(120);
/// Names of the members' uplinks, in the order of their devices.
pub const MEMBERS: [&str; 2] = ["left", "right"];
/// Event ids of `team_down`, `team_member_usable` and `team_member_failed`.
pub const TEAM_DOWN: u64 = 4105;
pub const USABLE: u64 = 4106;
pub const FAILED: u64 = 4107;
/// LACP configuration with the short timeout of 3 s that distributes connections.
pub const FAST_LACP: &str =
    "mode = \"lacp\"\nlacp_timer = \"fast\"\nalgorithm = \"transport-ports\"";

/// Daemon with the team, and the guests. The daemon is declared first, so that it ends before the
/// namespaces are removed.
pub struct TeamOfTwo {
    pub daemon: Daemon,
    pub guests: [NamespaceGuest; 2],
}

impl TeamOfTwo {
    /// Starts two guests and a team on these devices. `keys` are further lines of its `[[team]]`,
    /// `of_uplinks` of each `[[uplink]]`.
    ///
    /// # Panics
    ///
    /// The daemon rejects the configuration.
    pub fn start(rig: &Rig, keys: &str, of_uplinks: &str, devices: &[String; 2]) -> Self {
        Self::start_with(rig, (keys, of_uplinks, ""), devices, &DaemonOptions::default())
    }

    /// As [`Self::start`], with further tables of the host file (`extra`) and options of the
    /// daemon.
    ///
    /// # Panics
    ///
    /// The daemon rejects the configuration.
    pub fn start_with(
        rig: &Rig,
        (keys, of_uplinks, extra): (&str, &str, &str),
        devices: &[String; 2],
        options: &DaemonOptions,
    ) -> Self {
        let guests = [("one", 1), ("two", 2)];
        let guests = guests.map(|(name, number)| NamespaceGuest::new(rig, name, number).unwrap());
        let mut host = format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"both\"\n\
             [[team]]\nname = \"both\"\nmembers = [\"left\", \"right\"]\n{keys}\n"
        );
        for (name, device) in MEMBERS.iter().zip(devices) {
            host +=
                &format!("[[uplink]]\nname = \"{name}\"\ndevice = \"{device}\"\n{of_uplinks}\n");
        }
        for guest in &guests {
            host += &guest.nic_toml("wan", "");
        }
        host += extra;
        let daemon = Daemon::start_with(rig, &host, options).unwrap();
        for guest in &guests {
            guest.bring_up().unwrap();
        }
        Self { daemon, guests }
    }

    /// Returns the number of events with this id, of one member if it is given.
    pub fn events(&self, id: u64, member: Option<&str>) -> usize {
        let events = self.daemon.json(&["event", "list", "--limit", "1000"]).unwrap();
        let is_meant = |event: &&Value| {
            event["id"] == id && member.is_none_or(|name| event["fields"]["member"] == name)
        };
        events.as_array().unwrap().iter().filter(is_meant).count()
    }

    /// Waits until there are at least `count` events with this id about a member.
    pub fn wait_events(&self, id: u64, member: &str, count: usize) {
        let description = format!("{count} events {id} of {member}");
        let result = wait_until(&description, LIMIT, || Ok(self.events(id, Some(member)) >= count));
        result.unwrap_or_else(|error| panic!("{error:#}: {:#}", self.status()));
    }

    /// Waits until there are at least `count` events with this id about a member whose reason
    /// contains `reason`.
    pub fn wait_reason(&self, id: u64, member: &str, reason: &str, count: usize) {
        let description = format!("{count} events {id} of {member} because of {reason:?}");
        let result =
            wait_until(&description, LIMIT, || Ok(self.because(id, member, reason) >= count));
        result.unwrap_or_else(|error| panic!("{error:#}: {:#}", self.status()));
    }

    /// Returns the number of events with this id about a member whose reason contains `reason`.
    pub fn because(&self, id: u64, member: &str, reason: &str) -> usize {
        let events = self.daemon.json(&["event", "list", "--limit", "1000"]).unwrap();
        let is_meant = |event: &&Value| {
            let fields = &event["fields"];
            let reason_text = fields["reason"].as_str().unwrap_or_default();
            event["id"] == id && fields["member"] == member && reason_text.contains(reason)
        };
        events.as_array().unwrap().iter().filter(is_meant).count()
    }

    /// Returns the output of `suimon team show`.
    pub fn status(&self) -> Value {
        self.daemon.json(&["team", "show", "both"]).unwrap()
    }

    /// Returns the state of a member in the output of `suimon team show`.
    pub fn state(&self, member: usize) -> String {
        self.status()["members"][member]["state"].as_str().unwrap().to_owned()
    }

    pub fn wait_state(&self, member: usize, state: &str) {
        let description = format!("{} being {state}", MEMBERS[member]);
        let reached = wait_until(&description, LIMIT, || Ok(self.state(member) == state));
        reached.unwrap_or_else(|error| panic!("{error:#}: {:#}", self.status()));
    }

    /// Returns the numbers of frames that each member has received and sent.
    pub fn frames(&self) -> [[u64; 2]; 2] {
        let status = self.status();
        let count =
            |index: usize, counter| status["members"][index]["counters"][counter].as_u64().unwrap();
        [0, 1].map(|index| ["rx_frames", "tx_frames"].map(|counter| count(index, counter)))
    }

    /// Waits until each member has received (`direction` 0) or sent (1) more than a hundred frames
    /// since `before`.
    pub fn wait_both_used(&self, before: [[u64; 2]; 2], direction: usize) {
        let mut after = before;
        let result = wait_until("frames by both members", LIMIT, || {
            after = self.frames();
            Ok([0, 1]
                .into_iter()
                .all(|member| after[member][direction] > before[member][direction] + 100))
        });
        result.unwrap_or_else(|error| panic!("{error:#}: {before:?}, then {after:?}"));
    }

    /// Waits until both members are active and in agreement with the partner with this system ID.
    pub fn wait_whole(&self, partner: &str) {
        wait_until("a team with two active members", LIMIT, || is_whole(&self.status(), partner))
            .unwrap();
    }
}

/// Checks the team's status: states of the members, LACP state bits of both ends, and equal shares
/// of the flows.
fn is_whole(status: &Value, partner: &str) -> Result<bool> {
    ensure!(status["condition"]["health"] == "up", "{status}");
    ensure!(status["lacp_partner"]["system"] == partner, "{status}");
    let members = status["members"].as_array().context("no members")?;
    ensure!(members.len() == MEMBERS.len(), "{status}");
    for (member, name) in members.iter().zip(MEMBERS) {
        ensure!([&member["uplink"], &member["state"]] == [name, "active"], "{member}");
        ensure!(member["flows_share_ppm"] == 500_000, "{member}");
        let lacp = &member["lacp"];
        ensure!(lacp["partner"]["system"] == partner, "{member}");
        ensure!([&lacp["collecting"], &lacp["distributing"]] == [true, true], "{member}");
        for end in ["actor", "partner"] {
            let bits = lacp[end]["state"].as_array().context("no bits")?;
            for bit in ["aggregation", "synchronization", "collecting", "distributing"] {
                ensure!(bits.iter().any(|set| set == bit), "{end} without {bit}: {member}");
            }
        }
    }
    let [left_port, right] = [0, 1].map(|index: usize| &members[index]["lacp"]["partner"]["port"]);
    ensure!(left_port != right, "both links lead to the partner's port {left_port}");
    Ok(true)
}
