//! Phases of requests in flight.

/// Phase of a dispatched request that has not completed.
///
/// A request is in [`RequestPhase::Data`] from its dispatch on, unless another phase is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestPhase {
    /// The device reads or writes the request's payload.
    #[default]
    Data,
    /// The request waits for image metadata: for a read of it, or for a commit of changes.
    Metadata,
    /// The request is a flush or a durable write and waits for the device to make data durable.
    Flush,
    /// The request is a discard or a write of zeros.
    Discard,
    /// The request is queued in the engine behind another request of the disk. The cause is not
    /// measured.
    Unmeasured,
}

impl RequestPhase {
    /// Number of phases of a request.
    pub const COUNT: usize = 5;
    /// Phases in the order of their discriminants.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Data, Self::Metadata, Self::Flush, Self::Discard, Self::Unmeasured];
}

/// Numbers of requests in flight in each phase other than [`RequestPhase::Data`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases {
    counts: [u32; RequestPhase::COUNT],
    sum: u32,
}

impl Phases {
    /// Moves one request from phase `from` to phase `to`.
    pub(crate) fn change(&mut self, from: RequestPhase, to: RequestPhase) {
        let count = |counts: &mut [u32; RequestPhase::COUNT], phase: RequestPhase, change: i32| {
            if let Some(count) =
                counts.get_mut(phase as usize).filter(|_| phase != RequestPhase::Data)
            {
                *count = count.saturating_add_signed(change);
            }
        };
        count(&mut self.counts, from, -1);
        count(&mut self.counts, to, 1);
        self.sum = self.counts.iter().sum();
    }

    /// Returns true if all requests in flight are in [`RequestPhase::Data`].
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.sum == 0
    }

    /// Returns the number of requests in a phase; 0 for [`RequestPhase::Data`].
    pub(crate) fn count(&self, phase: RequestPhase) -> u32 {
        self.counts.get(phase as usize).copied().unwrap_or_default()
    }
}
