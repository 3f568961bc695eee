//! Requests to rtnetlink(7): veth pairs, programs at `tc` hooks, the XDP program of a device, and
//! its alias.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::attributes::{
    HEADER_BYTES, NetlinkMessage, attribute, messages, push_attribute, push_message, u32_at,
};
use crate::netlink::{LINK_BYTES, state_request};

/// Maximum time to wait for the kernel's reply, which normally is available before `send` returns.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(1);
const DATAGRAMS_MAX: usize = 8;
const DATAGRAM_BYTES: usize = 64 << 10;

// Attributes of linux/if_link.h and linux/veth.h.
const LINK_INFO_KIND: u16 = 1;
const LINK_INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const INET6_ADDRESS_MODE: u16 = 8;
const ADDRESS_MODE_NONE: u8 = 1;

// Attributes of a device's XDP programs, and of each of its hooks: linux/if_link.h.
const LINK_XDP: u16 = 43;
const XDP_ATTACHED: u16 = 2;
const XDP_PROGRAM: u16 = 4;

/// `IFLA_IFALIAS` of linux/if_link.h.
const LINK_ALIAS: u16 = 20;

// Attributes of linux/rtnetlink.h, linux/pkt_sched.h and linux/pkt_cls.h.
const TC_BYTES: usize = 20;
const TC_KIND: u16 = 1;
const TC_OPTIONS: u16 = 2;
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const BPF_DESCRIPTOR: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_DECIDES: u32 = 1;
/// Priority of this crate's filters at a `tc` hook; identifies them.
const PRIORITY: u32 = 0x5375;
const HANDLE: u32 = 1;

/// Hook of a device at which a classifier program runs (`tc` with `clsact`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Processes frames that the device received.
    Ingress,
    /// Processes frames that are sent through the device.
    Egress,
}

impl Hook {
    /// Returns `TC_H_MIN_INGRESS` or `TC_H_MIN_EGRESS` of a `clsact`.
    const fn parent(self) -> u32 {
        match self {
            Self::Ingress => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }
}

/// rtnetlink socket, which changes devices of the namespace in which it was opened.
pub struct RtnetlinkSocket {
    socket: OwnedFd,
    sequence: u32,
}

impl RtnetlinkSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// No file descriptor is available.
    pub fn open() -> Result<Self, Errno> {
        // Protocol 0 is rtnetlink.
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(RECEIVE_TIMEOUT))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Creates a veth pair: one end named `name` in this namespace, the other, with a name that
    /// matches `pattern` (`name%d`), in the namespace `netns`. Both ends have the MTU `mtu` in
    /// bytes, and are down.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn create_veth_pair(
        &mut self,
        name: &str,
        mtu: u32,
        pattern: &str,
        netns: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        let mut peer = vec![0; LINK_BYTES];
        push_attribute(&mut peer, libc::IFLA_IFNAME, &text(pattern));
        push_attribute(&mut peer, libc::IFLA_MTU, &mtu.to_ne_bytes());
        let netns = netns.as_raw_fd().to_ne_bytes();
        push_attribute(&mut peer, libc::IFLA_NET_NS_FD, &netns);
        let mut data = Vec::new();
        push_attribute(&mut data, VETH_PEER, &peer);
        let mut info = Vec::new();
        push_attribute(&mut info, LINK_INFO_KIND, b"veth");
        push_attribute(&mut info, LINK_INFO_DATA, &data);
        let mut body = vec![0; LINK_BYTES];
        push_attribute(&mut body, libc::IFLA_IFNAME, &text(name));
        push_attribute(&mut body, libc::IFLA_MTU, &mtu.to_ne_bytes());
        push_attribute(&mut body, libc::IFLA_LINKINFO, &info);
        self.request(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
    }

    /// Returns the interface index of the peer of a veth, in the namespace of the peer. `index` is
    /// the interface index of the veth.
    ///
    /// # Errors
    /// The kernel's errno; `ENODATA` if the device has no peer.
    pub fn veth_peer_index(&mut self, index: u32) -> Result<u32, Errno> {
        send(&self.socket, &state_request(Some(index)), SendFlags::empty())?;
        self.first_reply(|message| {
            if message.kind != libc::RTM_NEWLINK {
                return None;
            }
            let link = attribute(message.body.get(LINK_BYTES..)?, libc::IFLA_LINK);
            Some(link.and_then(|value| u32_at(value, 0)).ok_or(Errno::NODATA))
        })
    }

    /// Returns the id of a device's XDP program; 0 if it has several, and `None` if it has none.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn xdp_program_id(&mut self, index: u32) -> Result<Option<u32>, Errno> {
        send(&self.socket, &state_request(Some(index)), SendFlags::empty())?;
        self.first_reply(|message| {
            if message.kind != libc::RTM_NEWLINK {
                return None;
            }
            let xdp = attribute(message.body.get(LINK_BYTES..)?, LINK_XDP).unwrap_or_default();
            let attached = attribute(xdp, XDP_ATTACHED).and_then(<[u8]>::first).copied();
            let program = attribute(xdp, XDP_PROGRAM).and_then(|value| u32_at(value, 0));
            let is_attached = attached.unwrap_or_default() != 0;
            Some(Ok(is_attached.then(|| program.unwrap_or_default())))
        })
    }

    /// Returns the alias text of a device (`ip link show`); empty if it has none.
    ///
    /// # Errors
    /// The kernel's errno; `ENODEV` if the device does not exist.
    pub fn alias(&mut self, index: u32) -> Result<Vec<u8>, Errno> {
        send(&self.socket, &state_request(Some(index)), SendFlags::empty())?;
        self.first_reply(|message| {
            if message.kind != libc::RTM_NEWLINK {
                return None;
            }
            let alias = attribute(message.body.get(LINK_BYTES..)?, LINK_ALIAS).unwrap_or_default();
            // The kernel terminates the text with a zero.
            let text = alias.split(|byte| *byte == 0).next().unwrap_or_default();
            Some(Ok(text.to_vec()))
        })
    }

    /// Sets the alias text of a device, at most 255 bytes.
    ///
    /// # Errors
    /// The kernel's errno; `ENODEV` if the device does not exist.
    pub fn set_alias(&mut self, index: u32, alias: &str) -> Result<(), Errno> {
        let mut body = link_header(index);
        push_attribute(&mut body, LINK_ALIAS, alias.as_bytes());
        self.request(libc::RTM_SETLINK, 0, &body)
    }

    /// Disables the automatic assignment of IPv6 addresses to a device. Has no effect on a kernel
    /// without IPv6.
    pub fn disable_ipv6_autoconf(&mut self, index: u32) {
        let mut mode = Vec::new();
        push_attribute(&mut mode, INET6_ADDRESS_MODE, &[ADDRESS_MODE_NONE]);
        let mut family = Vec::new();
        push_attribute(&mut family, libc::AF_INET6 as u16, &mode);
        let mut body = link_header(index);
        push_attribute(&mut body, libc::IFLA_AF_SPEC, &family);
        if let Err(errno) = self.request(libc::RTM_SETLINK, 0, &body) {
            tracing::debug!(%errno, index, "the device of a kernel path may get an IPv6 address");
        }
    }

    /// Sets a device up.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn bring_up(&mut self, index: u32) -> Result<(), Errno> {
        let up = (libc::IFF_UP as u32).to_ne_bytes();
        let mut body = link_header(index);
        // `ifi_flags` and `ifi_change`.
        body.splice(8.., up.into_iter().chain(up));
        self.request(libc::RTM_SETLINK, 0, &body)
    }

    /// Deletes a device; of a veth, both ends.
    ///
    /// # Errors
    /// The kernel's errno; `ENODEV` if it does not exist.
    pub fn delete(&mut self, index: u32) -> Result<(), Errno> {
        self.request(libc::RTM_DELLINK, 0, &link_header(index))
    }

    /// Attaches a program to a hook of a device, replacing an earlier one of this crate.
    ///
    /// # Errors
    /// The kernel's errno; `ENOENT` without `cls_bpf`.
    pub fn attach(&mut self, index: u32, hook: Hook, program: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut queueing = tc_header(index, CLSACT_HANDLE, CLSACT, 0);
        push_attribute(&mut queueing, TC_KIND, b"clsact\0");
        match self.request(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &queueing) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let mut options = Vec::new();
        push_attribute(&mut options, BPF_DESCRIPTOR, &program.as_raw_fd().to_ne_bytes());
        push_attribute(&mut options, BPF_NAME, b"suimon\0");
        push_attribute(&mut options, BPF_FLAGS, &BPF_DECIDES.to_ne_bytes());
        let mut body = filter_header(index, hook);
        push_attribute(&mut body, TC_KIND, b"bpf\0");
        push_attribute(&mut body, TC_OPTIONS, &options);
        self.request(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE, &body)
    }

    /// Detaches this crate's program from a hook.
    ///
    /// # Errors
    /// The kernel's errno; `ENOENT` or `EINVAL` if there is none.
    pub fn detach(&mut self, index: u32, hook: Hook) -> Result<(), Errno> {
        let mut body = filter_header(index, hook);
        push_attribute(&mut body, TC_KIND, b"bpf\0");
        self.request(libc::RTM_DELTFILTER, 0, &body)
    }

    /// Sends a request and blocks until the kernel has processed it.
    ///
    /// # Errors
    /// The kernel's errno, or `ETIMEDOUT`.
    fn request(&mut self, kind: u16, flags: i32, body: &[u8]) -> Result<(), Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut datagram = Vec::with_capacity(HEADER_BYTES + body.len());
        push_message(&mut datagram, NetlinkMessage { kind, flags, sequence: self.sequence, body });
        send(&self.socket, &datagram, SendFlags::empty())?;
        let sequence = self.sequence;
        self.first_reply(|message| {
            let is_ours =
                i32::from(message.kind) == libc::NLMSG_ERROR && message.sequence == sequence;
            is_ours.then_some(Ok(()))
        })
    }

    /// Receives messages until `read` returns a result for one, and returns this result.
    ///
    /// # Errors
    /// The kernel's errno if an error message is received before; `ETIMEDOUT` if there is no
    /// result.
    fn first_reply<T>(
        &self,
        read: impl Fn(&NetlinkMessage<'_>) -> Option<Result<T, Errno>>,
    ) -> Result<T, Errno> {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS_MAX {
            let (len, _) = match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                received => received?,
            };
            for message in messages(buffer.get(..len).unwrap_or_default()) {
                if i32::from(message.kind) == libc::NLMSG_ERROR {
                    let code = u32_at(message.body, 0).map_or(0, |code| code as i32);
                    if code < 0 {
                        return Err(Errno::from_raw_os_error(-code));
                    }
                }
                if let Some(result) = read(&message) {
                    return result;
                }
            }
        }
        Err(Errno::TIMEDOUT)
    }
}

/// Returns a name with a terminating zero.
fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// Encodes `struct ifinfomsg`.
fn link_header(index: u32) -> Vec<u8> {
    let mut header = vec![0; 4];
    header.extend(index.to_ne_bytes());
    header.resize(LINK_BYTES, 0);
    header
}

/// Encodes `struct tcmsg`: interface index, handle and parent of a filter or queueing discipline,
/// and its information.
fn tc_header(index: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    let mut header = vec![0; 4];
    for field in [index, handle, parent, info] {
        header.extend(field.to_ne_bytes());
    }
    debug_assert_eq!(header.len(), TC_BYTES);
    header
}

/// Encodes the `struct tcmsg` of this crate's filter at a hook, for frames of every protocol.
fn filter_header(index: u32, hook: Hook) -> Vec<u8> {
    let protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
    tc_header(index, HANDLE, hook.parent(), PRIORITY << 16 | protocol)
}
