//! What can be wrong with a VM's memory table or with one of its rings.

use suimon_ports::{FaultKind, PortFault};
use thiserror::Error;

/// Why a VM's memory cannot be used as described.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// A region of no bytes.
    #[error("memory region {index}: size 0; the front-end must leave empty regions out")]
    Empty {
        /// Position in the table.
        index: usize,
    },
    /// An address or offset plus the size passes 2^64.
    #[error("memory region {index}: `{field}` {value:#x} plus size {size:#x} passes 2^64")]
    Overflow {
        /// Position in the table.
        index: usize,
        /// Which number of the region.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The region's size in bytes.
        size: u64,
    },
    /// Two regions claim the same addresses.
    #[error("memory regions overlap at {field} {address:#x}; each address may be described once")]
    Overlap {
        /// In which address space.
        field: &'static str,
        /// Where the second region starts.
        address: u64,
    },
    /// More regions than are accepted.
    #[error("{count} memory regions; at most {max} are accepted")]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many are accepted.
        max: usize,
    },
    /// The descriptor is not of a regular file.
    #[error(
        "memory region {index}: the descriptor is not a regular file; back the VM's memory \
         with a memfd or a file (QEMU: `-object memory-backend-memfd,share=on`)"
    )]
    NotAFile {
        /// Position in the table.
        index: usize,
    },
    /// The file ends before the region does.
    #[error(
        "memory region {index}: the file has {file_bytes:#x} bytes, the region needs \
         {needed:#x}; a page behind the file's end cannot be touched"
    )]
    FileTooShort {
        /// Position in the table.
        index: usize,
        /// Length of the file.
        file_bytes: u64,
        /// Offset of the region plus its size.
        needed: u64,
    },
    /// The host did not map it.
    #[error("memory region {index}: cannot {action} {size:#x} bytes: {source}")]
    Host {
        /// Position in the table.
        index: usize,
        /// Which system call failed.
        action: &'static str,
        /// The region's size in bytes.
        size: u64,
        /// What the system call said.
        source: std::io::Error,
    },
}

/// Why a log of written pages cannot be used as described.
#[derive(Debug, Error)]
#[error("the log of written pages cannot be used: {source}")]
pub struct LogError {
    /// What is wrong with the file; the log counts as region 0.
    pub(crate) source: MemoryError,
}

/// Why a region for buffers in flight cannot be made or used as described.
#[derive(Debug, Error)]
pub enum InflightError {
    /// No queues, no entries, or more than a queue may have.
    #[error(
        "in-flight region for {queues} queues of {size} entries: there must be a queue, and from \
         1 to {max} entries"
    )]
    Shape {
        /// Queues asked for.
        queues: u16,
        /// Entries of each.
        size: u16,
        /// The most a queue may have.
        max: u16,
    },
    /// The region is shorter than its queues need.
    #[error("in-flight region of {bytes:#x} bytes: its queues need {needed:#x}")]
    TooShort {
        /// Length of the region.
        bytes: u64,
        /// What is needed.
        needed: u64,
    },
    /// It does not start where its cells would be aligned.
    #[error("in-flight region at offset {offset:#x}: the offset is not a multiple of 8")]
    Alignment {
        /// Offset in the file.
        offset: u64,
    },
    /// The file is no good.
    #[error("the in-flight region cannot be used: {source}")]
    Map {
        /// What is wrong with the file; the in-flight region counts as region 0.
        source: MemoryError,
    },
    /// The host refused.
    #[error("cannot {action} the in-flight region: {source}")]
    Host {
        /// What was tried.
        action: &'static str,
        /// What the system call said.
        source: std::io::Error,
    },
}

/// Which part of a virtqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingArea {
    /// The descriptor table (virtio 1.3, section 2.7.5).
    Descriptors,
    /// The available ring (section 2.7.6).
    Available,
    /// The used ring (section 2.7.8).
    Used,
    /// The descriptor ring of a packed virtqueue (section 2.8).
    DescriptorRing,
    /// The driver's event suppression structure (section 2.8.10).
    DriverEvents,
    /// The device's event suppression structure (section 2.8.10).
    DeviceEvents,
}

impl core::fmt::Display for RingArea {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Descriptors => "descriptor table",
            Self::Available => "available ring",
            Self::Used => "used ring",
            Self::DescriptorRing => "descriptor ring",
            Self::DriverEvents => "driver event suppression structure",
            Self::DeviceEvents => "device event suppression structure",
        })
    }
}

/// How a driver broke the ring's rules. `queue` is the vring's index in the
/// device: of a NIC 2n is the receive ring of pair n, 2n + 1 its transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RingFault {
    /// The queue size is not a power of two, or is zero or too large.
    #[error("queue {queue}: size {size} is not a power of two from 1 to {max}")]
    Size {
        /// Vring index.
        queue: u16,
        /// The size asked for.
        size: u32,
        /// The largest that is accepted.
        max: u16,
    },
    /// A packed ring of no size or too large a one.
    #[error("queue {queue}: size {size} of a packed ring is not from 1 to {max}")]
    PackedSize {
        /// Vring index.
        queue: u16,
        /// The size asked for.
        size: u32,
        /// The largest that is accepted.
        max: u16,
    },
    /// A packed ring is to start at a position it does not have.
    #[error(
        "queue {queue}: base {base:#x} of a packed ring (the wrap counter is bit 15) is beyond \
         its {size} entries"
    )]
    PackedBase {
        /// Vring index.
        queue: u16,
        /// The base asked for.
        base: u16,
        /// Entries of the ring.
        size: u16,
    },
    /// The in-flight region does not fit the ring, or says what cannot be.
    #[error("queue {queue}: in-flight region: {reason}")]
    Inflight {
        /// Vring index.
        queue: u16,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A part of the ring is not aligned as sections 2.7 and 2.8 require.
    #[error("queue {queue}: {area} at {address:#x} is not aligned to {alignment} bytes")]
    Alignment {
        /// Vring index.
        queue: u16,
        /// Which part.
        area: RingArea,
        /// Its address in the front-end.
        address: u64,
        /// What it must be a multiple of.
        alignment: u64,
    },
    /// A part of the ring does not lie in one memory region.
    #[error(
        "queue {queue}: {area}, {bytes} bytes at {address:#x}, is not inside one memory region"
    )]
    Area {
        /// Vring index.
        queue: u16,
        /// Which part.
        area: RingArea,
        /// Its address in the front-end.
        address: u64,
        /// How long it is.
        bytes: u64,
    },
    /// The available index moved further than the queue is long.
    #[error(
        "queue {queue}: available index {avail} is {ahead} ahead of {next}, the queue has {size} \
         entries"
    )]
    AvailIndex {
        /// Vring index.
        queue: u16,
        /// What the driver wrote.
        avail: u16,
        /// The next entry we would take.
        next: u16,
        /// The distance between them.
        ahead: u16,
        /// Entries of the queue.
        size: u16,
    },
    /// An available entry or `next` names a descriptor that does not exist.
    #[error("queue {queue}: {field} names descriptor {index}, the table has {size}")]
    DescriptorIndex {
        /// Vring index.
        queue: u16,
        /// Who names it.
        field: &'static str,
        /// What it names.
        index: u16,
        /// Entries of the table.
        size: u32,
    },
    /// A chain is longer than its table: it must be a loop.
    #[error("queue {queue}: the chain at descriptor {head} has more than {max} descriptors")]
    ChainLength {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
        /// The most a chain may have.
        max: u32,
    },
    /// An indirect table where none is allowed, of a bad length, or with `NEXT`.
    #[error("queue {queue}: indirect table at descriptor {head}: {reason}")]
    Indirect {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A buffer that the device must read is writable only, or the reverse.
    #[error("queue {queue}: chain at descriptor {head}: a {found} buffer in a {wanted} chain")]
    BufferAccess {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
        /// What the descriptor says.
        found: &'static str,
        /// What the ring needs.
        wanted: &'static str,
    },
    /// A buffer lies outside the VM's memory.
    #[error(
        "queue {queue}: chain at descriptor {head}: {bytes} bytes at guest address {address:#x} \
         are outside the VM's memory"
    )]
    BufferAddress {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
        /// Guest-physical address.
        address: u64,
        /// Length of the buffer.
        bytes: u64,
    },
    /// A transmit chain carries more than the largest frame.
    #[error("queue {queue}: chain at descriptor {head} carries more than {max} bytes")]
    FrameLength {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
        /// The most it may carry, header included.
        max: usize,
    },
    /// A receive chain with no room at all.
    #[error("queue {queue}: receive chain at descriptor {head} has no room, not even for a header")]
    NoRoom {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
    },
    /// A descriptor was offered again before the chain it begins was returned.
    #[error("queue {queue}: descriptor {head} was offered again before its chain was returned")]
    Outstanding {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
    },
    /// Buffers are to be returned in order by a device that does not do so.
    #[error("queue {queue}: IN_ORDER was negotiated, which is not offered for this device")]
    InOrder {
        /// Vring index.
        queue: u16,
    },
    /// A chain that is no request of a block device (virtio 1.3, section 5.2.6).
    #[error("queue {queue}: chain at descriptor {head} is no request: {reason}")]
    Request {
        /// Vring index.
        queue: u16,
        /// First descriptor of the chain.
        head: u16,
        /// What is missing.
        reason: &'static str,
    },
    /// The file behind the memory was cut short while it was in use.
    #[error("queue {queue}: the front-end cut the file behind the VM's memory short")]
    MemoryGone {
        /// Vring index.
        queue: u16,
    },
}

impl From<RingFault> for PortFault {
    fn from(fault: RingFault) -> Self {
        Self { kind: FaultKind::Hostile, detail: fault.to_string() }
    }
}
