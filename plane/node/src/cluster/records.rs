//! Cluster records in the state store of this host.
//!
//! | table | key | value |
//! |---|---|---|
//! | `cluster` | `self` | [`HostRecord`] |
//! | `cluster` | `kept/CLUSTER/STORE` | [`DurableState`]: rates that this host may use without a lease |
//! | `cluster` | `covered/CLUSTER/STORE` | [`Minimums`] in effect |
//! | `cluster` | `policies/CLUSTER` | [`StoredPolicies`] |
//!
//! A record without content is not stored. Records of a store are removed when the host does not
//! share it any more, those of a cluster when the host has left it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use suimon_cluster_qos::DurableState;
use suimon_contract::Name;
use suimon_ports::{StateStore, StateStoreError};

use super::minimums::Minimums;
use super::policies::PolicyRecord;
use crate::state::{decode, encode};

pub(super) const CLUSTER: &str = "cluster";
const SELF: &str = "self";
/// First components of the keys whose second component is the name of a cluster.
const OF_CLUSTERS: [&str; 3] = ["kept", "covered", "policies"];
/// Number of records that are read at a time.
const PAGE: usize = 256;

/// Identity of the host, independent of its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostRecord {
    /// 128 random bits in hexadecimal.
    #[serde(rename = "host")]
    pub(super) host_id: String,
    /// Number of the daemon's last start, higher than all before.
    pub(super) incarnation: u64,
}

/// Creates a number of the daemon's start, higher than all before and than `at_least`. The number
/// is durable when this function returns.
pub(super) fn begin_incarnation(
    store: &dyn StateStore,
    at_least: u64,
    random: impl FnOnce() -> [u8; 16],
) -> Result<HostRecord, StateStoreError> {
    let stored = store.read(CLUSTER, SELF)?;
    let known_record: Option<HostRecord> =
        stored.map(|value| decode(CLUSTER, SELF, &value)).transpose()?;
    let mut record = known_record.unwrap_or_else(|| {
        let host = random().iter().map(|byte| format!("{byte:02x}")).collect();
        HostRecord { host_id: host, incarnation: 0 }
    });
    record.incarnation = record.incarnation.max(at_least).saturating_add(1);
    store.commit(&[(CLUSTER, SELF.to_owned(), Some(encode(SELF, &record)?))])?;
    Ok(record)
}

/// Removes the records of all clusters except `current`. The host has left those.
pub(super) fn remove_other_clusters(
    state: &dyn StateStore,
    current: Option<&Name>,
) -> Result<(), StateStoreError> {
    let mut start_key = String::new();
    loop {
        let page = state.scan(CLUSTER, &start_key, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        // The least key after the last one.
        start_key = format!("{last}\0");
        let is_other = |key: &&str| {
            let mut parts = key.split('/');
            let is_of_cluster = parts.next().is_some_and(|table| OF_CLUSTERS.contains(&table));
            is_of_cluster && parts.next() != current.map(Name::as_str)
        };
        let removed = page.iter().map(|(key, _)| key.as_str()).filter(is_other);
        let removed: Vec<_> = removed.map(|key| (CLUSTER, key.to_owned(), None)).collect();
        if !removed.is_empty() {
            state.commit(&removed)?;
        }
    }
}

/// Sets a record, or removes it. An empty record is not stored, so that no name of a store leaves a
/// record for ever.
fn save(
    state: &dyn StateStore,
    key: String,
    value: Option<Vec<u8>>,
) -> Result<(), StateStoreError> {
    let exists = value.is_some() || state.read(CLUSTER, &key)?.is_some();
    if exists { state.commit(&[(CLUSTER, key, value)]) } else { Ok(()) }
}

fn kept_key(cluster: &Name, store: &Name) -> String {
    format!("kept/{cluster}/{store}")
}

pub(super) fn load_durable_state(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
) -> Result<DurableState, StateStoreError> {
    let key = kept_key(cluster, store);
    let value = state.read(CLUSTER, &key)?;
    value.map_or_else(|| Ok(DurableState::default()), |value| decode(CLUSTER, &key, &value))
}

pub(super) fn save_durable_state(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
    durable: &DurableState,
) -> Result<(), StateStoreError> {
    let key = kept_key(cluster, store);
    let is_empty = *durable == DurableState::default();
    let value = (!is_empty).then(|| encode(&key, durable)).transpose()?;
    save(state, key, value)
}

fn covered_key(cluster: &Name, store: &Name) -> String {
    format!("covered/{cluster}/{store}")
}

pub(super) fn load_minimums_in_effect(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
) -> Result<Minimums, StateStoreError> {
    let key = covered_key(cluster, store);
    let value = state.read(CLUSTER, &key)?;
    value.map_or_else(|| Ok(Minimums::default()), |value| decode(CLUSTER, &key, &value))
}

pub(super) fn save_minimums_in_effect(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
    covered: &Minimums,
) -> Result<(), StateStoreError> {
    let key = covered_key(cluster, store);
    let value = (!covered.is_empty()).then(|| encode(&key, covered)).transpose()?;
    save(state, key, value)
}

/// Known shared policies of the host's cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredPolicies {
    #[serde(rename = "all")]
    pub(super) policies: Vec<PolicyRecord>,
    /// Deleted policies that the desired state may still contain.
    pub(super) deleted: BTreeSet<Name>,
}

fn policies_key(cluster: &Name) -> String {
    format!("policies/{cluster}")
}

pub(super) fn load_policies(
    state: &dyn StateStore,
    cluster: &Name,
) -> Result<StoredPolicies, StateStoreError> {
    let key = policies_key(cluster);
    let value = state.read(CLUSTER, &key)?;
    value.map_or_else(|| Ok(StoredPolicies::default()), |value| decode(CLUSTER, &key, &value))
}

pub(super) fn save_policies(
    state: &dyn StateStore,
    cluster: &Name,
    policies: &StoredPolicies,
) -> Result<(), StateStoreError> {
    let key = policies_key(cluster);
    let value = encode(&key, policies)?;
    state.commit(&[(CLUSTER, key, Some(value))])
}
