//! Periodic sampling of disk loads, and checks of the identity of stores.

use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use suimon_contract::{EventKind, Name};
use suimon_quantity::Time;

use super::{Driver, Link, RETRY};
use crate::cluster::events::record_not_saved_event;
use crate::cluster::identity::{self, IdentityMismatch, StoreRecordAccess};
use crate::cluster::keys::STORES;
use crate::cluster::messages::TaskResult;
use crate::cluster::minimums;
use crate::cluster::records::save_minimums_in_effect;
use crate::cluster::releasing::ReleasePhase;
use crate::cluster::{cluster_prefix, shared_stores};
use crate::events::EventDraft;

/// Interval between checks of a store's identity.
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(30);

impl Driver {
    /// Samples the load of disks, and passes it to the members. Updates the minimums in effect.
    pub(super) fn sample(&mut self, now: Time) {
        let (desired, views) =
            (self.shared.desired(), self.shared.disks.dependencies.plane.stores());
        let disks = &self.shared.disks;
        let keys = self.policies.keys();
        let mut drafts = Vec::new();
        for (name, store) in &mut self.stores {
            let sample_context = (disks, &desired.config, &keys);
            let reported = store.load_samples.sample(now, sample_context, (name, store.id), &views);
            store.names = reported.names;
            let minimums = minimums::minimums(&desired.config, name);
            let now_covered = minimums::minimums_in_effect(
                &minimums,
                store.minimums_max_iops(),
                &store.minimums_in_effect,
            );
            if now_covered != store.minimums_in_effect {
                let cluster = self.config.as_ref().map(|cluster_config| &cluster_config.name);
                let state = self.shared.store.as_ref();
                let saved = cluster.map_or(Ok(()), |cluster| {
                    save_minimums_in_effect(state, cluster, name, &now_covered)
                });
                match saved {
                    Ok(()) => {
                        disks.set_minimums_in_effect(name, now_covered.clone());
                        (store.minimums_in_effect, self.needs_limits) = (now_covered, true);
                        store.minimums_save_failure.record_success();
                    }
                    Err(error) if store.minimums_save_failure.record_failure(&error) => {
                        drafts.push(record_not_saved_event(name, "minimums", &error));
                    }
                    Err(_) => {}
                }
            }
            // A store that is not the cluster's is not reported, so that reservations on the right
            // store are kept.
            let gives_back = self.is_leaving || store.release != ReleasePhase::None;
            if gives_back || store.takes_part() {
                let loads = if gives_back { Vec::new() } else { reported.disks };
                store.handle_loads(now, loads, reported.latency_ns);
            }
            drafts.extend(
                store
                    .take_capacity_change()
                    .map(|is_unmeasured| capacity_draft(name, is_unmeasured)),
            );
            store.update_floor(now);
            // Repeated, because the store may have been added to the storage plane since the last
            // call.
            disks.dependencies.plane.set_cap(store.id, Some(store.cap()));
            if store.is_at_floor {
                self.policies.remove_policy_shares(&self.shared, (name, store.id));
            } else {
                self.policies.set_policy_shares(&self.shared, (name, store.id), &store.policy_caps);
            }
        }
        self.emit(drafts);
    }

    /// Starts checks of the identity of stores that are due, in a thread per store, because file
    /// systems may block.
    pub(super) fn check_identities(&mut self, now: Time) {
        let (Link::Up { store: cluster_store }, Some(config)) = (&self.link, &self.config) else {
            return;
        };
        let desired = self.shared.desired();
        let specs = shared_stores(&desired.config);
        for (name, store) in &mut self.stores {
            let Some(spec) = specs.get(name) else { continue };
            if store.is_identity_check_running || store.next_identity_check_at > now {
                continue;
            }
            store.is_identity_check_running = true;
            let key = format!("{}{STORES}{name}", cluster_prefix(&config.name));
            let known_identity = StoreRecordAccess { store: Arc::clone(cluster_store), key };
            let (shared, session) = (Arc::clone(&self.shared), self.session);
            let (cluster, name, path) = (config.name.clone(), name.clone(), spec.path.clone());
            let check_identity = move || {
                let random = (shared.disks.dependencies.random)();
                let inbox = Arc::clone(&shared.cluster.inbox);
                let result = shared.disks.query_store(&path, move |files| {
                    identity::check(&known_identity, files, &cluster, random)
                });
                let result = result.unwrap_or_else(|error| Err(error.to_string()));
                inbox.push_result_any_session(TaskResult::IdentityChecked {
                    store: name,
                    session,
                    mismatch: result,
                });
            };
            let thread = Builder::new().name("suimon-identity".to_owned()).spawn(check_identity);
            if let Err(error) = thread {
                tracing::warn!(%error, "cannot check the identity of a shared store");
                (store.is_identity_check_running, store.next_identity_check_at) =
                    (false, now + STORE_CHECK_INTERVAL);
            }
        }
    }

    pub(super) fn handle_identity(
        &mut self,
        now: Time,
        name: &Name,
        (session, mismatch): (u64, Result<Option<IdentityMismatch>, String>),
    ) {
        let Some(store) = self.stores.get_mut(name) else { return };
        store.is_identity_check_running = false;
        if session != self.session {
            // It may be about another cluster. The check is repeated in this session.
            return;
        }
        store.next_identity_check_at =
            now + if store.is_identity_checked { STORE_CHECK_INTERVAL } else { RETRY };
        let mismatch = match mismatch {
            Ok(mismatch) => mismatch,
            Err(error) => {
                tracing::warn!(store = %name, error, "cannot check the identity of a shared store");
                return;
            }
        };
        let previous_mismatch = std::mem::replace(&mut store.mismatch, mismatch.clone());
        store.is_identity_checked = true;
        self.sampled_at = None;
        let subject = format!("store/{name}");
        match (previous_mismatch, mismatch) {
            (None, Some(IdentityMismatch { reason, .. })) => {
                if self.stores.get_mut(name).is_some_and(|store| store.end_leadership(now)) {
                    self.report_leadership_lost(name, "the store has another identity");
                }
                let text = format!("This host gets no leases on store {name}: {reason}.");
                let draft = EventDraft::new(EventKind::SharedStoreWrong, subject, text);
                self.emit([draft.with("reason", reason)]);
            }
            (Some(_), None) => {
                let text = format!("Store {name} has the identity that the cluster has recorded.");
                self.emit([EventDraft::new(EventKind::SharedStoreRight, subject, text)]);
            }
            _ => {}
        }
    }
}

/// Returns the event that the capacity of a store is unknown, or known again.
fn capacity_draft(name: &Name, is_unknown: bool) -> EventDraft {
    let subject = format!("store/{name}");
    if is_unknown {
        let text = format!(
            "The capacity of store {name} is unknown on this host, which cannot lead the store. \
             Measure it with `suimon store measure {name}`, or set `capacity_iops`. While no node \
             knows the capacity, the disks of the store get 64 IOPS together on each node, and no \
             guarantees."
        );
        return EventDraft::new(EventKind::SharedStoreUnmeasured, subject, text);
    }
    let text = format!("The capacity of store {name} is known on this host.");
    EventDraft::new(EventKind::SharedStoreMeasured, subject, text)
}
