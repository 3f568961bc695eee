//! Packet sockets that read and write frames of a device with their virtio-net headers.
#![allow(unsafe_code, reason = "packet sockets and UDP_SEGMENT have no safe form")]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::{c_int, c_void, sockaddr_ll, socklen_t, tpacket_auxdata};
use suimon_frame::{VNET_HEADER_SHORT_BYTES, VnetHeader};
use suimon_rig::Namespace;

/// Size of the receive buffer, large enough for all frames of a test.
const RECEIVE_BYTES: c_int = 256 << 20;
/// Length of the two MAC addresses, after which a VLAN tag follows.
const ADDRESSES_BYTES: usize = 12;
/// `UDP_SEGMENT` of linux/udp.h.
const UDP_SEGMENT: c_int = 103;

/// Frame with its virtio-net header.
pub type FrameWithHeader = (VnetHeader, Vec<u8>);

/// Makes the kernel's stack send datagrams of several segments as large frames.
///
/// # Panics
///
/// The kernel rejects the option.
pub fn set_udp_segment(socket: &impl AsRawFd, segment_bytes: u16) {
    set(socket, libc::SOL_UDP, UDP_SEGMENT, c_int::from(segment_bytes));
}

/// Packet socket on one device, which receives what the device sends and receives.
pub struct PacketTap(OwnedFd);

impl PacketTap {
    /// Opens a socket on a device in a namespace.
    ///
    /// # Panics
    ///
    /// There is no such device, or the kernel rejects a call.
    pub fn open(namespace: &Namespace, device: &str) -> Self {
        namespace.inside(|| Self::open_here(device, libc::ETH_P_ALL as u16)).unwrap()
    }

    /// Opens a socket that receives nothing.
    ///
    /// # Panics
    ///
    /// There is no such device, or the kernel rejects a call.
    pub fn open_mute(namespace: &Namespace, device: &str) -> Self {
        namespace.inside(|| Self::open_here(device, 0)).unwrap()
    }

    /// Opens a socket that does not receive frames sent by the namespace. [`Self::receive_tagged`]
    /// returns its frames with their first VLAN tag.
    ///
    /// # Panics
    ///
    /// There is no such device, or the kernel rejects a call.
    pub fn open_incoming(namespace: &Namespace, device: &str) -> Self {
        let open = || {
            let tap = Self::open_here(device, libc::ETH_P_ALL as u16);
            set(&tap.0, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1);
            set(&tap.0, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1);
            tap
        };
        namespace.inside(open).unwrap()
    }

    fn open_here(device: &str, protocol: u16) -> Self {
        // With protocol 0 nothing is received before `bind` selects the device. SAFETY: the
        // arguments contain no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        check(fd);
        // SAFETY: the call just returned it; nobody else has it.
        let tap = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        set(&tap.0, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1);
        set(&tap.0, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES);
        let name = CString::new(device).unwrap();
        // SAFETY: `name` ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        assert!(index > 0, "no device {device}");
        // SAFETY: all zero is a valid address.
        let mut address: sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index as c_int;
        // SAFETY: `address` is readable for the length given.
        check(unsafe {
            libc::bind(
                tap.0.as_raw_fd(),
                core::ptr::from_ref(&address).cast(),
                size_of::<sockaddr_ll>() as socklen_t,
            )
        });
        tap
    }

    /// Sends a frame from the device, as the namespace's stack does.
    ///
    /// # Panics
    ///
    /// The kernel rejects the frame.
    pub fn send(&self, header: &VnetHeader, bytes: &[u8]) {
        assert!(self.has_sent(header, bytes), "no room for {header:?} and {} bytes", bytes.len());
    }

    /// As [`Self::send`]; returns false if the device had no room for the frame.
    ///
    /// # Panics
    ///
    /// The kernel rejects the frame.
    pub fn has_sent(&self, header: &VnetHeader, bytes: &[u8]) -> bool {
        let frame_bytes = [&header.encode_short()[..], bytes].concat();
        match rustix::io::write(&self.0, &frame_bytes) {
            Err(rustix::io::Errno::NOBUFS) => false,
            result => {
                assert_eq!(result, Ok(frame_bytes.len()), "{header:?} and {} bytes", bytes.len());
                true
            }
        }
    }

    /// Returns the next frame; `None` if none arrives within `patience`.
    ///
    /// # Panics
    ///
    /// The kernel reports an error.
    pub fn receive(&self, patience: Duration) -> Option<FrameWithHeader> {
        if !self.is_readable(patience) {
            return None;
        }
        let mut buffer = vec![0; 70_000];
        let len = rustix::io::read(&self.0, &mut buffer).unwrap();
        let (header, bytes) = buffer[..len].split_first_chunk::<VNET_HEADER_SHORT_BYTES>().unwrap();
        Some((VnetHeader::decode_short(header), bytes.to_vec()))
    }

    /// Returns the next frame as it was on the link: the kernel removes the first tag, of type
    /// 0x8100 or 0x88a8, and describes it in ancillary data. `None` if no frame arrives within
    /// `patience`.
    ///
    /// # Panics
    /// The kernel reports an error.
    pub fn receive_tagged(&self, patience: Duration) -> Option<Vec<u8>> {
        if !self.is_readable(patience) {
            return None;
        }
        let mut buffer = vec![0; 70_000];
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // Aligned for the message headers, and larger than one `tpacket_auxdata` with its header.
        let mut control = [0_u64; 8];
        // SAFETY: all zero is a valid msghdr.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: `message` names buffers that are writable for these lengths.
        let len = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) };
        check(len as c_int);
        let mut bytes = buffer[VNET_HEADER_SHORT_BYTES..len as usize].to_vec();
        // SAFETY: `recvmsg` has filled in `message`, and `control` still lives.
        if let Some(data) = unsafe { auxiliary_data(&message) }
            && data.tp_status & libc::TP_STATUS_VLAN_VALID != 0
        {
            let [tpid, tci] = [data.tp_vlan_tpid, data.tp_vlan_tci].map(u16::to_be_bytes);
            let position = ADDRESSES_BYTES..ADDRESSES_BYTES;
            bytes.splice(position, tpid.into_iter().chain(tci));
        }
        Some(bytes)
    }

    fn is_readable(&self, patience: Duration) -> bool {
        let mut poll_entry =
            libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry that is writable.
        let ready = unsafe { libc::poll(&raw mut poll_entry, 1, patience.as_millis() as c_int) };
        check(ready);
        ready != 0
    }
}

/// Returns the ancillary data of a packet socket's message.
///
/// # Safety
/// `recvmsg` has filled in `message`, and its control buffer still lives.
unsafe fn auxiliary_data(message: &libc::msghdr) -> Option<tpacket_auxdata> {
    // SAFETY: by this function's contract.
    let head = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    assert_eq!((head.cmsg_level, head.cmsg_type), (libc::SOL_PACKET, libc::PACKET_AUXDATA));
    // SAFETY: the message holds a whole `tpacket_auxdata`, plain numbers, without alignment.
    Some(unsafe { libc::CMSG_DATA(head).cast::<tpacket_auxdata>().read_unaligned() })
}

fn set(socket: &impl AsRawFd, level: c_int, option: c_int, value: c_int) {
    // SAFETY: `value` is readable for its size.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            core::ptr::from_ref(&value).cast::<c_void>(),
            size_of::<c_int>() as socklen_t,
        )
    });
}

fn check(returned: c_int) {
    assert!(returned >= 0, "{}", io::Error::last_os_error());
}
