//! Errors of a VM's memory table, of files shared with a front-end, and of rings.

use suimon_ports::{FaultKind, QueueFault};
use thiserror::Error;

/// Description, for errors, of the files that a front-end may share as memory, and of how a VM gets
/// such a file.
pub const MEMORY_FILE: &str = "a file on tmpfs or hugetlbfs; back the VM's memory with a memfd \
                               (QEMU: `-object memory-backend-memfd,share=on`, libvirt: `<source \
                               type='memfd'/>`) or with a file in /dev/shm or on hugetlbfs";

/// Reason why a VM's memory table is rejected.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// A region has size 0.
    #[error("memory region {index}: size 0; the front-end must omit empty regions")]
    Empty {
        /// Position of the region in the memory table.
        index: usize,
    },
    /// An address or offset plus the size exceeds 2^64.
    #[error("memory region {index}: `{field}` {value:#x} plus size {size:#x} exceeds 2^64")]
    Overflow {
        /// Position of the region in the memory table.
        index: usize,
        /// Name of the field that overflows.
        field: &'static str,
        /// Value of the field, an address or offset.
        value: u64,
        /// The region's size in bytes.
        size: u64,
    },
    /// Two regions contain the same addresses.
    #[error(
        "memory regions overlap at {field} {address:#x}; each address may be in one region only"
    )]
    Overlap {
        /// Address space of the overlap: "user address" or "guest address".
        field: &'static str,
        /// Start of the second region.
        address: u64,
    },
    /// The table has more regions than accepted.
    #[error("{count} memory regions exceed the limit of {max}")]
    TooMany {
        /// Number of regions in the table.
        count: usize,
        /// Maximum number of regions in a table.
        max: usize,
    },
    /// The descriptor does not refer to a file in memory.
    #[error("memory region {index}: the descriptor is not {MEMORY_FILE}")]
    NotInMemory {
        /// Position of the region in the memory table.
        index: usize,
    },
    /// The memory that the device maps would exceed the limit of one device.
    #[error(
        "memory region {index}: with its {size:#x} bytes the mapped memory of the device exceeds \
         {max:#x} bytes; reduce the VM's memory"
    )]
    DeviceLimit {
        /// Position of the region in the memory table.
        index: usize,
        /// The region's size in bytes.
        size: u64,
        /// Maximum number of bytes that the device may map.
        max: u64,
    },
    /// The memory that all devices map would exceed the limit of the host.
    #[error(
        "memory region {index}: the daemon has no address space for {size:#x} bytes, because \
         other VMs map most of it; stop other VMs or reduce their memory"
    )]
    HostLimit {
        /// Position of the region in the memory table.
        index: usize,
        /// The region's size in bytes.
        size: u64,
    },
    /// The file ends before the end of the region.
    #[error(
        "memory region {index}: the file has {file_bytes:#x} bytes, but the region needs \
         {required:#x}; the front-end must pass a file of the full size"
    )]
    FileTooShort {
        /// Position of the region in the memory table.
        index: usize,
        /// Length of the file in bytes.
        file_bytes: u64,
        /// Offset of the region plus its size, in bytes.
        required: u64,
    },
    /// The host failed to map the region.
    #[error("memory region {index}: cannot {action} {size:#x} bytes: {source}")]
    Host {
        /// Position of the region in the memory table.
        index: usize,
        /// Name of the operation that failed.
        action: &'static str,
        /// The region's size in bytes.
        size: u64,
        /// Error of the system call.
        source: std::io::Error,
    },
}

/// Reason why the file of a dirty page log is rejected.
#[derive(Debug, Error)]
#[error("the log of dirty pages cannot be used: {source}")]
pub struct LogError {
    /// Error of mapping the file, as if the log were region 0 of a memory table.
    pub(crate) source: MemoryError,
}

/// Reason why an in-flight region is rejected.
#[derive(Debug, Error)]
pub enum InflightError {
    /// The region has no queues, no entries, or more entries than a queue may have.
    #[error(
        "in-flight region for {queues} queues of {size} entries: at least one queue and 1 to \
         {max} entries are required"
    )]
    Shape {
        /// Requested number of queues.
        queues: u16,
        /// Requested number of entries per queue.
        size: u16,
        /// Maximum number of entries per queue.
        max: u16,
    },
    /// The region is shorter than its queues require.
    #[error("in-flight region has {bytes:#x} bytes, but its queues need {required:#x}")]
    TooShort {
        /// Length of the region in bytes.
        bytes: u64,
        /// Required length in bytes.
        required: u64,
    },
    /// The region's offset in the file is not a multiple of 8.
    #[error("in-flight region at offset {offset:#x}: the offset is not a multiple of 8")]
    Alignment {
        /// Offset in the file, in bytes.
        offset: u64,
    },
    /// The file cannot be mapped.
    #[error("the in-flight region cannot be used: {source}")]
    Map {
        /// Error of mapping the file, as if the region were region 0 of a memory table.
        source: MemoryError,
    },
    /// The host failed to create or resize the region's file.
    #[error("cannot {action} the in-flight region: {source}")]
    Host {
        /// Failed operation: `create` or `resize`.
        action: &'static str,
        /// Error of the system call.
        source: std::io::Error,
    },
}

/// Area of a virtqueue.
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

/// Violation of the virtio specification by a driver, or a ring that cannot be used. `queue` is the
/// vring's index in its device: for a NIC, 2n is the receive ring of pair n and 2n + 1 its transmit
/// ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RingFault {
    /// The queue size is not a power of two, or is zero or too large.
    #[error("queue {queue}: size {size} is not a power of two from 1 to {max}")]
    Size {
        /// Index of the vring in its device.
        queue: u16,
        /// Requested size in entries.
        size: u32,
        /// Maximum size in entries.
        max: u16,
    },
    /// The size of a packed ring is 0 or too large.
    #[error("queue {queue}: size {size} of a packed ring is outside of 1 to {max}")]
    PackedSize {
        /// Index of the vring in its device.
        queue: u16,
        /// Requested size in entries.
        size: u32,
        /// Maximum size in entries.
        max: u16,
    },
    /// The base of a packed ring is not a position in the ring.
    #[error(
        "queue {queue}: base {base:#x} of a packed ring (bit 15 is the wrap counter) exceeds its \
         {size} entries"
    )]
    PackedBase {
        /// Index of the vring in its device.
        queue: u16,
        /// Requested base, with the wrap counter as bit 15.
        base: u16,
        /// Size of the ring in entries.
        size: u16,
    },
    /// The in-flight region does not fit the ring, or its contents are inconsistent.
    #[error("queue {queue}: in-flight region: {reason}")]
    Inflight {
        /// Index of the vring in its device.
        queue: u16,
        /// Description of the error.
        reason: &'static str,
    },
    /// An area of the ring is not aligned as sections 2.7 and 2.8 require.
    #[error("queue {queue}: {area} at {address:#x} is not aligned to {alignment} bytes")]
    Alignment {
        /// Index of the vring in its device.
        queue: u16,
        /// Area of the ring that is misaligned.
        area: RingArea,
        /// Address of the area in the front-end.
        address: u64,
        /// Required alignment in bytes.
        alignment: u64,
    },
    /// An area of the ring is not inside one memory region.
    #[error(
        "queue {queue}: {area}, {bytes} bytes at {address:#x}, is not within one memory region"
    )]
    AreaOutsideMemory {
        /// Index of the vring in its device.
        queue: u16,
        /// Area of the ring that is not inside one memory region.
        area: RingArea,
        /// Address of the area in the front-end.
        address: u64,
        /// Length of the area in bytes.
        bytes: u64,
    },
    /// The available index is further ahead than the queue has entries.
    #[error(
        "queue {queue}: available index {avail} is {ahead} ahead of {next}, but the queue has \
         {size} entries"
    )]
    AvailIndex {
        /// Index of the vring in its device.
        queue: u16,
        /// Available index written by the driver.
        avail: u16,
        /// Index of the next entry to take.
        next: u16,
        /// Distance from `next` to `avail`.
        ahead: u16,
        /// Size of the queue in entries.
        size: u16,
    },
    /// An available entry or `next` refers to a descriptor outside the table.
    #[error("queue {queue}: {field} names descriptor {index}, but the table has {size}")]
    DescriptorIndex {
        /// Index of the vring in its device.
        queue: u16,
        /// Field that contains the index.
        field: &'static str,
        /// Index that is not in the descriptor table.
        index: u16,
        /// Size of the table in entries.
        size: u32,
    },
    /// A chain is longer than its table, which implies a loop.
    #[error("queue {queue}: the chain at descriptor {head} has more than {max} descriptors")]
    ChainLength {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
        /// Maximum number of descriptors.
        max: u32,
    },
    /// An indirect table is not permitted, has an invalid length, or is combined with `NEXT`.
    #[error("queue {queue}: indirect table at descriptor {head}: {reason}")]
    Indirect {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
        /// Description of the error.
        reason: &'static str,
    },
    /// The access direction of a buffer is not permitted at its place in the chain.
    #[error("queue {queue}: chain at descriptor {head}: a {found} buffer in a {required} chain")]
    BufferAccess {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
        /// Access direction in the descriptor.
        found: &'static str,
        /// Access direction that the ring requires.
        required: &'static str,
    },
    /// A buffer is outside the VM's memory.
    #[error(
        "queue {queue}: chain at descriptor {head}: {bytes} bytes at guest address {address:#x} \
         are outside the VM's memory"
    )]
    BufferAddress {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
        /// Guest-physical address of the buffer.
        address: u64,
        /// Length of the buffer in bytes.
        bytes: u64,
    },
    /// A transmit chain exceeds the maximum frame length.
    #[error("queue {queue}: chain at descriptor {head} has more than {max} bytes")]
    FrameLength {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
        /// Maximum length in bytes, including the header.
        max: usize,
    },
    /// A receive chain is shorter than a virtio-net header.
    #[error(
        "queue {queue}: receive chain at descriptor {head} is shorter than a virtio-net header"
    )]
    ReceiveChainLength {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
    },
    /// A descriptor was made available again before the chain that it starts was returned.
    #[error(
        "queue {queue}: descriptor {head} was made available again before its chain was returned"
    )]
    HeadInUse {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
    },
    /// `IN_ORDER` was negotiated for a device that returns buffers in any order.
    #[error("queue {queue}: IN_ORDER was negotiated, but is not offered for this device")]
    InOrder {
        /// Index of the vring in its device.
        queue: u16,
    },
    /// A chain is not a valid request of a block device (virtio 1.3, section 5.2.6).
    #[error("queue {queue}: chain at descriptor {head} is not a disk request: {reason}")]
    Request {
        /// Index of the vring in its device.
        queue: u16,
        /// Index of the first descriptor of the chain (packed ring: buffer id).
        head: u16,
        /// Description of the error.
        reason: &'static str,
    },
    /// The file of the VM's memory was truncated while the ring used it.
    #[error("queue {queue}: the front-end truncated the file of the VM's memory")]
    MemoryTruncated {
        /// Index of the vring in its device.
        queue: u16,
    },
}

impl From<RingFault> for QueueFault {
    fn from(fault: RingFault) -> Self {
        Self { kind: FaultKind::ProtocolViolation, detail: fault.to_string() }
    }
}
