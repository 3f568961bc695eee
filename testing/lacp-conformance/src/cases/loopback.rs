//! Cases in which the device receives its own LACPDUs.

use std::time::Duration;

use super::case::{Case, describe, information_lifetime};
use crate::partner::Behaviour;
use crate::pdu::State;
use crate::session::Session;
use crate::verdict::{CaseResult, fail};

pub(crate) const CASES: &[Case] = &[Case::new(
    "loopback.reflected",
    "a link on which the device receives its own LACPDUs does not come into use",
    "6.4.14.1 (ports joined by one link do not share an aggregator)",
    reflected,
)];

const LOOK: Duration = Duration::from_secs(5);

fn reflected(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let lifetime = information_lifetime(session)?;
    for link in &mut session.links {
        link.partner.voice = Behaviour::Reflect;
    }
    // The information about the previous partner may remain until it expires.
    session.run_for(lifetime + session.setup.immediate_limit() * 2)?;
    let start = session.now();
    session.run_for(LOOK)?;
    let mut reflected = 0;
    for link in &session.links {
        for (_, pdu) in link.lacpdus_since(start) {
            reflected += 1;
            if pdu.actor.state.has(State::DISTRIBUTING) {
                return fail("not distributing", describe(&pdu));
            }
        }
    }
    Ok(format!("{reflected} LACPDUs sent back"))
}
