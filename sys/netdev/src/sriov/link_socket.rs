//! Synchronous requests to rtnetlink(7), in the calling thread's namespace.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use suimon_frame::MacAddr;

use super::vf_info::{VFINFO_LIST, decode_vf_list};
use std::collections::BTreeMap;
use suimon_netif::attributes::{
    HEADER_BYTES, NetlinkMessage, attributes, messages, push_attribute, push_message, u32_at,
};
use suimon_netif::netlink::LINK_BYTES;
use suimon_ports::VfSettings;

/// Time limit for a reply. The kernel normally replies before `send` returns; a driver may be slow.
const PATIENCE: Duration = Duration::from_secs(10);
/// Receive buffer size in bytes. A datagram of 256 virtual functions has about 60 KB.
const DATAGRAM_BYTES: usize = 256 << 10;
/// Maximum number of datagrams per reply, sufficient for a dump of very many devices.
const DATAGRAMS_MAX: usize = 1 << 14;
const IFLA_EXT_MASK: u16 = 29;
const IFLA_PARENT_DEV_NAME: u16 = 56;
const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;
/// Filter of link requests: includes settings of VFs, and omits statistics (`RTEXT_FILTER_VF |
/// RTEXT_FILTER_SKIP_STATS` device_of_function `linux/rtnetlink.h`).
const VF_FILTER: u32 = 1 | (1 << 3);

/// Attribute with the address of a neighbour (`linux/neighbour.h`).
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const NTF_SELF: u8 = 2;

/// Smallest error number in a reply: negative `MAX_ERRNO` (`linux/err.h`).
const ERRNO_LEAST: i32 = -4095;

/// Properties of a network device that concern SR-IOV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NetDevice {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) is_up: bool,
    pub(super) mac: Option<MacAddr>,
    /// Name of the device's PCI function in sysfs; `None` if the kernel reports none.
    pub(super) pci_function: Option<String>,
}

/// rtnetlink socket of one namespace.
pub(super) struct LinkSocket {
    socket: OwnedFd,
    sequence: u32,
}

/// Encodes the body of a message about the device with the interface index `device`: `struct
/// ifinfomsg`.
pub(super) fn link_message(device: u32) -> Vec<u8> {
    let mut body = vec![0; LINK_BYTES];
    if let Some(field) = body.get_mut(4..8) {
        field.copy_from_slice(&device.to_ne_bytes());
    }
    body
}

impl LinkSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// No file descriptor is available.
    pub(super) fn open() -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC;
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Returns all devices of the namespace.
    ///
    /// # Errors
    /// The kernel's errno.
    pub(super) fn devices(&mut self) -> Result<Vec<NetDevice>, Errno> {
        let mut devices = Vec::new();
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_DUMP;
        self.request(libc::RTM_GETLINK, flags, &link_message(0), |body| {
            devices.extend(net_device(body));
        })?;
        Ok(devices)
    }

    /// Returns the settings of the VFs of a device (interface index), by VF index.
    ///
    /// # Errors
    /// The device does not exist.
    pub(super) fn vfs(&mut self, device: u32) -> Result<BTreeMap<u16, VfSettings>, Errno> {
        let mut body = link_message(device);
        push_attribute(&mut body, IFLA_EXT_MASK, &VF_FILTER.to_ne_bytes());
        let mut settings = BTreeMap::new();
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        self.request(libc::RTM_GETLINK, flags, &body, |body| {
            let list = attributes(body.get(LINK_BYTES..).unwrap_or_default());
            let list = list.filter(|(kind, _)| *kind == VFINFO_LIST);
            list.for_each(|(_, list)| settings.append(&mut decode_vf_list(list)));
        })?;
        Ok(settings)
    }

    /// Sends a message that changes a device. `body` begins with [`link_message`].
    ///
    /// # Errors
    /// The errno of the kernel or of the device's driver.
    pub(super) fn send_change(&mut self, body: &[u8]) -> Result<(), Errno> {
        self.request(libc::RTM_SETLINK, libc::NLM_F_REQUEST | libc::NLM_F_ACK, body, |_| {})
    }

    /// Adds `mac` to the addresses that a device receives, or removes it if `is_there` is false
    /// (`bridge(8)`, `fdb add … self permanent`). Succeeds if there is nothing to change.
    ///
    /// # Errors
    /// The errno of the device's driver.
    pub(super) fn set_fdb_entry(
        &mut self,
        device: u32,
        mac: MacAddr,
        is_there: bool,
    ) -> Result<(), Errno> {
        // `struct ndmsg`: family, three bytes of padding, device, state, flags, type.
        let mut body = vec![libc::AF_BRIDGE as u8, 0, 0, 0];
        body.extend(device.to_ne_bytes());
        body.extend(NUD_PERMANENT.to_ne_bytes());
        body.extend([NTF_SELF, 0]);
        push_attribute(&mut body, NDA_LLADDR, &mac.octets());
        let (kind, flags) = if is_there {
            (libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        } else {
            (libc::RTM_DELNEIGH, 0)
        };
        match self.request(kind, libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags, &body, |_| {}) {
            Err(Errno::EXIST) if is_there => Ok(()),
            Err(Errno::NOENT) if !is_there => Ok(()),
            result => result,
        }
    }

    fn request(
        &mut self,
        kind: u16,
        flags: i32,
        body: &[u8],
        mut read: impl FnMut(&[u8]),
    ) -> Result<(), Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let mut request = Vec::with_capacity(HEADER_BYTES + body.len());
        push_message(&mut request, NetlinkMessage { kind, flags: flags as u16, sequence, body });
        send(&self.socket, &request, SendFlags::empty())?;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS_MAX {
            let len = match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                received => received?.0,
            };
            let datagram = buffer.get(..len).unwrap_or_default();
            for message in messages(datagram).filter(|message| message.sequence == sequence) {
                match i32::from(message.kind) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return verdict(message.body),
                    _ => read(message.body),
                }
            }
        }
        Err(Errno::PROTO)
    }
}

/// Decodes `struct nlmsgerr`.
///
/// # Errors
/// The errno in the message; 0 means success.
fn verdict(body: &[u8]) -> Result<(), Errno> {
    match u32_at(body, 0).map(|code| i32::from_ne_bytes(code.to_ne_bytes())) {
        Some(0) => Ok(()),
        Some(errno) if (ERRNO_LEAST..0).contains(&errno) => {
            Err(Errno::from_raw_os_error(errno.saturating_neg()))
        }
        _ => Err(Errno::PROTO),
    }
}

fn net_device(body: &[u8]) -> Option<NetDevice> {
    let (index, flags) = (u32_at(body, 4)?, u32_at(body, 8)?);
    let (mut name, mut mac, mut parent, mut bus) = (None, None, None, None);
    for (kind, value) in attributes(body.get(LINK_BYTES..)?) {
        match kind {
            libc::IFLA_IFNAME => name = text(value),
            libc::IFLA_ADDRESS => mac = value.try_into().ok().map(MacAddr::new),
            IFLA_PARENT_DEV_NAME => parent = text(value),
            IFLA_PARENT_DEV_BUS_NAME => bus = text(value),
            _ => {}
        }
    }
    let parent = parent.filter(|_| bus.as_deref() == Some("pci"));
    let is_up = flags & (libc::IFF_UP as u32) != 0;
    Some(NetDevice { index, name: name?, is_up, mac, pci_function: parent })
}

/// Decodes a zero-terminated string; `None` if it is invalid.
fn text(value: &[u8]) -> Option<String> {
    let text = value.split(|byte| *byte == 0).next()?;
    Some(core::str::from_utf8(text).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::namespace::Namespace;
    use crate::testing::TestNetns;

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = net_device(&bytes);
            let _ = verdict(&bytes);
        }
    }

    #[test]
    fn the_kernel_replies_for_the_threads_namespace() {
        let netns = TestNetns::new();
        netns.run("ip link add left address 02:00:00:00:00:07 type veth peer name right");
        netns.run("ip link set left up");
        let namespace = Namespace::open(Some(netns.name())).unwrap();
        namespace
            .run(|| {
                let mut links = LinkSocket::open().unwrap();
                let devices = links.devices().unwrap();
                let left_link = devices.iter().find(|device| device.name == "left").unwrap();
                assert!(left_link.is_up);
                assert_eq!(left_link.mac, Some(MacAddr::new([2, 0, 0, 0, 0, 7])));
                assert_eq!(left_link.pci_function, None);
                assert_eq!(links.vfs(left_link.index), Ok(BTreeMap::new()));
                assert_eq!(links.vfs(4711), Err(Errno::NODEV));
                let change =
                    suimon_ports::VfSettingsChange { trust: Some(true), ..Default::default() };
                let messages =
                    super::super::vf_change::encode_messages(left_link.index, 0, &change);
                assert_eq!(links.send_change(&messages[0].1), Err(Errno::OPNOTSUPP));
                let mac = MacAddr::new([2, 0, 0, 0, 0, 9]);
                for is_there in [true, true, false, false] {
                    assert_eq!(links.set_fdb_entry(left_link.index, mac, is_there), Ok(()));
                    let output = netns.run("bridge fdb show dev left");
                    assert_eq!(output.contains("02:00:00:00:00:09"), is_there, "{output}");
                }
                Ok(())
            })
            .unwrap();
    }
}
