//! State machines of faulty policies, for tests of checkers.

use std::time::Duration;

use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, DurableState, Member, MemberAction, MemberEvent,
    NodeId, Parameters,
};
use suimon_quantity::Time;

use crate::cluster::machines::{AllocatorMachine, MemberMachine, StateMachineFactory};

/// Fault that is built into a policy, to test that checkers detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The leader grants 5 % more than the capacity of the store.
    Generous,
    /// The leader grants no capacity beyond reservations.
    Stingy,
    /// A node continues to use its lease for one second after its expiry.
    Clinging,
    /// A node does not report the minimums of its disks.
    Silent,
    /// A new leader ignores the grants of earlier leaders.
    Forgetful,
}

/// Factory of state machines with a fault of this kind.
pub(crate) struct Broken(pub(crate) FaultKind);

struct BrokenMember(Member, FaultKind);

struct BrokenAllocator(Allocator, FaultKind);

impl StateMachineFactory for Broken {
    fn create_member(
        &self,
        terms: Parameters,
        now: Time,
        node: NodeId,
        incarnation: u64,
        durable: DurableState,
    ) -> Box<dyn MemberMachine> {
        Box::new(BrokenMember(Member::new(terms, now, node, incarnation, durable), self.0))
    }

    fn create_allocator(&self, terms: Parameters) -> Box<dyn AllocatorMachine> {
        Box::new(BrokenAllocator(Allocator::new(terms), self.0))
    }
}

impl MemberMachine for BrokenMember {
    fn handle(&mut self, now: Time, event: &MemberEvent) {
        let mut event = event.clone();
        if let (MemberEvent::Loads { disks, .. }, FaultKind::Silent) = (&mut event, self.1) {
            disks.iter_mut().for_each(|disk| disk.min_iops = 0);
        }
        self.0.handle(now, &event);
    }

    fn handle_deadline(&mut self, now: Time) {
        self.0.handle_deadline(now);
    }

    fn poll_action(&mut self) -> Option<MemberAction> {
        let mut action = self.0.poll_action();
        if let (Some(MemberAction::Apply { store, .. }), FaultKind::Clinging) =
            (&mut action, self.1)
        {
            let later = |(iops, until)| (iops, until + Duration::from_secs(1));
            store.leased_iops_until = store.leased_iops_until.map(later);
        }
        action
    }

    fn next_deadline(&self) -> Option<Time> {
        self.0.next_deadline()
    }
}

impl AllocatorMachine for BrokenAllocator {
    fn handle(&mut self, now: Time, event: &AllocatorEvent) {
        let mut event = event.clone();
        if let (AllocatorEvent::Elected { records, .. }, FaultKind::Forgetful) =
            (&mut event, self.1)
        {
            records.clear();
        }
        self.0.handle(now, &event);
    }

    fn handle_deadline(&mut self, now: Time) {
        self.0.handle_deadline(now);
    }

    fn poll_action(&mut self) -> Option<AllocatorAction> {
        let mut action = self.0.poll_action();
        if let Some(AllocatorAction::Write { grants, .. }) = &mut action {
            for (_, grant) in grants {
                let share = &mut grant.store;
                match self.1 {
                    FaultKind::Generous => share.leased_iops = share.leased_iops * 105 / 100,
                    FaultKind::Stingy => share.leased_iops = share.reserved_iops,
                    FaultKind::Clinging | FaultKind::Silent | FaultKind::Forgetful => {}
                }
            }
        }
        action
    }

    fn next_deadline(&self) -> Option<Time> {
        self.0.next_deadline()
    }
}
