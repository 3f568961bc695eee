//! Encoding of ethtool netlink requests for features and link speed, and decoding of the replies:
//! the generic netlink family `ethtool` (`CTRL_CMD_GETFAMILY`), `ETHTOOL_MSG_FEATURES_GET` and
//! `ETHTOOL_MSG_LINKMODES_GET` (the kernel's `networking/ethtool-netlink`).
//!
//! This module performs no I/O. Crates that implement the family require an asynchronous runtime,
//! which is more code than these requests.

use core::fmt;

use rustix::io::Errno;
use suimon_ports::{DeviceFeature, DeviceFeatures, FeatureState, LinkSpeed};

use crate::attributes::{
    NetlinkMessage, attribute, attributes, messages, push_attribute, push_message, u16_at, u32_at,
};

/// `GENL_ID_CTRL`, the family that resolves the numbers of other families.
const CONTROL: u16 = libc::GENL_ID_CTRL as u16;
const FAMILY_NAME: &[u8] = b"ethtool\0";
const FAMILY_VERSION: u8 = 1;
/// Size in bytes of `struct genlmsghdr`: command, version, two reserved bytes.
const GENERIC_HEADER_BYTES: usize = 4;

/// Name of the multicast group of notifications of changes, with the terminating zero.
const MONITOR: &[u8] = b"monitor\0";

// linux/ethtool_netlink.h
const LINK_MODES_GET: u8 = 4;
const LINK_MODES_GET_REPLY: u8 = 4;
const LINK_MODES_NOTIFICATION: u8 = 5;
const LINK_MODES_HEADER: u16 = 1;
const LINK_MODES_SPEED: u16 = 5;
const LINK_MODES_DUPLEX: u16 = 6;
const FEATURES_GET: u8 = 11;
const FEATURES_GET_REPLY: u8 = 11;
const FEATURES_HEADER: u16 = 1;
const FEATURES_HW: u16 = 2;
const FEATURES_REQUESTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;
const HEADER_DEVICE_INDEX: u16 = 1;
const HEADER_DEVICE_NAME: u16 = 2;
const BITSET_NO_MASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

// linux/ethtool.h
const SPEED_UNKNOWN: u32 = u32::MAX;
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;
const DUPLEX_UNKNOWN: u8 = 0xff;

/// Reason why a reply of the kernel cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// The kernel rejected the request with this errno.
    Refused(Errno),
    /// The datagram contains no reply to the request.
    NoReply,
    /// The named attribute of the reply is missing or has an invalid length.
    MissingAttribute(&'static str),
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(errno) => write!(f, "{errno}"),
            Self::NoReply => f.write_str("the kernel did not reply"),
            Self::MissingAttribute(part) => write!(f, "the kernel's reply lacks {part}"),
        }
    }
}

/// Encodes a request for the netlink number of the family `ethtool` (`CTRL_CMD_GETFAMILY`).
pub fn family_request(sequence: u32) -> Vec<u8> {
    let command = libc::CTRL_CMD_GETFAMILY as u8;
    request(CONTROL, sequence, command, libc::CTRL_ATTR_FAMILY_NAME as u16, FAMILY_NAME)
}

/// Decodes the number of the family from the reply to [`family_request`].
///
/// # Errors
/// The kernel rejected the request (`ENOENT`: unknown family), or the datagram contains no reply.
pub fn decode_family(datagram: &[u8], sequence: u32) -> Result<u16, ReplyError> {
    let reply = reply_attributes(datagram, sequence, CONTROL, libc::CTRL_CMD_NEWFAMILY as u8)?;
    let id = attribute(reply, libc::CTRL_ATTR_FAMILY_ID as u16);
    id.and_then(|id| u16_at(id, 0)).ok_or(ReplyError::MissingAttribute("the number of the family"))
}

/// Decodes the number of the multicast group of notifications of changes from the reply to
/// [`family_request`].
///
/// # Errors
/// As [`family`].
pub fn decode_monitor_group(datagram: &[u8], sequence: u32) -> Result<u32, ReplyError> {
    let reply = reply_attributes(datagram, sequence, CONTROL, libc::CTRL_CMD_NEWFAMILY as u8)?;
    let groups = attribute(reply, libc::CTRL_ATTR_MCAST_GROUPS as u16).unwrap_or_default();
    let is_monitor =
        |group: &[u8]| attribute(group, libc::CTRL_ATTR_MCAST_GRP_NAME as u16) == Some(MONITOR);
    let monitor = attributes(groups).find(|(_, group)| is_monitor(group));
    let id = monitor.and_then(|(_, group)| attribute(group, libc::CTRL_ATTR_MCAST_GRP_ID as u16));
    id.and_then(|id| u32_at(id, 0))
        .ok_or(ReplyError::MissingAttribute("the multicast group of changes"))
}

/// Encodes a request for the speed of the device with interface index `index`. `family`: the result
/// of [`family()`].
pub fn speed_request(family: u16, sequence: u32, index: u32) -> Vec<u8> {
    let mut header = Vec::new();
    push_attribute(&mut header, HEADER_DEVICE_INDEX, &index.to_ne_bytes());
    let nested = LINK_MODES_HEADER | libc::NLA_F_NESTED as u16;
    request(family, sequence, LINK_MODES_GET, nested, &header)
}

/// Decodes the speed of a device from the reply to [`speed_request`].
///
/// # Errors
/// The kernel rejected the request (`ENODEV`: no such device; `EOPNOTSUPP`: the driver does not
/// report a speed), or the datagram contains no reply.
pub fn decode_speed(datagram: &[u8], sequence: u32, family: u16) -> Result<LinkSpeed, ReplyError> {
    let reply = reply_attributes(datagram, sequence, family, LINK_MODES_GET_REPLY)?;
    let mbps = attribute(reply, LINK_MODES_SPEED).and_then(|mbps| u32_at(mbps, 0));
    let duplex = attribute(reply, LINK_MODES_DUPLEX).and_then(|duplex| duplex.first().copied());
    Ok(link_speed(mbps.unwrap_or(SPEED_UNKNOWN), duplex.unwrap_or(DUPLEX_UNKNOWN)))
}

/// Converts a speed in Mbit/s and a duplex mode as a driver reports them (linux/ethtool.h,
/// `SPEED_*` and `DUPLEX_*`). Some drivers report 0 for an unknown speed.
pub fn link_speed(mbps: u32, duplex: u8) -> LinkSpeed {
    LinkSpeed {
        mbps: (mbps != 0 && mbps != SPEED_UNKNOWN).then_some(mbps),
        full_duplex: match duplex {
            DUPLEX_HALF => Some(false),
            DUPLEX_FULL => Some(true),
            _ => None,
        },
    }
}

/// Decodes a datagram of the ethtool `monitor` multicast group. Returns the indices of devices
/// whose link modes changed (`ETHTOOL_MSG_LINKMODES_NTF`).
pub fn link_modes_changed_ifindexes(datagram: &[u8], family: u16) -> impl Iterator<Item = u32> {
    messages(datagram).filter_map(move |message| {
        let is_notice =
            message.kind == family && message.body.first() == Some(&LINK_MODES_NOTIFICATION);
        let attributes = message.body.get(GENERIC_HEADER_BYTES..).filter(|_| is_notice)?;
        let header = attribute(attributes, LINK_MODES_HEADER)?;
        attribute(header, HEADER_DEVICE_INDEX).and_then(|index| u32_at(index, 0))
    })
}

/// Encodes a request for the features of `device`, a name of at most 15 bytes.
pub fn features_request(family: u16, sequence: u32, device: &str) -> Vec<u8> {
    let mut header = Vec::new();
    let name: Vec<u8> = device.bytes().chain([0]).collect();
    push_attribute(&mut header, HEADER_DEVICE_NAME, &name);
    let nested = FEATURES_HEADER | libc::NLA_F_NESTED as u16;
    request(family, sequence, FEATURES_GET, nested, &header)
}

/// Decodes the features of a device from the reply to [`features_request`].
///
/// # Errors
/// The kernel rejected the request (`ENODEV`: no such device), or the datagram contains no complete
/// reply.
pub fn decode_features(
    datagram: &[u8],
    sequence: u32,
    family: u16,
) -> Result<DeviceFeatures, ReplyError> {
    let reply = reply_attributes(datagram, sequence, family, FEATURES_GET_REPLY)?;
    let mut features = DeviceFeatures::default();
    let mut read = |kind, part, set: fn(&mut FeatureState)| {
        let bits = attribute(reply, kind).ok_or(ReplyError::MissingAttribute(part))?;
        for (feature, is_set) in bitset(bits).ok_or(ReplyError::MissingAttribute(part))? {
            let state = features.state_mut(feature);
            if is_set {
                set(state);
            }
        }
        Ok(())
    };
    read(FEATURES_HW, "the changeable features", |state| state.can_change = true)?;
    read(FEATURES_REQUESTED, "the requested features", |state| state.is_wanted = true)?;
    read(FEATURES_ACTIVE, "the active features", |state| state.is_active = true)?;
    read(FEATURES_NOCHANGE, "the fixed features", |state| state.is_fixed = true)?;
    Ok(features)
}

/// Decodes a bit set: the features that the set names and that this program knows, each with true
/// if its bit is set. Returns `None` if the set is invalid. A set without a mask names only the
/// bits that are set.
fn bitset(bytes: &[u8]) -> Option<impl Iterator<Item = (DeviceFeature, bool)>> {
    let lists_only_set = attribute(bytes, BITSET_NO_MASK).is_some();
    let bits = attribute(bytes, BITSET_BITS)?;
    let bits = attributes(bits).filter(|(kind, _)| *kind == BITS_BIT);
    Some(bits.filter_map(move |(_, bit)| {
        let name = attribute(bit, BIT_NAME)?;
        let feature = DeviceFeature::from_name(name.strip_suffix(&[0]).unwrap_or(name))?;
        Some((feature, lists_only_set || attribute(bit, BIT_VALUE).is_some()))
    }))
}

fn request(family: u16, sequence: u32, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let mut body = vec![command, FAMILY_VERSION, 0, 0];
    push_attribute(&mut body, kind, value);
    let flags = libc::NLM_F_REQUEST as u16;
    let mut bytes = Vec::new();
    push_message(&mut bytes, NetlinkMessage { kind: family, flags, sequence, body: &body });
    bytes
}

/// Returns the attributes of the reply to the request with this sequence number.
fn reply_attributes(
    datagram: &[u8],
    sequence: u32,
    family: u16,
    command: u8,
) -> Result<&[u8], ReplyError> {
    let mut answers = messages(datagram).filter(|message| message.sequence == sequence);
    let message = answers.next().ok_or(ReplyError::NoReply)?;
    if message.kind == libc::NLMSG_ERROR as u16 {
        // A negative errno; 0 would be an acknowledgement, which was not requested.
        let code = message.body.first_chunk().copied().map(i32::from_ne_bytes);
        let errno = code.and_then(i32::checked_neg).filter(|errno| (1..4096).contains(errno));
        return Err(match errno {
            Some(errno) => ReplyError::Refused(Errno::from_raw_os_error(errno)),
            None => ReplyError::NoReply,
        });
    }
    if message.kind != family || message.body.first() != Some(&command) {
        return Err(ReplyError::NoReply);
    }
    message.body.get(GENERIC_HEADER_BYTES..).ok_or(ReplyError::NoReply)
}

#[cfg(test)]
#[path = "ethtool_tests.rs"]
mod tests;
