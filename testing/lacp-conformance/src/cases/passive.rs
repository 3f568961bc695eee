//! Cases on passive devices (6.4.13, 6.4.1).

use std::time::Duration;

use super::case::{Case, ONE, await_lacpdu, information_lifetime, stop_sending};
use crate::partner::{Behaviour, Partner};
use crate::pdu::State;
use crate::record::seconds;
use crate::session::Session;
use crate::setup::SHORT_TIMEOUT;
use crate::verdict::{CaseResult, Stop, fail, not_applicable, require};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "passive.silent-until-spoken-to",
        "a passive device sends nothing before it has received an LACPDU",
        "6.4.1, 6.4.13 (NO_PERIODIC)",
        silent,
    ),
    Case::new(
        "passive.answers",
        "a passive device answers an active partner",
        "6.4.1, 6.4.13",
        answers,
    ),
];

const SETTLE: Duration = Duration::from_secs(2);
/// Observation time of a normal run. A device that transmits to the default partner does so each 30
/// s, which only [`LONG_LOOK`] covers.
const LOOK: Duration = Duration::from_secs(5);
const LONG_LOOK: Duration = Duration::from_secs(35);

/// Lets a passive device forget its partner.
fn forget(session: &mut Session<'_>) -> Result<(), Stop> {
    session.establish()?;
    if session.links[ONE].device.is_some_and(|info| info.state.has(State::ACTIVITY)) {
        return not_applicable("the device is active");
    }
    let lifetime = information_lifetime(session)?;
    stop_sending(session)?;
    session.run_for(lifetime + SHORT_TIMEOUT + session.setup.tolerance * 2 + SETTLE)?;
    Ok(())
}

fn silent(session: &mut Session<'_>) -> CaseResult {
    forget(session)?;
    let start = session.now();
    let duration = if session.setup.long { LONG_LOOK } else { LOOK };
    session.run_for(duration)?;
    let pdu_count = session.links[ONE].lacpdus_since(start).len();
    require(pdu_count == 0, "silence", || format!("{pdu_count} LACPDUs in {}", seconds(duration)))?;
    Ok(format!("silence for {}", seconds(duration)))
}

fn answers(session: &mut Session<'_>) -> CaseResult {
    forget(session)?;
    session.links[ONE].partner = Partner { voice: Behaviour::Answer, ..Partner::baseline(ONE) };
    let start = session.now();
    match await_lacpdu(session, ONE, session.setup.immediate_limit(), |_| true)? {
        Some((time, _)) => Ok(format!("after {}", seconds(time - start))),
        None => fail("an LACPDU within a second", "silence"),
    }
}
