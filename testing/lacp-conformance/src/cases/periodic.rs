//! Cases on the Periodic Transmission machine (6.4.13).

use std::time::Duration;

use super::case::{Case, ONE};
use crate::pdu::State;
use crate::record::{gaps, seconds};
use crate::session::Session;
use crate::setup::{FAST_PERIODIC, SLOW_PERIODIC};
use crate::verdict::{CaseResult, Stop, not_applicable, require};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "periodic.fast",
        "a partner with the short timeout gets an LACPDU each second",
        "6.4.13 (FAST_PERIODIC), 6.4.4 Fast_Periodic_Time, 6.4.10",
        fast,
    ),
    Case::new(
        "periodic.slow-is-quiet",
        "a partner with the long timeout is not sent an LACPDU each second",
        "6.4.13 (SLOW_PERIODIC)",
        slow_is_quiet,
    ),
    Case::new(
        "periodic.slow-to-fast",
        "a partner that changes to the short timeout gets an LACPDU at once, then each second",
        "6.4.13 (SLOW_PERIODIC to PERIODIC_TX)",
        slow_to_fast,
    ),
    Case::new(
        "periodic.both-passive",
        "two passive ends send nothing periodically",
        "6.4.13 (NO_PERIODIC)",
        both_passive,
    ),
    Case::new(
        "periodic.slow",
        "a partner with the long timeout gets an LACPDU each 30 seconds",
        "6.4.13 (SLOW_PERIODIC), 6.4.4 Slow_Periodic_Time",
        slow,
    )
    .long(),
];

/// Time for the device to send all LACPDUs that a change of the partner causes.
const SETTLE: Duration = Duration::from_millis(2500);
const LOOK: Duration = Duration::from_secs(6);

/// Returns the times of the LACPDUs received within `duration` from now on.
fn times(session: &mut Session<'_>, duration: Duration) -> Result<Vec<Duration>, Stop> {
    let start = session.now();
    session.run_for(duration)?;
    Ok(session.links[ONE].lacpdus_since(start).into_iter().map(|(time, _)| time).collect())
}

fn partner_state(session: &mut Session<'_>, bits: State, set: bool) -> Result<(), Stop> {
    let partner = &mut session.links[ONE].partner;
    partner.info.state = partner.info.state.put(bits, set);
    session.send_lacpdu(ONE)?;
    Ok(())
}

fn describe(times: &[Duration]) -> String {
    let gaps: Vec<String> = gaps(times).into_iter().map(seconds).collect();
    format!("{} LACPDUs, apart {}", times.len(), gaps.join(", "))
}

fn fast(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    session.run_for(SETTLE)?;
    let times = times(session, LOOK)?;
    judge_pace(&times, FAST_PERIODIC, session.setup.tolerance + session.setup.jitter)?;
    Ok(describe(&times))
}

/// Checks that the mean and the maximum of the intervals between LACPDUs equal the period.
fn judge_pace(times: &[Duration], period: Duration, slack: Duration) -> Result<(), Stop> {
    let gaps = gaps(times);
    let expected = format!("one each {} ± {}", seconds(period), seconds(slack));
    let count = u32::try_from(gaps.len()).unwrap_or(u32::MAX);
    require(count > 0, expected.as_str(), || describe(times))?;
    let mean = gaps.iter().sum::<Duration>() / count;
    let longest = gaps.into_iter().max().unwrap_or_default();
    let is_expected = longest <= period + slack && mean + slack >= period;
    require(is_expected, expected, || describe(times))
}

fn slow_is_quiet(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    partner_state(session, State::SHORT_TIMEOUT, false)?;
    session.run_for(SETTLE)?;
    let times = times(session, LOOK)?;
    require(times.len() <= 1, "at most one LACPDU in 6 s", || describe(&times))?;
    Ok(describe(&times))
}

fn slow_to_fast(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    partner_state(session, State::SHORT_TIMEOUT, false)?;
    session.run_for(SETTLE)?;
    partner_state(session, State::SHORT_TIMEOUT, true)?;
    let start = session.now();
    let mut all_times = vec![start];
    all_times.extend(times(session, LOOK)?);
    let slack = session.setup.tolerance + session.setup.jitter;
    let longest = gaps(&all_times).into_iter().max().unwrap_or(LOOK);
    require(
        longest <= FAST_PERIODIC + slack && all_times.len() > 4,
        "an LACPDU within a second of the change, then each second",
        || format!("after the change: {}", describe(&all_times)),
    )?;
    Ok(describe(&all_times))
}

fn both_passive(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    if session.links[ONE].device.is_some_and(|info| info.state.has(State::ACTIVITY)) {
        return not_applicable("the device is active");
    }
    partner_state(session, State::ACTIVITY, false)?;
    session.run_for(SETTLE)?;
    let times = times(session, LOOK)?;
    require(times.is_empty(), "no LACPDU in 6 s", || describe(&times))?;
    Ok("silence".to_owned())
}

fn slow(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    partner_state(session, State::SHORT_TIMEOUT, false)?;
    session.run_for(SETTLE)?;
    let times = times(session, SLOW_PERIODIC * 3 + SETTLE)?;
    judge_pace(&times, SLOW_PERIODIC, session.setup.tolerance + session.setup.jitter)?;
    Ok(describe(&times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_judged_by_its_mean_and_its_longest_gap() {
        let is_good = |ms: &[u64]| {
            let times: Vec<Duration> = ms.iter().map(|ms| Duration::from_millis(*ms)).collect();
            judge_pace(&times, FAST_PERIODIC, Duration::from_millis(250)).is_ok()
        };
        assert!(is_good(&[0, 900, 2100, 3000, 4000]));
        assert!(!is_good(&[0, 1000, 2300, 3000, 4000]), "one too long");
        assert!(!is_good(&[0, 500, 1000, 1500]), "too often");
        assert!(!is_good(&[0]) && !is_good(&[]));
    }
}
