//! What of the cluster is kept on this host.
//!
//! | table | key | value |
//! |---|---|---|
//! | `cluster` | `self` | [`HostRecord`] |
//! | `cluster` | `kept/CLUSTER/STORE` | what this host does of a store without any lease |
//! | `cluster` | `covered/CLUSTER/STORE` | minimums that were in effect |
//! | `cluster` | `policies/CLUSTER` | [`KeptPolicies`] |

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use suimon_cluster_qos::Kept;
use suimon_contract::Name;
use suimon_ports::{StateStore, StoreError};

use super::covered::Minimums;
use super::policies::PolicyRecord;
use crate::records::{decode, encode};

pub(super) const CLUSTER: &str = "cluster";
const SELF: &str = "self";

/// Which host it is, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostRecord {
    /// 128 random bits in hexadecimal.
    pub(super) host: String,
    /// Which start of the daemon was the last; each has a higher one than those before.
    pub(super) incarnation: u64,
}

/// This host, at a start with a higher number than all before. It is durable.
pub(super) fn next_start(
    store: &dyn StateStore,
    at_least: u64,
    random: impl FnOnce() -> [u8; 16],
) -> Result<HostRecord, StoreError> {
    let known = store.read(CLUSTER, SELF)?;
    let known: Option<HostRecord> = known.map(|value| decode(CLUSTER, SELF, &value)).transpose()?;
    let mut record = known.unwrap_or_else(|| {
        let host = random().iter().map(|byte| format!("{byte:02x}")).collect();
        HostRecord { host, incarnation: 0 }
    });
    record.incarnation = record.incarnation.max(at_least).saturating_add(1);
    store.commit(&[(CLUSTER, SELF.to_owned(), Some(encode(SELF, &record)?))])?;
    Ok(record)
}

fn kept_key(cluster: &Name, store: &Name) -> String {
    format!("kept/{cluster}/{store}")
}

pub(super) fn load_kept(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
) -> Result<Kept, StoreError> {
    let key = kept_key(cluster, store);
    let value = state.read(CLUSTER, &key)?;
    value.map_or_else(|| Ok(Kept::default()), |value| decode(CLUSTER, &key, &value))
}

pub(super) fn save_kept(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
    kept: &Kept,
) -> Result<(), StoreError> {
    let key = kept_key(cluster, store);
    let value = encode(&key, kept)?;
    state.commit(&[(CLUSTER, key, Some(value))])
}

fn covered_key(cluster: &Name, store: &Name) -> String {
    format!("covered/{cluster}/{store}")
}

pub(super) fn load_covered(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
) -> Result<Minimums, StoreError> {
    let key = covered_key(cluster, store);
    let value = state.read(CLUSTER, &key)?;
    value.map_or_else(|| Ok(Minimums::default()), |value| decode(CLUSTER, &key, &value))
}

pub(super) fn save_covered(
    state: &dyn StateStore,
    cluster: &Name,
    store: &Name,
    covered: &Minimums,
) -> Result<(), StoreError> {
    let key = covered_key(cluster, store);
    let value = encode(&key, covered)?;
    state.commit(&[(CLUSTER, key, Some(value))])
}

/// What a host knows of its cluster's policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptPolicies {
    pub(super) all: Vec<PolicyRecord>,
    /// Deleted ones that desired state may still have.
    pub(super) deleted: BTreeSet<Name>,
}

fn policies_key(cluster: &Name) -> String {
    format!("policies/{cluster}")
}

pub(super) fn load_policies(
    state: &dyn StateStore,
    cluster: &Name,
) -> Result<KeptPolicies, StoreError> {
    let key = policies_key(cluster);
    let value = state.read(CLUSTER, &key)?;
    value.map_or_else(|| Ok(KeptPolicies::default()), |value| decode(CLUSTER, &key, &value))
}

pub(super) fn save_policies(
    state: &dyn StateStore,
    cluster: &Name,
    kept: &KeptPolicies,
) -> Result<(), StoreError> {
    let key = policies_key(cluster);
    let value = encode(&key, kept)?;
    state.commit(&[(CLUSTER, key, Some(value))])
}
