//! Recording of the inputs and decisions of cluster-wide Storage QoS ([`Member`] and
//! [`Allocator`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, DurableState, Member, MemberAction, MemberEvent,
    NodeId, Parameters,
};
use suimon_quantity::Time;

use crate::{Policy, PolicyKind, RecordSink, Recorded};

/// Initial state of a [`Member`], the node's side of cluster-wide Storage QoS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberInitialState {
    /// Timing parameters common to all nodes.
    #[serde(rename = "terms")]
    pub parameters: Parameters,
    /// Identifier of the node in the cluster.
    pub node: NodeId,
    /// Incarnation number of the daemon, which increases with each start.
    pub incarnation: u64,
    /// State that an earlier incarnation persisted.
    #[serde(rename = "kept")]
    pub durable: DurableState,
}

/// Recorded input of a [`Member`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberInput {
    /// Pseudo-input at creation, whose decision contains the actions of a new member.
    #[serde(rename = "begun")]
    Start,
    /// Call of [`Member::handle`].
    Event(MemberEvent),
    /// Call of [`Member::handle_deadline`].
    Deadline,
}

/// Recorded input of an [`Allocator`], the leader's side of cluster-wide Storage QoS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "most are events, and there is one at a time")]
pub enum AllocatorInput {
    /// Call of [`Allocator::handle`].
    Event(AllocatorEvent),
    /// Call of [`Allocator::handle_deadline`].
    Deadline,
}

impl Policy for Member {
    const KIND: PolicyKind = PolicyKind::ClusterMember;
    type InitialState = MemberInitialState;
    type Input = MemberInput;
    type Decision = Vec<MemberAction>;

    fn begin(now: Time, birth: MemberInitialState) -> Result<Self, String> {
        let MemberInitialState { parameters: terms, node, incarnation, durable } = birth;
        terms.check().map_err(|error| error.to_string())?;
        Ok(Self::new(terms, now, node, incarnation, durable))
    }

    fn step(&mut self, now: Time, input: &MemberInput) -> Vec<MemberAction> {
        match input {
            MemberInput::Start => {}
            MemberInput::Event(event) => self.handle(now, event),
            MemberInput::Deadline => self.handle_deadline(now),
        }
        core::iter::from_fn(|| self.poll_action()).collect()
    }
}

impl Policy for Allocator {
    const KIND: PolicyKind = PolicyKind::ClusterLeader;
    type InitialState = Parameters;
    type Input = AllocatorInput;
    type Decision = Vec<AllocatorAction>;

    fn begin(_at: Time, birth: Parameters) -> Result<Self, String> {
        birth.check().map_err(|error| error.to_string())?;
        Ok(Self::new(birth))
    }

    fn step(&mut self, now: Time, input: &AllocatorInput) -> Vec<AllocatorAction> {
        match input {
            AllocatorInput::Event(event) => self.handle(now, event),
            AllocatorInput::Deadline => self.handle_deadline(now),
        }
        core::iter::from_fn(|| self.poll_action()).collect()
    }
}

/// Functions that call the policy, record input and resulting actions, and return the actions.
impl Recorded<Member> {
    /// Creates a member as [`Member::new`] does, and starts recording if there is a `sink`; `name`
    /// is that of the stream. Also returns the initial actions.
    pub fn record_member(
        sink: Option<&Arc<dyn RecordSink>>,
        (now, name): (Time, &str),
        birth: MemberInitialState,
    ) -> (Self, Vec<MemberAction>) {
        let MemberInitialState { parameters: terms, node, incarnation, durable } = birth.clone();
        let policy = Member::new(terms, now, node, incarnation, durable);
        let mut recorded = Self::start(policy, sink, (now, name), || birth);
        let actions = recorded.apply_input(now, MemberInput::Start);
        (recorded, actions)
    }

    /// As [`Member::handle`]; records the event. Returns the resulting actions.
    pub fn handle(&mut self, now: Time, event: MemberEvent) -> Vec<MemberAction> {
        self.apply_input(now, MemberInput::Event(event))
    }

    /// As [`Member::handle_deadline`]; records the call. Returns the resulting actions.
    pub fn handle_deadline(&mut self, now: Time) -> Vec<MemberAction> {
        self.apply_input(now, MemberInput::Deadline)
    }

    fn apply_input(&mut self, now: Time, input: MemberInput) -> Vec<MemberAction> {
        let actions = self.policy.step(now, &input);
        self.record(now, || (input, actions.clone()));
        actions
    }
}

impl Recorded<Allocator> {
    /// Creates an allocator as [`Allocator::new`] does, and starts recording if there is a `sink`;
    /// `name` is that of the stream.
    pub fn record_allocator(
        sink: Option<&Arc<dyn RecordSink>>,
        (now, name): (Time, &str),
        terms: Parameters,
    ) -> Self {
        Self::start(Allocator::new(terms), sink, (now, name), || terms)
    }

    /// As [`Allocator::handle`]; records the event. Returns the resulting actions.
    pub fn handle(&mut self, now: Time, event: AllocatorEvent) -> Vec<AllocatorAction> {
        self.apply_input(now, AllocatorInput::Event(event))
    }

    /// As [`Allocator::handle_deadline`]; records the call. Returns the resulting actions.
    pub fn handle_deadline(&mut self, now: Time) -> Vec<AllocatorAction> {
        self.apply_input(now, AllocatorInput::Deadline)
    }

    fn apply_input(&mut self, now: Time, input: AllocatorInput) -> Vec<AllocatorAction> {
        let actions = self.policy.step(now, &input);
        self.record(now, || (input, actions.clone()));
        actions
    }
}
