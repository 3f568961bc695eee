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
    /// Campaigning: the election was requested.
    Campaigns,
    /// Elected: the records are being read.
    Reads(u64),
    Leads(u64),
}

/// Participation of a node in a store.
pub(crate) struct Participant {
    pub(crate) store: u32,
    pub(crate) member: Box<dyn MemberMachine>,
    pub(crate) allocator: Box<dyn AllocatorMachine>,
    pub(crate) durable: DurableState,
    /// Next deadlines of member and allocator.
    pub(crate) due: [Option<Time>; 2],
    /// Last known leader: node, start of its daemon, and revision.
    pub(crate) leader: Option<(u32, u64, u64)>,
    pub(crate) candidacy: Candidacy,
    pub(crate) leadership: Leadership,
    /// Highest term in which the node led the store.
    pub(crate) served: u64,
    /// Term whose key is to be removed, and whether the removal was requested.
    pub(crate) leaving_term: Option<(u64, bool)>,
    pub(crate) writes: VecDeque<Vec<Change>>,
    /// True while a report is in flight.
    pub(crate) is_reporting: bool,
    /// Report to send once none is in flight.
    pub(crate) report: Option<Rc<LoadReport>>,
}

/// Node and number of its participation in a store.
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
            durable: DurableState::default(),
            due: [None; 2],
            // Assumes a leader until the first read.
            leader: Some((u32::MAX, 0, 0)),
            candidacy: Candidacy::default(),
            leadership: Leadership::None,
            served: 0,
            leaving_term: None,
            writes: VecDeque::new(),
            is_reporting: false,
            report: None,
        }
    }

    /// Returns the term in which the node leads.
    pub(crate) fn leads(&self) -> Option<u64> {
        match self.leadership {
            Leadership::Leads(term) => Some(term),
            _ => None,
        }
    }
}
