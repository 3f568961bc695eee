//! The table for people.

use std::fmt::Write as _;

use super::record::Record;
use super::verdict::{Maximum, Minimum, Verdict};

/// A row for each group in each step, next to what the document says.
pub(crate) fn summary(record: &Record) -> String {
    let mut text = format!("{}: {}\n", record.plan.name, record.circumstances.text());
    if let Some(calibration) = &record.calibration {
        let _ = writeln!(
            text,
            "The store does {} IOPS of 8 KiB ({} MB/s); limits are the document's times {:.3}.",
            calibration.measured_iops,
            calibration.measured_iops * 8192 / 1_000_000,
            calibration.scale
        );
    }
    text += "\n| step | disks | limit of each, document (IOPS) | published | limit here | got each, \
             MB/s (lowest–highest) | seen by fio | minimum | maximum |\n\
             |---|---|---|---|---|---|---|---|---|";
    for verdict in &record.verdicts {
        let _ = write!(text, "\n{}", row(record, verdict));
    }
    if let Some(failure) = &record.failure {
        let _ = write!(text, "\n\nNot run to its end: {failure}");
    }
    text
}

fn row(record: &Record, verdict: &Verdict) -> String {
    let plan = &record.plan;
    let step = plan.steps.get(verdict.step);
    let group = plan.groups.get(verdict.group);
    let document = step.and_then(|step| step.limits.get(verdict.group).copied());
    let published = step.and_then(|step| step.published.get(verdict.group));
    let got = &verdict.got;
    format!(
        "| {} | {} | {} | {} | {} | {:.1} ({:.1}–{:.1}) | {} | {} | {} |",
        step.map_or("?", |step| &step.name),
        group.map_or("?", |group| &group.name),
        document.unwrap_or_default().text(),
        published.map_or("", String::as_str),
        verdict.limits.text(),
        megabytes(got.mean),
        megabytes(got.lowest),
        megabytes(got.highest),
        verdict.fio_mean.map_or("–".to_owned(), |mean| format!("{:.1}", megabytes(mean))),
        verdict.minimum.as_ref().map_or("–".to_owned(), minimum),
        verdict.maximum.as_ref().map_or("–".to_owned(), maximum),
    )
}

/// MB/s of a rate of 8 KiB.
fn megabytes(iops: f64) -> f64 {
    iops * 8192.0 / 1e6
}

fn minimum(of: &Minimum) -> String {
    let when = of.met_after_s.map_or("not by all".to_owned(), |at| format!("after {at:.1} s"));
    format!(
        "met by {} of {}, {when}, missed in {} of {} seconds since",
        of.met, of.disks, of.seconds_below, of.seconds
    )
}

fn maximum(of: &Maximum) -> String {
    format!(
        "held by {} of {}: {:.1} % of it, {:.1} % in the highest 5 s",
        of.held,
        of.disks,
        of.mean * 100.0,
        of.highest_window * 100.0
    )
}
