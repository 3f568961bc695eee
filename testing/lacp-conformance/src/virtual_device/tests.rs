//! Tests that every case passes with a conforming device, and fails with a device that violates the
//! rule of the case.

use super::{Device, Flaw, VirtualWorld};
use crate::cases;
use crate::pdu::State;
use crate::probe::Probe;
use crate::report::{Finding, Outcome};
use crate::run::run;
use crate::session::Session;
use crate::setup::Setup;

const PASSIVE: State = State(State::SHORT_TIMEOUT.0 | State::AGGREGATION.0);
const ACTIVE: State = PASSIVE.with(State::ACTIVITY);

fn probe() -> Probe {
    Probe { target: [10, 0, 0, 1].into(), sender: [10, 0, 0, 2].into() }
}

/// Runs the cases whose names begin with `prefix` against a device with two ports.
fn findings(state: State, flaw: Flaw, is_long: bool, prefix: &str) -> Vec<Finding> {
    let probe = Some(probe());
    let mut world = VirtualWorld::new(Device::new(2, state, flaw, probe));
    let mut session = Session::new(&mut world, Setup { long: is_long, probe, ..Setup::default() });
    cases::all()
        .filter(|case| case.id.starts_with(prefix))
        .map(|case| run(case, &mut session))
        .collect()
}

#[test]
fn a_device_that_keeps_the_rules_passes_every_case() {
    for (state, others) in [
        (
            ACTIVE,
            &["periodic.both-passive", "passive.silent-until-spoken-to", "passive.answers"][..],
        ),
        (PASSIVE, &["receive.defaulted"][..]),
        (ACTIVE.without(State::SHORT_TIMEOUT), &["passive.", "periodic.both-passive"][..]),
    ] {
        for finding in findings(state, Flaw::None, true, "") {
            let excused = others.iter().any(|name| finding.id.starts_with(name))
                && matches!(finding.outcome, Outcome::NotApplicable { .. });
            assert!(excused || matches!(finding.outcome, Outcome::Pass { .. }), "{finding:?}");
        }
    }
}

/// Violation, state of the device, and name of the case that must fail.
const TABLE: &[(Flaw, State, &str)] = &[
    (Flaw::NeverTwo, ACTIVE, "selection.aggregates"),
    (Flaw::OneForAll, ACTIVE, "selection.two-systems"),
    (Flaw::OneForAll, ACTIVE, "selection.two-keys"),
    (Flaw::OneForAll, ACTIVE, "selection.individual"),
    (Flaw::Destination, ACTIVE, "format.lacpdu"),
    (Flaw::Reserved, ACTIVE, "format.lacpdu"),
    (Flaw::OnePortNumber, ACTIVE, "format.identity"),
    (Flaw::SlowPace, ACTIVE, "periodic.fast"),
    (Flaw::AlwaysFast, ACTIVE, "periodic.slow-is-quiet"),
    (Flaw::SlowPace, ACTIVE, "periodic.slow-to-fast"),
    (Flaw::AlwaysFast, ACTIVE, "periodic.slow"),
    (Flaw::PassiveToPassive, PASSIVE, "periodic.both-passive"),
    (Flaw::Unlimited, ACTIVE, "rate.three-per-second"),
    (Flaw::Unlimited, ACTIVE, "rate.ten-per-second"),
    (Flaw::PassiveSpeaks, PASSIVE, "passive.silent-until-spoken-to"),
    (Flaw::Echo, ACTIVE, "receive.echo"),
    (Flaw::BelievesAll, ACTIVE, "receive.sync-needs-a-true-view"),
    (Flaw::NoNtt, ACTIVE, "receive.ntt"),
    (Flaw::ShortMemory, ACTIVE, "receive.expired"),
    (Flaw::LongMemory, ACTIVE, "receive.expired"),
    (Flaw::FlowsWhileExpired, ACTIVE, "receive.expired"),
    (Flaw::LongMemory, ACTIVE, "receive.defaulted"),
    (Flaw::KeepsPartner, ACTIVE, "receive.defaulted"),
    (Flaw::WaitsAgain, ACTIVE, "receive.recovers"),
    (Flaw::IgnoresSync, ACTIVE, "mux.follows-sync"),
    (Flaw::StaysSelected, ACTIVE, "mux.port-moves"),
    (Flaw::NoWait, ACTIVE, "mux.wait-while"),
    (Flaw::WaitsForPartner, ACTIVE, "mux.attaches-alone"),
    (Flaw::IgnoresSync, ACTIVE, "mux.attaches-alone"),
    (Flaw::VersionOneOnly, ACTIVE, "version.two"),
    (Flaw::VersionOneOnly, ACTIVE, "version.unknown"),
    (Flaw::ZerosOnly, ACTIVE, "version.reserved-fields"),
    (Flaw::VersionOneOnly, ACTIVE, "version.more-tlvs"),
    (Flaw::ReadsBeyond, ACTIVE, "malformed.truncated"),
    (Flaw::AnySubtype, ACTIVE, "malformed.subtype"),
    (Flaw::HalfTaken, ACTIVE, "malformed.tlv-length"),
    (Flaw::NoMarker, ACTIVE, "marker.answered"),
    (Flaw::WrongMarker, ACTIVE, "marker.answered"),
    (Flaw::AnswersResponses, ACTIVE, "marker.responses-are-not-answered"),
    (Flaw::Loops, ACTIVE, "loopback.reflected"),
    (Flaw::DeadAfterFlap, ACTIVE, "link.flapping"),
    (Flaw::DeadAfterFlood, ACTIVE, "flood.recovers"),
    (Flaw::Unlimited, ACTIVE, "flood.answers-are-limited"),
    (Flaw::AnySubtype, ACTIVE, "flood.malformed"),
    (Flaw::NeverPasses, ACTIVE, "traffic.passes"),
    (Flaw::AlwaysPasses, ACTIVE, "traffic.ends-with-sync"),
];

#[test]
fn each_defect_fails_the_case_that_tests_for_it() {
    for (flaw, state, id) in TABLE {
        let findings = findings(*state, *flaw, true, id);
        let finding = findings.iter().find(|finding| finding.id == *id).unwrap();
        assert!(matches!(finding.outcome, Outcome::Fail { .. }), "{flaw:?}: {finding:?}");
    }
}

#[test]
fn every_case_has_a_flaw_that_fails_it() {
    for case in cases::all() {
        // A device that never responds does not come into use, so `passive.answers` is not reached.
        let is_covered =
            TABLE.iter().any(|(_, _, id)| *id == case.id) || case.id == "passive.answers";
        assert!(is_covered, "{}", case.id);
    }
}

#[test]
fn a_device_that_sends_nothing_fails_the_first_case_and_no_other_is_judged() {
    for finding in findings(PASSIVE, Flaw::Dumb, false, "") {
        let expected = match finding.id {
            "selection.aggregates" => matches!(finding.outcome, Outcome::Fail { .. }),
            _ => matches!(finding.outcome, Outcome::NotApplicable { .. }),
        };
        assert!(expected, "{finding:?}");
    }
}

#[test]
fn with_one_interface_cases_for_two_are_not_judged() {
    let mut world = VirtualWorld::new(Device::new(1, ACTIVE, Flaw::None, None));
    let mut session = Session::new(&mut world, Setup::default());
    for case in cases::all().filter(|case| case.id.starts_with("selection.")) {
        let finding = run(case, &mut session);
        let judged = matches!(finding.outcome, Outcome::Pass { .. });
        assert_eq!(judged, case.interfaces == 1, "{finding:?}");
    }
}
