//! VMQ.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_quantity::{PortId, ProcessorId, QueueId, Time};
use suimon_vmq::{
    Added, Measurements, Move, NicSpec, Observed, Processor, QueueError, SpecError, Vmq, VmqSpec,
};

use crate::{Kind, Policy, Recorded, Sink};

/// What VMQ begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmqBirth {
    /// What is wanted.
    pub spec: VmqSpec,
    /// The host's processors.
    pub processors: Vec<Processor>,
}

/// What VMQ is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmqInput {
    /// [`Vmq::configure`].
    Configure(VmqBirth),
    /// [`Vmq::forget_history`].
    ForgetHistory,
    /// [`Vmq::set_nic`].
    SetNic {
        /// Which.
        nic: PortId,
        /// What of it is wanted.
        spec: NicSpec,
        /// How many queues its device has.
        queues_max: u16,
    },
    /// [`Vmq::remove_nic`].
    RemoveNic(PortId),
    /// [`Vmq::add_queue`].
    AddQueue(QueueId),
    /// [`Vmq::remove_queue`].
    RemoveQueue(QueueId),
    /// [`Vmq::handle_found`].
    Found {
        /// Which queue.
        queue: QueueId,
        /// Where.
        at: ProcessorId,
    },
    /// [`Vmq::handle_moved`].
    Moved {
        /// Which queue.
        queue: QueueId,
        /// Where it is now.
        at: ProcessorId,
    },
    /// [`Vmq::observe`].
    Observe(Measurements),
}

/// What VMQ decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmqDecision {
    /// Nothing is to be done.
    Heard,
    /// It cannot be.
    Refused(String),
    /// These queues are to be handed over.
    Moves(Vec<Move>),
    /// A queue is to be there.
    Added {
        /// Where.
        at: ProcessorId,
        /// What makes room.
        moves: Vec<Move>,
    },
    /// What measurements lead to.
    Observed(Observed),
}

impl VmqDecision {
    /// The queues to be handed over.
    pub fn moves(&self) -> &[Move] {
        match self {
            Self::Heard | Self::Refused(_) => &[],
            Self::Moves(moves) | Self::Added { moves, .. } => moves,
            Self::Observed(observed) => &observed.moves,
        }
    }
}

fn moves(result: &Result<Vec<Move>, SpecError>) -> VmqDecision {
    match result {
        Ok(moves) => VmqDecision::Moves(moves.clone()),
        Err(error) => VmqDecision::Refused(error.to_string()),
    }
}

fn added(result: &Result<Added, QueueError>) -> VmqDecision {
    match result {
        Ok(Added { at, moves }) => VmqDecision::Added { at: *at, moves: moves.clone() },
        Err(error) => VmqDecision::Refused(error.to_string()),
    }
}

impl Policy for Vmq {
    const KIND: Kind = Kind::Vmq;
    type Birth = VmqBirth;
    type Input = VmqInput;
    type Decision = VmqDecision;

    fn begin(at: Time, birth: VmqBirth) -> Result<Self, String> {
        Self::new(birth.spec, &birth.processors, at).map_err(|error| error.to_string())
    }

    fn step(&mut self, at: Time, input: &VmqInput) -> VmqDecision {
        match input {
            VmqInput::Configure(VmqBirth { spec, processors }) => {
                moves(&self.configure(spec.clone(), processors, at))
            }
            VmqInput::ForgetHistory => {
                self.forget_history(at);
                VmqDecision::Heard
            }
            VmqInput::SetNic { nic, spec, queues_max } => {
                moves(&self.set_nic(*nic, *spec, *queues_max, at))
            }
            VmqInput::RemoveNic(nic) => {
                self.remove_nic(*nic, at);
                VmqDecision::Heard
            }
            VmqInput::AddQueue(queue) => added(&self.add_queue(*queue, at)),
            VmqInput::RemoveQueue(queue) => {
                self.remove_queue(*queue, at);
                VmqDecision::Heard
            }
            VmqInput::Found { queue, at: found } => {
                self.handle_found(*queue, *found, at);
                VmqDecision::Heard
            }
            VmqInput::Moved { queue, at: found } => {
                self.handle_moved(*queue, *found, at);
                VmqDecision::Heard
            }
            VmqInput::Observe(measurements) => {
                VmqDecision::Observed(self.observe(measurements, at))
            }
        }
    }
}

impl Recorded<Vmq> {
    /// See [`Vmq::new`].
    ///
    /// # Errors
    /// As there.
    pub fn vmq(
        sink: Option<&Arc<dyn Sink>>,
        (at, name): (Time, &str),
        spec: VmqSpec,
        processors: &[Processor],
    ) -> Result<Self, SpecError> {
        let policy = Vmq::new(spec.clone(), processors, at)?;
        let birth = || VmqBirth { spec, processors: processors.to_vec() };
        Ok(Self::begun(policy, sink, (at, name), birth))
    }

    /// See [`Vmq::configure`].
    ///
    /// # Errors
    /// As there.
    pub fn configure(
        &mut self,
        spec: VmqSpec,
        processors: &[Processor],
        now: Time,
    ) -> Result<Vec<Move>, SpecError> {
        let result = self.policy.configure(spec.clone(), processors, now);
        let told = || VmqInput::Configure(VmqBirth { spec, processors: processors.to_vec() });
        self.note(now, || (told(), moves(&result)));
        result
    }

    /// See [`Vmq::forget_history`].
    pub fn forget_history(&mut self, now: Time) {
        self.policy.forget_history(now);
        self.note(now, || (VmqInput::ForgetHistory, VmqDecision::Heard));
    }

    /// See [`Vmq::set_nic`].
    ///
    /// # Errors
    /// As there.
    pub fn set_nic(
        &mut self,
        nic: PortId,
        spec: NicSpec,
        queues_max: u16,
        now: Time,
    ) -> Result<Vec<Move>, SpecError> {
        let result = self.policy.set_nic(nic, spec, queues_max, now);
        self.note(now, || (VmqInput::SetNic { nic, spec, queues_max }, moves(&result)));
        result
    }

    /// See [`Vmq::remove_nic`].
    pub fn remove_nic(&mut self, nic: PortId, now: Time) {
        self.policy.remove_nic(nic, now);
        self.note(now, || (VmqInput::RemoveNic(nic), VmqDecision::Heard));
    }

    /// See [`Vmq::add_queue`].
    ///
    /// # Errors
    /// As there.
    pub fn add_queue(&mut self, queue: QueueId, now: Time) -> Result<Added, QueueError> {
        let result = self.policy.add_queue(queue, now);
        self.note(now, || (VmqInput::AddQueue(queue), added(&result)));
        result
    }

    /// See [`Vmq::remove_queue`].
    pub fn remove_queue(&mut self, queue: QueueId, now: Time) -> bool {
        let is_known = self.policy.remove_queue(queue, now);
        self.note(now, || (VmqInput::RemoveQueue(queue), VmqDecision::Heard));
        is_known
    }

    /// See [`Vmq::handle_found`].
    pub fn handle_found(&mut self, queue: QueueId, at: ProcessorId, now: Time) {
        // It is said of each queue at each measurement; what is known already is not worth a record.
        let is_known = self.tape.is_none() || self.placement().any(|of| of == (queue, at));
        self.policy.handle_found(queue, at, now);
        if !is_known {
            self.note(now, || (VmqInput::Found { queue, at }, VmqDecision::Heard));
        }
    }

    /// See [`Vmq::handle_moved`].
    pub fn handle_moved(&mut self, queue: QueueId, at: ProcessorId, now: Time) {
        self.policy.handle_moved(queue, at, now);
        self.note(now, || (VmqInput::Moved { queue, at }, VmqDecision::Heard));
    }

    /// See [`Vmq::observe`].
    pub fn observe(&mut self, measurements: &Measurements, now: Time) -> Observed {
        let observed = self.policy.observe(measurements, now);
        self.note(now, || {
            let told = VmqInput::Observe(measurements.clone());
            (told, VmqDecision::Observed(observed.clone()))
        });
        observed
    }
}
