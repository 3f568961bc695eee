//! Control-plane state of the attached queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_quantity::{Direction, PortId, QueueId, WorkerId};

use crate::attachment::Attachment;
use crate::counters::QueueCounters;

/// Control-plane state of an attached queue: its owner, counters and attachment.
#[derive(Clone)]
pub(crate) struct QueueRecord {
    pub owner: WorkerId,
    pub counters: Arc<QueueCounters>,
    pub attachment: Arc<Attachment>,
}

impl QueueRecord {
    pub(crate) fn new(owner: WorkerId) -> Self {
        Self { owner, counters: Arc::default(), attachment: Attachment::new() }
    }

    /// Returns true if the queue still has this attachment, and false if it was attached again
    /// since.
    pub(crate) fn belongs_to(&self, attachment: &Arc<Attachment>) -> bool {
        Arc::ptr_eq(&self.attachment, attachment)
    }
}

/// Returns the queues of a port in one direction.
pub(crate) fn queues_of_port(
    queues: &BTreeMap<QueueId, QueueRecord>,
    port: PortId,
    direction: Direction,
) -> impl Iterator<Item = (&QueueId, &QueueRecord)> {
    let first = QueueId { port, direction, index: 0 };
    let last = QueueId { index: u16::MAX, ..first };
    queues.range(first..=last)
}
