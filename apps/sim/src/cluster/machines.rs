//! The policy's machines, as whoever drives them sees them. Those of production are
//! [`suimon_cluster_qos`]'s; tests have others, that break what they promise.

use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, Kept, Member, MemberAction, MemberEvent, NodeId,
    Terms,
};
use suimon_quantity::Time;

/// A node's side of a store.
pub(crate) trait MemberMachine {
    /// See [`Member::handle`].
    fn handle(&mut self, now: Time, event: &MemberEvent);
    /// See [`Member::handle_deadline`].
    fn handle_deadline(&mut self, now: Time);
    /// See [`Member::poll_action`].
    fn poll_action(&mut self) -> Option<MemberAction>;
    /// See [`Member::next_deadline`].
    fn next_deadline(&self) -> Option<Time>;
}

/// A leader's side of a store.
pub(crate) trait AllocatorMachine {
    /// See [`Allocator::handle`].
    fn handle(&mut self, now: Time, event: &AllocatorEvent);
    /// See [`Allocator::handle_deadline`].
    fn handle_deadline(&mut self, now: Time);
    /// See [`Allocator::poll_action`].
    fn poll_action(&mut self) -> Option<AllocatorAction>;
    /// See [`Allocator::next_deadline`].
    fn next_deadline(&self) -> Option<Time>;
}

/// Makes machines.
pub(crate) trait Machines {
    /// See [`Member::new`].
    fn member(
        &self,
        terms: Terms,
        now: Time,
        node: NodeId,
        incarnation: u64,
        kept: Kept,
    ) -> Box<dyn MemberMachine>;
    /// See [`Allocator::new`].
    fn allocator(&self, terms: Terms) -> Box<dyn AllocatorMachine>;
}

/// Those of production.
pub(crate) struct Production;

impl Machines for Production {
    fn member(
        &self,
        terms: Terms,
        now: Time,
        node: NodeId,
        incarnation: u64,
        kept: Kept,
    ) -> Box<dyn MemberMachine> {
        Box::new(Member::new(terms, now, node, incarnation, kept))
    }

    fn allocator(&self, terms: Terms) -> Box<dyn AllocatorMachine> {
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
