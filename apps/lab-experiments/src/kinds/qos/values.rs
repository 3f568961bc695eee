//! Values, series and marks of a repetition for the report.

use std::collections::BTreeMap;

use suimon_lab_run::{LocalizedText, Mark, Measure, MeasureDirection, Repetition, Series};

use super::record::Record;
use super::settings::{Limits, Settings};
use super::verdict::{MaximumCompliance, MinimumCompliance, Verdict, evaluate_all, verdicts};

/// Converts a rate in requests of 8 KiB per second to MB/s.
pub(super) fn megabytes_per_s(iops: f64) -> f64 {
    iops * 8192.0 / 1e6
}

/// Returns the measures of these steps and groups.
pub(super) fn measures(settings: &Settings) -> Vec<Measure> {
    let mut measures = vec![Measure::new(
        "capability",
        LocalizedText::new("throughput of the store without limits", "ストアの能力 (設定なし)"),
        "MB/s",
        MeasureDirection::None,
    )];
    for (step, step_spec) in (1..).zip(&settings.steps) {
        let change = &step_spec.change;
        let mut add = |id: String, (en, ja): (&str, &str), unit: &str, better: MeasureDirection| {
            let words =
                LocalizedText::new(format!("{}: {en}", change.en), format!("{}: {ja}", change.ja));
            measures.push(Measure::new(&id, words, unit, better));
        };
        add(
            format!("even-{step}"),
            ("lowest disk, % of the highest", "最少のディスク ÷ 最多のディスク"),
            "%",
            MeasureDirection::None,
        );
        add(
            format!("used-{step}"),
            ("all disks, % of the capacity", "全ディスク ÷ ストアの能力"),
            "%",
            MeasureDirection::Higher,
        );
        add(
            format!("most-{step}"),
            (
                "all disks, highest 5 s, % of the capacity",
                "全ディスク ÷ ストアの能力、5 秒間の最大",
            ),
            "%",
            MeasureDirection::None,
        );
        if step_spec.must_be_rejected {
            add(
                format!("refused-{step}"),
                ("rejected (1) or not (0)", "拒否 (1) または許可 (0)"),
                "",
                MeasureDirection::None,
            );
        }
        for (group, limits) in settings.groups.iter().zip(&step_spec.limits) {
            add_group_measures(&group.name, step, *limits, &mut add);
        }
    }
    measures
}

fn add_group_measures(
    group: &str,
    step: usize,
    limits: Limits,
    add: &mut impl FnMut(String, (&str, &str), &str, MeasureDirection),
) {
    let mut add = |id: &str, (en, ja): (&str, &str), unit: &str, better: MeasureDirection| {
        let words = (format!("{group} {en}"), format!("{group} {ja}"));
        add(format!("{id}-{step}-{group}"), (&words.0, &words.1), unit, better);
    };
    add("got", ("each", "1 台あたり"), "MB/s", MeasureDirection::Higher);
    add(
        "seen",
        ("each disk, measured by fio", "1 台あたり (fio の値)"),
        "MB/s",
        MeasureDirection::Higher,
    );
    if limits.min_iops.is_some() {
        let lowest = ("lowest disk, % of its minimum", "最少のディスク ÷ 最小値");
        add("minimum", lowest, "%", MeasureDirection::Higher);
        add(
            "met",
            ("disks with their minimum met", "最小値を得たディスク"),
            "%",
            MeasureDirection::Higher,
        );
        let after = (
            "time until all minimums are met (or the whole step)",
            "全ディスクが最小値を得るまで (得なければ段階の全長)",
        );
        add("after", after, "s", MeasureDirection::Lower);
        let seconds_below = ("time below the minimum since then", "その後に最小値を下回った秒数");
        add("below", seconds_below, "s", MeasureDirection::Lower);
    }
    if limits.max_iops.is_some() {
        add(
            "maximum",
            ("each disk, % of its maximum", "1 台あたり ÷ 最大値"),
            "%",
            MeasureDirection::None,
        );
        let highest = (
            "highest 5 s throughput of any disk, % of its maximum",
            "最多のディスク ÷ 最大値、5 秒間の最大",
        );
        add("highest", highest, "%", MeasureDirection::Lower);
        add(
            "held",
            ("disks limited by their maximum", "最大値に抑えられたディスク"),
            "%",
            MeasureDirection::Higher,
        );
    }
}

/// Returns the result of a repetition. `settles_s` is the time in seconds within which a change
/// must be in effect.
pub(super) fn repetition(record: &Record<'_>, settles_s: f64) -> Repetition {
    let settings = record.settings;
    let mut part = Repetition::default();
    part.set_value("capability", megabytes_per_s(record.calibration.measured_iops));
    let capability = record.calibration.capacity_iops as f64;
    for (step_number, (start, step)) in record.steps.iter().zip(&settings.steps).enumerate() {
        let number = step_number + 1;
        part.marks.push(Mark { at_s: start.at_s, description: step.change.clone() });
        if step.must_be_rejected {
            part.set_value(&format!("refused-{number}"), f64::from(start.rejection.is_some()));
        }
        if let Some(rejection) = &start.rejection {
            part.notes.push(LocalizedText::new(
                format!("{}: rejected: {rejection}", step.change.en),
                format!("{}: 拒否されました: {rejection}", step.change.ja),
            ));
        }
        let combined = evaluate_all(record, step_number, settles_s);
        part.set_value(&format!("used-{number}"), combined.mean_iops / capability * 100.0);
        part.set_value(
            &format!("most-{number}"),
            combined.highest_window_iops / capability * 100.0,
        );
        let verdicts = verdicts(record, step_number, settles_s);
        let disk_means = || verdicts.iter().flat_map(|verdict| &verdict.means).copied();
        let (lowest_mean, highest_mean) =
            (disk_means().fold(f64::INFINITY, f64::min), disk_means().fold(0.0, f64::max));
        if highest_mean > 0.0 {
            part.set_value(&format!("even-{number}"), lowest_mean / highest_mean * 100.0);
        }
        for (verdict, group) in verdicts.iter().zip(&settings.groups) {
            let mut add = |id: &str, value: f64| {
                part.set_value(&format!("{id}-{number}-{}", group.name), value);
            };
            add_group(verdict, settings.step_s, &mut add);
        }
    }
    part.series = series(record);
    part
}

fn add_group(verdict: &Verdict, step_s: u64, add: &mut impl FnMut(&str, f64)) {
    let Verdict { means: disk_means, fio_mean, minimum, maximum } = verdict;
    add("got", megabytes_per_s(disk_means.iter().sum::<f64>() / disk_means.len().max(1) as f64));
    if let Some(fio_mean) = fio_mean {
        add("seen", megabytes_per_s(*fio_mean));
    }
    let percent = |part: usize, total: usize| part as f64 / total.max(1) as f64 * 100.0;
    if let Some(MinimumCompliance {
        disks_met,
        disks,
        lowest_mean_ratio: lowest_rate,
        met_after_s,
        seconds_below,
        seconds_after_met: _,
    }) = *minimum
    {
        add("minimum", lowest_rate * 100.0);
        add("met", percent(disks_met, disks));
        add("after", met_after_s.unwrap_or(step_s as f64));
        add("below", seconds_below as f64);
    }
    if let Some(MaximumCompliance {
        disks_within_maximum: within_maximum,
        disks,
        highest_window_ratio: highest_window,
        mean_ratio: mean,
    }) = *maximum
    {
        add("maximum", mean * 100.0);
        add("highest", highest_window * 100.0);
        add("held", percent(within_maximum, disks));
    }
}

/// Returns the series of charts: the rate of every disk according to the daemon and to fio; sums of
/// groups and of all disks, with the capacity; guaranteed and demanded rates; and the time for
/// which requests were queued by cause.
fn series(record: &Record<'_>) -> Vec<Series> {
    let settings = record.settings;
    let mut totals = empty("total", "all", "MB/s");
    let mut capability = empty("total", "capability", "MB/s");
    let mut groups: Vec<Series> =
        settings.groups.iter().map(|group| empty("total", &group.name, "MB/s")).collect();
    let disks = settings.disks();
    let of_disks = |group: &str| -> Vec<Series> {
        disks.iter().map(|(disk, _)| empty(group, disk, "MB/s")).collect()
    };
    let (mut delivered, mut fio_rates) = (of_disks("disk"), of_disks("fio"));
    let (mut entitled, mut demand) = (of_disks("entitled"), of_disks("wanted"));
    let mut wait_series: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for second in &record.seconds {
        let at_s = second.at_s;
        let mut sums = vec![0.0; groups.len()];
        let mut waited_ms: BTreeMap<&str, f64> = BTreeMap::new();
        for (number, second) in second.disks.iter().enumerate() {
            let add = |series: &mut Vec<Series>, iops: f64| {
                if let Some(series) = series.get_mut(number) {
                    series.points.push((at_s, megabytes_per_s(iops)));
                }
            };
            add(&mut delivered, second.delivered_iops);
            if let Some(iops) = second.fio_iops {
                add(&mut fio_rates, iops);
            }
            add(&mut entitled, second.last_5_s.guaranteed_iops as f64);
            add(&mut demand, second.last_5_s.demand_iops as f64);
            let group = disks.get(number).and_then(|(_, group)| sums.get_mut(*group));
            if let Some(sum) = group {
                *sum += second.delivered_iops;
            }
            for (cause, ns) in &second.last_5_s.queued_ns {
                *waited_ms.entry(cause).or_default() += *ns as f64 / 1e6;
            }
        }
        totals.points.push((at_s, megabytes_per_s(sums.iter().sum())));
        capability.points.push((at_s, megabytes_per_s(record.calibration.capacity_iops as f64)));
        for (series, sum) in groups.iter_mut().zip(&sums) {
            series.points.push((at_s, megabytes_per_s(*sum)));
        }
        for (cause, ms) in waited_ms {
            wait_series.entry(cause).or_default().push((at_s, ms));
        }
    }
    let wait_series = wait_series.into_iter().map(|(cause, points)| Series {
        group: "waited".to_owned(),
        name: cause.to_owned(),
        unit: "ms".to_owned(),
        points,
    });
    let rows = [delivered, groups, vec![totals, capability], fio_rates, entitled, demand];
    rows.into_iter()
        .flatten()
        .chain(wait_series)
        .filter(|series| !series.points.is_empty())
        .collect()
}

fn empty(group: &str, name: &str, unit: &str) -> Series {
    Series {
        group: group.to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        points: Vec::new(),
    }
}
