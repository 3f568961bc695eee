//! What a record says, for people.

use std::fmt::Write as _;

use super::plan::{Pattern, Subject, Target};
use super::record::{Comparison, Record};

/// For each pattern a table: what native ones do, what disks do of that, and what was
/// published; then how many reach what is asked for.
pub(crate) fn summary(record: &Record) -> String {
    let plan = &record.plan;
    let mut text = format!(
        "{}: {}\n{} rounds of {} ms; native: MB/s; disks: percent of what was done natively on the same \
         blocks beside it; median (lowest–highest); + where the median is what is asked for: 97 % from depth 4, 90 % \
         below",
        plan.name,
        record.circumstances.text(),
        plan.rounds,
        plan.window_ms
    );
    for pattern in &plan.patterns {
        add_pattern(&mut text, record, pattern);
    }
    text += "\n\n";
    for way in &plan.ways {
        let of_way = record.comparisons.iter().filter(|of| of.way == Some(*way));
        let (met, all) = of_way
            .filter_map(|of| of.is_goal_met)
            .fold((0, 0), |(met, all), is| (met + u32::from(is), all + 1));
        let _ = writeln!(text, "{}: {met} of {all} medians are what is asked for.", way.name());
    }
    if let Some(failure) = &record.failure {
        let _ = write!(text, "\nNot run to its end: {failure}");
    }
    text.trim_end().to_owned()
}

fn add_pattern(text: &mut String, record: &Record, pattern: &Pattern) {
    let plan = &record.plan;
    let name = &pattern.name;
    let _ = write!(text, "\n\n{name}, {} KiB, depth:\n\n| |", pattern.block_kib);
    for depth in &plan.depths {
        let _ = write!(text, " {depth} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(plan.depths.len()));
    let references = plan.references().into_iter().map(|of| of.text().to_owned());
    for subject in references.chain(plan.subjects().into_iter().map(Subject::text)) {
        let _ = write!(text, "\n| {subject} |");
        let of = |of: &&Comparison| of.pattern == *name && of.subject == subject;
        for of in record.comparisons.iter().filter(of) {
            let _ = write!(text, " {} |", cell(of, pattern.block_kib));
        }
    }
    let Some(published) = pattern.published else { return };
    for (target, title) in [
        (Target::VhdFixed, "published, file VHD"),
        (Target::PassThrough, "published, pass-through"),
    ] {
        let _ = write!(text, "\n| {title} |");
        for depth in &plan.depths {
            match published.least_percent(target, *depth) {
                100 => text.push_str(" native |"),
                percent => {
                    let _ = write!(text, " at least {percent} |");
                }
            }
        }
    }
}

fn cell(of: &Comparison, block_kib: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "at most 1024")]
    let megabytes = block_kib as f64 * 1024.0 / 1e6;
    let (spread, factor) = match of.ratio {
        Some(ratio) => (ratio, 100.0),
        None => (of.iops, megabytes),
    };
    let [lowest, median, highest] =
        [spread.lowest, spread.median, spread.highest].map(|of| of * factor);
    let mark = if of.is_goal_met == Some(true) { " +" } else { "" };
    format!("{median:.0} ({lowest:.0}–{highest:.0}){mark}")
}
