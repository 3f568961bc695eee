//! Conformance checks of every octet of a frame sent by the device.

use std::ops::Range;

use super::frame::{FRAME_BYTES, SLOW_PROTOCOLS_MULTICAST, mac_text, read};
use super::lacpdu::{ACTOR_AT, COLLECTOR_AT, PARTNER_AT, TERMINATOR_AT};

/// Returns each violation of 802.1AX-2014, 6.4.2.2 and 6.4.2.3, in an LACPDU.
pub(crate) fn lacpdu_violations(frame: &[u8]) -> Vec<String> {
    let mut violations = header(frame);
    let version = frame.get(15).copied().unwrap_or(0);
    if version == 0 {
        violations.push("version is 0".to_owned());
    }
    for (name, offset, tlv_type, len) in [
        ("actor", ACTOR_AT, 1, 20),
        ("partner", PARTNER_AT, 2, 20),
        ("collector", COLLECTOR_AT, 3, 16),
    ] {
        violations.extend(tlv(frame, name, offset, tlv_type, len));
    }
    violations.extend(zeros(frame, "reserved octets of the actor's TLV", 33..36));
    violations.extend(zeros(frame, "reserved octets of the partner's TLV", 53..56));
    violations.extend(zeros(frame, "reserved octets of the collector's TLV", 60..72));
    // From version 2 on, further TLVs may precede the terminator (6.4.2.4).
    if version <= 1 {
        violations.extend(tlv(frame, "terminator", TERMINATOR_AT, 0, 0));
        violations.extend(zeros(frame, "reserved octets after the terminator", 74..FRAME_BYTES));
    }
    violations
}

/// Returns each violation of 802.1AX-2014, 6.5.3.3, in a Marker Response PDU.
pub(crate) fn marker_response_violations(frame: &[u8]) -> Vec<String> {
    let mut violations = header(frame);
    if frame.get(15) != Some(&1) {
        violations.push(format!("version is {:?}, not 1", frame.get(15)));
    }
    violations.extend(tlv(frame, "marker response", 16, 2, 16));
    violations.extend(zeros(frame, "pad", 30..32));
    violations.extend(tlv(frame, "terminator", 32, 0, 0));
    violations.extend(zeros(frame, "reserved octets", 34..FRAME_BYTES));
    violations
}

fn header(frame: &[u8]) -> Vec<String> {
    let mut violations = Vec::new();
    if frame.len() < FRAME_BYTES {
        violations.push(format!("{} octets without FCS, fewer than {FRAME_BYTES}", frame.len()));
    }
    match read(frame, 0) {
        Some(SLOW_PROTOCOLS_MULTICAST) => {}
        Some(other) => violations.push(format!("destination is {}", mac_text(other))),
        None => violations.push("no destination".to_owned()),
    }
    let source: [u8; 6] = read(frame, 6).unwrap_or_default();
    if source == [0; 6] || source[0] & 1 != 0 {
        violations.push(format!("source {} is no individual address", mac_text(source)));
    }
    violations
}

fn tlv(frame: &[u8], name: &str, offset: usize, tlv_type: u8, len: u8) -> Option<String> {
    let header = frame.get(offset..offset + 2)?;
    (header != [tlv_type, len]).then(|| {
        format!("{name} TLV has type {} length {}, not {tlv_type} and {len}", header[0], header[1])
    })
}

fn zeros(frame: &[u8], name: &str, range: Range<usize>) -> Option<String> {
    let bytes = frame.get(range)?;
    bytes.iter().any(|byte| *byte != 0).then(|| format!("{name} are not zero"))
}
