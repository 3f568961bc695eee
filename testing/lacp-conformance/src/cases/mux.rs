//! Cases on the Mux machine (6.4.15) and the unselection of a port (6.4.9 update_Selected).

use super::case::{Case, ONE, await_lacpdu, describe, describe_last_lacpdu};
use crate::pdu::{Lacpdu, State};
use crate::record::seconds;
use crate::session::Session;
use crate::setup::AGGREGATE_WAIT;
use crate::verdict::{CaseResult, fail, require};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "mux.follows-sync",
        "collecting and distributing end when the partner is out of sync, and come back with it",
        "6.4.15 (802.1AX-2020 6.4.13)",
        follows_sync,
    ),
    Case::new(
        "mux.port-moves",
        "another port of the partner at the other end: the device goes out of sync and selects anew",
        "6.4.9 update_Selected, 6.4.15 (DETACHED)",
        port_moves,
    ),
    Case::new(
        "mux.wait-while",
        "a newly selected port waits two seconds for others before it is in sync",
        "6.4.15 (WAITING), 6.4.4 Aggregate_Wait_Time",
        wait_while,
    ),
    Case::new(
        "mux.attaches-alone",
        "the device comes into sync without waiting for the partner's sync, but passes no frames",
        "6.4.15 (ATTACHED)",
        attaches_alone,
    ),
];

const FLOWS: State = State(State::COLLECTING.0 | State::DISTRIBUTING.0);
/// Port number of the partner that is new to the device.
const NEW_PORT: u16 = 0x7a;
/// Key of the partner that is new to the device.
const NEW_KEY: u16 = 0x5c;

fn follows_sync(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let limit = session.setup.immediate_limit();
    let willing = session.links[ONE].partner.info.state;
    session.links[ONE].partner.info.state = willing.without(State::SYNCHRONIZATION);
    session.send_lacpdu(ONE)?;
    let stopped = |pdu: &Lacpdu| !pdu.actor.state.has_any(FLOWS);
    let start = session.now();
    let Some((stopped_at, _)) = await_lacpdu(session, ONE, limit, stopped)? else {
        return fail(
            "neither collecting nor distributing within a second of the partner's loss of sync",
            describe_last_lacpdu(session, ONE),
        );
    };
    let stopped_at = stopped_at - start;
    session.links[ONE].partner.info.state = willing;
    session.send_lacpdu(ONE)?;
    let start = session.now();
    let flows = |pdu: &Lacpdu| pdu.actor.state.has(State::IN_USE);
    let Some((started_at, _)) = await_lacpdu(session, ONE, limit, flows)? else {
        return fail(
            "collecting and distributing within a second of the partner's sync",
            describe_last_lacpdu(session, ONE),
        );
    };
    Ok(format!("ended after {}, back after {}", seconds(stopped_at), seconds(started_at - start)))
}

fn port_moves(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    session.run_for(session.setup.immediate_limit())?;
    session.links[ONE].partner.info.port = NEW_PORT;
    session.send_lacpdu(ONE)?;
    let start = session.now();
    let has_new_port = |pdu: &Lacpdu| pdu.partner.port == NEW_PORT;
    let Some((time, pdu)) =
        await_lacpdu(session, ONE, session.setup.immediate_limit() * 2, has_new_port)?
    else {
        return fail("the partner's new port reported back", describe_last_lacpdu(session, ONE));
    };
    let expected = "out of sync, neither collecting nor distributing, in the first LACPDU that \
                    has the new port";
    require(!pdu.actor.state.has_any(State::IN_USE), expected, || describe(&pdu))?;
    Ok(format!("out of sync after {}", seconds(time - start)))
}

/// Changes the key on every link, so that all ports must attach to a different aggregator at the
/// same time, after the wait of 6.4.15 (WAITING).
fn wait_while(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    session.run_for(session.setup.immediate_limit())?;
    for interface in 0..session.links.len() {
        session.links[interface].partner.info.key = NEW_KEY;
        session.send_lacpdu(interface)?;
    }
    let start = session.now();
    let limit = AGGREGATE_WAIT + session.setup.immediate_limit() * 2;
    let synced =
        |pdu: &Lacpdu| pdu.partner.key == NEW_KEY && pdu.actor.state.has(State::SYNCHRONIZATION);
    let Some((time, _)) = await_lacpdu(session, ONE, limit, synced)? else {
        return fail("in sync again", describe_last_lacpdu(session, ONE));
    };
    let slack = session.setup.tolerance + session.setup.jitter;
    let observed = || format!("in sync {} after the change", seconds(time - start));
    require(time - start + slack >= AGGREGATE_WAIT, "not in sync for two seconds", observed)?;
    Ok(observed())
}

fn attaches_alone(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let info = &mut session.links[ONE].partner.info;
    info.port = NEW_PORT;
    info.state = info.state.without(State::SYNCHRONIZATION);
    session.send_lacpdu(ONE)?;
    let limit = AGGREGATE_WAIT + session.setup.immediate_limit() * 2;
    let synced =
        |pdu: &Lacpdu| pdu.partner.port == NEW_PORT && pdu.actor.state.has(State::SYNCHRONIZATION);
    let Some((_, pdu)) = await_lacpdu(session, ONE, limit, synced)? else {
        return fail("in sync within four seconds", describe_last_lacpdu(session, ONE));
    };
    let flows = |pdu: &Lacpdu| pdu.actor.state.has_any(FLOWS);
    let expected = "neither collecting nor distributing without the partner's sync";
    require(!flows(&pdu), expected, || describe(&pdu))?;
    if let Some((_, pdu)) = await_lacpdu(session, ONE, session.setup.immediate_limit() * 2, flows)?
    {
        return fail(expected, describe(&pdu));
    }
    Ok("in sync, no frames pass".to_owned())
}
