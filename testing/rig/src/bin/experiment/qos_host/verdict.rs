//! Whether limits held: the arithmetic of the summary.

use serde::Serialize;

use super::plan::Limits;
use super::record::{Record, Second, StepBegun};

/// A minimum must be met so soon after it was set.
const MET_WITHIN_S: f64 = 2.0;
/// Limits hold to one part in fifty.
const TOLERANCE: f64 = 0.02;
/// Maximums are held over any window so long.
const WINDOW_S: f64 = 5.0;

/// What a group got in a step. Rates are in requests of 8 KiB per second, of one disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) step: usize,
    pub(crate) group: usize,
    pub(crate) limits: Limits,
    /// Means of its disks, from two seconds after the change on.
    pub(crate) got: Spread,
    /// The same as fio saw it, if it did.
    pub(crate) fio_mean: Option<f64>,
    pub(crate) minimum: Option<Minimum>,
    pub(crate) maximum: Option<Maximum>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) lowest: f64,
    pub(crate) mean: f64,
    pub(crate) highest: f64,
}

/// How a minimum was kept. A request is not divided: one that was not complete when
/// a second ended does not count against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Minimum {
    /// Disks that got it on average from two seconds after the change on, less 2 %.
    pub(crate) met: usize,
    pub(crate) disks: usize,
    /// How long after the change the first second ended in which a disk had it: of the
    /// slowest disk, if all had.
    pub(crate) met_after_s: Option<f64>,
    /// Seconds after that in which a disk had less, of all disks.
    pub(crate) seconds_below: usize,
    /// Seconds after that, of all disks.
    pub(crate) seconds: usize,
}

/// How a maximum was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Maximum {
    /// Disks that in no 5 s got more than 2 % above it, and one request.
    pub(crate) held: usize,
    pub(crate) disks: usize,
    /// The most that a disk got in 5 s (in the whole step if that is shorter), for the
    /// maximum.
    pub(crate) highest_window: f64,
    /// The mean of its disks for the maximum.
    pub(crate) mean: f64,
}

/// One disk in a step: for each second when it ended after the change, its length, and
/// the rate.
type Course = Vec<(f64, f64, f64)>;

/// Of every group in every step that was begun.
pub(crate) fn verdicts(record: &Record) -> Vec<Verdict> {
    let steps = record.steps.iter().enumerate();
    steps
        .flat_map(|(step, begun)| {
            let groups = begun.limits.iter().enumerate();
            groups.map(move |(group, limits)| of_group(record, step, begun, group, *limits))
        })
        .collect()
}

fn of_group(
    record: &Record,
    step: usize,
    begun: &StepBegun,
    group: usize,
    limits: Limits,
) -> Verdict {
    let seconds: Vec<&Second> = record.of_step(step).collect();
    let disks = record.plan.disks();
    let of_group = disks.iter().enumerate().filter(|(_, (_, of))| *of == group);
    let members: Vec<usize> = of_group.map(|(at, _)| at).collect();
    let course = |disk: &usize| -> Course {
        let rate = |second: &Second| second.disks.get(*disk).map_or(0.0, |of| of.got_iops);
        seconds.iter().map(|of| (of.at_s - begun.at_s, of.span_s, rate(of))).collect()
    };
    let courses: Vec<Course> = members.iter().map(course).collect();
    let means: Vec<f64> = courses.iter().map(|course| settled_mean(course).0).collect();
    let cost = record.plan.request_cost();
    Verdict {
        step,
        group,
        limits,
        got: Spread::of(&means),
        fio_mean: fio_mean(&seconds, &members, begun.at_s),
        minimum: limits.min_iops.map(|min| minimum(&courses, rate(min), cost)),
        maximum: limits.max_iops.map(|max| maximum(&courses, rate(max), cost)),
    }
}

fn rate(iops: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "at most 1e9")]
    let rate = iops as f64;
    rate
}

#[allow(clippy::cast_precision_loss, reason = "few")]
fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        Self {
            lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: mean_of(values),
            highest: values.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// Whether a second that ended so long after the change began two seconds after it, or
/// later; or a moment before that, as beats are not exact.
fn is_settled(at_s: f64, span_s: f64) -> bool {
    at_s - span_s >= MET_WITHIN_S * 0.95
}

/// The mean of the settled seconds, and how long they were together.
fn settled_mean(course: &Course) -> (f64, f64) {
    let settled = course.iter().filter(|(at, span, _)| is_settled(*at, *span));
    let (got, span) =
        settled.fold((0.0, 0.0), |(got, long), (_, span, rate)| (got + rate * span, long + span));
    if span > 0.0 { (got / span, span) } else { (0.0, 0.0) }
}

fn fio_mean(seconds: &[&Second], members: &[usize], began: f64) -> Option<f64> {
    let settled = seconds.iter().filter(|second| is_settled(second.at_s - began, second.span_s));
    let values: Vec<f64> = settled
        .flat_map(|second| members.iter().filter_map(|at| second.disks.get(*at)?.fio_iops))
        .collect();
    (!values.is_empty()).then(|| mean_of(&values))
}

fn minimum(courses: &[Course], min: f64, cost: f64) -> Minimum {
    let least = |span: f64| min * (1.0 - TOLERANCE) - cost / span;
    let mut verdict = Minimum { disks: courses.len(), ..Minimum::default() };
    let mut all_met_after = Some(0.0_f64);
    for course in courses {
        let (mean, span) = settled_mean(course);
        verdict.met += usize::from(span > 0.0 && mean >= least(span));
        let first = course.iter().position(|(_, span, rate)| *rate >= least(*span));
        let after = first.and_then(|at| course.get(at..)).unwrap_or_default();
        all_met_after = match (all_met_after, after.first()) {
            (Some(latest), Some((at, _, _))) => Some(latest.max(*at)),
            _ => None,
        };
        let below = after.iter().filter(|(_, span, rate)| *rate < least(*span));
        verdict.seconds_below += below.count();
        verdict.seconds += after.len();
    }
    verdict.met_after_s = all_met_after.filter(|_| !courses.is_empty());
    verdict
}

fn maximum(courses: &[Course], max: f64, cost: f64) -> Maximum {
    let mut verdict = Maximum { disks: courses.len(), ..Maximum::default() };
    for course in courses {
        let mut is_held = true;
        for (rate, span) in windows(course) {
            is_held &= rate <= max * (1.0 + TOLERANCE) + cost / span;
            verdict.highest_window = verdict.highest_window.max(rate / max);
        }
        verdict.held += usize::from(is_held);
    }
    let means: Vec<f64> = courses.iter().map(|course| settled_mean(course).0 / max).collect();
    verdict.mean = mean_of(&means);
    verdict
}

/// Rate and length of every window of about five seconds; of the whole if it is shorter.
fn windows(course: &Course) -> Vec<(f64, f64)> {
    let mut windows = Vec::new();
    for from in 0..course.len() {
        let (mut got, mut long) = (0.0, 0.0);
        for (_, span, rate) in course.get(from..).unwrap_or_default() {
            got += rate * span;
            long += span;
            if long >= WINDOW_S * 0.95 {
                break;
            }
        }
        if long > 0.0 && (from == 0 || long >= WINDOW_S * 0.95) {
            windows.push((got / long, long));
        }
    }
    windows
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
