//! Cases on the Receive machine (6.4.12) and its recording and comparison functions (6.4.9).

use std::time::Duration;

use super::case::{
    Case, ONE, await_lacpdu, describe, describe_last_lacpdu, information_lifetime, stop_sending,
};
use crate::partner::Behaviour;
use crate::pdu::{Lacpdu, PortInfo, State};
use crate::record::seconds;
use crate::session::Session;
use crate::setup::SHORT_TIMEOUT;
use crate::verdict::{CaseResult, Stop, fail, not_applicable, require};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "receive.echo",
        "the partner's information is recorded and reported back exactly",
        "6.4.9 recordPDU",
        echo,
    ),
    Case::new(
        "receive.sync-needs-a-true-view",
        "a partner that has another view of the device is not in sync, and no frames pass",
        "6.4.9 recordPDU, 6.4.15",
        sync_needs_a_true_view,
    ),
    Case::new(
        "receive.ntt",
        "a partner with a wrong view of the device gets an LACPDU at once",
        "6.4.9 update_NTT, 6.4.12",
        ntt,
    ),
    Case::new(
        "receive.expired",
        "a silent partner's information expires after the device's timeout, with the bits of \
         EXPIRED",
        "6.4.12 (EXPIRED), 6.4.4",
        expired,
    ),
    Case::new(
        "receive.defaulted",
        "three seconds after it expired, it is replaced by the defaults, and the device reports them",
        "6.4.12 (DEFAULTED), 6.4.9 update_Default_Selected, 6.4.15 (DETACHED sets NTT)",
        defaulted,
    ),
    Case::new(
        "receive.recovers",
        "a partner that speaks again before that is in use again at once",
        "6.4.12 (EXPIRED to CURRENT), 6.4.15",
        recovers,
    ),
];

const SETTLE: Duration = Duration::from_millis(2500);

fn echo(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let willing = State::ACTIVITY.with(State::SHORT_TIMEOUT).with(State::AGGREGATION);
    let partner_info = session.links[ONE].partner.info;
    let infos = [
        PortInfo { port: 0xabcd, port_priority: 0x0102, state: willing, ..partner_info },
        PortInfo { key: 0xbeef, state: willing.with(State::COLLECTING), ..partner_info },
        PortInfo {
            system_priority: 0x1234,
            system: [0x02, 0xfe, 0xdc, 0xba, 0x98, 0x76],
            state: willing.with(State::EXPIRED).with(State::DEFAULTED),
            ..partner_info
        },
    ];
    for info in infos {
        let partner = &mut session.links[ONE].partner;
        (partner.info, partner.state_is_fixed) = (info, true);
        // The device computes this bit and does not record it.
        let computed = State::SYNCHRONIZATION;
        let reflected =
            |pdu: &Lacpdu| PortInfo { state: pdu.partner.state.without(computed), ..pdu.partner };
        let limit = session.setup.immediate_limit() * 2;
        if await_lacpdu(session, ONE, limit, |pdu| reflected(pdu) == info)?.is_none() {
            return fail(format!("partner: {info}"), describe_last_lacpdu(session, ONE));
        }
    }
    Ok("three identities with their states".to_owned())
}

fn sync_needs_a_true_view(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    session.links[ONE].partner.tweak = Some(|pdu| pdu.partner.key ^= 0x0101);
    let stopped = |pdu: &Lacpdu| {
        let flows = State(State::COLLECTING.0 | State::DISTRIBUTING.0);
        !pdu.partner.state.has(State::SYNCHRONIZATION) && !pdu.actor.state.has_any(flows)
    };
    let expected = "the partner not in sync, neither collecting nor distributing";
    if await_lacpdu(session, ONE, session.setup.immediate_limit() * 2, stopped)?.is_none() {
        return fail(expected, describe_last_lacpdu(session, ONE));
    }
    if let Some((_, pdu)) = await_lacpdu(session, ONE, SETTLE, |pdu| !stopped(pdu))? {
        return fail(format!("{expected}, for as long as the view is wrong"), describe(&pdu));
    }
    Ok("stopped, and stayed so".to_owned())
}

/// Name of a wrong field in the view of the device, and a function that makes it wrong.
type ViewError = (&'static str, fn(&mut PortInfo));

const VIEW_ERRORS: [ViewError; 6] = [
    ("port", |view| view.port ^= 0x40),
    ("system priority", |view| view.system_priority ^= 1),
    ("key", |view| view.key ^= 1),
    ("timeout", |view| view.state.0 ^= State::SHORT_TIMEOUT.0),
    ("synchronization", |view| view.state.0 ^= State::SYNCHRONIZATION.0),
    ("activity", |view| view.state.0 ^= State::ACTIVITY.0),
];

fn ntt(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    // With the long timeout the device has no other reason to transmit.
    let state = &mut session.links[ONE].partner.info.state;
    *state = state.without(State::SHORT_TIMEOUT);
    session.send_lacpdu(ONE)?;
    session.run_for(SETTLE)?;
    session.links[ONE].partner.voice = Behaviour::Mute;
    for (name, mistake) in VIEW_ERRORS {
        let link = &session.links[ONE];
        let mut pdu = link.partner.compose(link.device.as_ref());
        mistake(&mut pdu.partner);
        session.send(ONE, &pdu.encode())?;
        if await_lacpdu(session, ONE, session.setup.immediate_limit(), |_| true)?.is_none() {
            return fail("an LACPDU within a second", format!("silence about a wrong {name}"));
        }
        session.send_lacpdu(ONE)?;
        session.run_for(session.setup.immediate_limit())?;
    }
    Ok(VIEW_ERRORS.map(|(name, _)| name).join(", "))
}

fn expired(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let lifetime = information_lifetime(session)?;
    let silent = stop_sending(session)?;
    let (slack, limit) =
        (session.setup.tolerance + session.setup.jitter, session.setup.immediate_limit());
    let is_expired = |pdu: &Lacpdu| pdu.actor.state.has(State::EXPIRED);
    let expected = format!("expired {} after the last word", seconds(lifetime));
    let Some((time, _)) = await_lacpdu(session, ONE, lifetime + slack + limit, is_expired)? else {
        return fail(expected, describe_last_lacpdu(session, ONE));
    };
    let after = time - silent;
    require(after + slack >= lifetime, expected, || format!("after {}", seconds(after)))?;
    // The consequences of the expiry may be reported in a later LACPDU.
    session.run_until(limit, |session| {
        session.links[ONE].last().is_some_and(|pdu| missing(session, pdu).is_none())
    })?;
    let Some(last) = session.links[ONE].last() else { return fail("an LACPDU", "silence") };
    if let Some(expected) = missing(session, last) {
        return fail(expected, describe(last));
    }
    Ok(format!("after {}", seconds(after)))
}

/// Returns the first property of the EXPIRED state that the LACPDU lacks.
fn missing(session: &Session<'_>, pdu: &Lacpdu) -> Option<&'static str> {
    let flows = State(State::COLLECTING.0 | State::DISTRIBUTING.0);
    let (actor, partner) = (pdu.actor.state, pdu.partner.state);
    [
        (actor.has(State::EXPIRED), "actor expired"),
        (!actor.has(State::DEFAULTED), "actor not defaulted"),
        (!partner.has(State::SYNCHRONIZATION), "partner not in sync while expired"),
        (partner.has(State::SHORT_TIMEOUT), "partner with the short timeout while expired"),
        (!actor.has_any(flows), "neither collecting nor distributing while expired"),
        (pdu.partner.is_same_port(&session.links[ONE].partner.info), "partner still known"),
    ]
    .into_iter()
    .find_map(|(is_satisfied, requirement)| (!is_satisfied).then_some(requirement))
}

fn defaulted(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let lifetime = information_lifetime(session)? + SHORT_TIMEOUT;
    let partner_info = session.links[ONE].partner.info;
    let silent = stop_sending(session)?;
    let slack = session.setup.tolerance * 2 + session.setup.jitter;
    let limit = lifetime + slack + session.setup.immediate_limit();
    let is_defaulted = |pdu: &Lacpdu| pdu.actor.state.has(State::DEFAULTED);
    let expected = format!("defaulted {} after the last word", seconds(lifetime));
    let Some((time, pdu)) = await_lacpdu(session, ONE, limit, is_defaulted)? else {
        if session.links[ONE].device.is_some_and(|info| !info.state.has(State::ACTIVITY)) {
            return not_applicable("the device is passive and sends no more LACPDUs");
        }
        let last = session.links[ONE].received_frames.last().map_or(silent, |last| last.time);
        let (last, last_text) = (seconds(last - silent), describe_last_lacpdu(session, ONE));
        return fail(expected, format!("silence since {last} after that; {last_text}"));
    };
    let after = time - silent;
    require(after + slack >= lifetime, expected, || format!("after {}", seconds(after)))?;
    let state = pdu.actor.state;
    require(!state.has(State::EXPIRED), "no longer expired", || describe(&pdu))?;
    require(!pdu.partner.is_same_port(&partner_info), "the partner forgotten", || describe(&pdu))?;
    Ok(format!("after {}", seconds(after)))
}

fn recovers(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let lifetime = information_lifetime(session)?;
    stop_sending(session)?;
    let limit = session.setup.immediate_limit();
    let is_expired = |pdu: &Lacpdu| pdu.actor.state.has(State::EXPIRED);
    if await_lacpdu(session, ONE, lifetime + limit * 2, is_expired)?.is_none() {
        return not_applicable("it did not expire: see receive.expired");
    }
    for interface in 0..session.links.len() {
        session.links[interface].partner.voice = Behaviour::Answer;
        session.send_lacpdu(interface)?;
    }
    let start = session.now();
    let Some(time) = await_in_use(session, limit)? else {
        return fail(
            "in use within a second, without waiting again",
            describe_last_lacpdu(session, ONE),
        );
    };
    Ok(format!("after {}", seconds(time - start)))
}

fn await_in_use(session: &mut Session<'_>, limit: Duration) -> Result<Option<Duration>, Stop> {
    let matches_pdu = |pdu: &Lacpdu| {
        pdu.actor.state.has(State::IN_USE)
            && !pdu.actor.state.has_any(State(State::EXPIRED.0 | State::DEFAULTED.0))
    };
    Ok(await_lacpdu(session, ONE, limit, matches_pdu)?.map(|(time, _)| time))
}
