//! Cases on the forwarding of frames, observed with a probe of a host behind the team.

use std::time::Duration;

use super::case::Case;
use crate::pdu::State;
use crate::session::Session;
use crate::verdict::{CaseResult, Stop, fail, not_applicable};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "traffic.passes",
        "a device that says collecting and distributing takes frames from each link and answers \
         on one of them",
        "6.4.15 (COLLECTING_DISTRIBUTING)",
        passes,
    ),
    Case::new(
        "traffic.ends-with-sync",
        "a device that reports neither accepts no frames from the link",
        "6.4.15 (ATTACHED)",
        ends_with_sync,
    ),
];

const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns whether a probe sent on one interface is answered, on any interface.
fn is_answered(session: &mut Session<'_>, interface: usize) -> Result<bool, Stop> {
    let source = session.links[interface].partner.source;
    for _ in 0..TRIES {
        if session.probe(interface)?.is_none() {
            return not_applicable("no probe was given");
        }
        let has_response = |session: &Session<'_>| {
            session.probe_replies.iter().any(|(_, _, s)| s.source == source)
        };
        if session.run_until(PATIENCE, has_response)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn passes(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    for interface in 0..session.links.len() {
        if !is_answered(session, interface)? {
            return fail("an answer to a probe", format!("none by interface {interface}"));
        }
    }
    let mut used: Vec<usize> =
        session.probe_replies.iter().map(|(_, interface, _)| *interface).collect();
    used.sort_unstable();
    used.dedup();
    Ok(format!("answers by interfaces {used:?}"))
}

fn ends_with_sync(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    for interface in 0..session.links.len() {
        let state = &mut session.links[interface].partner.info.state;
        *state = state.without(State::SYNCHRONIZATION);
        session.send_lacpdu(interface)?;
    }
    let flows = State(State::COLLECTING.0 | State::DISTRIBUTING.0);
    let stopped = |session: &Session<'_>| {
        session.links.iter().all(|s| s.last().is_some_and(|pdu| !pdu.actor.state.has_any(flows)))
    };
    let limit = session.setup.immediate_limit() * 2;
    if !session.run_until(limit, stopped)? {
        return not_applicable("it still reports collecting or distributing: see mux.follows-sync");
    }
    for interface in 0..session.links.len() {
        if is_answered(session, interface)? {
            return fail("no answer to a probe", format!("one by interface {interface}"));
        }
    }
    Ok("no answer".to_owned())
}
