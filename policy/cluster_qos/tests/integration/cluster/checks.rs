//! Invariants of a cluster, checked from the nodes' caps alone.

use std::collections::BTreeMap;

use suimon_cluster_qos::PolicyKey;

use super::Node;

pub(crate) struct Checks {
    pub(crate) capability: u64,
    /// Maximum by policy.
    pub(crate) policy_max: BTreeMap<PolicyKey, u64>,
    pub(crate) sum_max: u64,
    /// False while a test shows the effect of a violated assumption: nothing is checked.
    pub(crate) is_on: bool,
}

impl Checks {
    pub(crate) fn new(capability: u64) -> Self {
        Self { capability, policy_max: BTreeMap::new(), sum_max: 0, is_on: true }
    }

    /// Sums the caps of all nodes, including those that are stopped, disconnected or just started,
    /// and asserts that the sum does not exceed the permitted maximum.
    pub(crate) fn look(&mut self, now: u64, nodes: &BTreeMap<u32, Node>) {
        let sum: u64 = nodes.values().map(|node| node.cap_at(now)).sum();
        self.sum_max = self.sum_max.max(sum);
        if !self.is_on {
            return;
        }
        let caps = || nodes.values().map(|node| (node.id, node.cap_at(now))).collect::<Vec<_>>();
        assert!(
            sum <= self.capability,
            "at {now} ns: {:?} are {sum} of {}",
            caps(),
            self.capability
        );
        for (policy, max) in &self.policy_max {
            let shares = nodes.values().flat_map(|node| {
                let local = node.clock.at(now);
                let policy_shares = node.policy_caps.iter().filter(|cap| cap.policy == *policy);
                policy_shares
                    .map(move |cap| cap.max.map_or(u64::MAX / 64, |max| max.iops_at(local)))
            });
            let sum: u64 = shares.sum();
            if sum > self.capability {
                for n in nodes.values() {
                    println!(
                        "NODE {} cap {:?} leads {:?}\n   {:?}\n",
                        n.id,
                        n.cap,
                        n.allocator.term(),
                        n.allocator
                    );
                }
            }
            assert!(sum <= *max, "at {now} ns: nodes have {sum} of {max} of {policy:?}");
        }
    }
}
