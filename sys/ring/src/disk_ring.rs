//! A ring of a VM's disk: requests come in, and are answered in any order.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use suimon_ports::{DiskOp, DiskOutcome, DiskQueue, DiskRequest, PortFault, Wakeup};
use suimon_uring::PayloadUse;

use crate::chain::{Buffer, ChainWalk, step};
use crate::disk_facts::DiskFacts;
use crate::disk_request::{
    HEADER_BYTES, Header, IO_ERROR, OK, Parts, SEGMENT_BYTES, Verdict, has_segment, judge,
    status_of,
};
use crate::fault::RingFault;
use crate::kick::kick_of;
use crate::memory::GuestMemory;
use crate::packed::PackedQueue;
use crate::payloads::Payloads;
use crate::setup::{RingRecords, RingSetup};
use crate::split::SplitQueue;
use crate::virtqueue::{Access, AnyOrder, Head, RingState, Taken};

/// The largest ring of a disk. What a ring needs of memory grows with its size times the
/// buffers of a request; with this it is at most 64 MB, whatever the driver does.
pub const DISK_QUEUE_SIZE_MAX: u16 = 1024;

/// A ring of a VM's disk (virtio 1.3, section 5.2.6), as a [`DiskQueue`]. Payloads stay in
/// the guest's memory; [`DiskQueue::payloads`] is a [`suimon_uring::PayloadTable`].
///
/// What is no request of this disk is answered inside: ranges that are not within it, or
/// not of whole sectors, writes to a read-only disk, and kinds of request that were not
/// negotiated. A chain that has no whole header or no status ends the ring.
///
/// In the element that returns a request, `len` is exact: the bytes that were written
/// without a gap from the first writable one on. It counts the status only if all before
/// it was written, so it is 0 where a read failed.
///
/// Before the ring is dropped its owner waits until every request it took is answered,
/// and flushes: the position that is left in [`RingState`] says that all before it was
/// used. What was not answered then is in flight for whoever goes on with the ring's part
/// of the in-flight region, as after a death of the process; without such a part it is
/// lost. Answers given after a [`RingFault`] stay in flight likewise.
///
/// Memory is allocated when the ring is made, and later only where a request has more
/// buffers than any before it had.
pub struct DiskRing {
    queue: Box<dyn DiskQueue>,
    state: Arc<RingState>,
}

impl DiskRing {
    /// A running ring that writes nothing down.
    ///
    /// # Errors
    /// As [`DiskRing::recording`].
    pub fn new(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        disk: Arc<DiskFacts>,
    ) -> Result<Self, PortFault> {
        Self::recording(memory, setup, RingRecords::default(), disk)
    }

    /// A running ring. Kicks are suppressed until it is armed. What the ring's part of the
    /// in-flight region says to be under way is taken first, oldest first.
    ///
    /// # Errors
    /// The ring's size, areas or records are no good, or its features have `IN_ORDER`, as
    /// [`RingFault`] says, or the host has no descriptor to spare.
    pub fn recording(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingRecords,
        disk: Arc<DiskFacts>,
    ) -> Result<Self, PortFault> {
        let RingSetup { queue, size, .. } = *setup;
        let (access, max) = (Access::ReadThenWrite, DISK_QUEUE_SIZE_MAX);
        let is_plain = records.is_empty();
        match (setup.features.packed(), is_plain) {
            (false, _) if size > max.into() => Err(RingFault::Size { queue, size, max }.into()),
            (true, _) if size > max.into() => {
                Err(RingFault::PackedSize { queue, size, max }.into())
            }
            (false, true) => {
                Self::over(SplitQueue::<false>::new(memory, setup, records, access)?, setup, disk)
            }
            (false, false) => {
                Self::over(SplitQueue::<true>::new(memory, setup, records, access)?, setup, disk)
            }
            (true, true) => {
                Self::over(PackedQueue::<false>::new(memory, setup, records, access)?, setup, disk)
            }
            (true, false) => {
                Self::over(PackedQueue::<true>::new(memory, setup, records, access)?, setup, disk)
            }
        }
    }

    fn over<Q: AnyOrder + 'static>(
        queue: Q,
        setup: &RingSetup,
        disk: Arc<DiskFacts>,
    ) -> Result<Self, PortFault> {
        let state = Arc::clone(&queue.side().state);
        Ok(Self { state, queue: Box::new(DiskEngine::new(queue, setup, disk)?) })
    }

    /// Where the ring stands, also after it is gone.
    pub fn state(&self) -> Arc<RingState> {
        Arc::clone(&self.state)
    }

    /// The ring, for its owner.
    pub fn into_queue(self) -> Box<dyn DiskQueue> {
        self.queue
    }
}

/// A request that was taken.
#[derive(Default)]
struct UnderWay {
    /// `None`: the tag is free.
    taken: Option<Taken>,
    answer: AnswerPlace,
    is_read: bool,
    /// Where a read's payload goes, if written buffers are logged.
    destination: Vec<Buffer>,
}

/// Where a request's answer goes.
#[derive(Clone, Copy, Default)]
struct AnswerPlace {
    /// Guest address of the status.
    status: u64,
    /// Writable bytes before it.
    room: u64,
}

/// A ring over one form of virtqueue.
struct DiskEngine<Q> {
    queue: Q,
    kick: Arc<OwnedFd>,
    /// The driver never kicks; the ring must be polled and never sleeps.
    is_poll_only: bool,
    disk: Arc<DiskFacts>,
    /// By tag.
    requests: Vec<UnderWay>,
    /// The last one is the next to be used: few are in use, which stay in the cache.
    free_tags: Vec<u32>,
    payloads: Payloads,
    /// Buffers of the chain at hand, without the header.
    readable: Vec<Buffer>,
    /// The same, without the status.
    writable: Vec<Buffer>,
}

impl<Q: AnyOrder> DiskEngine<Q> {
    fn new(queue: Q, setup: &RingSetup, disk: Arc<DiskFacts>) -> Result<Self, PortFault> {
        let tags = queue.size();
        Ok(Self {
            kick: kick_of(setup)?,
            is_poll_only: setup.kick.is_none(),
            disk,
            requests: (0..tags).map(|_| UnderWay::default()).collect(),
            free_tags: (0..u32::from(tags)).rev().collect(),
            payloads: Payloads::new(tags, Arc::clone(queue.side().view.memory())),
            readable: Vec::new(),
            writable: Vec::new(),
            queue,
        })
    }

    /// Takes what is at hand, until there are `max` requests. Chains that are answered
    /// inside do not count; there are no more of them than the ring is long, because none
    /// is returned meanwhile.
    fn take_requests(
        &mut self,
        max: usize,
        requests: &mut Vec<DiskRequest>,
        answered: &mut usize,
    ) -> Result<(), RingFault> {
        let mut left = max;
        while left > 0 && self.queue.look_ahead()? > 0 {
            let (Some(head), Some(tag)) = (self.queue.peek(), self.free_tags.last().copied())
            else {
                break;
            };
            match self.take_request(head, tag)? {
                Some(request) => {
                    self.free_tags.pop();
                    requests.push(request);
                    left -= 1;
                }
                None => *answered += 1,
            }
        }
        self.queue.prefetch_ahead()
    }

    /// Takes one chain; `None` if it was answered.
    fn take_request(&mut self, head: Head, tag: u32) -> Result<Option<DiskRequest>, RingFault> {
        let header = self.gather(head)?;
        let answer = self.answer_place(head)?;
        let mut segment = [0; SEGMENT_BYTES];
        if has_segment(header) {
            self.read_front(head, &mut segment)?;
        }
        let readable = bytes_of(&self.readable);
        let parts = Parts { readable, writable: answer.room, segment };
        let verdict = judge(&self.disk, self.queue.side().features, header, &parts);
        let taken = self.queue.take(head)?;
        let (op, range) = match verdict {
            Verdict::Ask(op, range) => (op, range),
            Verdict::Answer(status) => {
                self.give_back(taken, answer, status, 0);
                return Ok(None);
            }
            Verdict::Identify => {
                let written = self.write_serial(head)?;
                self.give_back(taken, answer, OK, written);
                return Ok(None);
            }
        };
        if !self.place_payload(head, tag, op)? {
            self.give_back(taken, answer, IO_ERROR, 0);
            return Ok(None);
        }
        if let Some(under_way) = self.requests.get_mut(tag as usize) {
            under_way.taken = Some(taken);
            under_way.answer = answer;
            under_way.is_read = op == DiskOp::Read;
            under_way.destination.clear();
            if under_way.is_read && self.queue.is_logging() {
                under_way.destination.extend_from_slice(&self.writable);
            }
        }
        Ok(Some(DiskRequest { tag, op, range }))
    }

    /// Reads the header of a chain, and finds the rest of its buffers, wherever it is cut
    /// into them (section 2.7.4.1). All of them are in memory.
    fn gather(&mut self, head: Head) -> Result<Header, RingFault> {
        self.readable.clear();
        self.writable.clear();
        let mut header = [0; HEADER_BYTES];
        let mut missing = HEADER_BYTES;
        let mut walk = ChainWalk::new(head, self.queue.size());
        while let Some(buffer) = step(&mut self.queue, &mut walk)? {
            let Buffer { addr, len, .. } = buffer;
            if self.queue.view().check(addr, len).is_err() {
                return Err(self.queue.outside(head.index, addr, len));
            }
            let into_header = if buffer.is_writable { 0 } else { missing.min(len) };
            let from = HEADER_BYTES - missing;
            let part = header.get_mut(from..from + into_header).unwrap_or_default();
            if self.queue.view().read(addr, part).is_err() {
                return Err(self.queue.outside(head.index, addr, len));
            }
            missing -= into_header;
            let rest = Buffer {
                addr: addr.wrapping_add(into_header as u64),
                len: len - into_header,
                ..buffer
            };
            if rest.len > 0 {
                let buffers =
                    if rest.is_writable { &mut self.writable } else { &mut self.readable };
                buffers.push(rest);
            }
        }
        if missing > 0 {
            return Err(self.no_request(head, "its device-readable bytes are less than a header"));
        }
        Ok(Header::decode(&header))
    }

    /// Takes the status off the writable buffers: it is their last byte.
    fn answer_place(&mut self, head: Head) -> Result<AnswerPlace, RingFault> {
        let Some(last) = self.writable.last_mut() else {
            return Err(self.no_request(head, "it has no device-writable byte for the status"));
        };
        last.len -= 1;
        let status = last.addr.wrapping_add(last.len as u64);
        if last.len == 0 {
            self.writable.pop();
        }
        Ok(AnswerPlace { status, room: bytes_of(&self.writable) })
    }

    #[cold]
    fn no_request(&self, head: Head, reason: &'static str) -> RingFault {
        RingFault::Request { queue: self.queue.side().queue, head: head.index, reason }
    }

    /// Reads the first of the readable bytes behind the header, as far as there are any.
    fn read_front(&mut self, head: Head, into: &mut [u8]) -> Result<(), RingFault> {
        let mut rest = into;
        for buffer in &self.readable {
            let Some((part, later)) = rest.split_at_mut_checked(rest.len().min(buffer.len)) else {
                break;
            };
            if self.queue.view().read(buffer.addr, part).is_err() {
                return Err(self.queue.outside(head.index, buffer.addr, buffer.len));
            }
            rest = later;
        }
        Ok(())
    }

    /// Writes the serial number as far as there is room, and returns how much that was.
    fn write_serial(&mut self, head: Head) -> Result<u64, RingFault> {
        let serial = self.disk.serial();
        let mut rest = serial.as_slice();
        for buffer in &self.writable {
            let Some((part, later)) = rest.split_at_checked(rest.len().min(buffer.len)) else {
                break;
            };
            if self.queue.view().write(buffer.addr, part).is_err() {
                return Err(self.queue.outside(head.index, buffer.addr, buffer.len));
            }
            self.queue.note_written(buffer.addr, part.len());
            rest = later;
        }
        Ok((serial.len() - rest.len()) as u64)
    }

    /// Says where the payload of the chain at hand lies. `false` if that cannot be said.
    fn place_payload(&mut self, head: Head, tag: u32, op: DiskOp) -> Result<bool, RingFault> {
        let (usage, buffers) = match op {
            DiskOp::Read => (PayloadUse::Destination, &self.writable),
            DiskOp::Write { .. } => (PayloadUse::Source, &self.readable),
            DiskOp::Flush
            | DiskOp::Discard
            | DiskOp::WriteZeroes { .. }
            | DiskOp::Status { .. } => {
                self.payloads.clear(tag);
                return Ok(true);
            }
        };
        let placed = self.payloads.set(self.queue.view(), tag, usage, buffers);
        placed.map_err(|_| self.queue.outside(head.index, 0, 0))
    }

    /// Answers a chain, of whose writable bytes the first `written` were written.
    fn give_back(&mut self, taken: Taken, answer: AnswerPlace, status: u8, written: u64) {
        let AnswerPlace { status: at, room } = answer;
        // It was found to be in memory when the chain was taken.
        let _ = self.queue.view().write(at, &[status]);
        self.queue.note_written(at, 1);
        let all = if written == room { written.saturating_add(1) } else { written };
        self.queue.give_back(taken, u32::try_from(all).unwrap_or(u32::MAX));
    }
}

fn bytes_of(buffers: &[Buffer]) -> u64 {
    buffers.iter().fold(0, |sum, buffer| sum.saturating_add(buffer.len as u64))
}

impl<Q: AnyOrder> DiskQueue for DiskEngine<Q> {
    fn tags(&self) -> u32 {
        u32::from(self.queue.size())
    }

    fn receive(&mut self, max: usize, requests: &mut Vec<DiskRequest>) -> Result<usize, PortFault> {
        self.queue.side().check()?;
        let (before, mut answered) = (requests.len(), 0);
        let taken = self.take_requests(max, requests, &mut answered);
        if answered > 0 {
            self.queue.publish();
        }
        match taken {
            Ok(()) => Ok(requests.len() - before),
            Err(fault) => Err(self.queue.side_mut().fail(fault).into()),
        }
    }

    fn payloads(&self) -> &dyn Any {
        self.payloads.table()
    }

    fn zero_payload(&mut self, tag: u32, from: u64, len: u64) {
        self.payloads.table().zero(tag, from, len);
    }

    fn complete(&mut self, tag: u32, outcome: DiskOutcome) {
        let Some(under_way) = self.requests.get_mut(tag as usize) else { return };
        let Some(taken) = under_way.taken.take() else { return };
        self.free_tags.push(tag);
        self.payloads.clear(tag);
        if self.queue.side().check().is_err() {
            return;
        }
        // A read that failed may have written some of it.
        for buffer in &under_way.destination {
            self.queue.note_written(buffer.addr, buffer.len);
        }
        let status = status_of(outcome);
        let answer = under_way.answer;
        let has_written = under_way.is_read && status == OK;
        self.give_back(taken, answer, status, if has_written { answer.room } else { 0 });
    }

    fn flush(&mut self) -> Result<(), PortFault> {
        self.queue.publish();
        Ok(self.queue.side().check()?)
    }

    fn arm(&mut self) -> Wakeup {
        if self.is_poll_only { Wakeup::Pending } else { self.queue.arm() }
    }

    fn disarm(&mut self) {
        self.queue.park();
        let _ = rustix::io::read(&*self.kick, &mut [0; 8]);
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.kick.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }

    fn outlives_process(&self) -> bool {
        true
    }
}
