//! Execution of the actions of members and allocators.

use suimon_cluster_qos::{AllocatorAction, SharedStoreCapacity};

use super::{Driver, NameLookup};
use crate::cluster::encoding::encode_value;
use crate::cluster::events;
use crate::cluster::keys::NodeReport;
use crate::cluster::messages::Task;
use crate::cluster::records::save_durable_state;
use crate::cluster::shared_store::StoreAction;
use crate::events::EventDraft;

impl Driver {
    /// Executes pending actions of all stores, in order per store. A member's action that fails is
    /// executed again at the next iteration, before the member's other actions. It does not delay
    /// the actions of the store's leader.
    pub(super) fn execute(&mut self) {
        let mut drafts = self.execute_members();
        drafts.extend(self.execute_leaders());
        for store in self.stores.values_mut() {
            store.flush_recording();
        }
        self.emit(drafts);
    }

    fn execute_members(&mut self) -> Vec<EventDraft> {
        let mut drafts = Vec::new();
        let Some(cluster) = self.config.as_ref().map(|cluster_config| cluster_config.name.clone())
        else {
            return drafts;
        };
        for (name, store) in &mut self.stores {
            while let Some(todo) = store.poll_member() {
                match todo {
                    StoreAction::ApplyLimits(cap, policies) => {
                        store.policy_caps = policies;
                        if !store.is_at_floor {
                            let caps = &store.policy_caps;
                            self.shared.disks.dependencies.plane.set_cap(store.id, Some(cap));
                            self.policies.set_policy_shares(&self.shared, (name, store.id), caps);
                        }
                    }
                    StoreAction::SaveState(durable) => {
                        let state = self.shared.store.as_ref();
                        let saved = save_durable_state(state, &cluster, name, &durable);
                        let has_failed = saved.is_err();
                        drafts.extend(store.handle_save_result(durable, saved));
                        if has_failed {
                            break;
                        }
                    }
                    StoreAction::WriteReport(_) if store.release.suppresses_reports() => {}
                    StoreAction::WriteReport(report) => {
                        if let Some(request) = &mut store.reservation_request {
                            request.handle_report(&report);
                        }
                        let named_disks =
                            report.disks_over_guarantee.iter().chain(&report.disks_below_guarantee);
                        let names = named_disks.filter_map(|named_disk| {
                            Some((named_disk.disk, store.names.get(&named_disk.disk)?.clone()))
                        });
                        let node_report = NodeReport {
                            names: names.collect(),
                            capacity_iops: store.capacity.map(SharedStoreCapacity::iops),
                            normalization_bytes: store.normalization_bytes,
                            report,
                        };
                        let task = Task::Report {
                            store: name.clone(),
                            report: encode_value(&node_report),
                        };
                        self.tasks.push(self.session, task);
                    }
                    StoreAction::NotifyMember(notice) => {
                        if store.take_is_reportable(notice) {
                            let reserved = store.durable.store.reserved_iops;
                            drafts.push(events::member_event(name, notice, reserved));
                        }
                    }
                }
            }
        }
        drafts
    }

    fn execute_leaders(&mut self) -> Vec<EventDraft> {
        let mut drafts = Vec::new();
        let (members, shared) = (&self.members, &self.shared);
        let lookup = NameLookup { members, shared, policies: &self.policies };
        for (name, store) in &mut self.stores {
            while let Some(todo) = store.poll_allocator() {
                match todo {
                    AllocatorAction::Write { term, grants, removed_nodes: forgotten_nodes } => {
                        let task = Task::WriteGrants {
                            store: name.clone(),
                            term,
                            grants,
                            forgotten: forgotten_nodes,
                        };
                        self.tasks.push(self.session, task);
                    }
                    AllocatorAction::Resign { term } => {
                        let task = Task::Resign { store: name.clone(), term };
                        self.tasks.push(self.session, task);
                    }
                    AllocatorAction::Notify { notice } => {
                        drafts.push(events::leader_event(name, &notice, &lookup));
                    }
                }
            }
        }
        drafts
    }
}
