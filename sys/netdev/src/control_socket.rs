//! Control socket of a device: sends and receives LACPDUs and Marker PDUs, which bypass the switch.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use suimon_frame::{MacAddr, ethertype};
use suimon_netif::control_filter::{ControlPduClass, slow_protocols_filter};
use suimon_netif::raw_socket::RawSocket;
use suimon_ports::{
    CONTROL_FRAME_BYTES_MAX, CONTROL_FRAMES_PER_CALL_MAX, ControlError, ControlFrame,
    ControlSocket, DeviceError, NextReceive,
};

use crate::errors::host_error;
use crate::link::Link;

/// Receive buffer size in bytes, which the kernel doubles. The kernel accounts about 1 KB for a
/// LACPDU, or one page of the driver.
const RECEIVE_BYTES: libc::c_int = 32 << 10;
/// Priority `TC_PRIO_CONTROL` of sent frames: before all other frames in the host's queue, as the
/// kernel's bonding driver does.
const PRIORITY: libc::c_int = 7;
/// Priority `TC_PRIO_INTERACTIVE`: the highest one without CAP_NET_ADMIN.
const PRIORITY_UNPRIVILEGED: libc::c_int = 6;
const TYPE_AT: usize = 12;

pub(crate) struct DeviceControlSocket {
    device: String,
    index: u32,
    receivers: ReceiveSockets,
    buffer: Box<[u8; CONTROL_FRAME_BYTES_MAX]>,
    /// Number of frames lost since the socket was created. The kernel resets its counter when it is
    /// read.
    lost: u64,
}

/// Receive sockets of a device. Malformed PDUs have a separate socket, so that a flood of them does
/// not occupy the buffer of valid PDUs.
struct ReceiveSockets {
    /// Socket for valid PDUs; also used for sending.
    well_formed: RawSocket,
    spoiled: RawSocket,
    /// Epoll descriptor that is readable when one of the sockets is.
    ready: OwnedFd,
}

impl ReceiveSockets {
    fn open(index: u32) -> io::Result<Self> {
        let well_formed = bound_socket(index, ControlPduClass::WellFormed)?;
        well_formed.set_option(libc::SOL_SOCKET, libc::SO_PRIORITY, PRIORITY).or_else(|_| {
            well_formed.set_option(libc::SOL_SOCKET, libc::SO_PRIORITY, PRIORITY_UNPRIVILEGED)
        })?;
        well_formed.add_membership(index, Some(MacAddr::SLOW_PROTOCOLS))?;
        let spoiled = bound_socket(index, ControlPduClass::Malformed)?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for socket in [&well_formed, &spoiled] {
            epoll::add(&ready, socket.fd(), EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self { well_formed, spoiled, ready })
    }

    /// Returns the sockets in the order in which they are read.
    fn all(&self) -> [&RawSocket; 2] {
        [&self.well_formed, &self.spoiled]
    }
}

impl DeviceControlSocket {
    /// Opens a control socket.
    ///
    /// # Errors
    /// The device does not exist or is not an Ethernet device, or the process lacks the permission.
    pub(crate) fn open(device: &str) -> Result<Self, DeviceError> {
        let (index, receivers) = open(device)?;
        let buffer = Box::new([0; CONTROL_FRAME_BYTES_MAX]);
        Ok(Self { device: device.to_owned(), index, receivers, buffer, lost: 0 })
    }

    /// Checks that the device still exists.
    fn check(&self) -> Result<(), ControlError> {
        match self.receivers.well_formed.is_device_removed() {
            Ok(false) => Ok(()),
            Ok(true) => Err(ControlError::DeviceMissing { device: self.device.clone() }),
            Err(cause) => Err(self.host_error("checking", &cause.to_string())),
        }
    }

    fn host_error(&self, doing: &'static str, errno: &str) -> ControlError {
        ControlError::SystemCallFailed {
            operation: doing,
            device: self.device.clone(),
            error_text: errno.to_owned(),
        }
    }

    fn transmit(&self, ethertype: u16, frame: &[u8]) -> Result<(), Errno> {
        let result = self.receivers.well_formed.send(self.index, ethertype, frame);
        result.map_err(|cause| Errno::from_io_error(&cause).unwrap_or(Errno::IO))
    }

    fn add_lost(&mut self) {
        for socket in self.receivers.all() {
            // `struct tpacket_stats`: frames, and those dropped because the buffer was full.
            let statistics = socket.option(libc::SOL_PACKET, libc::PACKET_STATISTICS);
            if let Ok([_, _, _, _, a, b, c, d]) = statistics {
                self.lost = self.lost.saturating_add(u32::from_ne_bytes([a, b, c, d]).into());
            }
        }
    }
}

fn open(device: &str) -> Result<(u32, ReceiveSockets), DeviceError> {
    let index = Link::new(device)?.ethernet_index()?;
    let receivers = ReceiveSockets::open(index).map_err(|cause| {
        host_error("device", &format!("opening a control socket on device {device}"), &cause)
    })?;
    Ok((index, receivers))
}

fn bound_socket(index: u32, class: ControlPduClass) -> io::Result<RawSocket> {
    let socket = RawSocket::new()?;
    // Attached before binding, so that no frame bypasses the filter.
    socket.attach_filter(&slow_protocols_filter(class))?;
    socket.set_option(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    socket.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BYTES)?;
    socket.bind(index, ethertype::SLOW)?;
    Ok(socket)
}

impl ControlSocket for DeviceControlSocket {
    fn receive(
        &mut self,
        handle_frame: &mut dyn FnMut(ControlFrame<'_>),
    ) -> Result<NextReceive, ControlError> {
        let mut attempts = 0..CONTROL_FRAMES_PER_CALL_MAX;
        for socket in self.receivers.all() {
            while !attempts.is_empty() {
                let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
                match recv(socket.fd(), &mut self.buffer[..], flags) {
                    Ok((len, wire_bytes)) => {
                        let bytes = self.buffer.get(..len).unwrap_or_default();
                        handle_frame(ControlFrame { bytes, wire_bytes });
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    // The device was set down, and may have been removed afterwards. The kernel
                    // reports this once.
                    Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => self.check()?,
                    Err(errno) => return Err(self.host_error("receiving from", &errno.to_string())),
                }
                attempts.next();
            }
        }
        if attempts.is_empty() {
            return Ok(NextReceive::AfterPause);
        }
        self.check().map(|()| NextReceive::WhenReadable)
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), ControlError> {
        let no_frame =
            || ControlError::InvalidLength { device: self.device.clone(), bytes: frame.len() };
        let ethertype = frame.get(TYPE_AT..).and_then(|rest| rest.first_chunk());
        let ethertype = u16::from_be_bytes(*ethertype.ok_or_else(no_frame)?);
        let outcome = match self.transmit(ethertype, frame) {
            // The socket may still hold the error of an earlier time at which the device was down;
            // it is reported once.
            Err(Errno::NETDOWN) => self.transmit(ethertype, frame),
            outcome => outcome,
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => {
                Err(ControlError::TransmitQueueFull { device: self.device.clone() })
            }
            Err(Errno::MSGSIZE | Errno::INVAL) => Err(no_frame()),
            Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                self.check()?;
                Err(ControlError::DeviceDown { device: self.device.clone() })
            }
            Err(errno) => Err(self.host_error("sending on", &errno.to_string())),
        }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.receivers.ready.as_fd()
    }

    fn dropped_frames(&mut self) -> u64 {
        self.add_lost();
        self.lost
    }

    fn reopen(&mut self) -> Result<(), DeviceError> {
        let (index, receivers) = open(&self.device)?;
        self.add_lost();
        (self.index, self.receivers) = (index, receivers);
        Ok(())
    }
}

#[cfg(test)]
#[path = "control_socket_tests.rs"]
mod tests;
