//! Cases on the limit of the Transmit machine (6.4.16).

use std::time::Duration;

use super::case::{Case, ONE};
use crate::partner::Behaviour;
use crate::pdu::State;
use crate::record::{gaps, most_within, seconds};
use crate::session::Session;
use crate::setup::FAST_PERIODIC;
use crate::verdict::{CaseResult, Stop, require};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "rate.three-per-second",
        "not more than three LACPDUs in any second, whatever is provoked",
        "6.4.16 (802.1AX-2020 allows more: see rate.ten-per-second)",
        three,
    ),
    Case::new(
        "rate.ten-per-second",
        "not more than ten frames of a slow protocol in any second, whatever is provoked",
        "802.1AX-2020 6.4.7 txOpportunity and 6.4.14; IEEE 802.3 Annex 57A",
        ten,
    ),
];

const PROVOKE: Duration = Duration::from_secs(4);
/// Interval of frames that cause a transmission: 50 per second.
const EVERY: Duration = Duration::from_millis(20);

fn three(session: &mut Session<'_>) -> CaseResult {
    limited(session, 3)
}

fn ten(session: &mut Session<'_>) -> CaseResult {
    limited(session, 10)
}

fn limited(session: &mut Session<'_>, limit: usize) -> CaseResult {
    session.establish()?;
    let start = session.now();
    provoke(session)?;
    let answers = session.links[ONE].lacpdus_since(start).len();
    require(answers > 0, "an answer to what was provoked", || "silence".to_owned())?;
    judge(session, start, limit)
}

/// Sends frames, each with a wrong view of the device and a state different from the one before.
/// Each of the two is a reason to transmit (6.4.9 update_NTT, 6.4.15).
fn provoke(session: &mut Session<'_>) -> Result<(), Stop> {
    session.links[ONE].partner.voice = Behaviour::Mute;
    let deadline = session.now() + PROVOKE;
    let mut even = false;
    while session.now() < deadline {
        let link = &session.links[ONE];
        let mut pdu = link.partner.compose(link.device.as_ref());
        pdu.partner.state = pdu.partner.state.put(State::SYNCHRONIZATION, even);
        pdu.actor.state = pdu.actor.state.put(State::SYNCHRONIZATION, even);
        session.send(ONE, &pdu.encode())?;
        session.run_for(EVERY)?;
        even = !even;
    }
    Ok(())
}

/// Checks that the device sent at most `limit` LACPDUs in any second since `start`.
pub(super) fn judge(session: &Session<'_>, start: Duration, limit: usize) -> CaseResult {
    let times: Vec<Duration> =
        session.links[ONE].lacpdus_since(start).into_iter().map(|(time, _)| time).collect();
    let max_count = most_within(&times, FAST_PERIODIC - session.setup.jitter);
    let shortest = gaps(&times).into_iter().min().unwrap_or_default();
    let observed = || format!("{max_count} in one second, as close as {}", seconds(shortest));
    require(max_count <= limit, format!("at most {limit} LACPDUs in any second"), observed)?;
    Ok(observed())
}
