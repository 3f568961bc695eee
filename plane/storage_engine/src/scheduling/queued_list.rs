//! Requests that are queued in their store's scheduler, in order of submission.
//!
//! The list is linked through the requests, so that insertion and removal access no other memory.
//! This matters if many disks have one queued request each.

use crate::engine::slab::Slab;
use crate::request::EngineRequest;

/// Value of `next_queued` of the last request: no request has this number.
const NONE: u32 = u32::MAX;

/// Queued requests of a disk: numbers of the first and the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedList {
    first: u32,
    last: u32,
}

impl Default for QueuedList {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl QueuedList {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Appends a request to the list.
    #[inline]
    pub(crate) fn push(&mut self, requests: &mut Slab<EngineRequest>, number: usize) {
        // The number of requests is bounded by a few thousand and the room of the stores.
        let index = u32::try_from(number).unwrap_or(NONE);
        let Some(request) = requests.get_mut(number).filter(|_| index != NONE) else { return };
        request.next_queued = NONE;
        if self.is_empty() {
            self.first = index;
        } else if let Some(last) = requests.get_mut(self.last as usize) {
            last.next_queued = index;
        }
        self.last = index;
    }

    /// Removes and returns the number of the first request; `None` if the list is empty.
    #[inline]
    pub(crate) fn pop(&mut self, requests: &Slab<EngineRequest>) -> Option<usize> {
        let number = self.first as usize;
        self.first = requests.get(number)?.next_queued;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use suimon_image::ByteRange;
    use suimon_ports::{DiskOp, DiskOutcome};
    use suimon_quantity::Time;
    use suimon_storage_qos::RequestPhase;

    use crate::request::RequestFullState;

    use super::*;

    fn request() -> EngineRequest {
        EngineRequest {
            disk: 0,
            queue: 0,
            is_mirror: false,
            tag: 0,
            op: DiskOp::Read,
            range: ByteRange::new(0, 512).unwrap(),
            received_at: Time::ZERO,
            submitted_at: Time::ZERO,
            transferred_at: Time::ZERO,
            charged_slot: None,
            phase: RequestPhase::Data,
            charged_bytes: 0,
            remaining_parts: 0,
            outcome: DiskOutcome::Done,
            full_state: RequestFullState::NotFull,
            next_queued: 0,
        }
    }

    #[test]
    fn requests_of_two_disks_keep_their_order() {
        let mut requests = Slab::default();
        let numbers: Vec<usize> = (0..6).map(|_| requests.insert(request())).collect();
        let (mut even, mut odd) = (QueuedList::default(), QueuedList::default());
        for &number in numbers.iter().rev() {
            if number % 2 == 0 { &mut even } else { &mut odd }.push(&mut requests, number);
        }
        assert_eq!((even.pop(&requests), even.pop(&requests)), (Some(4), Some(2)));
        even.push(&mut requests, 2);
        let taken_even: Vec<usize> = core::iter::from_fn(|| even.pop(&requests)).collect();
        assert_eq!((taken_even, even.is_empty()), (vec![0, 2], true));
        odd.push(&mut requests, 4);
        let taken_odd: Vec<usize> = core::iter::from_fn(|| odd.pop(&requests)).collect();
        assert_eq!(taken_odd, [5, 3, 1, 4]);
    }
}
