//! State of a node's participation in a store.

use std::collections::VecDeque;
use std::rc::Rc;

use suimon_cluster_qos::{Candidacy, DurableState, LoadReport};
use suimon_quantity::Time;

use crate::cluster::keyspace::Change;
use crate::cluster::machines::{AllocatorMachine, MemberMachine};

/// Leadership of a store by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leadership {
    None,
    /// Campaigning: the request to create the leader's key has no response yet.
    Campaigning,
    /// Elected in this term: the records of the store are being read.
    ReadingRecords(u64),
    Leading(u64),
}

/// Participation of a node in a store.
pub(crate) struct Participant {
    pub(crate) store: u32,
    pub(crate) member: Box<dyn MemberMachine>,
    pub(crate) allocator: Box<dyn AllocatorMachine>,
    pub(crate) durable_state: DurableState,
    /// Next deadlines of the member and of the allocator.
    pub(crate) deadlines: [Option<Time>; 2],
    /// Last known leader: node, number of the start of its daemon, and revision of its key. `None`
    /// if the store has no leader.
    pub(crate) leader: Option<(u32, u64, u64)>,
    pub(crate) candidacy: Candidacy,
    pub(crate) leadership: Leadership,
    /// Highest term in which the node led the store.
    pub(crate) last_led_term: u64,
    /// Term whose key the node removes, and true if the removal was requested.
    pub(crate) resignation: Option<(u64, bool)>,
    pub(crate) pending_writes: VecDeque<Vec<Change>>,
    /// True while a report is in flight.
    pub(crate) is_reporting: bool,
    /// Report to send when no other one is in flight.
    pub(crate) queued_report: Option<Rc<LoadReport>>,
}

/// Number of the node, and index of the store among the node's stores.
pub(crate) type ParticipantId = (u32, u32);

impl Participant {
    pub(crate) fn new(
        store: u32,
        member: Box<dyn MemberMachine>,
        allocator: Box<dyn AllocatorMachine>,
    ) -> Self {
        Self {
            store,
            member,
            allocator,
            durable_state: DurableState::default(),
            deadlines: [None; 2],
            // Until the first read a leader is assumed, so that the node does not campaign.
            leader: Some((u32::MAX, 0, 0)),
            candidacy: Candidacy::default(),
            leadership: Leadership::None,
            last_led_term: 0,
            resignation: None,
            pending_writes: VecDeque::new(),
            is_reporting: false,
            queued_report: None,
        }
    }

    /// Returns the term in which the node leads the store; `None` if it does not lead.
    pub(crate) fn led_term(&self) -> Option<u64> {
        match self.leadership {
            Leadership::Leading(term) => Some(term),
            _ => None,
        }
    }
}
