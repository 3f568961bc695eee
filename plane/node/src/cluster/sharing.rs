//! Stores that the nodes of a cluster share.

use std::collections::BTreeMap;

use suimon_contract::{HostConfig, Name, StoreConfig};

/// Returns the stores that nodes share, by name; empty if the host is in no cluster.
pub(crate) fn shared_stores(config: &HostConfig) -> BTreeMap<&Name, &StoreConfig> {
    let is_shared = |store: &&StoreConfig| config.cluster.is_some() && store.shared;
    config.stores.iter().filter(is_shared).map(|store| (&store.name, store)).collect()
}
