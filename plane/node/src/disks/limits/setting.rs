//! Setting of limits in the storage plane.

use std::collections::BTreeSet;

use suimon_contract::{ApiError, ErrorCode, HostConfig};
use suimon_quantity::{StoreId, TimedRateLimit};

use super::{proposals, required, store_spec};
use crate::cluster::shared_stores;
use crate::disks::Disks;

impl Disks {
    /// Passes stores and limits to the storage plane. Minimums were checked against the capacity
    /// before. `removes`: also removes settings that are not configured.
    ///
    /// # Errors
    /// Fails if the plane rejects a store or limits. Stores processed before keep their new
    /// settings.
    pub(crate) fn set_limits(&self, config: &HostConfig, removes: bool) -> Result<(), ApiError> {
        let plane = &self.dependencies.plane;
        let measured = self.measurements();
        let mut published_stores = self.published();
        for store in &config.stores {
            let id = self.store_id(&store.name);
            let published = published_stores.entry(id).or_default();
            let required = required(self, config, store, &measured);
            let failed = |text: String| {
                ApiError::new(ErrorCode::HostError, text)
                    .with_resource(format!("store/{}", store.name))
            };
            if published.spec != required.spec {
                let spec = store_spec(store);
                plane.add_store(id, spec).map_err(|error| failed(error.to_string()))?;
                if published.spec.is_none() && shared_stores(config).contains_key(&store.name) {
                    // Limit of 0 until the cluster thread sets this node's share.
                    plane.set_cap(id, Some(TimedRateLimit::default()));
                }
                published.spec = required.spec.clone();
            }
            if published.capacity != required.capacity {
                plane.set_capacity(id, required.capacity);
                published.capacity = required.capacity;
            }
            if published.latency != required.latency {
                plane.set_latency(id, required.latency);
                published.latency = required.latency;
            }
            for policy in &required.spanning_policies {
                // Blocks requests of the policy until the cluster thread sets this node's share.
                plane.block_policy(id, *policy);
            }
            let proposals = proposals(published, &required, removes);
            plane.change_limits(id, &proposals, true).map_err(|error| failed(error.to_string()))?;
            if removes {
                // The share is removed only after the limits on this host alone are in effect.
                for policy in published.spanning_policies.difference(&required.spanning_policies) {
                    plane.set_policy_share(id, *policy, None);
                }
                *published = required;
            } else {
                published.disks.extend(required.disks);
                published.policies.extend(required.policies);
                published.spanning_policies.extend(required.spanning_policies);
            }
        }
        if removes {
            let store_ids: BTreeSet<StoreId> =
                config.stores.iter().map(|store| self.store_id(&store.name)).collect();
            published_stores
                .retain(|id, _| store_ids.contains(id) || plane.remove_store(*id).is_err());
            self.remove_deleted(config, &published_stores);
        }
        Ok(())
    }
}
