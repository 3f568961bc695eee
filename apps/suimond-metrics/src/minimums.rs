//! Metrics of guaranteed minimums: guaranteed and delivered rates of the disks with a minimum.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::DiskStatus;

use crate::family::{Family, Value};
use crate::readings::Readings;

const LABELS: &[&str] = &["holder", "store"];
const IOPS: &str = "normalised IOPS";

const GUARANTEED: Family = Family::gauge(
    "suimon_minimum_guaranteed_iops",
    IOPS,
    LABELS,
    "Guaranteed IOPS in the last 5 s: `min_iops`, multiplied by the share of this time in which a \
     disk of the holder had requests. The holder is `disk/NAME`, or `qos_policy/NAME` for the disks \
     of an aggregated policy in one store",
);

const DELIVERED: Family = Family::gauge(
    "suimon_minimum_delivered_iops",
    IOPS,
    LABELS,
    "Completed operations per second of the holder's disks in the store, mean of the last 5 s",
);

/// Rates of one holder of a minimum, which is a disk or an aggregated policy, in normalised
/// operations per second.
#[derive(Clone, Copy, Default)]
struct Rates {
    guaranteed_iops: u64,
    delivered_iops: u64,
}

pub(super) fn families() -> Vec<Family> {
    vec![GUARANTEED, DELIVERED]
}

impl Readings {
    pub(super) fn encode_minimums(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let rates = rates(&self.disks);
        let series = |value: fn(&Rates) -> u64| {
            rates.iter().map(move |(labels, rates)| {
                (labels.clone(), Value::real_from_integer(value(rates)))
            })
        };
        GUARANTEED.write_if_any(encoder, series(|rates| rates.guaranteed_iops))?;
        DELIVERED.write_if_any(encoder, series(|rates| rates.delivered_iops))
    }
}

/// Returns the rates of each holder of a minimum on each store, by the labels `holder` and `store`.
fn rates(disks: &[DiskStatus]) -> BTreeMap<[String; 2], Rates> {
    let mut rates = BTreeMap::<_, Rates>::new();
    let flows = disks.iter().filter_map(|disk| disk.qos.as_ref());
    for flow in flows.filter(|flow| flow.limits.min_iops.is_some()) {
        let entry = rates.entry([flow.holder.clone(), flow.store.to_string()]).or_default();
        // Each disk of an aggregated policy reports the guarantee of all of them.
        entry.guaranteed_iops = entry.guaranteed_iops.max(flow.last_5_s.guaranteed_iops);
        entry.delivered_iops = entry.delivered_iops.saturating_add(flow.last_5_s.delivered_iops);
    }
    rates
}
