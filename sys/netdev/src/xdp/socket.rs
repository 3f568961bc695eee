//! The AF_XDP sockets of one queue with their rings and their UMEM (the kernel's
//! `networking/af_xdp`).
//!
//! What is sent has a socket of its own: the kernel tells whoever waits for a socket of
//! each frame of it that has left, and processors wait for what is received. The two share
//! the UMEM with its fill and completion ring (`XDP_SHARED_UMEM`). The one that sends
//! brings it: kernels make a queue ready for sending with its first socket, and not all of
//! them with a second.
#![allow(unsafe_code, reason = "these sockets and their addresses have no safe form")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use libc::{socklen_t, xdp_desc};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::memory::{Area, Mapping, areas};
use super::ring::{Consumer, Producer};
use super::ring_cells::{Entry, MappedCells};
use crate::raw_socket::{get_option, set_option};

/// Chunks that wait to be received into, and entries of the rings they go round in.
const RECEIVE_CHUNKS: u32 = 2048;
/// Chunks that frames are sent from.
const SEND_CHUNKS: u32 = 2048;
/// Bytes before each piece of a frame to be sent, in which its checksum is asked for:
/// `struct xsk_tx_metadata` as it is since Linux 6.14; before it was shorter.
const METADATA_BYTES: usize = 24;
/// Bytes at the beginning of a chunk that drivers and the kernel keep for themselves when
/// they receive: `XDP_PACKET_HEADROOM`.
pub(super) const RECEIVE_HEADROOM: usize = 256;
/// Frames handed over that the device has not sent yet, in copy mode.
const SEND_BYTES: libc::c_int = 16 << 20;
/// Pieces that one call sends at most, in copy mode (`XDP_MAX_TX_SKB_BUDGET`, Linux 6.18;
/// before it was 32).
const PIECES_PER_CALL: libc::c_int = 9;
/// A queue is free again a moment after its socket was closed.
const BIND_ATTEMPTS: u32 = 200;
const BIND_PAUSE: Duration = Duration::from_millis(10);

/// What a socket is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// 2048 or 4096.
    pub(super) chunk_bytes: usize,
    /// Frames may take several chunks (Linux 6.6).
    pub(super) multi_buffer: bool,
    /// Zero-copy is not asked for.
    pub(super) copies: bool,
}

/// Where a socket is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u32,
    pub(super) queue: u32,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A kernel without AF_XDP, or a user without CAP_NET_RAW.
    Socket,
    /// `ENOBUFS`: the limit of locked memory.
    Umem,
    Rings,
    /// `EBUSY`: somebody has the queue. `EINVAL`: there is no such queue, or the kernel
    /// knows no multi-buffer.
    Bind,
}

/// The bound sockets of a queue.
#[derive(Debug)]
pub(super) struct XdpSocket {
    receiving: OwnedFd,
    /// Nobody waits for it.
    sending: OwnedFd,
    pub(super) zero_copy: bool,
    /// Whether the kernel completes checksums when it is asked to.
    pub(super) completes_checksums: bool,
}

/// What receives.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) fill: Producer<u64>,
    pub(super) rx: Consumer<xdp_desc>,
    pub(super) area: Area,
}

impl Receiver {
    /// Gives the kernel all chunks of the area to receive into.
    pub(super) fn new(fill: Producer<u64>, rx: Consumer<xdp_desc>, area: Area) -> Self {
        let mut receiver = Self { fill, rx, area };
        for chunk in receiver.area.chunks() {
            receiver.fill.push(chunk);
        }
        receiver.fill.submit();
        receiver
    }
}

/// What sends.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) tx: Producer<xdp_desc>,
    pub(super) completion: Consumer<u64>,
    pub(super) area: Area,
    chunk_bytes: usize,
    /// Bytes before a frame in a chunk, in which its checksum may be asked for.
    pub(super) headroom: usize,
}

impl Sender {
    pub(super) fn new(
        tx: Producer<xdp_desc>,
        completion: Consumer<u64>,
        area: Area,
        chunk_bytes: usize,
        headroom: usize,
    ) -> Self {
        Self { tx, completion, area, chunk_bytes, headroom }
    }

    /// Most bytes of a frame in one chunk.
    #[inline]
    pub(super) fn piece_bytes(&self) -> usize {
        self.chunk_bytes - self.headroom
    }
}

impl XdpSocket {
    /// Opens the sockets and binds them; no frames reach them before the program knows
    /// [`XdpSocket::fd`].
    ///
    /// # Errors
    /// The step that failed, and the errno of its call.
    pub(super) fn open(
        shape: Shape,
        place: Place,
    ) -> Result<(Self, Receiver, Sender), (Step, io::Error)> {
        let at = |step| move |cause| (step, cause);
        let sending = socket().map_err(at(Step::Socket))?;
        let chunks = (RECEIVE_CHUNKS + SEND_CHUNKS) as usize;
        let umem = Mapping::anonymous(chunks * shape.chunk_bytes).map_err(at(Step::Umem))?;
        let fd = sending.as_fd();
        let has_metadata = register(fd, &umem, shape.chunk_bytes).map_err(at(Step::Umem))?;
        let (fill, tx, completion) = sending_rings(fd).map_err(at(Step::Rings))?;
        bind(fd, &address_of_first(shape, place)).map_err(at(Step::Bind))?;
        let options = get_option(fd, libc::SOL_XDP, libc::XDP_OPTIONS);
        let options = options.map(u32::from_ne_bytes).map_err(at(Step::Bind))?;
        let zero_copy = options & libc::XDP_OPTIONS_ZEROCOPY != 0;
        let receiving = socket().map_err(at(Step::Socket))?;
        let rx = receiving_ring(receiving.as_fd()).map_err(at(Step::Rings))?;
        bind(receiving.as_fd(), &address_beside(fd, place)).map_err(at(Step::Bind))?;
        let [receive_area, send_area] = areas(umem, shape.chunk_bytes, RECEIVE_CHUNKS as usize);
        let receiver = Receiver::new(fill, rx, receive_area);
        let headroom = if has_metadata { METADATA_BYTES } else { 0 };
        let sender = Sender::new(tx, completion, send_area, shape.chunk_bytes, headroom);
        // With zero-copy it is for the driver to do, and not all look at what is asked.
        let completes_checksums = has_metadata && !zero_copy;
        Ok((Self { receiving, sending, zero_copy, completes_checksums }, receiver, sender))
    }

    /// No sockets of the kernel's: what is said to them goes to these.
    #[cfg(any(test, feature = "on-memory"))]
    pub(super) fn on(receiving: OwnedFd, sending: OwnedFd) -> Self {
        Self { receiving, sending, zero_copy: false, completes_checksums: false }
    }

    /// What receives: readable when a frame waits.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.receiving.as_fd()
    }

    /// Has the kernel send what is in the TX ring.
    ///
    /// # Errors
    /// The errno of the call. `EAGAIN`: some of it was sent, or nothing can be now.
    pub(super) fn wake_sending(&self) -> Result<(), Errno> {
        send(&self.sending, &[], SendFlags::DONTWAIT).map(drop)
    }

    /// Has the driver look at the fill ring.
    pub(super) fn wake_receiving(&self) {
        // That it cannot now is said by the link's notices.
        let mut nothing: [u8; 0] = [];
        let _ = recv(&self.receiving, &mut nothing[..], RecvFlags::DONTWAIT);
    }

    /// Frames that the kernel could not give to this socket: it had no chunk, the frame
    /// did not fit, or the RX ring was full. `struct xdp_statistics`, without those that a
    /// driver dropped itself.
    pub(super) fn lost(&self) -> u64 {
        let told: [u8; 48] =
            get_option(self.fd(), libc::SOL_XDP, libc::XDP_STATISTICS).unwrap_or([0; 48]);
        let at = |at: usize| {
            let eight = told.get(at..).and_then(|rest| rest.first_chunk().copied());
            eight.map_or(0, u64::from_ne_bytes)
        };
        at(0).saturating_add(at(24))
    }
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call just returned it; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives the kernel the UMEM; returns whether frames to be sent may ask for something
/// (Linux 6.8), for which they begin [`METADATA_BYTES`] behind the chunk's start.
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
    let register = |shape| set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, shape);
    match register(asking) {
        Ok(()) => Ok(true),
        Err(cause) if Errno::from_io_error(&cause) == Some(Errno::INVAL) => {
            register(plain).map(|()| false)
        }
        Err(cause) => Err(cause),
    }
}

type SendingRings = (Producer<u64>, Producer<xdp_desc>, Consumer<u64>);

/// The TX ring, and those that go with the UMEM: fill and completion ring.
fn sending_rings(fd: BorrowedFd<'_>) -> io::Result<SendingRings> {
    for (option, value) in [(libc::SO_SNDBUFFORCE, SEND_BYTES), (libc::SO_SNDBUF, SEND_BYTES)] {
        // Without CAP_NET_ADMIN the host's limit holds.
        if set_option(fd, libc::SOL_SOCKET, option, value).is_ok() {
            break;
        }
    }
    // A kernel that does not know it is called more often.
    let _ = set_option(fd, libc::SOL_XDP, PIECES_PER_CALL, SEND_CHUNKS);
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
    places: &libc::xdp_ring_offset,
    entries: u32,
) -> io::Result<Mapping> {
    let entries = entries as usize * size_of::<T>();
    Mapping::ring(fd, offset, (places.desc as usize).saturating_add(entries))
}

/// `struct xdp_mmap_offsets`: where in their mappings the parts of the RX, TX, fill and
/// completion ring lie.
fn offsets(fd: BorrowedFd<'_>) -> io::Result<[libc::xdp_ring_offset; 4]> {
    const BYTES: usize = size_of::<libc::xdp_mmap_offsets>();
    let told: [u8; BYTES] = get_option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
    let mut words = told
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

/// Of the socket that has the UMEM.
fn address_of_first(shape: Shape, place: Place) -> libc::sockaddr_xdp {
    let flag = |on: bool, flag| if on { flag } else { 0 };
    libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        // Without XDP_COPY the kernel takes zero-copy where the driver has it.
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP
            | flag(shape.copies, libc::XDP_COPY)
            | flag(shape.multi_buffer, libc::XDP_USE_SG),
        sxdp_ifindex: place.index,
        sxdp_queue_id: place.queue,
        sxdp_shared_umem_fd: 0,
    }
}

/// Of a socket that shares the UMEM of another on the same queue, and so its mode.
fn address_beside(first: BorrowedFd<'_>, place: Place) -> libc::sockaddr_xdp {
    libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_SHARED_UMEM,
        sxdp_ifindex: place.index,
        sxdp_queue_id: place.queue,
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
