//! Walks over the buffers of one chain, direct or indirect, each descriptor
//! checked before it is believed (virtio 1.3, section 2.7.5).

use crate::cells::{DESCRIPTOR_BYTES, Descriptor};
use crate::fault::RingFault;
use crate::split::{Access, Head, SplitQueue};

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
    /// Descriptors that may still come from the present table.
    left: u32,
}

/// One buffer of a chain, by guest address; not yet known to be in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) addr: u64,
    pub(crate) len: usize,
}

impl SplitQueue {
    /// Starts a walk over the chain that begins with `head`.
    #[inline]
    pub(crate) fn walk(&self, head: Head) -> ChainWalk {
        ChainWalk {
            head: head.index,
            next: Some(head.first),
            table: None,
            left: u32::from(self.size()),
        }
    }

    /// The next buffer of a chain, its access checked; `None` at its end.
    pub(crate) fn step(&mut self, walk: &mut ChainWalk) -> Result<Option<Buffer>, RingFault> {
        let Some(mut descriptor) = walk.next.take() else { return Ok(None) };
        if descriptor.flags & Descriptor::INDIRECT != 0 {
            descriptor = self.enter_indirect(walk, descriptor)?;
        }
        walk.left = walk.left.saturating_sub(1);
        if descriptor.flags & Descriptor::NEXT != 0 {
            if walk.left == 0 {
                let max = walk.table.map_or(u32::from(self.size()), |table| table.entries);
                return Err(RingFault::ChainLength { queue: self.queue(), head: walk.head, max });
            }
            walk.next = Some(self.follow(walk, descriptor.next)?);
        }
        let is_writable = descriptor.flags & Descriptor::WRITE != 0;
        if is_writable != (self.access == Access::Write) {
            let (found, wanted) = match self.access {
                Access::Read => ("device-writable", "device-readable"),
                Access::Write => ("device-readable", "device-writable"),
            };
            return Err(RingFault::BufferAccess {
                queue: self.queue(),
                head: walk.head,
                found,
                wanted,
            });
        }
        Ok(Some(Buffer { addr: descriptor.addr, len: descriptor.len as usize }))
    }

    /// The descriptor `index` of the table the walk is in.
    fn follow(&mut self, walk: &ChainWalk, index: u16) -> Result<Descriptor, RingFault> {
        let size = walk.table.map_or(u32::from(self.size()), |table| table.entries);
        if u32::from(index) >= size {
            let field = "`next`";
            return Err(RingFault::DescriptorIndex { queue: self.queue(), field, index, size });
        }
        match walk.table {
            None => Ok(self.cells.descriptor(index)),
            Some(table) => self.read_indirect(walk.head, table, index),
        }
    }

    /// Goes on in an indirect table (virtio 1.3, section 2.7.5.3) and returns its
    /// first descriptor.
    fn enter_indirect(
        &mut self,
        walk: &mut ChainWalk,
        descriptor: Descriptor,
    ) -> Result<Descriptor, RingFault> {
        let entries = descriptor.len / DESCRIPTOR_BYTES as u32;
        let reason = if !self.features.indirect() {
            Some("the feature was not negotiated")
        } else if walk.table.is_some() {
            Some("inside another indirect table")
        } else if descriptor.flags & Descriptor::NEXT != 0 {
            Some("NEXT beside INDIRECT")
        } else if descriptor.len % DESCRIPTOR_BYTES as u32 != 0 || entries == 0 {
            Some("its length is not a multiple of 16 bytes, or 0")
        } else if entries > INDIRECT_ENTRIES_MAX.max(u32::from(self.size())) {
            Some("more entries than the queue")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(RingFault::Indirect { queue: self.queue(), head: walk.head, reason });
        }
        let table = IndirectTable { addr: descriptor.addr, entries };
        walk.table = Some(table);
        walk.left = entries;
        let first = self.read_indirect(walk.head, table, 0)?;
        if first.flags & Descriptor::INDIRECT != 0 {
            let reason = "inside another indirect table";
            return Err(RingFault::Indirect { queue: self.queue(), head: walk.head, reason });
        }
        Ok(first)
    }

    fn read_indirect(
        &mut self,
        head: u16,
        table: IndirectTable,
        index: u16,
    ) -> Result<Descriptor, RingFault> {
        let at = table.addr.wrapping_add(DESCRIPTOR_BYTES as u64 * u64::from(index));
        let mut bytes = [0; DESCRIPTOR_BYTES];
        if table.addr > at || self.view.read(at, &mut bytes).is_err() {
            return Err(self.outside(head, at, DESCRIPTOR_BYTES));
        }
        Ok(Descriptor::decode(&bytes))
    }
}
