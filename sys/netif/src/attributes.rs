//! Encoding and decoding of netlink messages and attributes (netlink(7)). Lengths are validated;
//! values are not interpreted.

/// Size in bytes of `struct nlmsghdr`.
pub const HEADER_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 4;
const ALIGNMENT: usize = 4;
/// Mask of an attribute's type without the flags `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
const TYPE_MASK: u16 = 0x3fff;

/// Netlink message in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetlinkMessage<'a> {
    /// Type of the message, which depends on the netlink family.
    pub kind: u16,
    /// Flags `NLM_F_*`.
    pub flags: u16,
    /// Sequence number that a reply repeats.
    pub sequence: u32,
    /// Bytes after the message header.
    pub body: &'a [u8],
}

/// Returns the messages in a datagram. The iteration ends before a message with an invalid length.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    let mut remaining = datagram;
    core::iter::from_fn(move || {
        let len = usize::try_from(u32_at(remaining, 0)?).ok()?;
        // A message has at least a header, so each step consumes that much.
        let message = NetlinkMessage {
            kind: u16_at(remaining, 4)?,
            flags: u16_at(remaining, 6)?,
            sequence: u32_at(remaining, 8)?,
            body: remaining.get(HEADER_BYTES..len)?,
        };
        remaining = remaining.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(message)
    })
}

/// Returns type and value of each attribute in `bytes`, without flags of the type. The iteration
/// ends before an attribute with an invalid length.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut remaining = bytes;
    core::iter::from_fn(move || {
        let (len, kind) = (usize::from(u16_at(remaining, 0)?), u16_at(remaining, 2)?);
        let value = remaining.get(ATTRIBUTE_BYTES..len)?;
        remaining = remaining.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((kind & TYPE_MASK, value))
    })
}

/// Returns the value of the first attribute of this type.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(candidate, _)| *candidate == kind).map(|(_, value)| value)
}

/// Appends an attribute, padded to a multiple of 4 bytes. `value` must be shorter than 64 KiB.
pub fn push_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = (ATTRIBUTE_BYTES + value.len()) as u16;
    bytes.extend(len.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
}

/// Appends a message with its header, padded to a multiple of 4 bytes.
pub fn push_message(bytes: &mut Vec<u8>, message: NetlinkMessage<'_>) {
    let len = (HEADER_BYTES + message.body.len()) as u32;
    bytes.extend(len.to_ne_bytes());
    bytes.extend(message.kind.to_ne_bytes());
    bytes.extend(message.flags.to_ne_bytes());
    bytes.extend(message.sequence.to_ne_bytes());
    // The kernel fills in the sender's port.
    bytes.extend([0; 4]);
    bytes.extend(message.body);
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
}

/// Returns the two bytes at an offset as an integer in the byte order of the host; `None` beyond
/// the end.
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

/// Returns the four bytes at an offset as an integer in the byte order of the host; `None` beyond
/// the end.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoded_attributes_decode_to_the_same_values(
            bodies in prop::collection::vec(
                prop::collection::vec((0u16..0x4000, prop::collection::vec(any::<u8>(), 0..20)), 0..5),
                0..4,
            ),
        ) {
            let mut datagram = Vec::new();
            let inner = |attributes: &[(u16, Vec<u8>)]| {
                let mut bytes = Vec::new();
                attributes.iter().for_each(|(kind, value)| push_attribute(&mut bytes, *kind, value));
                bytes
            };
            for (sequence, attributes) in (0..).zip(&bodies) {
                let body = inner(attributes);
                push_message(&mut datagram, NetlinkMessage { kind: 7, flags: 1, sequence, body: &body });
            }
            let read_messages: Vec<_> = messages(&datagram).collect();
            prop_assert_eq!(read_messages.len(), bodies.len());
            for (message, attributes_in) in read_messages.iter().zip(&bodies) {
                let read = attributes(message.body).map(|(kind, value)| (kind, value.to_vec()));
                prop_assert_eq!(read.collect::<Vec<_>>(), attributes_in.clone());
            }
        }

        #[test]
        fn no_bytes_make_them_run_on(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER_BYTES);
            prop_assert!(attributes(&bytes).count() <= bytes.len() / ATTRIBUTE_BYTES);
        }
    }
}
