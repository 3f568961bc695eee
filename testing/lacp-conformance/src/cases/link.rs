//! Cases in which the link loses and regains its carrier.

use std::time::Duration;

use super::case::{Case, ONE, describe_last_lacpdu};
use crate::record::seconds;
use crate::session::Session;
use crate::verdict::{CaseResult, fail};

pub(crate) const CASES: &[Case] = &[Case::new(
    "link.flapping",
    "a link that flapped is in use again when it stays up",
    "6.4.12 (PORT_DISABLED to EXPIRED), 6.4.15",
    flapping,
)];

const FLAPS: usize = 5;
const HALF: Duration = Duration::from_millis(200);

fn flapping(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    for _ in 0..FLAPS {
        session.set_link(ONE, false)?;
        session.run_for(HALF)?;
        session.set_link(ONE, true)?;
        session.run_for(HALF)?;
    }
    let start = session.now();
    let is_back = |session: &Session<'_>| {
        let link = &session.links[ONE];
        link.is_in_use() && link.received_frames.last().is_some_and(|last| last.time >= start)
    };
    let limit = session.setup.establish_limit;
    if !session.run_until(limit, is_back)? {
        return fail(
            format!("in use within {}", seconds(limit)),
            describe_last_lacpdu(session, ONE),
        );
    }
    Ok(format!("in use {} after the last flap", seconds(session.now() - start)))
}
