//! Minimums of disks on a shared store, and which of them are in effect ([`ReservationCoverage`]).
//! Minimums in effect are stored on the host, so that they are in effect again after a restart.

use std::collections::BTreeMap;

use suimon_cluster_qos::ReservationCoverage;
use suimon_contract::{HostConfig, Name, QosPolicyKind};

/// Minimums in IOPS by holder: `disk/NAME`, or `qos_policy/NAME` for disks that share one.
pub(crate) type Minimums = BTreeMap<String, u64>;

/// Returns the key of a disk's own minimum in [`Minimums`]: `disk/NAME`.
pub(crate) fn disk_minimum_key(disk: &Name) -> String {
    format!("disk/{disk}")
}

/// Returns the key of an aggregated policy's minimum in [`Minimums`]: `qos_policy/NAME`.
pub(crate) fn policy_minimum_key(policy: &Name) -> String {
    format!("qos_policy/{policy}")
}

/// Returns the configured minimums of disks on a store, except those of policies that span nodes.
pub(super) fn minimums(config: &HostConfig, store: &Name) -> Minimums {
    let mut minimums = Minimums::new();
    for disk in config.disks.iter().filter(|disk| disk.store == *store) {
        let policy = disk.qos_policy.as_ref();
        let policy = policy.and_then(|name| {
            config.qos_policies.iter().find(|qos_policy| qos_policy.name == *name)
        });
        let limits = policy.map_or(disk.qos, |policy| policy.limits());
        let Some(min) = limits.min_iops else { continue };
        match policy {
            Some(policy) if policy.spans_nodes() => {}
            Some(policy) if policy.kind == QosPolicyKind::Aggregated => {
                minimums.insert(policy_minimum_key(&policy.name), min);
            }
            _ => {
                minimums.insert(disk_minimum_key(&disk.name), min);
            }
        }
    }
    minimums
}

/// Returns the minimums in effect, given the reserved rate and the minimums previously in effect.
pub(super) fn minimums_in_effect(
    desired: &Minimums,
    reserved_iops: u64,
    before: &Minimums,
) -> Minimums {
    let coverage = ReservationCoverage::new(reserved_iops, desired.values().copied());
    let covered_minimum = |(name, min): (&String, &u64)| {
        let previous_minimum = before.get(name).copied().unwrap_or_default();
        (name.clone(), coverage.minimum_in_effect(*min, previous_minimum))
    };
    desired.iter().map(covered_minimum).filter(|(_, min)| *min > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimums_of(entries: &[(&str, u64)]) -> Minimums {
        entries.iter().map(|(name, min)| ((*name).to_owned(), *min)).collect()
    }

    #[test]
    fn only_minimums_that_fit_the_reservation_take_effect_and_earlier_ones_stay() {
        let before = minimums_of(&[("disk/a", 2000), ("disk/b", 500)]);
        let raised = minimums_of(&[("disk/a", 2000), ("disk/b", 900), ("disk/c", 100)]);
        assert_eq!(minimums_in_effect(&raised, 2564, &before), before);
        assert_eq!(minimums_in_effect(&raised, 3064, &before), raised);
        let lowered = minimums_of(&[("disk/a", 800), ("disk/c", 9000)]);
        assert_eq!(minimums_in_effect(&lowered, 2564, &before), minimums_of(&[("disk/a", 800)]));
        assert_eq!(minimums_in_effect(&before, 0, &Minimums::new()), Minimums::new());
    }
}
