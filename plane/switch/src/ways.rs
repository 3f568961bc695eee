//! Where the frames for each egress queue go, looked up once for each generation.

use std::collections::BTreeMap;

use suimon_forwarding::PortSlot;
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

#[derive(Default)]
pub(crate) struct Ways {
    /// Parallel to [`Published::owners`].
    of_queues: Vec<Way>,
    /// By slot: the sink of a port whose only egress queue is here and that nobody
    /// captures. Nothing else is looked at for its frames, so that many ports do not
    /// take more of the cache than they must.
    direct: Vec<Option<u32>>,
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
        self.direct.clear();
        self.direct.extend(published.ports.iter().map(|port| {
            match self.of_queues.get(port.egress.clone()) {
                Some(&[Way::Sink(at)]) if port.capture.is_none() => u32::try_from(at).ok(),
                _ => None,
            }
        }));
    }

    /// That of the egress queue at a place of [`Published::owners`].
    pub(crate) fn of_queue(&self, at: usize) -> Way {
        self.of_queues.get(at).copied().unwrap_or(Way::Nowhere)
    }

    /// The sink to which all frames for a port go, if that is all there is to it.
    #[inline]
    pub(crate) fn direct(&self, egress: PortSlot) -> Option<usize> {
        self.direct.get(egress.index()).copied().flatten().map(|sink| sink as usize)
    }
}
