//! Notifications of a speed that an administrator has set without a change of the carrier.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use suimon_netif::ethtool::link_modes_changed_ifindexes;
use suimon_netif::raw_socket::set_option;

use crate::device_query::{DeviceQuery, EthtoolMonitorIds};

/// Devices whose speed may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangedDevices {
    /// Devices with these interface indices.
    Indices(Vec<u32>),
    /// Any device, because messages were lost.
    All,
}

/// Socket that receives the kernel's notifications of ethtool changes, in the namespace of the
/// creating thread.
pub(crate) struct EthtoolMonitor {
    fd: OwnedFd,
    family: u16,
}

impl EthtoolMonitor {
    /// Joins the multicast group of the notifications.
    ///
    /// # Errors
    /// The kernel has no such group (`Unsupported`), or no socket could be opened.
    pub(crate) fn new(query: &DeviceQuery) -> io::Result<Self> {
        let EthtoolMonitorIds { family, group } =
            query.monitor_ids().ok_or(io::ErrorKind::Unsupported)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::GENERIC);
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        set_option(fd.as_fd(), libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)?;
        Ok(Self { fd, family })
    }

    /// Reads one pending notification. Returns `None` if there is none.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Option<ChangedDevices> {
        match recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((len, _)) => {
                let datagram = buffer.get(..len).unwrap_or_default();
                Some(ChangedDevices::Indices(
                    link_modes_changed_ifindexes(datagram, self.family).collect(),
                ))
            }
            Err(Errno::NOBUFS) => Some(ChangedDevices::All),
            Err(Errno::INTR) => Some(ChangedDevices::Indices(Vec::new())),
            Err(_) => None,
        }
    }
}

impl AsFd for EthtoolMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
