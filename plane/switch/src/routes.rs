//! Routes of the egress queues, computed once per generation of the tables and after each move.

use std::collections::BTreeMap;

use suimon_quantity::{QueueId, WorkerId};

use crate::handover::{QueueLocation, QueueLocations};
use crate::published::PublishedTables;
use crate::worker_mailbox::FrameMessage;

/// Action for frames to one egress queue.
#[derive(Clone, Copy)]
pub(crate) enum Route {
    /// Deliver to the sink of this worker with this index.
    Sink(usize),
    /// Send to the mailbox of the worker that owns the queue.
    OtherWorker(WorkerId),
    /// Buffer the frames: the queue is being moved to this worker.
    MovingHere,
    Drop,
}

/// Action for frames to a port.
#[derive(Clone, Copy)]
pub(crate) enum EgressTarget {
    /// Deliver to the sink with this index: the port's only egress queue is here and there is no
    /// capture. No other table is read for such frames, so that many ports use little of the cache.
    Sink(u32),
    /// Select one of the port's queues.
    Queues,
    /// Select a member of the team with this index.
    Team(u32),
}

#[derive(Default)]
pub(crate) struct Routes {
    /// Routes by index in [`PublishedTables::owners`].
    by_queue: Vec<Route>,
    /// Actions by index in [`PublishedTables::ports`].
    egress_targets: Vec<EgressTarget>,
}

impl Routes {
    /// Computes the routes of all egress queues for this worker. `routes`: locations of the queues;
    /// `sink_of`: indices of this worker's sinks.
    pub(crate) fn recompute(
        &mut self,
        published: &PublishedTables,
        routes: &QueueLocations<FrameMessage>,
        sink_of: &BTreeMap<QueueId, usize>,
    ) {
        self.by_queue.clear();
        self.by_queue.extend(published.owners.iter().map(
            |(queue, _)| match routes.location(*queue) {
                QueueLocation::ThisWorker => {
                    sink_of.get(queue).map_or(Route::Drop, |index| Route::Sink(*index))
                }
                QueueLocation::OtherWorker(owner) => Route::OtherWorker(owner),
                QueueLocation::MovingHere => Route::MovingHere,
                QueueLocation::UnknownQueue => Route::Drop,
            },
        ));
        self.egress_targets.clear();
        self.egress_targets.extend(published.ports.iter().map(|port| {
            match (port.team_index, self.by_queue.get(port.egress_queues.clone())) {
                // Numbers of sinks and teams are far below 2^32.
                (Some(team), _) => EgressTarget::Team(team as u32),
                (None, Some(&[Route::Sink(index)])) if port.capture.is_none() => {
                    EgressTarget::Sink(index as u32)
                }
                _ => EgressTarget::Queues,
            }
        }));
    }

    /// Returns the route of the egress queue at an index of [`PublishedTables::owners`].
    pub(crate) fn queue_route(&self, index: usize) -> Route {
        self.by_queue.get(index).copied().unwrap_or(Route::Drop)
    }

    /// Returns the action for the port at an index of [`PublishedTables::ports`].
    #[inline]
    pub(crate) fn egress_target(&self, index: usize) -> EgressTarget {
        self.egress_targets.get(index).copied().unwrap_or(EgressTarget::Queues)
    }
}
