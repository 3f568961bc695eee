//! The cases. Clauses are those of IEEE 802.1AX-2014 unless another year is named;
//! 802.1AX-2020 has the same machines under other numbers.

mod flood;
mod format;
mod link;
mod loopback;
mod malformed;
mod marker;
mod mux;
mod passive;
mod periodic;
mod rate;
mod receive;
mod selection;
mod traffic;
mod version;

use std::time::Duration;

use crate::partner::Voice;
use crate::pdu::{Lacpdu, State};
use crate::session::Session;
use crate::setup::{LONG_TIMEOUT, SHORT_TIMEOUT};
use crate::verdict::{Judged, Stop, not_applicable};

/// The link on which a case plays that needs one.
const ONE: usize = 0;
/// The other link of a case that needs two.
const OTHER: usize = 1;

/// A question to the device.
#[derive(Debug)]
pub(crate) struct Case {
    /// Its name, `subject.question`.
    pub(crate) id: &'static str,
    /// What must be so.
    pub(crate) title: &'static str,
    /// Where that is said.
    pub(crate) clause: &'static str,
    /// How many interfaces it needs.
    pub(crate) interfaces: usize,
    /// Whether it takes more than a minute.
    pub(crate) is_long: bool,
    pub(crate) judge: fn(&mut Session<'_>) -> Judged,
}

impl Case {
    const fn new(
        id: &'static str,
        title: &'static str,
        clause: &'static str,
        judge: fn(&mut Session<'_>) -> Judged,
    ) -> Self {
        Self { id, title, clause, interfaces: 1, is_long: false, judge }
    }

    const fn with_two(self) -> Self {
        Self { interfaces: 2, ..self }
    }

    const fn long(self) -> Self {
        Self { is_long: true, ..self }
    }
}

/// All cases, in the order in which they are run.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    [
        selection::CASES,
        format::CASES,
        periodic::CASES,
        rate::CASES,
        passive::CASES,
        receive::CASES,
        mux::CASES,
        version::CASES,
        malformed::CASES,
        marker::CASES,
        loopback::CASES,
        link::CASES,
        flood::CASES,
        traffic::CASES,
    ]
    .into_iter()
    .flatten()
}

/// The next LACPDU on a link for which `wanted` holds, with its time.
fn await_lacpdu(
    session: &mut Session<'_>,
    interface: usize,
    limit: Duration,
    wanted: impl Fn(&Lacpdu) -> bool,
) -> Result<Option<(Duration, Lacpdu)>, Stop> {
    let begin = session.seats[interface].heard.len();
    let find = |session: &Session<'_>| {
        let heard = session.seats[interface].heard.get(begin..)?;
        let pdu = |one: &crate::record::Heard| Some((one.at, *one.lacpdu()?));
        heard.iter().filter_map(pdu).find(|(_, pdu)| wanted(pdu))
    };
    session.run_until(limit, |session| find(session).is_some())?;
    Ok(find(session))
}

/// What the device last said, in words.
fn last_words(session: &Session<'_>, interface: usize) -> String {
    session.seats[interface].last().map_or("no LACPDU".to_owned(), describe)
}

/// An LACPDU in words.
fn describe(pdu: &Lacpdu) -> String {
    format!("actor: {}; partner: {}", pdu.actor, pdu.partner)
}

/// How long the device keeps what it heard, as its own state says: its
/// current_while_timer.
///
/// # Errors
/// Not applicable if that is long and nobody asked for long cases.
fn information_lifetime(session: &Session<'_>) -> Result<Duration, Stop> {
    let state = session.seats[ONE].device.map(|info| info.state).unwrap_or_default();
    if state.has(State::SHORT_TIMEOUT) {
        Ok(SHORT_TIMEOUT)
    } else if session.setup.long {
        Ok(LONG_TIMEOUT)
    } else {
        not_applicable("the device uses the long timeout: configure it to short, or use --long")
    }
}

/// Lets every partner fall silent after a last word; returns when that was.
fn fall_silent(session: &mut Session<'_>) -> Result<Duration, Stop> {
    for interface in 0..session.seats.len() {
        session.say(interface)?;
        session.seats[interface].partner.voice = Voice::Mute;
    }
    Ok(session.now())
}
