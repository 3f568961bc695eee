//! A test case, and the steps that several cases have in common.

use std::time::Duration;

use crate::partner::Behaviour;
use crate::pdu::{Lacpdu, State};
use crate::session::Session;
use crate::setup::{LONG_TIMEOUT, SHORT_TIMEOUT};
use crate::verdict::{CaseResult, Stop, not_applicable};

/// Index of the link that a case with one link uses.
pub(super) const ONE: usize = 0;
/// Index of the second link of a case with two links.
pub(super) const OTHER: usize = 1;

/// A test case.
#[derive(Debug)]
pub(crate) struct Case {
    /// Unique name, `subject.question`.
    pub(crate) id: &'static str,
    /// The requirement.
    pub(crate) title: &'static str,
    /// Clause of the standard that contains the requirement.
    pub(crate) clause: &'static str,
    /// Number of required interfaces.
    pub(crate) interfaces: usize,
    /// Whether the case takes more than a minute.
    pub(crate) is_long: bool,
    pub(crate) judge: fn(&mut Session<'_>) -> CaseResult,
}

impl Case {
    pub(super) const fn new(
        id: &'static str,
        title: &'static str,
        clause: &'static str,
        judge: fn(&mut Session<'_>) -> CaseResult,
    ) -> Self {
        Self { id, title, clause, interfaces: 1, is_long: false, judge }
    }

    pub(super) const fn with_two(self) -> Self {
        Self { interfaces: 2, ..self }
    }

    pub(super) const fn long(self) -> Self {
        Self { is_long: true, ..self }
    }
}

/// Waits up to `limit` for the next LACPDU on a link for which `matches_pdu` returns true; returns
/// it with its time.
pub(super) fn await_lacpdu(
    session: &mut Session<'_>,
    interface: usize,
    limit: Duration,
    matches_pdu: impl Fn(&Lacpdu) -> bool,
) -> Result<Option<(Duration, Lacpdu)>, Stop> {
    let begin = session.links[interface].received_frames.len();
    let find = |session: &Session<'_>| {
        let received = session.links[interface].received_frames.get(begin..)?;
        let pdu =
            |received: &crate::record::ReceivedFrame| Some((received.time, *received.lacpdu()?));
        received.iter().filter_map(pdu).find(|(_, pdu)| matches_pdu(pdu))
    };
    session.run_until(limit, |session| find(session).is_some())?;
    Ok(find(session))
}

/// Returns a description of the last LACPDU that the device sent on a link.
pub(super) fn describe_last_lacpdu(session: &Session<'_>, interface: usize) -> String {
    session.links[interface].last().map_or("no LACPDU".to_owned(), describe)
}

/// Returns a description of an LACPDU.
pub(super) fn describe(pdu: &Lacpdu) -> String {
    format!("actor: {}; partner: {}", pdu.actor, pdu.partner)
}

/// Returns the lifetime of the device's information about the partner, which is the duration of its
/// current_while_timer: the short or long timeout, as in the device's state.
///
/// # Errors
/// Not applicable if the device uses the long timeout and long cases are not enabled.
pub(super) fn information_lifetime(session: &Session<'_>) -> Result<Duration, Stop> {
    let state = session.links[ONE].device.map(|info| info.state).unwrap_or_default();
    if state.has(State::SHORT_TIMEOUT) {
        Ok(SHORT_TIMEOUT)
    } else if session.setup.long {
        Ok(LONG_TIMEOUT)
    } else {
        not_applicable("the device uses the long timeout: configure it to short, or use --long")
    }
}

/// Sends a last LACPDU on every link and silences all partners. Returns the time of the last
/// transmission.
pub(super) fn stop_sending(session: &mut Session<'_>) -> Result<Duration, Stop> {
    for interface in 0..session.links.len() {
        session.send_lacpdu(interface)?;
        session.links[interface].partner.voice = Behaviour::Mute;
    }
    Ok(session.now())
}
