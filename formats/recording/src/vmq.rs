//! Recording of the inputs and decisions of VMQ placement ([`Vmq`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_quantity::{PortId, QueueId, Time, WorkerId};
use suimon_vmq::{
    AddedQueue, Measurements, Move, NicSpec, ObserveResult, QueueError, Vmq, VmqSpec, VmqSpecError,
    WorkerSpec,
};

use crate::{Policy, PolicyKind, RecordSink, Recorded};

/// Initial state of VMQ placement, also its state after a change of configuration or workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmqInitialState {
    /// Configured settings of the placement.
    pub spec: VmqSpec,
    /// Workers among which queues are placed.
    #[serde(rename = "processors")]
    pub workers: Vec<WorkerSpec>,
}

/// Recorded input of the VMQ placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmqInput {
    /// Call of [`Vmq::configure`].
    Configure(VmqInitialState),
    /// Call of [`Vmq::reset_pacing_and_history`].
    #[serde(rename = "forget-history")]
    ResetPacingAndHistory,
    /// Call of [`Vmq::set_nic`].
    SetNic {
        /// Port of the NIC concerned.
        nic: PortId,
        /// VMQ settings of the NIC.
        spec: NicSpec,
        /// Number of queues that the device provides for the NIC.
        queues_max: u16,
    },
    /// Call of [`Vmq::remove_nic`].
    RemoveNic(PortId),
    /// Call of [`Vmq::add_queue`].
    AddQueue(QueueId),
    /// Call of [`Vmq::remove_queue`].
    RemoveQueue(QueueId),
    /// Call of [`Vmq::handle_moved_externally`].
    #[serde(rename = "found")]
    QueueMovedExternally {
        /// Queue that was found on another worker than expected.
        queue: QueueId,
        /// Worker that services the queue.
        #[serde(rename = "at")]
        worker: WorkerId,
    },
    /// Call of [`Vmq::handle_moved`].
    #[serde(rename = "moved")]
    QueueMoved {
        /// Queue whose move has ended.
        queue: QueueId,
        /// Worker that services the queue now.
        #[serde(rename = "at")]
        worker: WorkerId,
    },
    /// Call of [`Vmq::observe`].
    Observe(Measurements),
}

/// Decision of the VMQ placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmqDecision {
    /// The input requires no action.
    #[serde(rename = "heard")]
    NoAction,
    /// The policy rejected the input. Contains the reason.
    Refused(String),
    /// Queues to move between workers.
    Moves(Vec<Move>),
    /// Placement of a new queue.
    Added {
        /// Worker for the new queue.
        #[serde(rename = "at")]
        worker: WorkerId,
        /// Moves that make room for it.
        moves: Vec<Move>,
    },
    /// Result of evaluating the workers' measurements.
    Observed(ObserveResult),
}

impl VmqDecision {
    /// Returns the moves of the decision; empty if it has none.
    pub fn moves(&self) -> &[Move] {
        match self {
            Self::NoAction | Self::Refused(_) => &[],
            Self::Moves(moves) | Self::Added { moves, .. } => moves,
            Self::Observed(observed) => &observed.moves,
        }
    }
}

fn moves(result: &Result<Vec<Move>, VmqSpecError>) -> VmqDecision {
    match result {
        Ok(moves) => VmqDecision::Moves(moves.clone()),
        Err(error) => VmqDecision::Refused(error.to_string()),
    }
}

fn added(result: &Result<AddedQueue, QueueError>) -> VmqDecision {
    match result {
        Ok(AddedQueue { worker: at, moves }) => {
            VmqDecision::Added { worker: *at, moves: moves.clone() }
        }
        Err(error) => VmqDecision::Refused(error.to_string()),
    }
}

impl Policy for Vmq {
    const KIND: PolicyKind = PolicyKind::Vmq;
    type InitialState = VmqInitialState;
    type Input = VmqInput;
    type Decision = VmqDecision;

    fn begin(now: Time, birth: VmqInitialState) -> Result<Self, String> {
        Self::new(birth.spec, &birth.workers, now).map_err(|error| error.to_string())
    }

    fn step(&mut self, now: Time, input: &VmqInput) -> VmqDecision {
        match input {
            VmqInput::Configure(VmqInitialState { spec, workers }) => {
                moves(&self.configure(spec.clone(), workers, now))
            }
            VmqInput::ResetPacingAndHistory => {
                self.reset_pacing_and_history(now);
                VmqDecision::NoAction
            }
            VmqInput::SetNic { nic, spec, queues_max } => {
                moves(&self.set_nic(*nic, *spec, *queues_max, now))
            }
            VmqInput::RemoveNic(nic) => {
                self.remove_nic(*nic, now);
                VmqDecision::NoAction
            }
            VmqInput::AddQueue(queue) => added(&self.add_queue(*queue, now)),
            VmqInput::RemoveQueue(queue) => {
                self.remove_queue(*queue, now);
                VmqDecision::NoAction
            }
            VmqInput::QueueMovedExternally { queue, worker } => {
                self.handle_moved_externally(*queue, *worker, now);
                VmqDecision::NoAction
            }
            VmqInput::QueueMoved { queue, worker } => {
                self.handle_moved(*queue, *worker, now);
                VmqDecision::NoAction
            }
            VmqInput::Observe(measurements) => {
                VmqDecision::Observed(self.observe(measurements, now))
            }
        }
    }
}

impl Recorded<Vmq> {
    /// Creates the policy as [`Vmq::new`] does, and starts recording if there is a `sink`; `name`
    /// is that of the stream.
    ///
    /// # Errors
    ///
    /// As [`Vmq::new`].
    pub fn record_vmq(
        sink: Option<&Arc<dyn RecordSink>>,
        (now, name): (Time, &str),
        spec: VmqSpec,
        workers: &[WorkerSpec],
    ) -> Result<Self, VmqSpecError> {
        let policy = Vmq::new(spec.clone(), workers, now)?;
        let birth = || VmqInitialState { spec, workers: workers.to_vec() };
        Ok(Self::start(policy, sink, (now, name), birth))
    }

    /// As [`Vmq::configure`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Vmq::configure`].
    pub fn configure(
        &mut self,
        spec: VmqSpec,
        workers: &[WorkerSpec],
        now: Time,
    ) -> Result<Vec<Move>, VmqSpecError> {
        let result = self.policy.configure(spec.clone(), workers, now);
        let input = || VmqInput::Configure(VmqInitialState { spec, workers: workers.to_vec() });
        self.record(now, || (input(), moves(&result)));
        result
    }

    /// As [`Vmq::reset_pacing_and_history`]; records the call.
    pub fn reset_pacing_and_history(&mut self, now: Time) {
        self.policy.reset_pacing_and_history(now);
        self.record(now, || (VmqInput::ResetPacingAndHistory, VmqDecision::NoAction));
    }

    /// As [`Vmq::set_nic`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Vmq::set_nic`].
    pub fn set_nic(
        &mut self,
        nic: PortId,
        spec: NicSpec,
        queues_max: u16,
        now: Time,
    ) -> Result<Vec<Move>, VmqSpecError> {
        let result = self.policy.set_nic(nic, spec, queues_max, now);
        self.record(now, || (VmqInput::SetNic { nic, spec, queues_max }, moves(&result)));
        result
    }

    /// As [`Vmq::remove_nic`]; records the call.
    pub fn remove_nic(&mut self, nic: PortId, now: Time) {
        self.policy.remove_nic(nic, now);
        self.record(now, || (VmqInput::RemoveNic(nic), VmqDecision::NoAction));
    }

    /// As [`Vmq::add_queue`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Vmq::add_queue`].
    pub fn add_queue(&mut self, queue: QueueId, now: Time) -> Result<AddedQueue, QueueError> {
        let result = self.policy.add_queue(queue, now);
        self.record(now, || (VmqInput::AddQueue(queue), added(&result)));
        result
    }

    /// As [`Vmq::remove_queue`]; records the call.
    pub fn remove_queue(&mut self, queue: QueueId, now: Time) -> bool {
        let is_known = self.policy.remove_queue(queue, now);
        self.record(now, || (VmqInput::RemoveQueue(queue), VmqDecision::NoAction));
        is_known
    }

    /// As [`Vmq::handle_moved_externally`]; records the call.
    pub fn handle_moved_externally(&mut self, queue: QueueId, worker: WorkerId, now: Time) {
        // Reported for each queue at each measurement; unchanged placements are not recorded.
        let is_known =
            self.buffer.is_none() || self.placement().any(|entry| entry == (queue, worker));
        self.policy.handle_moved_externally(queue, worker, now);
        if !is_known {
            self.record(now, || {
                (VmqInput::QueueMovedExternally { queue, worker }, VmqDecision::NoAction)
            });
        }
    }

    /// As [`Vmq::handle_moved`]; records the call.
    pub fn handle_moved(&mut self, queue: QueueId, worker: WorkerId, now: Time) {
        self.policy.handle_moved(queue, worker, now);
        self.record(now, || (VmqInput::QueueMoved { queue, worker }, VmqDecision::NoAction));
    }

    /// As [`Vmq::observe`]; records the call.
    pub fn observe(&mut self, measurements: &Measurements, now: Time) -> ObserveResult {
        let observed = self.policy.observe(measurements, now);
        self.record(now, || {
            let input = VmqInput::Observe(measurements.clone());
            (input, VmqDecision::Observed(observed.clone()))
        });
        observed
    }
}
