//! Storage QoS of a cluster.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, Kept, Member, MemberAction, MemberEvent, NodeId,
    Terms,
};
use suimon_quantity::Time;

use crate::{Kind, Policy, Recorded, Sink};

/// What a node's side begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberBirth {
    /// What nodes agree on.
    pub terms: Terms,
    /// Which node.
    pub node: NodeId,
    /// Which start of its daemon.
    pub incarnation: u64,
    /// What it was told to keep.
    pub kept: Kept,
}

/// What a node's side is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberInput {
    /// Nothing yet: what it asks for as it begins.
    Begun,
    /// [`Member::handle`].
    Event(MemberEvent),
    /// [`Member::handle_deadline`].
    Deadline,
}

/// What a leader's side is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "most are events, and there is one at a time")]
pub enum AllocatorInput {
    /// [`Allocator::handle`].
    Event(AllocatorEvent),
    /// [`Allocator::handle_deadline`].
    Deadline,
}

impl Policy for Member {
    const KIND: Kind = Kind::ClusterMember;
    type Birth = MemberBirth;
    type Input = MemberInput;
    type Decision = Vec<MemberAction>;

    fn begin(at: Time, birth: MemberBirth) -> Result<Self, String> {
        let MemberBirth { terms, node, incarnation, kept } = birth;
        terms.check().map_err(|error| error.to_string())?;
        Ok(Self::new(terms, at, node, incarnation, kept))
    }

    fn step(&mut self, at: Time, input: &MemberInput) -> Vec<MemberAction> {
        match input {
            MemberInput::Begun => {}
            MemberInput::Event(event) => self.handle(at, event),
            MemberInput::Deadline => self.handle_deadline(at),
        }
        core::iter::from_fn(|| self.poll_action()).collect()
    }
}

impl Policy for Allocator {
    const KIND: Kind = Kind::ClusterLeader;
    type Birth = Terms;
    type Input = AllocatorInput;
    type Decision = Vec<AllocatorAction>;

    fn begin(_at: Time, birth: Terms) -> Result<Self, String> {
        birth.check().map_err(|error| error.to_string())?;
        Ok(Self::new(birth))
    }

    fn step(&mut self, at: Time, input: &AllocatorInput) -> Vec<AllocatorAction> {
        match input {
            AllocatorInput::Event(event) => self.handle(at, event),
            AllocatorInput::Deadline => self.handle_deadline(at),
        }
        core::iter::from_fn(|| self.poll_action()).collect()
    }
}

/// Both sides say what is to be done after they were told something: it is taken then, and returned.
impl Recorded<Member> {
    /// See [`Member::new`]; what is to be done at once.
    pub fn member(
        sink: Option<&Arc<dyn Sink>>,
        (at, name): (Time, &str),
        birth: MemberBirth,
    ) -> (Self, Vec<MemberAction>) {
        let MemberBirth { terms, node, incarnation, kept } = birth.clone();
        let policy = Member::new(terms, at, node, incarnation, kept);
        let mut recorded = Self::begun(policy, sink, (at, name), || birth);
        let actions = recorded.tell(at, MemberInput::Begun);
        (recorded, actions)
    }

    /// See [`Member::handle`].
    pub fn handle(&mut self, at: Time, event: MemberEvent) -> Vec<MemberAction> {
        self.tell(at, MemberInput::Event(event))
    }

    /// See [`Member::handle_deadline`].
    pub fn handle_deadline(&mut self, at: Time) -> Vec<MemberAction> {
        self.tell(at, MemberInput::Deadline)
    }

    fn tell(&mut self, at: Time, input: MemberInput) -> Vec<MemberAction> {
        let actions = self.policy.step(at, &input);
        self.note(at, || (input, actions.clone()));
        actions
    }
}

impl Recorded<Allocator> {
    /// See [`Allocator::new`].
    pub fn allocator(sink: Option<&Arc<dyn Sink>>, (at, name): (Time, &str), terms: Terms) -> Self {
        Self::begun(Allocator::new(terms), sink, (at, name), || terms)
    }

    /// See [`Allocator::handle`].
    pub fn handle(&mut self, at: Time, event: AllocatorEvent) -> Vec<AllocatorAction> {
        self.tell(at, AllocatorInput::Event(event))
    }

    /// See [`Allocator::handle_deadline`].
    pub fn handle_deadline(&mut self, at: Time) -> Vec<AllocatorAction> {
        self.tell(at, AllocatorInput::Deadline)
    }

    fn tell(&mut self, at: Time, input: AllocatorInput) -> Vec<AllocatorAction> {
        let actions = self.policy.step(at, &input);
        self.note(at, || (input, actions.clone()));
        actions
    }
}
