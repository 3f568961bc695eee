//! Interface to the policy's state machines. Production uses those of [`suimon_cluster_qos`]; tests
//! also use incorrect ones that violate guarantees.

use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, DurableState, Member, MemberAction, MemberEvent,
    NodeId, Parameters,
};
use suimon_quantity::Time;

/// Member: a node's state machine for a store.
pub(crate) trait MemberMachine {
    /// Equivalent of [`Member::handle`].
    fn handle(&mut self, now: Time, event: &MemberEvent);
    /// Equivalent of [`Member::handle_deadline`].
    fn handle_deadline(&mut self, now: Time);
    /// Equivalent of [`Member::poll_action`].
    fn poll_action(&mut self) -> Option<MemberAction>;
    /// Equivalent of [`Member::next_deadline`].
    fn next_deadline(&self) -> Option<Time>;
}

/// Allocator: a leader's state machine for a store.
pub(crate) trait AllocatorMachine {
    /// Equivalent of [`Allocator::handle`].
    fn handle(&mut self, now: Time, event: &AllocatorEvent);
    /// Equivalent of [`Allocator::handle_deadline`].
    fn handle_deadline(&mut self, now: Time);
    /// Equivalent of [`Allocator::poll_action`].
    fn poll_action(&mut self) -> Option<AllocatorAction>;
    /// Equivalent of [`Allocator::next_deadline`].
    fn next_deadline(&self) -> Option<Time>;
}

/// Factory of the policy's state machines.
pub(crate) trait StateMachineFactory {
    /// Equivalent of [`Member::new`].
    fn create_member(
        &self,
        terms: Parameters,
        now: Time,
        node: NodeId,
        incarnation: u64,
        durable: DurableState,
    ) -> Box<dyn MemberMachine>;
    /// Equivalent of [`Allocator::new`].
    fn create_allocator(&self, terms: Parameters) -> Box<dyn AllocatorMachine>;
}

/// Factory of the production state machines.
pub(crate) struct ProductionFactory;

impl StateMachineFactory for ProductionFactory {
    fn create_member(
        &self,
        terms: Parameters,
        now: Time,
        node: NodeId,
        incarnation: u64,
        durable: DurableState,
    ) -> Box<dyn MemberMachine> {
        Box::new(Member::new(terms, now, node, incarnation, durable))
    }

    fn create_allocator(&self, terms: Parameters) -> Box<dyn AllocatorMachine> {
        Box::new(Allocator::new(terms))
    }
}

impl MemberMachine for Member {
    fn handle(&mut self, now: Time, event: &MemberEvent) {
        self.handle(now, event);
    }

    fn handle_deadline(&mut self, now: Time) {
        self.handle_deadline(now);
    }

    fn poll_action(&mut self) -> Option<MemberAction> {
        self.poll_action()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next_deadline()
    }
}

impl AllocatorMachine for Allocator {
    fn handle(&mut self, now: Time, event: &AllocatorEvent) {
        self.handle(now, event);
    }

    fn handle_deadline(&mut self, now: Time) {
        self.handle_deadline(now);
    }

    fn poll_action(&mut self) -> Option<AllocatorAction> {
        self.poll_action()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next_deadline()
    }
}
