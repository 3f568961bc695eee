//! Tests with recorded replies of Linux 6.18, unmodified and damaged.

use proptest::prelude::*;
use suimon_ports::DeviceFeature as Feature;

use super::*;
use crate::attributes::HEADER_BYTES;

/// Reply to `family_request(1)`.
const FAMILY: &[u8] = include_bytes!("../testdata/ethtool_family.bin");
/// Reply to `features_request(21, 2, …)` for a veth after `ethtool -K v0 tx-tcp6-segmentation off`.
const FEATURES: &[u8] = include_bytes!("../testdata/features_of_veth.bin");
/// Reply to `features_request(21, 3, …)` for a name without a device.
const NO_SUCH_DEVICE: &[u8] = include_bytes!("../testdata/no_such_device.bin");
const NUMBER: u16 = 21;

#[test]
fn the_family_is_found_by_name() {
    assert_eq!(decode_family(FAMILY, 1), Ok(NUMBER));
    assert_eq!(decode_family(FAMILY, 2), Err(ReplyError::NoReply), "the reply to another request");
    let request = family_request(1);
    let message = messages(&request).next().unwrap();
    assert_eq!((message.kind, message.sequence), (CONTROL, 1));
    assert_eq!(attribute(&message.body[4..], 2), Some(FAMILY_NAME));
}

#[test]
fn a_device_is_queried_by_name() {
    let request = features_request(NUMBER, 9, "fifteen-bytes-x");
    let message = messages(&request).next().unwrap();
    assert_eq!((message.kind, message.sequence), (NUMBER, 9));
    assert_eq!(message.body[0], FEATURES_GET);
    let header = attribute(&message.body[4..], FEATURES_HEADER).unwrap();
    assert_eq!(attribute(header, HEADER_DEVICE_NAME), Some(&b"fifteen-bytes-x\0"[..]));
}

#[test]
fn features_are_as_ethtool_shows_them() {
    let device_features = decode_features(FEATURES, 2, NUMBER).unwrap();
    let states: Vec<_> = device_features
        .iter()
        .map(|(feature, state)| (feature.name(), state.ethtool_state()))
        .collect();
    assert_eq!(
        states,
        [
            ("tx-checksum-ip-generic", "on"),
            ("tx-checksum-ipv4", "off [fixed]"),
            ("tx-checksum-ipv6", "off [fixed]"),
            ("tx-tcp-segmentation", "on"),
            ("tx-tcp6-segmentation", "off"),
            ("tx-tcp-ecn-segmentation", "on"),
            ("tx-udp-segmentation", "on"),
            ("rx-checksum", "on"),
            ("rx-gro", "off"),
            ("rx-gro-hw", "off [fixed]"),
            ("rx-lro", "off [fixed]"),
            ("rx-udp-gro-forwarding", "off"),
        ]
    );
}

#[test]
fn a_refusal_is_reported_with_its_reason() {
    let refused = Err(ReplyError::Refused(Errno::NODEV));
    assert_eq!(decode_features(NO_SUCH_DEVICE, 3, NUMBER), refused);
    // An acknowledgement, and invalid error codes.
    for code in [0, 1, i32::MIN, -70_000] {
        let mut damaged = NO_SUCH_DEVICE.to_vec();
        damaged[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&i32::to_ne_bytes(code));
        assert_eq!(decode_features(&damaged, 3, NUMBER), Err(ReplyError::NoReply), "{code}");
    }
}

#[test]
fn a_reply_of_another_kind_or_command_is_rejected() {
    assert_eq!(decode_features(FEATURES, 2, NUMBER + 1), Err(ReplyError::NoReply));
    assert_eq!(decode_features(FAMILY, 1, CONTROL), Err(ReplyError::NoReply));
    assert_eq!(decode_features(&[], 2, NUMBER), Err(ReplyError::NoReply));
}

/// Corrects the length field of the first message to the length of `bytes`.
fn with_true_length(mut bytes: Vec<u8>) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap();
    if let Some(target) = bytes.get_mut(..4) {
        target.copy_from_slice(&len.to_ne_bytes());
    }
    bytes
}

#[test]
fn a_truncated_reply_is_rejected() {
    let complete = decode_features(FEATURES, 2, NUMBER).unwrap();
    for len in 0..FEATURES.len() {
        let cut = FEATURES[..len].to_vec();
        assert_eq!(decode_features(&cut, 2, NUMBER), Err(ReplyError::NoReply), "{len}");
        // The last set ends in padding only if the padding of a name is truncated.
        match decode_features(&with_true_length(cut), 2, NUMBER) {
            Ok(actual) => assert!(len + 4 > FEATURES.len() && actual == complete, "{len}"),
            Err(ReplyError::NoReply) => assert!(len < HEADER_BYTES + 4, "{len}"),
            Err(ReplyError::MissingAttribute(_)) => {}
            Err(refused) => panic!("{len}: {refused}"),
        }
    }
}

proptest! {
    #[test]
    fn damaged_replies_are_decoded_or_rejected(
        damage in prop::collection::vec((0..FEATURES.len(), any::<u8>()), 1..20),
        is_family in any::<bool>(),
    ) {
        let (recorded, sequence) = if is_family { (FAMILY, 1) } else { (FEATURES, 2) };
        let mut bytes = recorded.to_vec();
        for (position, byte) in damage {
            let index = position % bytes.len();
            bytes[index] = byte;
        }
        let _ = decode_family(&bytes, sequence);
        if let Ok(decoded) = decode_features(&bytes, sequence, NUMBER) {
            prop_assert!(decoded.iter().count() <= Feature::ALL.len());
        }
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut body = vec![FEATURES_GET_REPLY, 1, 0, 0];
        body.extend(bytes);
        let mut datagram = Vec::new();
        push_message(&mut datagram, NetlinkMessage { kind: NUMBER, flags: 0, sequence: 2, body: &body });
        if let Ok(decoded) = decode_features(&datagram, 2, NUMBER) {
            prop_assert!(decoded.iter().count() <= Feature::ALL.len());
        }
    }
}

/// Reply to `speed_request(21, 2, …)` for a veth.
const SPEED: &[u8] = include_bytes!("../testdata/speed_of_veth.bin");

#[test]
fn the_speed_of_a_link_is_read() {
    let fast = LinkSpeed { mbps: Some(10_000), full_duplex: Some(true) };
    assert_eq!(decode_speed(SPEED, 2, NUMBER), Ok(fast));
    assert_eq!(decode_speed(SPEED, 1, NUMBER), Err(ReplyError::NoReply));
    assert_eq!(decode_speed(NO_SUCH_DEVICE, 3, NUMBER), Err(ReplyError::Refused(Errno::NODEV)));
    let request = speed_request(NUMBER, 9, 0x0102_0304);
    let message = messages(&request).next().unwrap();
    assert_eq!((message.kind, message.body[0]), (NUMBER, LINK_MODES_GET));
    let header = attribute(&message.body[4..], LINK_MODES_HEADER).unwrap();
    let index = attribute(header, HEADER_DEVICE_INDEX).and_then(|index| u32_at(index, 0));
    assert_eq!(index, Some(0x0102_0304));
}

#[test]
fn speeds_unknown_to_drivers_are_unknown() {
    for (mbps, duplex, expected) in [
        (10, DUPLEX_HALF, (Some(10), Some(false))),
        (400_000, DUPLEX_FULL, (Some(400_000), Some(true))),
        (0, DUPLEX_UNKNOWN, (None, None)),
        (SPEED_UNKNOWN, 2, (None, None)),
    ] {
        let speed = link_speed(mbps, duplex);
        assert_eq!((speed.mbps, speed.full_duplex), expected);
    }
}

#[test]
fn the_notification_group_is_found_by_name_and_its_messages_are_recognized() {
    assert_eq!(decode_monitor_group(FAMILY, 1), Ok(6));
    // A notification is the message of a reply with another command.
    let mut notice = SPEED.to_vec();
    assert_eq!(link_modes_changed_ifindexes(&notice, NUMBER).count(), 0, "an answer");
    notice[HEADER_BYTES] = LINK_MODES_NOTIFICATION;
    assert_eq!(link_modes_changed_ifindexes(&notice, NUMBER).collect::<Vec<_>>(), [3]);
    assert_eq!(
        link_modes_changed_ifindexes(&notice, NUMBER + 1).count(),
        0,
        "a notification of another family"
    );
    assert_eq!(link_modes_changed_ifindexes(&[notice.clone(), notice].concat(), NUMBER).count(), 2);
}

proptest! {
    #[test]
    fn damaged_speeds_are_read_or_refused(
        damage in prop::collection::vec((0..SPEED.len(), any::<u8>()), 1..20),
        len in 0..=SPEED.len(),
        is_notice in any::<bool>(),
    ) {
        let mut bytes = SPEED.to_vec();
        if is_notice {
            bytes[HEADER_BYTES] = LINK_MODES_NOTIFICATION;
        }
        for (position, byte) in damage {
            bytes[position] = byte;
        }
        bytes.truncate(len);
        let _ = decode_speed(&bytes, 2, NUMBER);
        prop_assert!(link_modes_changed_ifindexes(&bytes, NUMBER).count() <= bytes.len() / HEADER_BYTES);
        let mut family = FAMILY.to_vec();
        family.truncate(len * FAMILY.len() / SPEED.len());
        let _ = decode_monitor_group(&with_true_length(family), 1);
    }
}
