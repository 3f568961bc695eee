//! Cases on Selection Logic (6.4.14): which ports share an aggregator. All interfaces of the run
//! are connected to one team, which uses one aggregator at a time.

use std::time::Duration;

use super::case::{Case, ONE, OTHER, await_lacpdu, describe_last_lacpdu};
use crate::partner::Partner;
use crate::pdu::State;
use crate::record::seconds;
use crate::session::{PartnerLink, Session};
use crate::verdict::{CaseResult, Stop, fail};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "selection.aggregates",
        "links to one partner system with one key are in use together",
        "6.4.14.1, 6.4.15",
        aggregates,
    ),
    Case::new(
        "selection.two-systems",
        "links to two partner systems never share the aggregator",
        "6.4.14.1, 6.3.6",
        |session| check_separation(session, |partner| partner.info.system[5] ^= 0x0f),
    )
    .with_two(),
    Case::new(
        "selection.two-keys",
        "links to one partner system with two keys never share the aggregator",
        "6.4.14.1, 6.3.5",
        |session| check_separation(session, |partner| partner.info.key += 1),
    )
    .with_two(),
    Case::new(
        "selection.individual",
        "links whose partner reports them as individual never share the aggregator",
        "6.4.14.1 (Individual links), 6.3.6",
        individual,
    )
    .with_two(),
];

const LOOK: Duration = Duration::from_secs(6);

fn aggregates(session: &mut Session<'_>) -> CaseResult {
    match session.establish() {
        Ok(after) => Ok(format!("{} in use after {}", session.links.len(), seconds(after))),
        Err(Stop::NotApplicable(reason)) => {
            let states: Vec<String> = (0..session.links.len())
                .map(|interface| {
                    format!("{interface}: {}", describe_last_lacpdu(session, interface))
                })
                .collect();
            fail("every member in use", format!("{reason}; {}", states.join("; ")))
        }
        Err(other) => Err(other),
    }
}

/// Changes the partner of one link so that the links cannot share an aggregator; then at most one
/// of them may be in use.
fn check_separation(session: &mut Session<'_>, change: fn(&mut Partner)) -> CaseResult {
    session.establish()?;
    change(&mut session.links[OTHER].partner);
    session.send_lacpdu(OTHER)?;
    require_never_both(session)
}

fn individual(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    for interface in [ONE, OTHER] {
        let state = &mut session.links[interface].partner.info.state;
        *state = state.without(State::AGGREGATION);
        session.send_lacpdu(interface)?;
    }
    let limit = session.setup.immediate_limit() * 2;
    let pdu = await_lacpdu(session, ONE, limit, |pdu| !pdu.partner.state.has(State::AGGREGATION))?;
    if pdu.is_none() {
        return fail("the partner reported back as individual", describe_last_lacpdu(session, ONE));
    }
    require_never_both(session)
}

/// Checks that the two links are never in use at the same time, according to the device's LACPDUs
/// to its current partners.
fn require_never_both(session: &mut Session<'_>) -> CaseResult {
    let both_in_use = |session: &Session<'_>| {
        [ONE, OTHER].iter().all(|interface| is_in_use_unchanged(&session.links[*interface]))
    };
    if session.run_until(LOOK, both_in_use)? {
        let states = [ONE, OTHER].map(|interface| describe_last_lacpdu(session, interface));
        return fail("at most one of the two in use", states.join("; "));
    }
    let used = [ONE, OTHER].iter().filter(|i| is_in_use_unchanged(&session.links[**i])).count();
    Ok(format!("{used} of 2 in use"))
}

fn is_in_use_unchanged(link: &PartnerLink) -> bool {
    let aggregation = |state: State| state.has(State::AGGREGATION);
    link.is_in_use()
        && link.last().is_some_and(|pdu| {
            aggregation(pdu.partner.state) == aggregation(link.partner.info.state)
        })
}
