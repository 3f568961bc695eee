//! Sequential execution of cases.

use std::time::Duration;

use crate::cases::Case;
use crate::report::{Finding, Outcome};
use crate::session::Session;
use crate::verdict::Stop;

/// Returns the reason why a case is not applicable to the run, known before its execution.
fn objection(case: &Case, session: &Session<'_>) -> Option<String> {
    if case.interfaces > session.links.len() {
        return Some(format!("needs {} interfaces to one team", case.interfaces));
    }
    (case.is_long && !session.setup.long).then(|| "takes long: use --long".to_owned())
}

/// Runs one case.
pub(crate) fn run(case: &Case, session: &mut Session<'_>) -> Finding {
    let started = session.now();
    session.begin_case();
    let outcome = match objection(case, session) {
        Some(reason) => Outcome::NotApplicable { reason },
        None => match (case.judge)(session) {
            Ok(observed) => Outcome::Pass { observed },
            Err(Stop::Fail { expected, observed }) => Outcome::Fail { expected, observed },
            Err(Stop::NotApplicable(reason)) => Outcome::NotApplicable { reason },
            Err(Stop::Broken(error)) => Outcome::Broken { reason: format!("{error:#}") },
        },
    };
    Finding {
        id: case.id,
        title: case.title,
        clause: case.clause,
        seconds: rounded(session.now() - started),
        outcome,
    }
}

/// Returns the time in seconds, rounded to two decimals.
fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 100.0).round() / 100.0
}
