//! AF_XDP sockets of one queue, with their rings and their UMEM (the kernel's `networking/af_xdp`).
//!
//! Sending uses a separate socket: the kernel wakes the waiters of a socket for each of its frames
//! that has left, and workers wait for received frames only. Both sockets share the UMEM with its
//! fill and completion ring (`XDP_SHARED_UMEM`). The sending socket registers it, because kernels
//! prepare a queue for sending with its first socket, and not all of them with a second.
#![allow(unsafe_code, reason = "these sockets and their addresses have no safe form")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use libc::{socklen_t, xdp_desc};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use suimon_netif::raw_socket::{get_option, set_option};

use super::memory::{Mapping, UmemArea, divide_umem};
use super::ring::{Consumer, Producer};
use super::ring_cells::{Entry, MappedCells};

/// Number of chunks for receiving, and of entries of the RX and fill rings.
const RECEIVE_CHUNKS: u32 = 2048;
/// Number of chunks for sending, and of entries of the TX and completion rings.
const SEND_CHUNKS: u32 = 2048;
/// Size in bytes of the metadata before each segment of a frame to send: `struct xsk_tx_metadata`
/// since Linux 6.14; it was shorter before. It requests the completion of a checksum.
const METADATA_BYTES: usize = 24;
/// Number of bytes at the beginning of a chunk that are reserved for driver and kernel on receipt:
/// `XDP_PACKET_HEADROOM`.
pub(super) const RECEIVE_HEADROOM: usize = 256;
/// Send buffer size in bytes, used in copy mode for frames that the device has not sent yet.
const SEND_BYTES: libc::c_int = 16 << 20;
/// Socket option `XDP_MAX_TX_SKB_BUDGET`: maximum number of segments sent per call in copy mode
/// (Linux 6.18; fixed at 32 before).
const SEGMENTS_PER_CALL: libc::c_int = 9;
/// Maximum number of attempts to bind. A queue becomes free some time after its socket was closed.
const BIND_ATTEMPTS: u32 = 200;
const BIND_PAUSE: Duration = Duration::from_millis(10);

/// Layout of frames in chunks, and mode of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkLayout {
    /// Size of a chunk in bytes: 2048 or 4096.
    pub(super) chunk_bytes: usize,
    /// True if a frame may occupy several chunks (Linux 6.6).
    pub(super) uses_multi_buffer: bool,
    /// True if copy mode is requested; false if zero-copy is used where the driver supports it.
    pub(super) uses_copy_mode: bool,
}

/// Interface index and queue to which a socket is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) index: u32,
    pub(super) queue: u32,
}

/// Step of opening the sockets that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenStep {
    /// Creation of the socket: the kernel has no AF_XDP, or the process lacks CAP_NET_RAW.
    Socket,
    /// Registration of the UMEM. `ENOBUFS`: the limit of locked memory was exceeded.
    Umem,
    Rings,
    /// Binding. `EBUSY`: the queue is in use. `EINVAL`: the queue does not exist, or the kernel
    /// does not support frames in several chunks.
    Bind,
}

/// Bound sockets of one queue.
#[derive(Debug)]
pub(super) struct XdpSocket {
    receiving: OwnedFd,
    /// Socket for sending; no thread waits for it.
    sending: OwnedFd,
    pub(super) is_zero_copy: bool,
    /// True if the kernel completes the checksums of sent frames on request.
    pub(super) completes_checksums: bool,
}

/// Rings and chunks for receiving.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) fill: Producer<u64>,
    pub(super) rx: Consumer<xdp_desc>,
    pub(super) area: UmemArea,
}

impl Receiver {
    /// Submits all chunks of `area` to the fill ring.
    pub(super) fn new(fill: Producer<u64>, rx: Consumer<xdp_desc>, area: UmemArea) -> Self {
        let mut receiver = Self { fill, rx, area };
        for chunk in receiver.area.chunks() {
            receiver.fill.push(chunk);
        }
        receiver.fill.submit();
        receiver
    }
}

/// Rings and chunks for sending.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) tx: Producer<xdp_desc>,
    pub(super) completion: Consumer<u64>,
    pub(super) area: UmemArea,
    chunk_bytes: usize,
    /// Number of bytes in a chunk before a frame, for metadata.
    pub(super) headroom_bytes: usize,
}

impl Sender {
    pub(super) fn new(
        tx: Producer<xdp_desc>,
        completion: Consumer<u64>,
        area: UmemArea,
        chunk_bytes: usize,
        headroom: usize,
    ) -> Self {
        Self { tx, completion, area, chunk_bytes, headroom_bytes: headroom }
    }

    /// Returns the maximum number of bytes of a frame that one chunk contains.
    #[inline]
    pub(super) fn segment_bytes(&self) -> usize {
        self.chunk_bytes - self.headroom_bytes
    }
}

impl XdpSocket {
    /// Opens and binds the sockets. No frames are received before [`XdpSocket::fd`] was passed to
    /// the program.
    ///
    /// # Errors
    /// The step that failed, and the errno of its call.
    pub(super) fn open(
        layout: ChunkLayout,
        binding: Binding,
    ) -> Result<(Self, Receiver, Sender), (OpenStep, io::Error)> {
        let at_step = |step| move |cause| (step, cause);
        let sending = socket().map_err(at_step(OpenStep::Socket))?;
        let chunks = (RECEIVE_CHUNKS + SEND_CHUNKS) as usize;
        let umem =
            Mapping::anonymous(chunks * layout.chunk_bytes).map_err(at_step(OpenStep::Umem))?;
        let fd = sending.as_fd();
        let has_metadata =
            register(fd, &umem, layout.chunk_bytes).map_err(at_step(OpenStep::Umem))?;
        let (fill, tx, completion) = sending_rings(fd).map_err(at_step(OpenStep::Rings))?;
        bind(fd, &first_socket_address(layout, binding)).map_err(at_step(OpenStep::Bind))?;
        let options = get_option(fd, libc::SOL_XDP, libc::XDP_OPTIONS);
        let options = options.map(u32::from_ne_bytes).map_err(at_step(OpenStep::Bind))?;
        let zero_copy = options & libc::XDP_OPTIONS_ZEROCOPY != 0;
        let receiving = socket().map_err(at_step(OpenStep::Socket))?;
        let rx = receiving_ring(receiving.as_fd()).map_err(at_step(OpenStep::Rings))?;
        bind(receiving.as_fd(), &address_beside(fd, binding)).map_err(at_step(OpenStep::Bind))?;
        let [receive_area, send_area] =
            divide_umem(umem, layout.chunk_bytes, RECEIVE_CHUNKS as usize);
        let receiver = Receiver::new(fill, rx, receive_area);
        let headroom = if has_metadata { METADATA_BYTES } else { 0 };
        let sender = Sender::new(tx, completion, send_area, layout.chunk_bytes, headroom);
        // With zero-copy the driver completes checksums, and not all drivers support the request.
        let completes_checksums = has_metadata && !zero_copy;
        Ok((
            Self { receiving, sending, is_zero_copy: zero_copy, completes_checksums },
            receiver,
            sender,
        ))
    }

    /// Creates the value from other descriptors, to which the calls that wake the kernel go. For
    /// tests.
    #[cfg(any(test, feature = "on-memory"))]
    pub(super) fn on(receiving: OwnedFd, sending: OwnedFd) -> Self {
        Self { receiving, sending, is_zero_copy: false, completes_checksums: false }
    }

    /// Returns the receiving socket, which is readable when a frame is available.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.receiving.as_fd()
    }

    /// Makes the kernel send the frames in the TX ring.
    ///
    /// # Errors
    /// The errno of the call. `EAGAIN`: some frames were sent, or none can be sent now.
    pub(super) fn wake_sending(&self) -> Result<(), Errno> {
        send(&self.sending, &[], SendFlags::DONTWAIT).map(drop)
    }

    /// Makes the driver process the fill ring.
    pub(super) fn wake_receiving(&self) {
        // A failure is reported by the link's notifications.
        let mut empty: [u8; 0] = [];
        let _ = recv(&self.receiving, &mut empty[..], RecvFlags::DONTWAIT);
    }

    /// Returns the number of frames that the kernel could not deliver to this socket: no chunk was
    /// available, the frame was too long, or the RX ring was full (`struct xdp_statistics`). Frames
    /// dropped by the driver are not included.
    pub(super) fn lost_frames(&self) -> u64 {
        let statistics: [u8; 48] =
            get_option(self.fd(), libc::SOL_XDP, libc::XDP_STATISTICS).unwrap_or([0; 48]);
        let counter_at = |offset: usize| {
            let eight = statistics.get(offset..).and_then(|rest| rest.first_chunk().copied());
            eight.map_or(0, u64::from_ne_bytes)
        };
        counter_at(0).saturating_add(counter_at(24))
    }
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call just returned this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Registers the UMEM. Returns true if frames to send may have metadata (Linux 6.8); they then
/// begin [`METADATA_BYTES`] after the start of the chunk.
fn register(fd: BorrowedFd<'_>, umem: &Mapping, chunk_bytes: usize) -> io::Result<bool> {
    let plain = libc::xdp_umem_reg {
        addr: umem.start().as_ptr().expose_provenance() as u64,
        len: umem.bytes() as u64,
        chunk_size: chunk_bytes as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    let asking = libc::xdp_umem_reg {
        flags: libc::XDP_UMEM_TX_METADATA_LEN,
        tx_metadata_len: METADATA_BYTES as u32,
        ..plain
    };
    let register = |layout| set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, layout);
    match register(asking) {
        Ok(()) => Ok(true),
        Err(cause) if Errno::from_io_error(&cause) == Some(Errno::INVAL) => {
            register(plain).map(|()| false)
        }
        Err(cause) => Err(cause),
    }
}

type SendingRings = (Producer<u64>, Producer<xdp_desc>, Consumer<u64>);

/// Creates and maps the TX ring, and the fill and completion rings of the UMEM.
fn sending_rings(fd: BorrowedFd<'_>) -> io::Result<SendingRings> {
    for (option, value) in [(libc::SO_SNDBUFFORCE, SEND_BYTES), (libc::SO_SNDBUF, SEND_BYTES)] {
        // Without CAP_NET_ADMIN the host's limit applies.
        if set_option(fd, libc::SOL_SOCKET, option, value).is_ok() {
            break;
        }
    }
    // A kernel without this option needs more calls.
    let _ = set_option(fd, libc::SOL_XDP, SEGMENTS_PER_CALL, SEND_CHUNKS);
    for (option, entries) in [
        (libc::XDP_UMEM_FILL_RING, RECEIVE_CHUNKS),
        (libc::XDP_TX_RING, SEND_CHUNKS),
        (libc::XDP_UMEM_COMPLETION_RING, SEND_CHUNKS),
    ] {
        set_option(fd, libc::SOL_XDP, option, entries)?;
    }
    let [_, tx, fill, completion] = offsets(fd)?;
    let tx_map = map::<xdp_desc>(fd, libc::XDP_PGOFF_TX_RING as u64, &tx, SEND_CHUNKS)?;
    let fill_map = map::<u64>(fd, libc::XDP_UMEM_PGOFF_FILL_RING, &fill, RECEIVE_CHUNKS)?;
    let completion_map =
        map::<u64>(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &completion, SEND_CHUNKS)?;
    Ok((
        Producer::new(MappedCells::new(fill_map, &fill, RECEIVE_CHUNKS)?),
        Producer::new(MappedCells::new(tx_map, &tx, SEND_CHUNKS)?),
        Consumer::new(MappedCells::new(completion_map, &completion, SEND_CHUNKS)?),
    ))
}

fn receiving_ring(fd: BorrowedFd<'_>) -> io::Result<Consumer<xdp_desc>> {
    set_option(fd, libc::SOL_XDP, libc::XDP_RX_RING, RECEIVE_CHUNKS)?;
    let [rx, ..] = offsets(fd)?;
    let map = map::<xdp_desc>(fd, libc::XDP_PGOFF_RX_RING as u64, &rx, RECEIVE_CHUNKS)?;
    Ok(Consumer::new(MappedCells::new(map, &rx, RECEIVE_CHUNKS)?))
}

fn map<T: Entry>(
    fd: BorrowedFd<'_>,
    offset: u64,
    offsets: &libc::xdp_ring_offset,
    entries: u32,
) -> io::Result<Mapping> {
    let entries = entries as usize * size_of::<T>();
    Mapping::ring(fd, offset, (offsets.desc as usize).saturating_add(entries))
}

/// Returns the layouts of the RX, TX, fill and completion rings in their mappings (`struct
/// xdp_mmap_offsets`).
fn offsets(fd: BorrowedFd<'_>) -> io::Result<[libc::xdp_ring_offset; 4]> {
    const BYTES: usize = size_of::<libc::xdp_mmap_offsets>();
    let bytes: [u8; BYTES] = get_option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
    let mut words = bytes
        .chunks_exact(8)
        .map(|eight| u64::from_ne_bytes(eight.first_chunk().copied().unwrap_or_default()));
    let mut word = || words.next().unwrap_or_default();
    Ok(core::array::from_fn(|_| libc::xdp_ring_offset {
        producer: word(),
        consumer: word(),
        desc: word(),
        flags: word(),
    }))
}

/// Returns the address of the socket that registered the UMEM.
fn first_socket_address(layout: ChunkLayout, binding: Binding) -> libc::sockaddr_xdp {
    let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
    libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        // Without XDP_COPY the kernel uses zero-copy if the driver supports it.
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP
            | flag(layout.uses_copy_mode, libc::XDP_COPY)
            | flag(layout.uses_multi_buffer, libc::XDP_USE_SG),
        sxdp_ifindex: binding.index,
        sxdp_queue_id: binding.queue,
        sxdp_shared_umem_fd: 0,
    }
}

/// Returns the address of a second socket on the same queue, which shares the UMEM, and therefore
/// the mode, of the socket `first`.
fn address_beside(first: BorrowedFd<'_>, binding: Binding) -> libc::sockaddr_xdp {
    libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_SHARED_UMEM,
        sxdp_ifindex: binding.index,
        sxdp_queue_id: binding.queue,
        // Open descriptors are not negative.
        sxdp_shared_umem_fd: first.as_raw_fd() as u32,
    }
}

fn bind(fd: BorrowedFd<'_>, address: &libc::sockaddr_xdp) -> io::Result<()> {
    let mut attempts = 0;
    loop {
        // SAFETY: `address` refers to a sockaddr_xdp and the length is its size.
        let result = unsafe {
            let len = size_of_val(address) as socklen_t;
            libc::bind(fd.as_raw_fd(), core::ptr::from_ref(address).cast(), len)
        };
        if result >= 0 {
            return Ok(());
        }
        let cause = io::Error::last_os_error();
        attempts += 1;
        if Errno::from_io_error(&cause) != Some(Errno::BUSY) || attempts >= BIND_ATTEMPTS {
            return Err(cause);
        }
        thread::sleep(BIND_PAUSE);
    }
}
