//! A packet socket (packet(7)) on one interface.
#![allow(unsafe_code, reason = "packet sockets have no safe form")]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, socklen_t};

/// Room for what the device answers to a flood.
const RECEIVE_BYTES: c_int = 4 << 20;

/// Gets every frame that arrives at one interface, whatever its address, and none
/// that this host sends.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Opens one on the interface called `name`.
    ///
    /// # Errors
    /// There is no such interface, it is down, or the kernel refuses.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let text = CString::new(name)?;
        // SAFETY: `text` ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before `bind` names the interface.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        checked(fd)?;
        // SAFETY: the call just returned it; nobody else has it.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } };
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)?;
        let everything = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: libc::PACKET_MR_PROMISC as _,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, everything)?;
        socket.bind(index)?;
        // The kernel has noted by now if the interface is down; one that goes down later
        // may do so because a case wants it.
        match rustix::io::read(&socket.fd, &mut [0; 1]) {
            Err(rustix::io::Errno::NETDOWN) => Err(rustix::io::Errno::NETDOWN.into()),
            _ => Ok(socket),
        }
    }

    /// Receives one frame; `None` if none waits.
    ///
    /// # Errors
    /// The interface is gone.
    pub(crate) fn receive(&self) -> io::Result<Option<Vec<u8>>> {
        let mut room = vec![0; 2048];
        match rustix::io::read(&self.fd, room.as_mut_slice()) {
            Ok(len) => {
                room.truncate(len);
                Ok(Some(room))
            }
            // The memory of a time when the link was down is no frame.
            Err(
                rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::NETDOWN,
            ) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends one frame; one that the interface has no room for, or that has no link,
    /// is lost, as on a wire.
    ///
    /// # Errors
    /// The interface is gone.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        use rustix::io::Errno;
        match rustix::io::write(&self.fd, frame) {
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::NETDOWN | Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: all zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as c_int;
        // SAFETY: `address` is a sockaddr_ll and the length is its size.
        checked(unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                core::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as socklen_t,
            )
        })
    }

    fn set<T: Copy>(&self, level: c_int, option: c_int, value: T) -> io::Result<()> {
        // SAFETY: the kernel reads at most the length given, which is the value's size.
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
