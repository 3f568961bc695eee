//! Iteration over the buffers of one descriptor chain, direct or indirect. Each descriptor is
//! validated before use (virtio 1.3, sections 2.7.5 and 2.8.5 to 2.8.7).

use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::chain_head::ChainHead;
use crate::chain_walk::{ChainWalk, IndirectTable};
use crate::fault::RingFault;
use crate::memory::OutOfRange;
use crate::memory_view::MemoryView;
use crate::virtqueue::{Access, Virtqueue};

/// Maximum number of entries of an indirect table, unless the queue is longer. Drivers of small
/// queues build tables of up to this size.
const INDIRECT_ENTRIES_MAX: u32 = 1024;

/// Buffer of a chain: guest address and length in bytes. The range is not checked against guest
/// memory yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    /// True if the device may write to the buffer; otherwise the device may read it.
    pub(crate) is_writable: bool,
}

/// Returns the next buffer of a chain; `None` at its end.
///
/// # Errors
/// A descriptor is invalid, or the access direction of the buffer is not permitted.
pub(crate) fn next_buffer<Q: Virtqueue>(
    queue: &mut Q,
    walk: &mut ChainWalk,
) -> Result<Option<Buffer>, RingFault> {
    let Some(mut descriptor) = walk.next.take() else { return Ok(None) };
    if walk.table.is_none() && descriptor.flags & Descriptor::INDIRECT != 0 {
        descriptor = enter_indirect(queue, walk, descriptor)?;
    }
    walk.remaining = walk.remaining.saturating_sub(1);
    walk.next = match walk.table {
        None => follow_direct(queue, walk, descriptor)?,
        Some(table) => follow_indirect(queue, walk, table, descriptor)?,
    };
    walk.visited = walk.visited.saturating_add(1);
    let buffer = decode_buffer(queue.queue_state().access, walk.has_writable, descriptor)
        .ok_or_else(|| access_fault(queue, walk.head))?;
    walk.has_writable = buffer.is_writable;
    Ok(Some(buffer))
}

/// Decodes the buffer of a descriptor. Returns `None` if `access` does not permit its direction at
/// this place of the chain. `has_writable` is true if a device-writable buffer precedes it.
#[inline(always)]
fn decode_buffer(access: Access, has_writable: bool, descriptor: Descriptor) -> Option<Buffer> {
    let is_writable = descriptor.flags & Descriptor::WRITE != 0;
    let is_wanted = match access {
        Access::Read => !is_writable,
        Access::Write => is_writable,
        Access::ReadThenWrite => is_writable || !has_writable,
    };
    let Descriptor { addr, len, .. } = descriptor;
    is_wanted.then_some(Buffer { addr, len: len as usize, is_writable })
}

/// Receiver of the buffers of a chain.
pub(crate) trait BufferSink {
    /// Adds the next buffer.
    ///
    /// # Errors
    /// The buffer is not in guest memory.
    fn add(&mut self, view: &mut MemoryView, buffer: Buffer) -> Result<(), OutOfRange>;
}

/// Passes the buffers of a chain to `sink`, with their access direction checked. Equivalent to
/// calling [`next_buffer`] until the end.
///
/// # Errors
/// The chain is malformed, or a buffer is not in guest memory.
#[inline(always)]
pub(crate) fn gather<Q: Virtqueue>(
    queue: &mut Q,
    head: ChainHead,
    sink: &mut impl BufferSink,
) -> Result<(), RingFault> {
    if head.first.flags & Descriptor::INDIRECT != 0 {
        gather_table(queue, head, sink)
    } else {
        gather_steps(queue, head, sink)
    }
}

#[inline(never)]
fn gather_steps<Q: Virtqueue>(
    queue: &mut Q,
    head: ChainHead,
    sink: &mut impl BufferSink,
) -> Result<(), RingFault> {
    let mut walk = ChainWalk::new(head, queue.size());
    while let Some(buffer) = next_buffer(queue, &mut walk)? {
        if sink.add(queue.view(), buffer).is_err() {
            return Err(queue.out_of_memory_fault(head.index, buffer.addr, buffer.len));
        }
    }
    Ok(())
}

/// Implements [`gather`] for a chain whose first descriptor refers to an indirect table.
#[inline(always)]
fn gather_table<Q: Virtqueue>(
    queue: &mut Q,
    head: ChainHead,
    sink: &mut impl BufferSink,
) -> Result<(), RingFault> {
    let (access, table) =
        (queue.queue_state().access, indirect_table(queue, head.index, head.first)?);
    let (mut index, mut remaining, mut has_writable) = (0_u16, table.entries, false);
    loop {
        let descriptor = read_indirect(queue, head.index, table, index)?;
        if Q::NESTED_INDIRECT_IS_FAULT && descriptor.flags & Descriptor::INDIRECT != 0 {
            return Err(nested(queue, head.index));
        }
        let Some(buffer) = decode_buffer(access, has_writable, descriptor) else {
            return Err(access_fault(queue, head.index));
        };
        has_writable = buffer.is_writable;
        if sink.add(queue.view(), buffer).is_err() {
            return Err(queue.out_of_memory_fault(head.index, buffer.addr, buffer.len));
        }
        let Some(next) = Q::follow_indirect(descriptor, index, table.entries) else {
            return Ok(());
        };
        remaining -= 1;
        if remaining == 0 {
            return Err(too_long(queue, head.index, table.entries));
        }
        if u32::from(next) >= table.entries {
            return Err(index_fault(queue, next, table.entries));
        }
        index = next;
    }
}

#[cold]
fn index_fault<Q: Virtqueue>(queue: &Q, index: u16, size: u32) -> RingFault {
    RingFault::DescriptorIndex { queue: queue.queue_state().queue, field: "`next`", index, size }
}

#[cold]
fn access_fault<Q: Virtqueue>(queue: &Q, head: u16) -> RingFault {
    let (found, required) = match queue.queue_state().access {
        Access::Read => ("device-writable", "device-readable"),
        Access::Write => ("device-readable", "device-writable"),
        Access::ReadThenWrite => ("device-readable", "device-readable, then device-writable"),
    };
    RingFault::BufferAccess { queue: queue.queue_state().queue, head, found, required }
}

/// Returns the descriptor that follows `descriptor` in the ring's own table; `None` if it is the
/// last one.
fn follow_direct<Q: Virtqueue>(
    queue: &mut Q,
    walk: &ChainWalk,
    descriptor: Descriptor,
) -> Result<Option<Descriptor>, RingFault> {
    if descriptor.flags & Descriptor::NEXT != 0 && walk.remaining == 0 {
        return Err(too_long(queue, walk.head, u32::from(queue.size())));
    }
    queue.follow_direct(walk, descriptor)
}

/// Returns the descriptor that follows `descriptor` in an indirect table; `None` if it is the last
/// one.
fn follow_indirect<Q: Virtqueue>(
    queue: &mut Q,
    walk: &mut ChainWalk,
    table: IndirectTable,
    descriptor: Descriptor,
) -> Result<Option<Descriptor>, RingFault> {
    let Some(index) = Q::follow_indirect(descriptor, walk.table_position, table.entries) else {
        return Ok(None);
    };
    if walk.remaining == 0 {
        return Err(too_long(queue, walk.head, table.entries));
    }
    if u32::from(index) >= table.entries {
        return Err(index_fault(queue, index, table.entries));
    }
    walk.table_position = index;
    let next = read_indirect(queue, walk.head, table, index)?;
    if Q::NESTED_INDIRECT_IS_FAULT && next.flags & Descriptor::INDIRECT != 0 {
        return Err(nested(queue, walk.head));
    }
    Ok(Some(next))
}

/// Continues the iteration in an indirect table (virtio 1.3, sections 2.7.5.3 and 2.8.7) and
/// returns its first descriptor.
fn enter_indirect<Q: Virtqueue>(
    queue: &mut Q,
    walk: &mut ChainWalk,
    descriptor: Descriptor,
) -> Result<Descriptor, RingFault> {
    let table = indirect_table(queue, walk.head, descriptor)?;
    walk.table = Some(table);
    walk.remaining = table.entries;
    walk.visited = 0;
    let first = read_indirect(queue, walk.head, table, 0)?;
    if Q::NESTED_INDIRECT_IS_FAULT && first.flags & Descriptor::INDIRECT != 0 {
        return Err(nested(queue, walk.head));
    }
    Ok(first)
}

/// Validates an indirect descriptor and returns its table.
#[inline(always)]
fn indirect_table<Q: Virtqueue>(
    queue: &Q,
    head: u16,
    descriptor: Descriptor,
) -> Result<IndirectTable, RingFault> {
    let Descriptor { addr, len, flags, .. } = descriptor;
    let entries = len / DESCRIPTOR_BYTES as u32;
    let is_sound = queue.queue_state().features.indirect()
        && flags & Descriptor::NEXT == 0
        && len % DESCRIPTOR_BYTES as u32 == 0
        && entries > 0
        && entries <= INDIRECT_ENTRIES_MAX.max(u32::from(queue.size()));
    if is_sound {
        Ok(IndirectTable { addr, entries })
    } else {
        Err(indirect_fault(queue, head, descriptor))
    }
}

/// Returns the fault that describes why an indirect descriptor is invalid.
#[cold]
fn indirect_fault<Q: Virtqueue>(queue: &Q, head: u16, descriptor: Descriptor) -> RingFault {
    let reason = if !queue.queue_state().features.indirect() {
        "the feature was not negotiated"
    } else if descriptor.flags & Descriptor::NEXT != 0 {
        "a descriptor has both NEXT and INDIRECT"
    } else if descriptor.len % DESCRIPTOR_BYTES as u32 != 0 || descriptor.len == 0 {
        "its length is 0 or not a multiple of 16 bytes"
    } else {
        "it has more entries than the queue"
    };
    RingFault::Indirect { queue: queue.queue_state().queue, head, reason }
}

#[inline(always)]
fn read_indirect<Q: Virtqueue>(
    queue: &mut Q,
    head: u16,
    table: IndirectTable,
    index: u16,
) -> Result<Descriptor, RingFault> {
    let address = table.addr.wrapping_add(DESCRIPTOR_BYTES as u64 * u64::from(index));
    let read = if table.addr > address { Err(OutOfRange) } else { queue.view().read_16(address) };
    match read {
        Ok(bytes) => Ok(Q::decode(&bytes)),
        Err(OutOfRange) => Err(queue.out_of_memory_fault(head, address, DESCRIPTOR_BYTES)),
    }
}

#[cold]
fn nested<Q: Virtqueue>(queue: &Q, head: u16) -> RingFault {
    let reason = "inside another indirect table";
    RingFault::Indirect { queue: queue.queue_state().queue, head, reason }
}

#[cold]
fn too_long<Q: Virtqueue>(queue: &Q, head: u16, max: u32) -> RingFault {
    RingFault::ChainLength { queue: queue.queue_state().queue, head, max }
}
