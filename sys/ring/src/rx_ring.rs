//! Receive ring of a VM: delivers frames from the switch to the guest. With mergeable buffers a
//! frame may fill several chains; otherwise it must fit into one chain. A frame that does not fit
//! is not accepted and leaves the ring unchanged.

use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use suimon_frame::{Frame, Offloads, Span, TailMemory, TailReader, VNET_HEADER_BYTES, VnetHeader};
use suimon_ports::{FrameSink, QueueFault, TransmitResult};

use crate::cells::Descriptor;
use crate::chain::next_buffer;
use crate::chain_head::ChainHead;
use crate::chain_walk::ChainWalk;
use crate::fault::RingFault;
use crate::setup::RingSetup;
use crate::virtqueue::Virtqueue;

/// Offset of `num_buffers` in the virtio-net header, in bytes.
const NUM_BUFFERS_AT: usize = 10;

/// Set of the offloads that frames delivered to a guest may use, of those that the guest has
/// negotiated. It can be changed while the rings run.
#[derive(Debug)]
pub struct OffloadMask {
    bits: AtomicU8,
}

impl OffloadMask {
    /// Creates a mask that permits these offloads.
    pub fn new(offloads: Offloads) -> Self {
        let mask = Self { bits: AtomicU8::new(0) };
        mask.set(offloads);
        mask
    }

    /// Sets the permitted offloads for later frames.
    pub fn set(&self, offloads: Offloads) {
        self.bits.store(offloads.to_bits(), Ordering::Relaxed);
    }

    /// Returns the offloads that are permitted now.
    #[inline]
    pub fn load(&self) -> Offloads {
        Offloads::from_bits(self.bits.load(Ordering::Relaxed))
    }
}

/// Receive ring over one form of virtqueue (split or packed).
pub(crate) struct RxEngine<Q> {
    queue: Q,
    header_bytes: usize,
    offloads: Offloads,
    mask: Arc<OffloadMask>,
}

impl<Q: Virtqueue> RxEngine<Q> {
    /// Creates a running ring. Kicks are suppressed permanently: new buffers are detected when a
    /// frame is to be delivered.
    pub(crate) fn new(queue: Q, setup: &RingSetup, mask: Arc<OffloadMask>) -> Self {
        Self {
            queue,
            header_bytes: setup.features.header_bytes(),
            offloads: setup.features.egress(),
            mask,
        }
    }

    #[inline(always)]
    fn put(&mut self, frame: &Frame) -> Result<TransmitResult, RingFault> {
        if self.queue.fetch()? == 0 {
            return Ok(TransmitResult::Full);
        }
        let Some(head) = self.queue.peek() else { return Ok(TransmitResult::Full) };
        let body = frame.head();
        let bytes = VNET_HEADER_BYTES + body.len();
        let is_simple = head.first.known_flags() == Descriptor::WRITE
            && head.first.len as usize >= bytes
            && self.header_bytes == VNET_HEADER_BYTES;
        let (Some((low, high)), true) = (frame.plain_vnet_header_words(), is_simple) else {
            return self.scatter(frame);
        };
        let low =
            if self.offloads().checksum { low } else { low & !u64::from(VnetHeader::DATA_VALID) };
        let addr = head.first.addr;
        let view = self.queue.view();
        let header = view.write_words(addr, low, high);
        let body_addr = addr.wrapping_add(VNET_HEADER_BYTES as u64);
        if header.and_then(|()| view.write(body_addr, body)).is_err() {
            // The header may have been written.
            self.queue.mark_written(addr, VNET_HEADER_BYTES);
            return Err(self.queue.out_of_memory_fault(head.index, addr, bytes));
        }
        self.queue.mark_written(addr, bytes);
        self.queue.complete(head, bytes as u32);
        Ok(TransmitResult::Accepted)
    }

    /// Copies a frame to as many chains as it needs.
    #[inline(never)]
    fn scatter(&mut self, frame: &Frame) -> Result<TransmitResult, RingFault> {
        let wire = frame.wire_head();
        let mut header = wire.header;
        if !self.offloads().checksum {
            header = header.without_data_valid();
        }
        let header = header.encode();
        let header = header.get(..self.header_bytes).unwrap_or_default();
        let tag = wire.tag.as_ref().map_or(&[][..], |tag| tag.as_slice());
        let slices = [header, wire.before_tag, tag, wire.after_tag];
        let mark = self.queue.rewind_point();
        let tail = frame.tail();
        let result =
            self.fill_chains(FrameReader { slices, position: 0, slice: 0, offset: 0, tail });
        if !matches!(result, Ok(TransmitResult::Accepted)) {
            self.queue.rewind(mark);
        }
        result
    }

    fn fill_chains(&mut self, mut source: FrameReader<'_>) -> Result<TransmitResult, RingFault> {
        let mut count_at = [None; 2];
        let mut chains: u16 = 0;
        while !source.is_empty() {
            if self.queue.fetch()? == 0 {
                return Ok(TransmitResult::Full);
            }
            let Some(head) = self.queue.peek() else { return Ok(TransmitResult::Full) };
            let written = self.fill_chain(head, &mut source, &mut count_at)?;
            if written == 0 {
                let queue = self.queue.queue_state().queue;
                return Err(RingFault::ReceiveChainLength { queue, head: head.index });
            }
            self.queue.complete(head, written as u32);
            chains += 1;
            if !self.queue.queue_state().features.mergeable() && !source.is_empty() {
                return Ok(TransmitResult::Full);
            }
        }
        if chains > 1 {
            for (addr, byte) in count_at.into_iter().zip(chains.to_le_bytes()) {
                let Some((head, addr)) = addr else { continue };
                if self.queue.view().write(addr, &[byte]).is_err() {
                    return Err(self.queue.out_of_memory_fault(head, addr, 1));
                }
                self.queue.mark_written(addr, 1);
            }
        }
        Ok(TransmitResult::Accepted)
    }

    /// Copies as many bytes of `source` to one chain as it holds, and returns their number. Records
    /// in `count_at` the guest-physical addresses of the two bytes of `num_buffers`.
    fn fill_chain(
        &mut self,
        head: ChainHead,
        source: &mut FrameReader<'_>,
        count_at: &mut [Option<(u16, u64)>; 2],
    ) -> Result<usize, RingFault> {
        let mut written = 0;
        let mut walk = ChainWalk::new(head, self.queue.size());
        while let Some(buffer) = next_buffer(&mut self.queue, &mut walk)? {
            let mut filled = 0;
            while filled < buffer.len {
                let start = source.position;
                let Some(part) = source.take(buffer.len - filled) else { break };
                let view = self.queue.view();
                let next_address = buffer.addr.checked_add(filled as u64).and_then(|addr| {
                    let written = match part {
                        Chunk::Bytes(part) => view.write(addr, part),
                        Chunk::Tail(memory, span) => view.write_span(addr, memory, span),
                    };
                    written.ok().map(|()| addr)
                });
                let Some(addr) = next_address else {
                    return Err(self.queue.out_of_memory_fault(
                        head.index,
                        buffer.addr,
                        buffer.len,
                    ));
                };
                let bytes = source.position - start;
                self.queue.mark_written(addr, bytes);
                for (index, slot) in count_at.iter_mut().enumerate() {
                    let byte = NUM_BUFFERS_AT + index;
                    if self.header_bytes > byte && start <= byte && byte < start + bytes {
                        *slot = Some((head.index, addr + (byte - start) as u64));
                    }
                }
                filled += bytes;
            }
            written += filled;
            if source.is_empty() {
                break;
            }
        }
        Ok(written)
    }
}

/// Reader of the bytes of a virtio-net header and its frame, in order.
struct FrameReader<'a> {
    /// Bytes before the tail: header, first part of the frame, VLAN tag, and remainder.
    slices: [&'a [u8]; 4],
    /// Number of bytes that were read.
    position: usize,
    slice: usize,
    offset: usize,
    tail: TailReader<'a>,
}

/// Contiguous bytes that [`FrameReader::take`] returns.
enum Chunk<'a> {
    Bytes(&'a [u8]),
    /// Bytes of the frame's tail, which were not copied yet.
    Tail(&'a dyn TailMemory, Span),
}

impl<'a> FrameReader<'a> {
    /// Returns true if all bytes were read.
    fn is_empty(&self) -> bool {
        let slices = self.slices.get(self.slice..).unwrap_or_default();
        slices.iter().map(|slice| slice.len()).sum::<usize>() == self.offset
            && self.tail.remaining() == 0
    }

    /// Returns the next bytes, at most `bytes_max`; `None` at the end, or if `bytes_max` is 0.
    fn take(&mut self, bytes_max: usize) -> Option<Chunk<'a>> {
        while let Some(slice) = self.slices.get(self.slice) {
            let rest = slice.get(self.offset..).unwrap_or_default();
            if rest.is_empty() {
                self.slice += 1;
                self.offset = 0;
                continue;
            }
            let part = rest.get(..bytes_max).unwrap_or(rest);
            self.offset += part.len();
            self.position += part.len();
            return Some(Chunk::Bytes(part));
        }
        let (memory, span) = self.tail.next_span(bytes_max)?;
        self.position += span.bytes;
        Some(Chunk::Tail(memory, span))
    }
}

impl<Q: Virtqueue> FrameSink for RxEngine<Q> {
    #[inline]
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        self.queue.queue_state().check()?;
        match self.put(frame) {
            Ok(sent) => Ok(sent),
            Err(fault) => Err(self.queue.queue_state_mut().fail(fault).into()),
        }
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.queue.publish();
        self.queue.queue_state().check()?;
        match self.queue.prefetch_ahead() {
            Ok(()) => Ok(()),
            Err(fault) => Err(self.queue.queue_state_mut().fail(fault).into()),
        }
    }

    #[inline]
    fn offloads(&self) -> Offloads {
        self.offloads.intersection(self.mask.load())
    }

    fn reads_tails(&self) -> bool {
        true
    }
}
