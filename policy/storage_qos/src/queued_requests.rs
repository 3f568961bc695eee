//! Storage of queued requests: one block of memory that contains a linked list for each disk.

/// Index that terminates a list.
const NONE: u32 = u32::MAX;

/// Operations and bytes that a request is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestCharge {
    pub(crate) cost: u32,
    pub(crate) bytes: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedRequest {
    /// Identifier of the request in the engine.
    pub(crate) tag: u32,
    pub(crate) units: RequestCharge,
    next: u32,
}

/// Queued requests of one disk, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

/// Storage of the queued requests of all disks.
#[derive(Clone, Debug)]
pub(crate) struct QueuedRequests {
    slots: Vec<QueuedRequest>,
    free: u32,
}

impl QueuedRequests {
    pub(crate) fn new(count: u32) -> Self {
        let slots = (0..count).map(|index| {
            let next = if index + 1 == count { NONE } else { index + 1 };
            QueuedRequest { tag: 0, units: RequestCharge::default(), next }
        });
        Self { slots: slots.collect(), free: if count == 0 { NONE } else { 0 } }
    }

    /// Returns true if another request can be stored.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.free != NONE
    }

    /// Appends a request to the list `fifo`. Has no effect if there is no room.
    #[inline]
    pub(crate) fn push(&mut self, fifo: &mut Fifo, tag: u32, units: RequestCharge) {
        let index = self.free;
        let Some(record) = self.slots.get_mut(index as usize) else { return };
        self.free = record.next;
        *record = QueuedRequest { tag, units, next: NONE };
        match self.slots.get_mut(fifo.tail as usize) {
            Some(last) => last.next = index,
            None => fifo.head = index,
        }
        fifo.tail = index;
    }

    /// Calls `tag` for each request of a list, oldest first, and replaces the request's tag by the
    /// result; `None` keeps it.
    pub(crate) fn retag(
        &mut self,
        fifo: &Fifo,
        mut tag: impl FnMut(&QueuedRequest) -> Option<u32>,
    ) {
        let mut index = fifo.head;
        while let Some(record) = self.slots.get_mut(index as usize) {
            record.tag = tag(record).unwrap_or(record.tag);
            index = record.next;
        }
    }

    /// Returns the charges of a list's requests, oldest first.
    pub(crate) fn units(&self, fifo: &Fifo) -> impl Iterator<Item = RequestCharge> {
        let first = self.slots.get(fifo.head as usize);
        let next = |record: &&QueuedRequest| self.slots.get(record.next as usize);
        core::iter::successors(first, next).map(|record| record.units)
    }

    #[inline]
    pub(crate) fn pop(&mut self, fifo: &mut Fifo) -> Option<QueuedRequest> {
        let index = fifo.head;
        let record = self.slots.get_mut(index as usize)?;
        let popped = *record;
        record.next = self.free;
        self.free = index;
        fifo.head = popped.next;
        if fifo.head == NONE {
            fifo.tail = NONE;
        }
        Some(popped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_share_the_room_and_keep_their_order() {
        let mut records = QueuedRequests::new(3);
        let (mut a, mut b) = (Fifo::default(), Fifo::default());
        for (tag, fifo) in [(1, true), (2, false), (3, true)] {
            assert!(records.has_room());
            records.push(if fifo { &mut a } else { &mut b }, tag, RequestCharge::default());
        }
        assert!(!records.has_room());
        records.push(&mut a, 9, RequestCharge::default());
        assert_eq!(records.pop(&mut a).map(|record| record.tag), Some(1));
        records.push(&mut b, 4, RequestCharge::default());
        let tags = |records: &mut QueuedRequests, fifo: &mut Fifo| {
            std::iter::from_fn(|| records.pop(fifo)).map(|record| record.tag).collect::<Vec<_>>()
        };
        assert_eq!(tags(&mut records, &mut b), [2, 4]);
        assert_eq!(tags(&mut records, &mut a), [3]);
        assert!(!QueuedRequests::new(0).has_room());
    }
}
