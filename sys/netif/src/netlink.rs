//! Encoding and decoding of the link messages of rtnetlink(7).
//!
//! This module performs no I/O.

use suimon_frame::MacAddr;

use crate::attributes::{HEADER_BYTES, attribute, attributes, messages, u32_at};

/// Size in bytes of `struct ifinfomsg`.
pub const LINK_BYTES: usize = 16;

/// `IFLA_NEW_IFINDEX` of linux/if_link.h: index of a moved device in its new namespace (since Linux
/// 4.9 in the message of its removal).
const NEW_INDEX: u16 = 49;

/// Size of a request for the state of devices, in bytes. Byte 16 is `ifi_family`, bytes 20..24 are
/// `ifi_index`.
const REQUEST_BYTES: usize = HEADER_BYTES + LINK_BYTES;

/// Contents of a link message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkMessage {
    /// Interface index of the device.
    pub index: u32,
    /// Name of the device; `None` if the message has none.
    pub name: Option<Box<str>>,
    /// State or removal of the device.
    pub event: LinkEvent,
}

/// State change of a network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The device exists and has this state.
    StateReported(LinkState),
    /// The device was deleted, or moved to another namespace on a kernel that does not report
    /// moves.
    DeviceRemoved,
    /// The device was moved to another namespace.
    DeviceMoved,
}

/// Link state of a network device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// True if an administrator set the device up.
    pub is_up: bool,
    /// True if the link has a peer and the kernel has processed this: `IFF_RUNNING`. `IFF_LOWER_UP`
    /// is set earlier, while frames are still discarded.
    pub has_carrier: bool,
    /// Maximum size of an IP packet in bytes; `None` if the message has none.
    pub mtu: Option<u16>,
    /// MAC address; `None` if the message has none of 6 bytes.
    pub mac: Option<MacAddr>,
}

impl LinkState {
    /// Returns true if the device is up and has a carrier, so that it can pass frames.
    pub fn is_usable(self) -> bool {
        self.is_up && self.has_carrier
    }
}

/// Encodes a request for the state of the device with this interface index, or of all devices if it
/// is `None`.
pub fn state_request(index: Option<u32>) -> [u8; REQUEST_BYTES] {
    let dump = if index.is_none() { libc::NLM_F_DUMP } else { 0 };
    let flags = (libc::NLM_F_REQUEST | dump) as u16;
    let [l0, l1, l2, l3] = (REQUEST_BYTES as u32).to_ne_bytes();
    let [t0, t1] = libc::RTM_GETLINK.to_ne_bytes();
    let [f0, f1] = flags.to_ne_bytes();
    let [i0, i1, i2, i3] = index.unwrap_or(0).to_ne_bytes();
    [
        l0, l1, l2, l3, t0, t1, f0, f1, 0, 0, 0, 0, 0, 0, 0, 0, // nlmsghdr
        0, 0, 0, 0, i0, i1, i2, i3, 0, 0, 0, 0, 0, 0, 0, 0, // ifinfomsg
    ]
}

/// Decodes the link messages in a datagram; skips others. The iteration ends before a message with
/// an invalid length.
pub fn link_messages(datagram: &[u8]) -> impl Iterator<Item = LinkMessage> + '_ {
    messages(datagram).filter_map(|message| link_message(message.kind, message.body))
}

fn link_message(kind: u16, body: &[u8]) -> Option<LinkMessage> {
    let index = u32_at(body, 4)?;
    let flags = u32_at(body, 8)?;
    let bytes = body.get(LINK_BYTES..)?;
    let event = match kind {
        libc::RTM_NEWLINK => {
            let is_set = |flag: i32| flags & (flag as u32) != 0;
            let state = LinkState {
                is_up: is_set(libc::IFF_UP),
                has_carrier: is_set(libc::IFF_RUNNING),
                mtu: None,
                mac: None,
            };
            LinkEvent::StateReported(with_attributes(state, bytes))
        }
        libc::RTM_DELLINK if attribute(bytes, NEW_INDEX).is_some() => LinkEvent::DeviceMoved,
        libc::RTM_DELLINK => LinkEvent::DeviceRemoved,
        _ => return None,
    };
    // A bridge announces the removal of a port with the same message and its own address family;
    // the device itself still exists.
    let of_bridge = body.first().copied() == u8::try_from(libc::AF_BRIDGE).ok();
    (!of_bridge).then(|| LinkMessage { index, name: name(bytes), event })
}

/// Returns the device name in the attributes of a link message; `None` if it is missing or invalid.
fn name(bytes: &[u8]) -> Option<Box<str>> {
    let value = attribute(bytes, libc::IFLA_IFNAME)?;
    let name = core::ffi::CStr::from_bytes_until_nul(value).ok()?;
    name.to_str().ok().map(Box::from)
}

fn with_attributes(mut state: LinkState, bytes: &[u8]) -> LinkState {
    for (kind, value) in attributes(bytes) {
        match kind {
            libc::IFLA_MTU => {
                state.mtu = u32_at(value, 0).map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX));
            }
            libc::IFLA_ADDRESS => state.mac = value.try_into().ok().map(MacAddr::new),
            _ => {}
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, family: u8, attributes: &[u8]) -> Vec<u8> {
        let mut bytes = state_request(Some(7)).to_vec();
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[16] = family;
        let flags = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
        bytes[24..28].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(attributes);
        let len = u32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn link_messages_are_read_between_other_messages() {
        let mut attributes = vec![];
        for (kind, value) in [
            (libc::IFLA_IFNAME, &b"tap0\0"[..]),
            (libc::IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]),
            (libc::IFLA_MTU, &9000_u32.to_ne_bytes()),
        ] {
            attributes.extend((4 + value.len() as u16).to_ne_bytes());
            attributes.extend(kind.to_ne_bytes());
            attributes.extend(value);
            attributes.resize(attributes.len().next_multiple_of(4), 0);
        }
        let mut datagram = message(libc::RTM_NEWADDR, 0, b"xyz");
        datagram.extend(message(libc::RTM_NEWLINK, 0, &attributes));
        datagram.extend(message(libc::RTM_DELLINK, libc::AF_BRIDGE as u8, &[]));
        datagram.extend(message(libc::RTM_DELLINK, 0, &[]));
        let mac = Some(MacAddr::new([2, 0, 0, 0, 0, 9]));
        let state = LinkState { is_up: true, has_carrier: true, mtu: Some(9000), mac };
        let expected = [LinkEvent::StateReported(state), LinkEvent::DeviceRemoved];
        let read: Vec<_> = link_messages(&datagram).collect();
        let names = [Some("tap0".into()), None];
        let expected = expected.into_iter().zip(names);
        let expected = expected.map(|(event, name)| LinkMessage { index: 7, name, event });
        assert_eq!(read, expected.collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic_or_run_on(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            len in 0_u32..80,
            attribute_len in 0_u16..20,
        ) {
            let _ = link_messages(&bytes).count();
            let mut datagram = message(libc::RTM_NEWLINK, 0, &bytes);
            datagram[..4].copy_from_slice(&len.to_ne_bytes());
            if let Some(field) = datagram.get_mut(32..34) {
                field.copy_from_slice(&attribute_len.to_ne_bytes());
            }
            prop_assert!(link_messages(&datagram).count() <= datagram.len() / HEADER_BYTES + 1);
        }
    }
}
