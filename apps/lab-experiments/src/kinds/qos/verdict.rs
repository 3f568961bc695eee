//! Evaluation of limits. Rates are in requests of 8 KiB per second.

use super::record::{Record, SecondSample};
use super::settings::Limits;

/// Tolerance of limits: 2 %.
const TOLERANCE: f64 = 0.02;
/// Length in seconds of the windows in which maximums are evaluated.
const WINDOW_S: f64 = 5.0;

/// Result of one group of disks in one step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Mean rate of each disk of the group, from the time at which a change must be in effect.
    pub(super) means: Vec<f64>,
    /// Mean rate of the group's disks according to fio; `None` if fio reported none.
    pub(super) fio_mean: Option<f64>,
    pub(super) minimum: Option<MinimumCompliance>,
    pub(super) maximum: Option<MaximumCompliance>,
}

/// Compliance with a minimum. Requests are indivisible: one that was incomplete at the end of a
/// second does not count as missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MinimumCompliance {
    /// Number of disks with a mean rate of at least the minimum less 2 %, after the time at which
    /// the change must be in effect.
    pub(super) disks_met: usize,
    pub(super) disks: usize,
    /// Lowest mean rate of a disk in that time, relative to the minimum.
    pub(super) lowest_mean_ratio: f64,
    /// Time in seconds from the change to the end of the first second in which a disk reached the
    /// minimum: that of the slowest disk, if all reached it.
    pub(super) met_after_s: Option<f64>,
    /// Number of seconds, after a disk first reached the minimum, in which it was below the
    /// minimum; summed over disks.
    pub(super) seconds_below: usize,
    /// Number of seconds after each disk first reached the minimum, summed over disks.
    pub(super) seconds_after_met: usize,
}

/// Compliance with a maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MaximumCompliance {
    /// Number of disks that in no window of 5 s exceeded the maximum by more than 2 % and one
    /// request.
    pub(super) disks_within_maximum: usize,
    pub(super) disks: usize,
    /// Highest rate of a disk in a window of 5 s (in the whole step if it is shorter), relative to
    /// the maximum.
    pub(super) highest_window_ratio: f64,
    /// Mean rate of the disks, relative to the maximum.
    pub(super) mean_ratio: f64,
}

/// Rates of all disks together in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TotalRates {
    /// Mean rate, from the time at which a change must be in effect.
    pub(super) mean_iops: f64,
    /// Highest rate in any window of 5 s in the step.
    pub(super) highest_window_iops: f64,
}

/// Samples of one disk in a step, one per second: time in s from the change to the sample's end,
/// length of the sample in s, and rate.
type Course = Vec<(f64, f64, f64)>;

/// Evaluates every group in a step. A change must be in effect after `settles_s`.
pub(super) fn verdicts(record: &Record<'_>, step: usize, settles_s: f64) -> Vec<Verdict> {
    let Some(start) = record.steps.get(step) else { return Vec::new() };
    let disks = record.settings.disks();
    let cost = record.settings.request_cost();
    let of_group = |(group, limits): (usize, &Limits)| {
        let of_group = disks.iter().enumerate().filter(|(_, (_, disk_group))| *disk_group == group);
        let members: Vec<usize> = of_group.map(|(index, _)| index).collect();
        let courses: Vec<Course> =
            members.iter().map(|index| course(record, step, &[*index])).collect();
        let disk_means = courses.iter().map(|course| settled_mean(course, settles_s).0);
        let minimum = |min: u64| minimum(&courses, min as f64, cost, settles_s);
        let maximum = |max: u64| maximum(&courses, max as f64, cost, settles_s);
        Verdict {
            means: disk_means.collect(),
            fio_mean: fio_mean(record, step, &members, settles_s),
            minimum: limits.min_iops.map(minimum),
            maximum: limits.max_iops.map(maximum),
        }
    };
    start.limits.iter().enumerate().map(of_group).collect()
}

/// Evaluates all disks of a step together.
pub(super) fn evaluate_all(record: &Record<'_>, step: usize, settles_s: f64) -> TotalRates {
    let all_disks: Vec<usize> = (0..record.settings.disks().len()).collect();
    let course = course(record, step, &all_disks);
    let highest = windows(&course).iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    TotalRates { mean_iops: settled_mean(&course, settles_s).0, highest_window_iops: highest }
}

fn course(record: &Record<'_>, step: usize, disks: &[usize]) -> Course {
    let start_s = record.steps.get(step).map_or(0.0, |start| start.at_s);
    let seconds = record.step_seconds(step);
    let rate = |second: &SecondSample| {
        disks
            .iter()
            .filter_map(|index| second.disks.get(*index))
            .map(|disk| disk.delivered_iops)
            .sum::<f64>()
    };
    seconds.map(|second| (second.at_s - start_s, second.span_s, rate(second))).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns true if the sample began after the time at which the change must be in effect, with a
/// tolerance for inexact intervals. `at_s` is its end and `span_s` its length, in seconds.
fn is_settled(at_s: f64, span_s: f64, settles_s: f64) -> bool {
    at_s - span_s >= settles_s * 0.95
}

/// Returns the mean rate of the samples after the time at which the change must be in effect, and
/// their total length in seconds.
fn settled_mean(course: &Course, settles_s: f64) -> (f64, f64) {
    let settled_samples =
        course.iter().filter(|(at_s, span, _)| is_settled(*at_s, *span, settles_s));
    let (operations, span) = settled_samples
        .fold((0.0, 0.0), |(operations, span_s), (_, span, rate)| {
            (operations + rate * span, span_s + span)
        });
    if span > 0.0 { (operations / span, span) } else { (0.0, 0.0) }
}

fn fio_mean(record: &Record<'_>, step: usize, members: &[usize], settles_s: f64) -> Option<f64> {
    let start_s = record.steps.get(step)?.at_s;
    let settled_seconds = record
        .step_seconds(step)
        .filter(|second| is_settled(second.at_s - start_s, second.span_s, settles_s));
    let values: Vec<f64> = settled_seconds
        .flat_map(|second| members.iter().filter_map(|index| second.disks.get(*index)?.fio_iops))
        .collect();
    (!values.is_empty()).then(|| mean(&values))
}

fn minimum(courses: &[Course], min: f64, cost: f64, settles_s: f64) -> MinimumCompliance {
    let min_rate = |span: f64| min * (1.0 - TOLERANCE) - cost / span;
    let mut verdict = MinimumCompliance {
        disks: courses.len(),
        lowest_mean_ratio: f64::INFINITY,
        ..MinimumCompliance::default()
    };
    let mut all_met_after = Some(0.0_f64);
    for course in courses {
        let (mean, span) = settled_mean(course, settles_s);
        verdict.disks_met += usize::from(span > 0.0 && mean >= min_rate(span));
        verdict.lowest_mean_ratio = verdict.lowest_mean_ratio.min(mean / min);
        let first = course.iter().position(|(_, span, rate)| *rate >= min_rate(*span));
        let after = first.and_then(|first_index| course.get(first_index..)).unwrap_or_default();
        all_met_after = match (all_met_after, after.first()) {
            (Some(latest), Some((at_s, _, _))) => Some(latest.max(*at_s)),
            _ => None,
        };
        let below_minimum = after.iter().filter(|(_, span, rate)| *rate < min_rate(*span));
        verdict.seconds_below += below_minimum.count();
        verdict.seconds_after_met += after.len();
    }
    verdict.met_after_s = all_met_after.filter(|_| !courses.is_empty());
    verdict
}

fn maximum(courses: &[Course], max: f64, cost: f64, settles_s: f64) -> MaximumCompliance {
    let mut verdict = MaximumCompliance { disks: courses.len(), ..MaximumCompliance::default() };
    for course in courses {
        let mut is_within = true;
        for (rate, span) in windows(course) {
            is_within &= rate <= max * (1.0 + TOLERANCE) + cost / span;
            verdict.highest_window_ratio = verdict.highest_window_ratio.max(rate / max);
        }
        verdict.disks_within_maximum += usize::from(is_within);
    }
    let disk_means = courses.iter().map(|course| settled_mean(course, settles_s).0 / max);
    verdict.mean_ratio = mean(&disk_means.collect::<Vec<f64>>());
    verdict
}

/// Returns the rate, and the length in seconds, of every window of about 5 s; of all samples
/// together if they are shorter.
fn windows(course: &Course) -> Vec<(f64, f64)> {
    let mut windows = Vec::new();
    for first in 0..course.len() {
        let (mut operations, mut span_s) = (0.0, 0.0);
        for (_, span, rate) in course.get(first..).unwrap_or_default() {
            operations += rate * span;
            span_s += span;
            if span_s >= WINDOW_S * 0.95 {
                break;
            }
        }
        if span_s > 0.0 && (first == 0 || span_s >= WINDOW_S * 0.95) {
            windows.push((operations / span_s, span_s));
        }
    }
    windows
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
