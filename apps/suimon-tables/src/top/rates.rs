//! Rates computed from two snapshots of counters.

use serde::Serialize;
use suimon_contract::{Health, Name, TopPort, TopSnapshot, TopTeam};

use crate::top::disk_rates::DiskRates;
use crate::top::interval::{Interval, share_permille};
use crate::top::power_rates::PowerRates;
use crate::top::worker_rates::{WorkerRates, worker_rates};

/// Rates of all objects between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename = "Rates")]
pub struct TopRates {
    /// Time of the later snapshot in milliseconds since 1970-01-01 UTC.
    pub time_unix_ms: u64,
    /// Time between the snapshots in ns.
    pub(crate) interval_ns: u64,
    /// Rates of NICs, by name.
    pub(crate) nics: Vec<PortRates>,
    /// Rates of uplinks, by name.
    pub(crate) uplinks: Vec<PortRates>,
    /// Rates of teams, by name.
    pub(crate) teams: Vec<TeamRates>,
    /// Rates of disks, by name.
    pub(crate) disks: Vec<DiskRates>,
    /// Rates of workers, by number.
    pub(crate) workers: Vec<WorkerRates>,
    /// Power, and work per power.
    pub(crate) power: PowerRates,
}

/// Rates of one team: sums of its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TeamRates {
    pub(crate) name: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) switch: Option<Name>,
    pub(crate) health: Health,
    pub(crate) rx_bits_per_s: u64,
    pub(crate) tx_bits_per_s: u64,
    /// Members in the order of the configuration.
    pub(crate) members: Vec<MemberRates>,
}

/// Rates of one member, with its share of the team's traffic in thousandths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MemberRates {
    pub(crate) uplink: Name,
    pub(crate) health: Health,
    pub(crate) rx_bits_per_s: u64,
    pub(crate) rx_permille: u64,
    pub(crate) tx_bits_per_s: u64,
    pub(crate) tx_permille: u64,
}

impl TeamRates {
    /// Returns the rates of a team. Some of its members may not exist any more.
    fn from_members(team: &TopTeam, uplinks: &[PortRates]) -> Self {
        let find = |name: &Name| uplinks.iter().find(|uplink| uplink.name == *name);
        let members: Vec<&PortRates> = team.members.iter().filter_map(find).collect();
        let sum = |value: fn(&PortRates) -> u64| {
            members.iter().fold(0_u64, |sum, member| sum.saturating_add(value(member)))
        };
        let rx_bits_per_s = sum(|member| member.rx_bits_per_s);
        let tx_bits_per_s = sum(|member| member.tx_bits_per_s);
        let member = |member_port: &&PortRates| MemberRates {
            uplink: member_port.name.clone(),
            health: member_port.health,
            rx_bits_per_s: member_port.rx_bits_per_s,
            rx_permille: share_permille(member_port.rx_bits_per_s, rx_bits_per_s),
            tx_bits_per_s: member_port.tx_bits_per_s,
            tx_permille: share_permille(member_port.tx_bits_per_s, tx_bits_per_s),
        };
        Self {
            name: team.name.clone(),
            switch: team.switch.clone(),
            health: team.health,
            rx_bits_per_s,
            tx_bits_per_s,
            members: members.iter().map(member).collect(),
        }
    }
}

/// Rates of one NIC or uplink: `rx` from the port to the switch, `tx` from the switch to the port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PortRates {
    pub(crate) name: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) switch: Option<Name>,
    pub(crate) health: Health,
    pub(crate) rx_frames_per_s: u64,
    pub(crate) rx_bits_per_s: u64,
    pub(crate) tx_frames_per_s: u64,
    pub(crate) tx_bits_per_s: u64,
    pub(crate) rx_drops_per_s: u64,
    pub(crate) tx_drops_per_s: u64,
}

impl TopRates {
    /// Returns the rates between two snapshots. An object that only the later snapshot contains has
    /// rates of 0.
    pub fn between(before: &TopSnapshot, after: &TopSnapshot) -> Self {
        let interval_ns = after.time_monotonic_ns.saturating_sub(before.time_monotonic_ns);
        let interval = Interval { ns: interval_ns };
        let ports = |before: &[TopPort], after: &[TopPort]| -> Vec<PortRates> {
            after
                .iter()
                .map(|port| {
                    let earlier = before.iter().find(|earlier| earlier.name == port.name);
                    port_rates(interval, earlier.unwrap_or(port), port)
                })
                .collect()
        };
        let workers = after.workers.iter().map(|worker| {
            let earlier = before.workers.iter().find(|earlier| earlier.id == worker.id);
            worker_rates(interval, earlier.unwrap_or(worker), worker)
        });
        let disks = after.disks.iter().map(|disk| {
            let earlier = before.disks.iter().find(|earlier| earlier.name == disk.name);
            DiskRates::between(interval, earlier.unwrap_or(disk), disk)
        });
        let (workers, disks): (Vec<_>, Vec<_>) = (workers.collect(), disks.collect());
        let power = PowerRates::between(&before.power, &after.power, &workers, &disks);
        let uplinks = ports(&before.uplinks, &after.uplinks);
        Self {
            time_unix_ms: after.time_unix_ms,
            interval_ns,
            nics: ports(&before.nics, &after.nics),
            teams: after.teams.iter().map(|team| TeamRates::from_members(team, &uplinks)).collect(),
            uplinks,
            disks,
            workers,
            power,
        }
    }
}

fn port_rates(interval: Interval, before: &TopPort, after: &TopPort) -> PortRates {
    let bits = |bytes: u64| bytes.saturating_mul(8);
    PortRates {
        name: after.name.clone(),
        switch: after.switch.clone(),
        health: after.health,
        rx_frames_per_s: interval.per_second(before.rx_frames, after.rx_frames),
        rx_bits_per_s: bits(interval.per_second(before.rx_bytes, after.rx_bytes)),
        tx_frames_per_s: interval.per_second(before.tx_frames, after.tx_frames),
        tx_bits_per_s: bits(interval.per_second(before.tx_bytes, after.tx_bytes)),
        rx_drops_per_s: interval.per_second(before.rx_dropped, after.rx_dropped),
        tx_drops_per_s: interval.per_second(before.tx_dropped, after.tx_dropped),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use suimon_contract::{RENAMES, RenamedItem, TopDisk, to_json};

    use super::*;
    use crate::top::example::{example, port, snapshot, top_disk};

    #[test]
    fn rates_are_growth_by_time() {
        let rates = example();
        assert_eq!(rates.interval_ns, 2_000_000_000);
        let web = &rates.nics[1];
        assert_eq!(web.rx_frames_per_s, 1_250_000);
        assert_eq!(web.rx_bits_per_s, 10_000_000_000);
        assert_eq!(web.rx_drops_per_s, 125_000);
        assert_eq!(rates.nics[0].rx_frames_per_s, 0, "appeared meanwhile");
        assert_eq!(rates.workers[0].busy_permille, 750);
        assert_eq!(rates.power.milliwatts, Some(42_000));
        assert_eq!(rates.power.frames_per_s_per_watt, Some(178_571), "7.5 million by 42");
        assert_eq!(rates.power.disk_requests_per_s_per_watt, Some(47), "2000 by 42");
        let shares = rates.workers[0].stages_permille;
        assert_eq!(shares.share_permille("idle"), 250);
        assert_eq!(shares.share_permille("copy_out"), 375);
        assert_eq!(shares.0.iter().map(|(_, share)| share).sum::<u64>(), 1002, "rounded");
        let json = serde_json::to_value(shares).unwrap();
        assert_eq!(json["classify"], 75);
    }

    /// The table of renames names structs as serde does.
    #[test]
    fn json_has_the_old_name_of_each_renamed_field() {
        let mut rates = example();
        rates.power.unavailable_reason = Some("no sensor".to_owned());
        let json: Value = serde_json::from_slice(&to_json(&rates).unwrap()).unwrap();
        let objects = [&json, &json["workers"][0], &json["disks"][0], &json["power"]];
        let mut count = 0;
        for rename in
            RENAMES.iter().filter(|rename| matches!(rename.item, RenamedItem::CommandOutput { .. }))
        {
            let has_both = |object: &&&Value| {
                object.get(rename.new).is_some_and(|value| object.get(rename.old) == Some(value))
            };
            assert!(objects.iter().any(|object| has_both(&object)), "{rename:?}: {json}");
            count += 1;
        }
        assert_ne!(count, 0);
    }

    #[test]
    fn rates_of_a_team_are_the_sums_of_its_members() {
        let team = &example().teams[0];
        assert_eq!((team.rx_bits_per_s, team.tx_bits_per_s), (8_000_000, 24_000_000));
        let members =
            team.members.iter().map(|member| (member.uplink.as_str(), member.rx_permille));
        assert_eq!(members.collect::<Vec<_>>(), [("wan", 1000), ("spare", 0)]);
        assert_eq!(
            [
                share_permille(1, 3),
                share_permille(2, 3),
                share_permille(0, 0),
                share_permille(u64::MAX, u64::MAX)
            ],
            [333, 667, 0, 1000]
        );
    }

    #[test]
    fn disks_have_rates_latencies_and_waits() {
        let disk = &example().disks[0];
        assert_eq!(
            (disk.reads_per_s, disk.writes_per_s, disk.other_requests_per_s),
            (1000, 500, 500)
        );
        assert_eq!((disk.read_bytes_per_s, disk.written_bytes_per_s), (4_096_000, 8_192_000));
        assert_eq!(disk.latency_ns, Some(150_000), "300 us for each read and what came with it");
        assert_eq!(disk.qos_wait_ns, Some(250_000), "2.5 s for 10 000 operations");
        let idle = TopDisk { last_5_s: None, ..top_disk(5) };
        let idle = DiskRates::between(Interval { ns: 1 }, &idle, &idle);
        assert_eq!((idle.latency_ns, idle.qos_wait_ns), (None, None));
    }

    #[test]
    fn reset_counters_and_empty_intervals_yield_valid_rates() {
        let before = snapshot(5, vec![port("web", u64::MAX / 4000)], 0);
        let after = snapshot(5, vec![port("web", 10)], 0);
        let rates = TopRates::between(&before, &after);
        assert_eq!(rates.nics[0].rx_frames_per_s, 10_000_000_000);
        let restarted = TopRates::between(&after, &snapshot(0, Vec::new(), 0));
        assert_eq!(restarted.interval_ns, 0);
        assert_eq!(rates.workers[0].stages_permille.share_permille("idle"), 0, "nothing new");
    }
}
