//! Power, and work per power, computed from two snapshots.

use serde::Serialize;
use suimon_contract::{PowerEffect, TopPower};

use crate::top::disk_rates::DiskRates;
use crate::top::worker_rates::WorkerRates;

/// Power of the host, and work per watt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PowerRates {
    /// Desired power plan; absent if none is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
    /// Extent to which the CPU settings were in effect when last applied.
    pub(crate) effect: PowerEffect,
    /// Power of packages and memory in milliwatts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) milliwatts: Option<u64>,
    /// Frames per second that workers took from queues, per watt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frames_per_s_per_watt: Option<u64>,
    /// Disk requests per second, per watt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disk_requests_per_s_per_watt: Option<u64>,
    /// Reason why power is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unavailable_reason: Option<String>,
}

impl PowerRates {
    pub(super) fn between(
        before: &TopPower,
        after: &TopPower,
        workers: &[WorkerRates],
        disks: &[DiskRates],
    ) -> Self {
        let milliwatts = milliwatts(before, after);
        let frames = workers.iter().map(|worker| worker.frames_per_s);
        let requests = disks
            .iter()
            .flat_map(|disk| [disk.reads_per_s, disk.writes_per_s, disk.other_requests_per_s]);
        let per_watt = |values: &mut dyn Iterator<Item = u64>| {
            let sum = u128::from(values.fold(0_u64, u64::saturating_add));
            u64::try_from((sum * 1000).checked_div(u128::from(milliwatts?))?).ok()
        };
        Self {
            plan: after.plan.clone(),
            effect: after.effect,
            milliwatts,
            frames_per_s_per_watt: per_watt(&mut frames.into_iter()),
            disk_requests_per_s_per_watt: per_watt(&mut requests.into_iter()),
            unavailable_reason: after.unavailable_reason.clone(),
        }
    }
}

/// Returns the mean power in milliwatts: energy divided by the time between the two energy
/// readings, which differs from the snapshots' interval. `None` if energy is unknown.
fn milliwatts(before: &TopPower, after: &TopPower) -> Option<u64> {
    let used = after.energy_uj?.checked_sub(before.energy_uj?)?;
    let ns = after.read_monotonic_ns.checked_sub(before.read_monotonic_ns)?;
    // One microjoule per nanosecond is one kilowatt.
    let milliwatts = (u128::from(used) * 1_000_000).checked_div(u128::from(ns))?;
    u64::try_from(milliwatts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(energy_uj: Option<u64>, ns: u64) -> TopPower {
        TopPower { energy_uj, read_monotonic_ns: ns, ..TopPower::default() }
    }

    #[test]
    fn power_is_energy_by_time_or_unknown() {
        let power_of = |before, after| milliwatts(&before, &after);
        let joules = |joules: u64| Some(joules * 1_000_000);
        let second = 1_000_000_000;
        assert_eq!(power_of(reading(joules(5), 0), reading(joules(47), second)), Some(42_000));
        assert_eq!(
            power_of(reading(joules(5), 0), reading(joules(47), 0)),
            None,
            "the same reading"
        );
        assert_eq!(power_of(reading(None, 0), reading(joules(47), second)), None);
        assert_eq!(power_of(reading(joules(5), 0), reading(None, second)), None);
        assert_eq!(power_of(reading(joules(5), 0), reading(joules(4), second)), None, "began anew");
    }
}
