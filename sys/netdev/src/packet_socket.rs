//! Packet sockets (packet(7)) with virtio-net headers.
#![allow(unsafe_code, reason = "ancillary data has no safe form")]

use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

use libc::c_int;
use suimon_frame::VNET_HEADER_SHORT_BYTES;
use suimon_netif::raw_socket::RawSocket;

/// Receive buffer size in bytes: about a hundred large frames, each of which the kernel counts with
/// more than its length.
const RECEIVE_BYTES: c_int = 16 << 20;
/// Send buffer size in bytes, for frames that the device has not sent yet.
const SEND_BYTES: c_int = 16 << 20;

/// VLAN tag that the kernel removed from the bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StrippedTag {
    /// Tag control information (priority, DEI, VLAN ID).
    pub(crate) tci: u16,
    /// EtherType of the tag (TPID) in host byte order.
    pub(crate) tpid: u16,
}

/// Properties of a received frame, whose bytes are in the caller's buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedFrame {
    /// Length in bytes of header and frame.
    pub(crate) len: usize,
    /// True if the frame was truncated to the buffer.
    pub(crate) is_truncated: bool,
    /// Outer VLAN tag if the kernel removed it, otherwise `None`.
    pub(crate) tag: Option<StrippedTag>,
}

/// Id of a fanout group: packet sockets among which the kernel distributes a device's frames
/// (`PACKET_FANOUT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FanoutGroup(u16);

/// Packet socket that receives the frames of one device, and a second one for sending. The kernel
/// wakes the waiters of a socket for each of its frames that has left, and workers wait for
/// received frames only.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: RawSocket,
    /// Sending socket; no thread waits for it.
    sending: RawSocket,
}

impl PacketSocket {
    /// Opens a socket that receives each frame arriving at the device with interface index `index`,
    /// regardless of its address, and none that this host sends; and a socket for sending.
    ///
    /// # Errors
    /// The errno of the call that failed.
    pub(crate) fn open(index: u32) -> io::Result<Self> {
        let socket = RawSocket::new()?;
        for option in [libc::PACKET_VNET_HDR, libc::PACKET_AUXDATA, libc::PACKET_IGNORE_OUTGOING] {
            socket.set_option(libc::SOL_PACKET, option, 1)?;
        }
        let buffer = [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF];
        set_buffer(&socket, buffer, RECEIVE_BYTES)?;
        socket.bind(index, libc::ETH_P_ALL as u16)?;
        let sending = RawSocket::new()?;
        sending.set_option(libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        set_buffer(&sending, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], SEND_BYTES)?;
        // Bound without a protocol, so that it receives no frames.
        sending.bind(index, 0)?;
        Ok(Self { socket, sending })
    }

    /// Enables promiscuous mode of the device while this socket exists.
    ///
    /// # Errors
    /// The errno of the call.
    pub(crate) fn set_promiscuous(&self, index: u32) -> io::Result<()> {
        self.socket.add_membership(index, None)
    }

    /// Adds the socket to a fanout group, or if `group` is `None`, to a new one. The kernel
    /// delivers each flow to one socket of the group. Returns the group.
    ///
    /// # Errors
    /// The errno of the call.
    pub(crate) fn join_fanout_group(&self, group: Option<FanoutGroup>) -> io::Result<FanoutGroup> {
        let mode = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        let argument = match group {
            // The kernel chooses an unused identifier.
            None => (mode | libc::PACKET_FANOUT_FLAG_UNIQUEID) << 16,
            Some(FanoutGroup(id)) => mode << 16 | u32::from(id),
        };
        self.socket.set_option(libc::SOL_PACKET, libc::PACKET_FANOUT, argument)?;
        let value = self.socket.option(libc::SOL_PACKET, libc::PACKET_FANOUT)?;
        // The identifier is the lower half.
        Ok(FanoutGroup((c_int::from_ne_bytes(value) & 0xffff) as u16))
    }

    /// Returns the descriptor, which is readable when a frame is available or an error is pending.
    pub(crate) fn fd(&self) -> &OwnedFd {
        self.socket.fd()
    }

    /// Returns the descriptor for sending.
    pub(crate) fn sending_fd(&self) -> &OwnedFd {
        self.sending.fd()
    }

    /// Receives one frame: its virtio-net header into `header`, and its bytes into `buffer`. Does
    /// not block.
    ///
    /// # Errors
    /// The errno of the call; `WouldBlock` if no frame is available.
    #[inline]
    pub(crate) fn receive(
        &self,
        header: &mut [u8; VNET_HEADER_SHORT_BYTES],
        buffer: &mut [u8],
    ) -> io::Result<ReceivedFrame> {
        let mut parts = [
            libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() },
        ];
        // Aligned as ancillary data requires; one `tpacket_auxdata` with its header takes 40 bytes.
        let mut control = [0_u64; 8];
        // SAFETY: all zero is a valid msghdr: null pointers and zero lengths.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: `message` points to buffers that are writable for the lengths
        // it names and outlive the call.
        let len = unsafe { libc::recvmsg(self.fd().as_raw_fd(), &raw mut message, 0) };
        let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the call above filled `message` in, and `control` still lives.
        let tag = unsafe { stripped_tag(&message) };
        Ok(ReceivedFrame { len, is_truncated: message.msg_flags & libc::MSG_TRUNC != 0, tag })
    }
}

/// Sets the size of a socket's buffer in bytes. `force` is the option that needs CAP_NET_ADMIN,
/// `plain` the one for processes without it.
fn set_buffer(socket: &RawSocket, [force, plain]: [c_int; 2], bytes: c_int) -> io::Result<()> {
    // Without CAP_NET_ADMIN the host's limit applies.
    socket
        .set_option(libc::SOL_SOCKET, force, bytes)
        .or_else(|_| socket.set_option(libc::SOL_SOCKET, plain, bytes))
}

/// Returns the VLAN tag in a message's ancillary data; `None` if there is none.
///
/// # Safety
/// `message` was filled in by `recvmsg`, and its control buffer is still alive.
unsafe fn stripped_tag(message: &libc::msghdr) -> Option<StrippedTag> {
    let size = size_of::<libc::tpacket_auxdata>();
    // SAFETY: by this function's contract; null if there is no message.
    let mut cmsg = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !cmsg.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return headers inside the buffer.
        let header = unsafe { *cmsg };
        // SAFETY: no memory is touched.
        let len = unsafe { libc::CMSG_LEN(size as u32) } as usize;
        let is_auxdata = header.cmsg_level == libc::SOL_PACKET
            && header.cmsg_type == libc::PACKET_AUXDATA
            && header.cmsg_len as usize >= len;
        if is_auxdata {
            let mut data = MaybeUninit::<libc::tpacket_auxdata>::uninit();
            // SAFETY: the message holds `size` bytes of data, and a
            // `tpacket_auxdata` is plain numbers.
            let data = unsafe {
                let from = libc::CMSG_DATA(cmsg);
                core::ptr::copy_nonoverlapping(from, data.as_mut_ptr().cast(), size);
                data.assume_init()
            };
            return parse_stripped_tag(&data);
        }
        // SAFETY: as above.
        cmsg = unsafe { libc::CMSG_NXTHDR(message, cmsg) };
    }
    None
}

fn parse_stripped_tag(data: &libc::tpacket_auxdata) -> Option<StrippedTag> {
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let is_valid = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if is_valid { data.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    Some(StrippedTag { tci: data.tp_vlan_tci, tpid })
}
