//! Migration of a drained host's VMs, one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, DrainPlan, DrainRequest, ErrorCode, EventKind, MigrateVmRequest, Name,
    OperationState, VmDrainPlan, VmState,
};

use crate::errors::summarize;
use crate::events::EventDraft;
use crate::operations::OperationHandle;
use crate::shared::Shared;
use crate::vms::VmEntry;

/// Maximum time until a VM reaches a state in which it can be migrated: it may be starting or being
/// adopted.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
/// Interval in which the VM's state and a cancellation are checked.
const POLL: Duration = Duration::from_millis(200);

/// Number of VMs sent to each node.
type SentPerNode = BTreeMap<Name, usize>;

impl Shared {
    /// Returns what a drain would do with each VM of the host.
    pub(super) fn plan_drain(&self, request: &DrainRequest) -> DrainPlan {
        let mut migrations = SentPerNode::new();
        let vms = self.vms.all();
        let vms = vms.iter().map(|entry| {
            let vm = self.plan_vm(entry, request, &migrations, &BTreeSet::new());
            if let Some(target) = &vm.destination {
                *migrations.entry(target.clone()).or_default() += 1;
            }
            vm
        });
        DrainPlan { vms: vms.collect(), node: self.host_name() }
    }

    /// Returns the destination of a VM: among the nodes that accept it, the one to which this drain
    /// has migrated the fewest VMs. `in_vain`: nodes to which a migration of the VM has failed.
    fn plan_vm(
        &self,
        entry: &VmEntry,
        request: &DrainRequest,
        migrations: &SentPerNode,
        in_vain: &BTreeSet<Name>,
    ) -> VmDrainPlan {
        let vm = entry.name.clone();
        if entry.view().state == VmState::Stopped && entry.view().migration.is_none() {
            let reason = Some("it is not running".to_owned());
            return VmDrainPlan { vm, destination: None, reason, blocks_drain: false };
        }
        match self.find_node(entry, request, migrations, in_vain) {
            Ok(target) => {
                VmDrainPlan { vm, destination: Some(target), reason: None, blocks_drain: false }
            }
            Err(reason) => {
                VmDrainPlan { vm, destination: None, reason: Some(reason), blocks_drain: true }
            }
        }
    }

    fn find_node(
        &self,
        entry: &VmEntry,
        request: &DrainRequest,
        migrations: &SentPerNode,
        in_vain: &BTreeSet<Name>,
    ) -> Result<Name, String> {
        let message = |error: ApiError| error.message;
        entry.check_can_migrate().map_err(message)?;
        let arrival = self.outgoing_request(&entry.name).map_err(message)?;
        let _marks = self.create_store_markers(&arrival.stores).map_err(message)?;
        let desired = self.desired();
        let is_requested =
            |name: &Name| request.destinations.is_empty() || request.destinations.contains(name);
        let mut nodes: Vec<&Name> = desired.config.nodes.iter().map(|node| &node.name).collect();
        nodes.retain(|name| is_requested(name) && !in_vain.contains(*name));
        nodes.sort_by_key(|name| migrations.get(*name).copied().unwrap_or_default());
        let mut refusals = Vec::new();
        for name in nodes {
            let peer = self.peer_node(name).map_err(|error| vec![error]);
            let checked = peer.and_then(|peer| {
                let checked = peer.check_incoming_migration(&arrival);
                checked
                    .map_err(|error| vec![self.migration_request_error(name, peer.as_ref(), error)])
            });
            match checked {
                Ok(_) => return Ok(name.clone()),
                Err(errors) => refusals.push(summarize(errors).message),
            }
        }
        if refusals.is_empty() {
            let text = "there is no other node for it; add one with `suimon node add`";
            return Err(text.to_owned());
        }
        Err(refusals.join("; "))
    }

    /// Migrates all VMs that can be migrated, and reports those that stay.
    pub(super) fn migrate_all(
        self: &Arc<Self>,
        operation: &OperationHandle,
    ) -> Result<(), ApiError> {
        let stored = self.drain.state().stored.clone();
        let Some(request) = stored.map(|stored| stored.request) else {
            return self.check_going_on(operation);
        };
        let (mut migrations, mut results) =
            (SentPerNode::new(), BTreeMap::<Name, VmDrainPlan>::new());
        loop {
            // The VM of an incoming migration that began before the drain may be added meanwhile.
            let entries = self.vms.all();
            let Some(entry) = entries.iter().find(|entry| !results.contains_key(&entry.name))
            else {
                break;
            };
            let (completed, total) = (results.len(), results.len().max(entries.len()));
            operation.report_progress(completed, total, &entry.label());
            let vm = self.migrate_vm(entry, &request, (&mut migrations, operation))?;
            results.insert(entry.name.clone(), vm);
            operation.set_report(results.values().map(ToString::to_string).collect());
        }
        self.report_result(results.values())
    }

    /// Migrates a VM; tries further nodes after a failure.
    fn migrate_vm(
        &self,
        entry: &Arc<VmEntry>,
        request: &DrainRequest,
        (migrations, operation): (&mut SentPerNode, &OperationHandle),
    ) -> Result<VmDrainPlan, ApiError> {
        self.await_settled(entry, operation)?;
        let mut in_vain = BTreeSet::new();
        let mut failed = None;
        loop {
            self.check_going_on(operation)?;
            let mut vm = self.plan_vm(entry, request, migrations, &in_vain);
            let Some(target) = &vm.destination else {
                // The failure of a migration is more specific than the lack of further nodes.
                vm.reason = failed.or(vm.reason);
                return Ok(vm);
            };
            // The checks by other nodes may have taken long.
            self.check_going_on(operation)?;
            match self.send_to(entry, target, request, operation)? {
                Ok(()) => {
                    *migrations.entry(target.clone()).or_default() += 1;
                    return Ok(vm);
                }
                Err(reason) => {
                    in_vain.insert(target.clone());
                    failed = Some(reason);
                }
            }
        }
    }

    /// Waits until the VM's state is known and no migration of it is in progress, at most
    /// [`SETTLE_LIMIT`].
    fn await_settled(&self, entry: &VmEntry, operation: &OperationHandle) -> Result<(), ApiError> {
        let until = Instant::now() + SETTLE_LIMIT;
        let is_settled = || {
            let view = entry.view();
            let is_settled = matches!(
                view.state,
                VmState::Stopped | VmState::Running | VmState::Paused | VmState::Panicked
            );
            is_settled && view.migration.is_none()
        };
        while !is_settled() && Instant::now() < until {
            self.check_going_on(operation)?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn check_going_on(&self, operation: &OperationHandle) -> Result<(), ApiError> {
        if self.drain.stops() {
            let text = "the daemon is stopping; the next one continues the drain";
            return Err(ApiError::new(ErrorCode::HostError, text).with_resource("host"));
        }
        operation.check_cancelled().map_err(|_| {
            let reason = "the drain was cancelled; VMs that have left stay on the other nodes";
            let is_drained = self.drain.state().stored.is_some();
            let name = self.host_name();
            let text = match is_drained {
                true => format!(
                    "{reason}, and no VM comes to node {name} until `suimon node undrain {name}`"
                ),
                false => reason.to_owned(),
            };
            ApiError::new(ErrorCode::Cancelled, text).with_resource("host")
        })
    }

    /// Migrates a VM to a node and waits for the end of the migration. Returns the reason of a
    /// failure as the inner error.
    fn send_to(
        &self,
        entry: &Arc<VmEntry>,
        target: &Name,
        request: &DrainRequest,
        operation: &OperationHandle,
    ) -> Result<Result<(), String>, ApiError> {
        let request = MigrateVmRequest {
            destination: target.clone(),
            downtime_ms: request.downtime_ms,
            bandwidth_max_bytes_per_s: request.bandwidth_max_bytes_per_s,
            deletes_source_files: request.deletes_source_files,
        };
        let id = match self.begin_migration(&entry.name, request) {
            Ok(id) => id,
            Err(error) => return Ok(Err(error.message)),
        };
        loop {
            let Some(now) = self.operations.wait(id, POLL) else {
                let text = "the result of its migration is unknown; `suimon vm list` shows whether \
                            it runs here";
                return Ok(Err(text.to_owned()));
            };
            if now.state != OperationState::Running {
                return Ok(now.error.map_or(Ok(()), |error| Err(error.message)));
            }
            // A cancelled migration reports its end through its operation.
            if let Err(error) = self.check_going_on(operation) {
                if self.drain.stops() {
                    return Err(error);
                }
                self.operations.cancel(id);
            }
        }
    }

    fn report_result<'v>(
        &self,
        results: impl Iterator<Item = &'v VmDrainPlan>,
    ) -> Result<(), ApiError> {
        let mut remaining = Vec::new();
        let (mut migrated, mut total) = (0_usize, 0_usize);
        for vm in results {
            migrated += usize::from(vm.destination.is_some());
            total += 1;
            remaining.extend(vm.blocks_drain.then(|| vm.to_string()));
        }
        if remaining.is_empty() {
            self.record_drained()?;
            let text = format!(
                "Draining is complete: no VM runs on the host; {migrated} of {total} migrated to \
                 other nodes."
            );
            let draft =
                EventDraft::new(EventKind::NodeEmptied, "host", text).with("went", migrated);
            self.events.append(vec![draft]);
            return Ok(());
        }
        let remaining = remaining.join("; ");
        let name = self.host_name();
        let text = format!(
            "Draining is incomplete, VMs still run on the host: {remaining}. Remove the reasons \
             and repeat `suimon node drain {name}`, or end it with `suimon node undrain {name}`."
        );
        let draft = EventDraft::new(EventKind::NodeNotEmptied, "host", text).with("went", migrated);
        self.events.append(vec![draft]);
        let text = format!(
            "{remaining}. Node {name} accepts no VM meanwhile; retry with `suimon node drain \
             {name}`, or end it with `suimon node undrain {name}`"
        );
        Err(ApiError::new(ErrorCode::Conflict, text).with_resource("host"))
    }

    fn record_drained(&self) -> Result<(), ApiError> {
        let mut state = self.drain.state();
        // The host may have been undrained in the meantime.
        let Some(stored) = &mut state.stored else { return Ok(()) };
        stored.is_empty = true;
        let stored = stored.clone();
        self.save_drain(Some(&stored))
    }
}
