//! A packet socket (packet(7)) on one interface.
#![allow(unsafe_code, reason = "packet sockets have no safe form")]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, socklen_t};

/// Size of the receive buffer, large enough for the responses to a flood.
const RECEIVE_BYTES: c_int = 4 << 20;

/// Receives all frames that arrive at an interface, for any destination address, and no frames that
/// this host sends.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Opens a socket on the interface `name`.
    ///
    /// # Errors
    /// The interface does not exist or is down, or the kernel rejects a call.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let text = CString::new(name)?;
        // SAFETY: `text` is a valid string that ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: no frame is received before `bind` selects the interface. SAFETY: the
        // arguments contain no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        checked(fd)?;
        // SAFETY: the call above has just returned the descriptor, and nothing else owns it.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } };
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)?;
        let membership = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as _,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)?;
        socket.bind(index)?;
        // The kernel has now recorded an error if the interface is down. A case may set it down
        // later, which is no error.
        match rustix::io::read(&socket.fd, &mut [0; 1]) {
            Err(rustix::io::Errno::NETDOWN) => Err(rustix::io::Errno::NETDOWN.into()),
            _ => Ok(socket),
        }
    }

    /// Receives one frame without blocking; `None` if none is pending.
    ///
    /// # Errors
    /// The interface does not exist any more.
    pub(crate) fn receive(&self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = vec![0; 2048];
        match rustix::io::read(&self.fd, buffer.as_mut_slice()) {
            Ok(len) => {
                buffer.truncate(len);
                Ok(Some(buffer))
            }
            // ENETDOWN reports that the link was down before, and is ignored.
            Err(
                rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::NETDOWN,
            ) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends one frame. As on a cable, the frame is lost if the link is down or the transmit queue
    /// is full.
    ///
    /// # Errors
    /// The interface does not exist any more.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        use rustix::io::Errno;
        match rustix::io::write(&self.fd, frame) {
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::NETDOWN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: `sockaddr_ll` is a C structure of integers, for which all-zero bytes are valid.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as c_int;
        // SAFETY: `address` is a valid `sockaddr_ll`, and the length passed is its size.
        checked(unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                core::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as socklen_t,
            )
        })
    }

    fn set<T: Copy>(&self, level: c_int, option: c_int, value: T) -> io::Result<()> {
        // SAFETY: the kernel reads only the given length, which is the size of `value`.
        checked(unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                core::ptr::from_ref(&value).cast::<c_void>(),
                size_of::<T>() as socklen_t,
            )
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
