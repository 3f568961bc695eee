//! AF_XDP queue whose rings and chunks are in a file, for tests and fuzzers that take the role of
//! the kernel by reading and writing the file.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use suimon_frame::Offloads;
use suimon_ports::{FrameSink, FrameSource};

use super::memory::{Mapping, divide_umem};
use super::queue::{XdpQueue, XdpSink, XdpSource, frame_bytes_max};
use super::ring::{Consumer, Producer};
use super::ring_cells::{Entry, MappedCells};
use super::socket::{Receiver, Sender, XdpSocket};

/// AF_XDP queue, and the layout of its file. Constants with the offset of a field in a ring, such
/// as [`XdpOnFile::PRODUCER_AT`], count from the beginning of the ring.
pub struct XdpOnFile {
    /// Source of received frames.
    pub source: Box<dyn FrameSource>,
    /// Sink of frames to send.
    pub sink: Box<dyn FrameSink>,
}

impl XdpOnFile {
    /// Number of chunks for receiving, and of entries of each ring. The same number of chunks for
    /// sending follows.
    pub const CHUNKS: u32 = 8;
    /// Size of a chunk in bytes.
    pub const CHUNK_BYTES: usize = 2048;
    /// Number of bytes in a chunk before a frame to send.
    pub const SEND_HEADROOM: usize = 24;
    /// Offset of the RX ring in the file, in bytes.
    pub const RX_AT: u64 = 0;
    /// Offset of the fill ring in the file.
    pub const FILL_AT: u64 = 0x1000;
    /// Offset of the TX ring in the file.
    pub const TX_AT: u64 = 0x2000;
    /// Offset of the completion ring in the file.
    pub const COMPLETION_AT: u64 = 0x3000;
    /// Offset of the first chunk in the file.
    pub const CHUNKS_AT: u64 = 0x4000;
    /// Offset in a ring of the producer's index, which is after the last entry.
    pub const PRODUCER_AT: u64 = 0;
    /// Offset in a ring of the consumer's index, which is that of the first entry.
    pub const CONSUMER_AT: u64 = 64;
    /// Offset of the flags in a ring.
    pub const FLAGS_AT: u64 = 128;
    /// Offset of the entries in a ring.
    pub const ENTRIES_AT: u64 = 192;
    /// Length of the file in bytes.
    pub const BYTES: u64 = Self::CHUNKS_AT + 2 * Self::CHUNKS as u64 * Self::CHUNK_BYTES as u64;

    /// Opens the queue in `file`, for frames of this MTU (bytes). System calls that would wake the
    /// kernel go to `fd`.
    ///
    /// # Errors
    /// The file could not be mapped.
    pub fn open(file: BorrowedFd<'_>, fd: OwnedFd, mtu: u16) -> io::Result<Self> {
        let (source, sink) = Self::parts(file, fd, mtu)?;
        Ok(Self { source: Box::new(source), sink: Box::new(sink) })
    }

    pub(super) fn parts(
        file: BorrowedFd<'_>,
        fd: OwnedFd,
        mtu: u16,
    ) -> io::Result<(XdpSource, XdpSink)> {
        let fill = Producer::new(ring(file, Self::FILL_AT)?);
        let rx = Consumer::new(ring(file, Self::RX_AT)?);
        let tx = Producer::new(ring(file, Self::TX_AT)?);
        let completion = Consumer::new(ring(file, Self::COMPLETION_AT)?);
        let bytes = 2 * Self::CHUNKS as usize * Self::CHUNK_BYTES;
        let umem = Mapping::ring(file, Self::CHUNKS_AT, bytes)?;
        let [receiving, sending] = divide_umem(umem, Self::CHUNK_BYTES, Self::CHUNKS as usize);
        let device: Arc<str> = "memory".into();
        let socket = XdpSocket::on(fd.try_clone()?, fd);
        let queue = XdpQueue::new(socket, device, Offloads::NONE, frame_bytes_max(mtu));
        let queue = Arc::new(queue);
        let receiver = Receiver::new(fill, rx, receiving);
        let sender = Sender::new(tx, completion, sending, Self::CHUNK_BYTES, Self::SEND_HEADROOM);
        Ok((XdpSource::new(Arc::clone(&queue), receiver), XdpSink::new(queue, sender)))
    }
}

fn ring<T: Entry>(file: BorrowedFd<'_>, offset: u64) -> io::Result<MappedCells<T>> {
    let offsets = libc::xdp_ring_offset {
        producer: XdpOnFile::PRODUCER_AT,
        consumer: XdpOnFile::CONSUMER_AT,
        flags: XdpOnFile::FLAGS_AT,
        desc: XdpOnFile::ENTRIES_AT,
    };
    let map = Mapping::ring(file, offset, 0x1000)?;
    MappedCells::new(map, &offsets, XdpOnFile::CHUNKS)
}
