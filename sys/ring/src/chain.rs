//! Walks over the buffers of one chain, direct or indirect, each descriptor
//! checked before it is believed (virtio 1.3, sections 2.7.5 and 2.8.5 to 2.8.7).

use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::fault::RingFault;
use crate::virtqueue::{Access, Head, Virtqueue};

/// The longest indirect table that is accepted even where the queue is smaller,
/// because drivers of small queues build tables of up to this many entries.
const INDIRECT_ENTRIES_MAX: u32 = 1024;

/// An indirect descriptor table, by guest address.
#[derive(Clone, Copy, Debug)]
struct IndirectTable {
    addr: u64,
    entries: u32,
}

/// A walk over one chain.
pub(crate) struct ChainWalk {
    head: u16,
    next: Option<Descriptor>,
    table: Option<IndirectTable>,
    /// Position of `next` in the indirect table.
    table_at: u16,
    /// Descriptors of the present table that were stepped over.
    passed: u16,
    /// Descriptors that may still come from the present table.
    left: u32,
    /// Whether a buffer to write came, behind which none to read may come.
    has_writable: bool,
}

impl ChainWalk {
    /// Starts a walk over a chain in a ring of `size` entries.
    #[inline]
    pub(crate) fn new(head: Head, size: u16) -> Self {
        Self {
            head: head.index,
            next: Some(head.first),
            table: None,
            table_at: 0,
            passed: 0,
            left: u32::from(size),
            has_writable: false,
        }
    }

    /// What the driver knows the chain by.
    pub(crate) fn head(&self) -> u16 {
        self.head
    }

    /// Descriptors before the present one in the same table.
    pub(crate) fn passed(&self) -> u16 {
        self.passed
    }
}

/// One buffer of a chain, by guest address; not yet known to be in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    /// Whether it is to be written.
    pub(crate) is_writable: bool,
}

/// The next buffer of a chain, its access checked; `None` at its end.
pub(crate) fn step<Q: Virtqueue>(
    queue: &mut Q,
    walk: &mut ChainWalk,
) -> Result<Option<Buffer>, RingFault> {
    let Some(mut descriptor) = walk.next.take() else { return Ok(None) };
    if walk.table.is_none() && descriptor.flags & Descriptor::INDIRECT != 0 {
        descriptor = enter_indirect(queue, walk, descriptor)?;
    }
    walk.left = walk.left.saturating_sub(1);
    walk.next = match walk.table {
        None => follow_direct(queue, walk, descriptor)?,
        Some(table) => follow_indirect(queue, walk, table, descriptor)?,
    };
    walk.passed = walk.passed.saturating_add(1);
    let is_writable = descriptor.flags & Descriptor::WRITE != 0;
    let is_wanted = match queue.side().access {
        Access::Read => !is_writable,
        Access::Write => is_writable,
        Access::ReadThenWrite => is_writable || !walk.has_writable,
    };
    if !is_wanted {
        return Err(wrong_access(queue, walk));
    }
    walk.has_writable = is_writable;
    Ok(Some(Buffer { addr: descriptor.addr, len: descriptor.len as usize, is_writable }))
}

#[cold]
fn wrong_access<Q: Virtqueue>(queue: &Q, walk: &ChainWalk) -> RingFault {
    let (found, wanted) = match queue.side().access {
        Access::Read => ("device-writable", "device-readable"),
        Access::Write => ("device-readable", "device-writable"),
        Access::ReadThenWrite => ("device-readable", "device-readable, then device-writable"),
    };
    RingFault::BufferAccess { queue: queue.side().queue, head: walk.head, found, wanted }
}

/// The descriptor behind one in the ring's own table.
fn follow_direct<Q: Virtqueue>(
    queue: &mut Q,
    walk: &ChainWalk,
    descriptor: Descriptor,
) -> Result<Option<Descriptor>, RingFault> {
    if descriptor.flags & Descriptor::NEXT != 0 && walk.left == 0 {
        return Err(too_long(queue, walk, u32::from(queue.size())));
    }
    queue.follow_direct(walk, descriptor)
}

/// The descriptor behind one in an indirect table.
fn follow_indirect<Q: Virtqueue>(
    queue: &mut Q,
    walk: &mut ChainWalk,
    table: IndirectTable,
    descriptor: Descriptor,
) -> Result<Option<Descriptor>, RingFault> {
    let Some(index) = Q::follow_indirect(descriptor, walk.table_at, table.entries) else {
        return Ok(None);
    };
    if walk.left == 0 {
        return Err(too_long(queue, walk, table.entries));
    }
    if u32::from(index) >= table.entries {
        let (queue, field, size) = (queue.side().queue, "`next`", table.entries);
        return Err(RingFault::DescriptorIndex { queue, field, index, size });
    }
    walk.table_at = index;
    let next = read_indirect(queue, walk.head, table, index)?;
    if Q::NESTS_VISIBLY && next.flags & Descriptor::INDIRECT != 0 {
        return Err(nested(queue, walk.head));
    }
    Ok(Some(next))
}

/// Goes on in an indirect table (virtio 1.3, sections 2.7.5.3 and 2.8.7) and
/// returns its first descriptor.
fn enter_indirect<Q: Virtqueue>(
    queue: &mut Q,
    walk: &mut ChainWalk,
    descriptor: Descriptor,
) -> Result<Descriptor, RingFault> {
    let entries = descriptor.len / DESCRIPTOR_BYTES as u32;
    let reason = if !queue.side().features.indirect() {
        Some("the feature was not negotiated")
    } else if descriptor.flags & Descriptor::NEXT != 0 {
        Some("NEXT beside INDIRECT")
    } else if descriptor.len % DESCRIPTOR_BYTES as u32 != 0 || entries == 0 {
        Some("its length is not a multiple of 16 bytes, or 0")
    } else if entries > INDIRECT_ENTRIES_MAX.max(u32::from(queue.size())) {
        Some("more entries than the queue")
    } else {
        None
    };
    if let Some(reason) = reason {
        let queue = queue.side().queue;
        return Err(RingFault::Indirect { queue, head: walk.head, reason });
    }
    let table = IndirectTable { addr: descriptor.addr, entries };
    walk.table = Some(table);
    walk.left = entries;
    walk.passed = 0;
    let first = read_indirect(queue, walk.head, table, 0)?;
    if Q::NESTS_VISIBLY && first.flags & Descriptor::INDIRECT != 0 {
        return Err(nested(queue, walk.head));
    }
    Ok(first)
}

fn read_indirect<Q: Virtqueue>(
    queue: &mut Q,
    head: u16,
    table: IndirectTable,
    index: u16,
) -> Result<Descriptor, RingFault> {
    let at = table.addr.wrapping_add(DESCRIPTOR_BYTES as u64 * u64::from(index));
    let mut bytes = [0; DESCRIPTOR_BYTES];
    if table.addr > at || queue.view().read(at, &mut bytes).is_err() {
        return Err(queue.outside(head, at, DESCRIPTOR_BYTES));
    }
    Ok(Q::decode(&bytes))
}

#[cold]
fn nested<Q: Virtqueue>(queue: &Q, head: u16) -> RingFault {
    let reason = "inside another indirect table";
    RingFault::Indirect { queue: queue.side().queue, head, reason }
}

#[cold]
fn too_long<Q: Virtqueue>(queue: &Q, walk: &ChainWalk, max: u32) -> RingFault {
    RingFault::ChainLength { queue: queue.side().queue, head: walk.head, max }
}
