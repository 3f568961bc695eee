//! Packet sockets (packet(7)): creation, options, binding, sending.
#![allow(unsafe_code, reason = "socket addresses and options without safe forms")]

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_void, socklen_t};
use suimon_frame::MacAddr;

/// Instruction of classic BPF.
pub type ClassicBpfInstruction = libc::sock_filter;

/// Non-blocking packet socket for whole frames.
#[derive(Debug)]
pub struct RawSocket {
    fd: OwnedFd,
}

impl RawSocket {
    /// Creates a socket that receives nothing before [`RawSocket::bind`].
    ///
    /// # Errors
    /// The errno of the call.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0: no frame of any device is received.
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        checked(fd)?;
        // SAFETY: the call just returned this descriptor, which has no other owner.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Returns the descriptor, which is readable when a frame is available or an error is pending.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Binds the socket to the device with interface index `index`: it receives the device's frames
    /// with this EtherType, or all if it is `ETH_P_ALL`.
    ///
    /// # Errors
    /// The errno of the call.
    pub fn bind(&self, index: u32, ethertype: u16) -> io::Result<()> {
        let address = address(index, ethertype);
        // SAFETY: `address` is a sockaddr_ll and the length is its size.
        checked(unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                core::ptr::from_ref(&address).cast(),
                size_of_val(&address) as socklen_t,
            )
        })
    }

    /// Returns true if the device to which the socket was bound was removed from this namespace,
    /// even if another device has its index or name.
    ///
    /// # Errors
    /// The errno of the call.
    pub fn is_device_removed(&self) -> io::Result<bool> {
        let mut address = address(0, 0);
        let mut len = size_of_val(&address) as socklen_t;
        // SAFETY: `address` is writable for `len` bytes, which is its size, and any
        // bytes are a valid sockaddr_ll.
        checked(unsafe {
            libc::getsockname(
                self.fd.as_raw_fd(),
                core::ptr::from_mut(&mut address).cast(),
                &raw mut len,
            )
        })?;
        // The kernel replaces the index when the device is unregistered.
        Ok(address.sll_ifindex < 0)
    }

    /// Makes the device with interface index `index` receive frames for a multicast group, or all
    /// frames if `group` is `None` (promiscuous mode), while this socket exists.
    ///
    /// # Errors
    /// The errno of the call.
    pub fn add_membership(&self, index: u32, group: Option<MacAddr>) -> io::Result<()> {
        let kind =
            if group.is_some() { libc::PACKET_MR_MULTICAST } else { libc::PACKET_MR_PROMISC };
        let [a, b, c, d, e, f] = group.unwrap_or_default().octets();
        let request = libc::packet_mreq {
            mr_ifindex: index as c_int,
            mr_type: kind as _,
            mr_alen: if group.is_some() { 6 } else { 0 },
            mr_address: [a, b, c, d, e, f, 0, 0],
        };
        self.set_option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, request)
    }

    /// Restricts the socket to frames for which the program returns more than 0: the number of
    /// bytes to keep.
    ///
    /// # Errors
    /// The errno of the call: the kernel rejects the program.
    pub fn attach_filter(&self, program: &[ClassicBpfInstruction]) -> io::Result<()> {
        let len = u16::try_from(program.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
        self.set_option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
    }

    /// Sends one frame, unmodified, through the device with interface index `index`. Only the
    /// host's traffic control uses `ethertype`.
    ///
    /// # Errors
    /// The errno of the call.
    pub fn send(&self, index: u32, ethertype: u16, frame: &[u8]) -> io::Result<()> {
        let address = address(index, ethertype);
        // SAFETY: `frame` is readable for its length, `address` is a sockaddr_ll and
        // the length is its size.
        let result = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                core::ptr::from_ref(&address).cast(),
                size_of_val(&address) as socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns the first `N` bytes of an option's value, padded with zeros.
    ///
    /// # Errors
    /// The errno of the call.
    pub fn option<const N: usize>(&self, level: c_int, option: c_int) -> io::Result<[u8; N]> {
        get_option(self.fd.as_fd(), level, option)
    }

    /// Sets a socket option.
    ///
    /// # Errors
    /// The errno of the call.
    pub fn set_option<T: Copy>(&self, level: c_int, option: c_int, value: T) -> io::Result<()> {
        set_option(self.fd.as_fd(), level, option, value)
    }
}

/// Returns the first `N` bytes of the value of any socket's option, padded with zeros.
///
/// # Errors
/// The errno of the call.
pub fn get_option<const N: usize>(
    fd: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
) -> io::Result<[u8; N]> {
    let mut value = [0; N];
    let mut len = N as socklen_t;
    // SAFETY: `value` is writable for `len` bytes, which is its size.
    checked(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            option,
            core::ptr::from_mut(&mut value).cast(),
            &raw mut len,
        )
    })?;
    Ok(value)
}

/// Sets an option of any socket.
///
/// # Errors
/// The errno of the call.
pub fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: c_int,
    option: c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the kernel reads at most the length given, which is the value's size, and
    // checks what a pointer in it leads to.
    checked(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            core::ptr::from_ref(&value).cast::<c_void>(),
            size_of::<T>() as socklen_t,
        )
    })
}

fn address(index: u32, ethertype: u16) -> libc::sockaddr_ll {
    // SAFETY: all zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index as c_int;
    address
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
