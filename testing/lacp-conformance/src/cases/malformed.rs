//! Cases with frames that are not valid LACPDUs (6.4.2.3, 6.4.12).

use std::time::Duration;

use super::case::{Case, ONE, describe, describe_last_lacpdu};
use crate::partner::{Behaviour, WILLING};
use crate::pdu::{ETHERNET_BYTES, PortInfo, State};
use crate::session::Session;
use crate::verdict::{CaseResult, Stop, fail, require};

use super::version::{SIGN, prepare};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "malformed.truncated",
        "an LACPDU that ends early has no effect",
        "6.4.2.3",
        |session| without_effect(session, truncated),
    ),
    Case::new(
        "malformed.subtype",
        "a frame of another slow protocol has no effect",
        "6.4.2.3 (Subtype), IEEE 802.3 Annex 57A",
        |session| without_effect(session, other_subtypes),
    ),
    Case::new(
        "malformed.tlv-length",
        "an LACPDU with a wrong TLV length is taken or ignored as a whole",
        "6.4.12 (a Receive machine may check the lengths)",
        wrong_lengths,
    ),
];

const LOOK: Duration = Duration::from_millis(1300);

/// Time for the device to process a valid LACPDU and to report it back, as far as its transmission
/// limit allows.
const SETTLE: Duration = Duration::from_millis(1000);

/// Function that derives invalid frames from a valid LACPDU.
type Corruption = fn(&[u8]) -> Vec<Vec<u8>>;

/// Truncates the frame in the header, in each information TLV, and before the Collector Information
/// TLV.
pub(super) fn truncated(frame: &[u8]) -> Vec<Vec<u8>> {
    [1, 3, 15, 30, 42].iter().map(|len| frame[..ETHERNET_BYTES + len].to_vec()).collect()
}

/// Replaces the subtype with reserved ones, the one of OAM, and the organization-specific one.
pub(super) fn other_subtypes(frame: &[u8]) -> Vec<Vec<u8>> {
    let with_subtype = |subtype| {
        let mut frame = frame.to_vec();
        frame[ETHERNET_BYTES] = subtype;
        frame
    };
    [0, 3, 10, 255].map(with_subtype).to_vec()
}

/// Returns a valid LACPDU that would unselect the port and stop its traffic if the device accepted
/// it.
pub(super) fn harmful(session: &Session<'_>) -> Vec<u8> {
    let link = &session.links[ONE];
    let mut pdu = link.partner.compose(link.device.as_ref());
    let other = PortInfo { key: 0x6666, port: 0x6666, ..pdu.actor };
    pdu.actor = PortInfo { state: other.state.without(State::SYNCHRONIZATION), ..other };
    pdu.partner.key ^= 1;
    pdu.encode()
}

fn without_effect(session: &mut Session<'_>, spoil: Corruption) -> CaseResult {
    session.establish()?;
    session.send_lacpdu(ONE)?;
    session.links[ONE].partner.voice = Behaviour::Mute;
    let start = session.now();
    let frames = spoil(&harmful(session));
    for frame in &frames {
        session.send(ONE, frame)?;
    }
    session.run_for(LOOK)?;
    require_undisturbed(session, start)?;
    Ok(format!("{} kinds of frames", frames.len()))
}

/// Fails if an LACPDU of the device since `start` reports a change.
pub(super) fn require_undisturbed(session: &Session<'_>, start: Duration) -> Result<(), Stop> {
    let link = &session.links[ONE];
    let changed = link.lacpdus_since(start).into_iter().find(|(_, pdu)| {
        !pdu.actor.state.has(State::IN_USE) || !pdu.partner.is_same_port(&link.partner.info)
    });
    match changed {
        Some((_, pdu)) => fail("nothing changes", describe(&pdu)),
        None => Ok(()),
    }
}

fn wrong_lengths(session: &mut Session<'_>) -> CaseResult {
    prepare(session)?;
    let mut outcomes = Vec::new();
    for (name, length_offset, length) in
        [("actor", 17, 19), ("partner", 37, 0), ("collector", 57, 255)]
    {
        // A valid LACPDU first, so that nothing expires and the state `SIGN` is new to the device.
        session.links[ONE].partner.info.state = WILLING;
        session.send_lacpdu(ONE)?;
        session.run_for(SETTLE)?;
        let link = &mut session.links[ONE];
        link.partner.info.state = SIGN;
        let mut frame = link.partner.compose(link.device.as_ref()).encode();
        frame[length_offset] = length;
        let start = session.now();
        session.send(ONE, &frame)?;
        session.run_for(LOOK)?;
        let link = &session.links[ONE];
        for (_, pdu) in link.lacpdus_since(start) {
            let is_valid = pdu.partner.is_same_port(&link.partner.info)
                && [WILLING, SIGN].contains(&pdu.partner.state);
            require(is_valid, "the whole of it or nothing", || describe(&pdu))?;
        }
        let Some(last) = link.lacpdus_since(start).pop() else {
            return fail("further LACPDUs", describe_last_lacpdu(session, ONE));
        };
        let is_applied = last.1.partner.state == SIGN;
        outcomes.push(format!("{name} {}", if is_applied { "taken" } else { "ignored" }));
    }
    Ok(outcomes.join(", "))
}
