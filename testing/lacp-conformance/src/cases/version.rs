//! Cases with LACPDUs of later versions, which must be processed as this version (6.4.2.3, 6.4.12).

use std::time::Duration;

use super::case::{Case, ONE, await_lacpdu, describe_last_lacpdu};
use crate::partner::{Behaviour, WILLING};
use crate::pdu::State;
use crate::session::Session;
use crate::verdict::{CaseResult, Stop, fail};

pub(crate) const CASES: &[Case] = &[
    Case::new("version.two", "an LACPDU of version 2 is accepted", "6.4.2.3, 6.4.12", |session| {
        check_accepted(session, |frame| frame[15] = 2)
    }),
    Case::new(
        "version.unknown",
        "an LACPDU of version 255 is accepted",
        "6.4.2.3, 6.4.12",
        |session| check_accepted(session, |frame| frame[15] = 255),
    ),
    Case::new(
        "version.reserved-fields",
        "an LACPDU with nonzero reserved octets is accepted",
        "6.4.2.3, 6.4.12",
        |session| {
            check_accepted(session, |frame| {
                for range in [33..36, 53..56, 60..72, 74..frame.len()] {
                    frame[range].fill(0xa5);
                }
            })
        },
    ),
    Case::new(
        "version.more-tlvs",
        "an LACPDU of version 2 with unknown TLVs is accepted",
        "6.4.2.3, 6.4.2.4",
        |session| {
            check_accepted(session, |frame| {
                frame[15] = 2;
                // Port Algorithm, Port Conversation ID Digest, and an unknown TLV.
                let extra_tlvs =
                    [&[4, 6, 0, 0x80, 0xc2, 1][..], &[5, 20], &[7; 18], &[0x7f, 6, 1, 2, 3, 4]];
                let extra_tlvs = extra_tlvs.concat();
                frame[72..72 + extra_tlvs.len()].copy_from_slice(&extra_tlvs);
            })
        },
    ),
];

const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_millis(1300);

/// State that the partner sends only in these cases. The device proves that it accepted a frame by
/// reporting this state back; the state does not unselect a port.
pub(super) const SIGN: State = WILLING.with(State::COLLECTING);

/// Stops the partner's own LACPDUs, so that only frames of the case contain [`SIGN`].
pub(super) fn prepare(session: &mut Session<'_>) -> Result<(), Stop> {
    session.establish()?;
    let partner = &mut session.links[ONE].partner;
    partner.voice = Behaviour::Mute;
    partner.state_is_fixed = true;
    partner.info.state = SIGN;
    Ok(())
}

fn check_accepted(session: &mut Session<'_>, change: fn(&mut Vec<u8>)) -> CaseResult {
    prepare(session)?;
    for _ in 0..TRIES {
        let link = &session.links[ONE];
        let mut frame = link.partner.compose(link.device.as_ref()).encode();
        change(&mut frame);
        session.send(ONE, &frame)?;
        if await_lacpdu(session, ONE, PATIENCE, |pdu| pdu.partner.state == SIGN)?.is_some() {
            return Ok("reported back".to_owned());
        }
    }
    fail(format!("partner state reported back: {SIGN}"), describe_last_lacpdu(session, ONE))
}
