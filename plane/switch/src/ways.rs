//! Routes of the egress queues, computed once per generation.

use std::collections::BTreeMap;

use suimon_quantity::{ProcessorId, QueueId};

use crate::handover::{Route, Routes};
use crate::link::Parcel;
use crate::published::Published;

/// Route of frames for an egress queue.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// Sink with this index.
    Sink(usize),
    /// Mailbox of another worker.
    At(ProcessorId),
    /// Frames are held: the queue is being moved here.
    Hold,
    Nowhere,
}

/// Action for frames to a port.
#[derive(Clone, Copy)]
pub(crate) enum Exit {
    /// Deliver to the sink with this index: the port's only egress queue is here and there is no
    /// capture. No other table is read for such frames, so that many ports use little of the cache.
    Sink(u32),
    /// Select one of the port's queues.
    Queues,
    /// Select a member of the team with this index.
    Team(u32),
}

#[derive(Default)]
pub(crate) struct Ways {
    /// Parallel to [`Published::owners`].
    of_queues: Vec<Way>,
    /// Parallel to [`Published::ports`].
    exits: Vec<Exit>,
}

impl Ways {
    /// Computes all routes.
    pub(crate) fn find(
        &mut self,
        published: &Published,
        routes: &Routes<Parcel>,
        sink_of: &BTreeMap<QueueId, usize>,
    ) {
        self.of_queues.clear();
        self.of_queues.extend(published.owners.iter().map(
            |(queue, _)| match routes.route(*queue) {
                Route::Here => sink_of.get(queue).map_or(Way::Nowhere, |at| Way::Sink(*at)),
                Route::At(owner) => Way::At(owner),
                Route::Hold => Way::Hold,
                Route::Nowhere => Way::Nowhere,
            },
        ));
        self.exits.clear();
        self.exits.extend(published.ports.iter().map(|port| {
            match (port.team, self.of_queues.get(port.egress.clone())) {
                // Numbers of sinks and teams are far below 2^32.
                (Some(team), _) => Exit::Team(team as u32),
                (None, Some(&[Way::Sink(at)])) if port.capture.is_none() => Exit::Sink(at as u32),
                _ => Exit::Queues,
            }
        }));
    }

    /// Returns the route of the egress queue at an index of [`Published::owners`].
    pub(crate) fn of_queue(&self, at: usize) -> Way {
        self.of_queues.get(at).copied().unwrap_or(Way::Nowhere)
    }

    /// Returns the action for the port at an index of [`Published::ports`].
    #[inline]
    pub(crate) fn exit(&self, place: usize) -> Exit {
        self.exits.get(place).copied().unwrap_or(Exit::Queues)
    }
}
