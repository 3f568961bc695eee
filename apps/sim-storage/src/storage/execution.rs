//! Execution of external events, and exchange of facts and events between the nodes of a run and
//! their cluster.

use std::time::Duration;

use suimon_quantity::{DiskId, Time};
use suimon_storage_qos::{AdmissionError, Limits, LimitsSource, Proposal};

use crate::cluster::ControlEvent;
use crate::storage::array::Io;
use crate::storage::disk_model::SharedStore;
use crate::storage::facts::Fact;
use crate::storage::intervention::Intervention;
use crate::storage::world::{EXTERNAL_TAG_FIRST, Event, World};

impl World {
    pub(super) fn execute_intervention(&mut self, intervention: Intervention) {
        let now = self.events.now();
        let after = |ns: u64| now + Duration::from_nanos(ns);
        let disturbed = match intervention {
            Intervention::Limit { disks, limits, may_be_refused } => {
                for disk in disks {
                    let refusal = self.set_limits(disk, limits);
                    self.rejection = self.rejection.or(refusal.filter(|_| !may_be_refused));
                }
                return;
            }
            Intervention::Demand { disk, all: has_all_demand } => {
                self.disks[disk as usize].has_demand = has_all_demand;
                self.observer.record(now, &Fact::Demand { disk, all: has_all_demand });
                return self.submit(disk);
            }
            Intervention::Stall { ns } => {
                self.array.stall(after(ns));
                ns
            }
            Intervention::Slow { ns, percent } => {
                self.array.slow_down(after(ns), percent);
                ns
            }
            Intervention::LateTimers { ns, late_ns } => {
                self.timer_delay = (after(ns), late_ns);
                ns + late_ns
            }
            Intervention::ExternalLoad { ns, depth } => {
                self.external_load = (after(ns), depth);
                (0..depth).for_each(|_| self.events.schedule_after_ns(0, Event::ExternalSubmit));
                ns
            }
            Intervention::Cluster { fault, ns } => {
                if let Some(control) = &mut self.cluster_model {
                    control.start_fault(now, &fault, after(ns), &mut SharedStore(&mut self.nodes));
                }
                return;
            }
        };
        let until_ns = now.as_ns() + disturbed;
        self.observer.record(now, &Fact::Disturbed { until_ns });
    }

    /// Sets the limits of a disk as the control plane does. Returns the error if the store rejects
    /// them, otherwise `None`.
    pub(super) fn set_limits(&mut self, disk: u32, limits: Limits) -> Option<AdmissionError> {
        let now = self.events.now();
        let node = &mut self.nodes[self.disks[disk as usize].node];
        let proposal = Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits));
        let changes = match node.store.apply(&[proposal], false) {
            Ok(changes) => changes,
            Err(refusal) => return Some(refusal),
        };
        for change in changes {
            node.apply(now, change);
        }
        if let Some(shared) = &mut node.shared {
            shared.record_limits(disk, limits);
        }
        self.observer.record(now, &Fact::Limits { disk, limits });
        None
    }

    pub(super) fn submit_external(&mut self) {
        let now = self.events.now();
        if now >= self.external_load.0 {
            return;
        }
        // Writes at random offsets in the first GiB model another system that uses the array.
        let block = 256 << 10;
        let offset = self.external_random.draw_below((1 << 30) / block) * block;
        self.external_request_count += 1;
        let tag = EXTERNAL_TAG_FIRST + self.external_request_count;
        let io = Io { tag, offset, bytes: block as u32, is_write: true };
        self.array.send(now, io);
    }

    pub(super) fn handle_cluster_event(&mut self, event: ControlEvent) {
        let now = self.events.now();
        if let Some(control) = &mut self.cluster_model {
            control.handle(now, event, &mut SharedStore(&mut self.nodes));
        }
    }

    /// Passes new facts of the cluster to the checkers, and its planned events to the agenda.
    pub(super) fn forward_cluster_facts(&mut self) {
        let now = self.events.now();
        let Some(control) = &mut self.cluster_model else { return };
        for (time, event) in control.drain_planned() {
            self.events.schedule(time, Event::Cluster(Box::new(event)));
        }
        for fact in control.facts.drain(..) {
            self.ledger.observe(now.as_ns(), &fact);
            self.observer.record(now, &Fact::Cluster(fact));
        }
        for (number, node) in (0..).zip(&mut self.nodes) {
            let is_waiting = node.is_waiting_for_node_limit();
            if std::mem::replace(&mut node.is_reported_waiting, is_waiting) != is_waiting {
                self.observer
                    .record(now, &Fact::NodeLimitWaitChanged { node: number, is_so: is_waiting });
            }
        }
    }

    /// Returns the end of the current pause of the disk's node; `None` if the node is not paused.
    pub(super) fn pause_end(&self, disk: u32) -> Option<Time> {
        let until = self.nodes[self.disks[disk as usize].node].paused_until;
        Some(until).filter(|until| *until > self.events.now())
    }
}
