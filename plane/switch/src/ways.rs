//! Where the frames for each egress queue go, looked up once for each generation.

use std::collections::BTreeMap;

use suimon_quantity::{ProcessorId, QueueId};

use crate::handover::{Route, Routes};
use crate::post::Parcel;
use crate::published::Published;

/// Where a frame for an egress queue goes.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// To the sink with this number.
    Sink(usize),
    /// To another processor.
    At(ProcessorId),
    /// It waits for the queue, which is on its way here.
    Hold,
    Nowhere,
}

/// What is to be done with a frame for a port.
#[derive(Clone, Copy)]
pub(crate) enum Exit {
    /// It goes to the sink with this number: the port's only egress queue is here and
    /// nobody captures. Nothing else is looked at for its frames, so that many ports do
    /// not take more of the cache than they must.
    Sink(u32),
    /// One of the port's queues is chosen.
    Queues,
    /// One of the members of the team with this number is chosen.
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
    /// Looks all of them up again.
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
                // Sinks and teams are counted by processors and by the control plane;
                // neither comes near 2^32.
                (Some(team), _) => Exit::Team(team as u32),
                (None, Some(&[Way::Sink(at)])) if port.capture.is_none() => Exit::Sink(at as u32),
                _ => Exit::Queues,
            }
        }));
    }

    /// That of the egress queue at a place of [`Published::owners`].
    pub(crate) fn of_queue(&self, at: usize) -> Way {
        self.of_queues.get(at).copied().unwrap_or(Way::Nowhere)
    }

    /// What is to be done with frames for the port at a place.
    #[inline]
    pub(crate) fn exit(&self, place: usize) -> Exit {
        self.exits.get(place).copied().unwrap_or(Exit::Queues)
    }
}
