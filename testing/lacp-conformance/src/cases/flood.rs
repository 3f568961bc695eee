//! Cases in which frames arrive at the maximum rate of the interface, while the partner also sends
//! its LACPDUs.

use std::time::Duration;

use super::case::{Case, ONE, describe_last_lacpdu};
use super::malformed::{harmful, other_subtypes, require_undisturbed, truncated};
use super::rate;
use crate::pdu::{Lacpdu, PortInfo};
use crate::record::seconds;
use crate::session::{PartnerLink, Session};
use crate::setup::{AGGREGATE_WAIT, SHORT_TIMEOUT};
use crate::verdict::{CaseResult, Stop, fail};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "flood.recovers",
        "after a flood of forged LACPDUs the member is in use again, and stays so",
        "6.4.12 (CURRENT), 6.4.15",
        recovers,
    ),
    Case::new(
        "flood.answers-are-limited",
        "a flood of forged LACPDUs is not answered above the limit of transmission",
        "6.4.16",
        answers_are_limited,
    ),
    Case::new(
        "flood.malformed",
        "a flood of frames that are no LACPDUs changes nothing",
        "6.4.2.3, 6.4.12",
        malformed,
    ),
];

const FLOOD: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_secs(3);
const FORGERS: u16 = 16;

/// Returns LACPDUs of many different systems and ports, all with a correct view of the device.
fn forged(session: &Session<'_>) -> Vec<Vec<u8>> {
    let link = &session.links[ONE];
    let sound = link.partner.compose(link.device.as_ref());
    let forge = |number: u16| {
        let [_, low] = number.to_be_bytes();
        let system = [0x02, 0xf0, 0, 0, 0, low];
        let actor = PortInfo { system, key: number, port: number, ..sound.actor };
        Lacpdu { source: system, actor, ..sound }.encode()
    };
    (1..=FORGERS).map(forge).collect()
}

fn flood(session: &mut Session<'_>) -> Result<(Duration, u64), Stop> {
    session.establish()?;
    let frames = forged(session);
    let start = session.now();
    let sent_count = session.flood(ONE, FLOOD, &frames)?;
    Ok((start, sent_count))
}

fn recovers(session: &mut Session<'_>) -> CaseResult {
    let (_, sent_count) = flood(session)?;
    let limit = SHORT_TIMEOUT + AGGREGATE_WAIT + session.setup.immediate_limit() * 2;
    let end = session.now();
    let is_back = |session: &Session<'_>| {
        let link = &session.links[ONE];
        link.is_in_use() && link.received_frames.last().is_some_and(|last| last.time > end)
    };
    if !session.run_until(limit, is_back)? {
        return fail(
            format!("in use within {}", seconds(limit)),
            describe_last_lacpdu(session, ONE),
        );
    }
    let elapsed = session.now() - end;
    // Waits until late responses to the flood have arrived; from then on the link must stay in use.
    session.run_for(session.setup.immediate_limit())?;
    if session.run_until(LOOK, |session| !session.links.iter().all(PartnerLink::is_in_use))? {
        return fail("in use from then on", describe_last_lacpdu(session, ONE));
    }
    Ok(format!("{sent_count} frames; in use {} after the last", seconds(elapsed)))
}

fn answers_are_limited(session: &mut Session<'_>) -> CaseResult {
    let (start, sent_count) = flood(session)?;
    session.run_for(session.setup.immediate_limit())?;
    let judged = rate::judge(session, start, 3)?;
    Ok(format!("{sent_count} frames; {judged}"))
}

fn malformed(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let sound = harmful(session);
    let frames = [truncated(&sound), other_subtypes(&sound)].concat();
    let start = session.now();
    let sent_count = session.flood(ONE, FLOOD, &frames)?;
    session.run_for(LOOK)?;
    require_undisturbed(session, start)?;
    if !session.links[ONE].is_in_use() {
        return fail("in use", describe_last_lacpdu(session, ONE));
    }
    Ok(format!("{sent_count} frames"))
}
