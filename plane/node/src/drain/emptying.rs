//! Has the VMs of a host go, one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, DrainPlan, DrainRequest, DrainedVm, ErrorCode, EventKind, MigrateVmRequest, Name,
    OperationState, VmState,
};

use crate::checks::first_of;
use crate::events::Draft;
use crate::moving::far_error;
use crate::operations::OperationHandle;
use crate::shared::Shared;
use crate::vms::VmEntry;

/// So long a VM may take until it can go: it is being started, or the daemon looks for it.
const SETTLES: Duration = Duration::from_secs(60);
/// How often it is looked whether it can, and whether somebody asked to stop.
const LOOK: Duration = Duration::from_millis(200);

/// How many VMs went where.
type Sent = BTreeMap<Name, usize>;

impl Shared {
    /// What would become of the host's VMs.
    pub(super) fn plan_drain(&self, request: &DrainRequest) -> DrainPlan {
        let mut sent = Sent::new();
        let vms = self.vms.all();
        let vms = vms.iter().map(|entry| {
            let vm = self.plan_vm(entry, request, &sent, &BTreeSet::new());
            if let Some(to) = &vm.to {
                *sent.entry(to.clone()).or_default() += 1;
            }
            vm
        });
        DrainPlan { vms: vms.collect(), node: self.host_name() }
    }

    /// Where a VM goes: of the nodes that take it to the one to which fewest went.
    fn plan_vm(
        &self,
        entry: &VmEntry,
        request: &DrainRequest,
        sent: &Sent,
        in_vain: &BTreeSet<Name>,
    ) -> DrainedVm {
        let vm = entry.name.clone();
        if entry.view().state == VmState::Stopped && entry.view().moving.is_none() {
            let reason = Some("it does not run".to_owned());
            return DrainedVm { vm, to: None, reason, is_in_the_way: false };
        }
        match self.find_node(entry, request, sent, in_vain) {
            Ok(to) => DrainedVm { vm, to: Some(to), reason: None, is_in_the_way: false },
            Err(reason) => DrainedVm { vm, to: None, reason: Some(reason), is_in_the_way: true },
        }
    }

    fn find_node(
        &self,
        entry: &VmEntry,
        request: &DrainRequest,
        sent: &Sent,
        in_vain: &BTreeSet<Name>,
    ) -> Result<Name, String> {
        let said = |error: ApiError| error.message;
        entry.check_can_leave().map_err(said)?;
        let arrival = self.departure(&entry.name).map_err(said)?;
        let _marks = self.mark_stores(&arrival.stores).map_err(said)?;
        let desired = self.desired();
        let is_asked = |name: &Name| request.to.is_empty() || request.to.contains(name);
        let mut nodes: Vec<&Name> = desired.config.nodes.iter().map(|node| &node.name).collect();
        nodes.retain(|name| is_asked(name) && !in_vain.contains(*name));
        nodes.sort_by_key(|name| sent.get(*name).copied().unwrap_or_default());
        let mut refusals = Vec::new();
        for name in nodes {
            let far = self.far_node(name).map_err(|error| vec![error]);
            let checked = far.and_then(|far| {
                far.check_arrival(&arrival).map_err(|error| vec![far_error(name, error)])
            });
            match checked {
                Ok(_) => return Ok(name.clone()),
                Err(errors) => refusals.push(first_of(errors).message),
            }
        }
        if refusals.is_empty() {
            let text = "there is no other node that it could go to; `suimon node create` names one";
            return Err(text.to_owned());
        }
        Err(refusals.join("; "))
    }

    /// Has all VMs go that can, and says which stay.
    pub(super) fn empty(self: &Arc<Self>, operation: &OperationHandle) -> Result<(), ApiError> {
        let stored = self.drain.state().stored.clone();
        let Some(request) = stored.map(|stored| stored.request) else {
            return self.check_going_on(operation);
        };
        let (mut sent, mut told) = (Sent::new(), BTreeMap::<Name, DrainedVm>::new());
        loop {
            // One may come whose coming had begun before.
            let all = self.vms.all();
            let Some(entry) = all.iter().find(|entry| !told.contains_key(&entry.name)) else {
                break;
            };
            let (done, of) = (told.len(), told.len().max(all.len()));
            operation.progress(done, of, &entry.label());
            let vm = self.send_away(entry, &request, (&mut sent, operation))?;
            told.insert(entry.name.clone(), vm);
            operation.report(told.values().map(ToString::to_string).collect());
        }
        self.tell_emptied(told.values())
    }

    /// Has a VM go, to one node after another until it has.
    fn send_away(
        &self,
        entry: &Arc<VmEntry>,
        request: &DrainRequest,
        (sent, operation): (&mut Sent, &OperationHandle),
    ) -> Result<DrainedVm, ApiError> {
        self.await_settled(entry, operation)?;
        let mut in_vain = BTreeSet::new();
        let mut failed = None;
        loop {
            self.check_going_on(operation)?;
            let mut vm = self.plan_vm(entry, request, sent, &in_vain);
            let Some(to) = &vm.to else {
                // Why it did not go says more than that there is nobody else.
                vm.reason = failed.or(vm.reason);
                return Ok(vm);
            };
            match self.send_to(entry, to, request, operation)? {
                Ok(()) => {
                    *sent.entry(to.clone()).or_default() += 1;
                    return Ok(vm);
                }
                Err(reason) => {
                    in_vain.insert(to.clone());
                    failed = Some(reason);
                }
            }
        }
    }

    /// Waits until it is known what a VM does.
    fn await_settled(&self, entry: &VmEntry, operation: &OperationHandle) -> Result<(), ApiError> {
        let until = Instant::now() + SETTLES;
        let is_settled = || {
            let view = entry.view();
            let is_known = matches!(
                view.state,
                VmState::Stopped | VmState::Running | VmState::Paused | VmState::Panicked
            );
            is_known && view.moving.is_none()
        };
        while !is_settled() && Instant::now() < until {
            self.check_going_on(operation)?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn check_going_on(&self, operation: &OperationHandle) -> Result<(), ApiError> {
        if self.drain.stops() {
            let text = "the daemon ends; the next one goes on with it";
            return Err(ApiError::new(ErrorCode::HostError, text).about("host"));
        }
        operation.check_cancelled().map_err(|_| {
            let left = "the drain was cancelled; VMs that have left stay on the other nodes";
            let is_drained = self.drain.state().stored.is_some();
            let name = self.host_name();
            let text = match is_drained {
                true => format!(
                    "{left}, and no VM comes to node {name} until `suimon node undrain {name}`"
                ),
                false => left.to_owned(),
            };
            ApiError::new(ErrorCode::Cancelled, text).about("host")
        })
    }

    /// Has a VM go to a node, and waits until it has; else why it did not.
    fn send_to(
        &self,
        entry: &Arc<VmEntry>,
        to: &Name,
        request: &DrainRequest,
        operation: &OperationHandle,
    ) -> Result<Result<(), String>, ApiError> {
        let request = MigrateVmRequest {
            to: to.clone(),
            downtime_ms: request.downtime_ms,
            bandwidth: request.bandwidth,
            with_files: request.with_files,
        };
        let id = match self.begin_migration(&entry.name, request) {
            Ok(id) => id,
            Err(error) => return Ok(Err(error.message)),
        };
        loop {
            let Some(now) = self.operations.wait(id, LOOK) else {
                return Ok(Err("nobody knows any more how it went".to_owned()));
            };
            if now.state != OperationState::Running {
                return Ok(now.error.map_or(Ok(()), |error| Err(error.message)));
            }
            // Whoever is cancelled says so when it has come to an end.
            if let Err(error) = self.check_going_on(operation) {
                if self.drain.stops() {
                    return Err(error);
                }
                self.operations.cancel(id);
            }
        }
    }

    fn tell_emptied<'v>(&self, told: impl Iterator<Item = &'v DrainedVm>) -> Result<(), ApiError> {
        let mut left = Vec::new();
        let (mut went, mut all) = (0_usize, 0_usize);
        for vm in told {
            went += usize::from(vm.to.is_some());
            all += 1;
            left.extend(vm.is_in_the_way.then(|| vm.to_string()));
        }
        if left.is_empty() {
            self.keep_that_empty()?;
            let text =
                format!("The host has no VM left that runs; {went} of {all} went to other nodes.");
            let draft = Draft::new(EventKind::NodeEmptied, "host", text).with("went", went);
            self.events.append(vec![draft]);
            return Ok(());
        }
        let left = left.join("; ");
        let text = format!("The host is drained and has VMs that run: {left}.");
        let draft = Draft::new(EventKind::NodeNotEmptied, "host", text).with("went", went);
        self.events.append(vec![draft]);
        let name = self.host_name();
        let text = format!(
            "{left}. No VM comes to node {name} meanwhile; `suimon node drain {name}` tries again, and \
             `suimon node undrain {name}` takes it back"
        );
        Err(ApiError::new(ErrorCode::Conflict, text).about("host"))
    }

    fn keep_that_empty(&self) -> Result<(), ApiError> {
        let mut state = self.drain.state();
        // It may have been taken back meanwhile.
        let Some(stored) = &mut state.stored else { return Ok(()) };
        stored.is_empty = true;
        let stored = stored.clone();
        self.keep_drain(Some(&stored))
    }
}
