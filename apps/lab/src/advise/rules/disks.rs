//! Rules about image formats.

use std::collections::BTreeMap;

use suimon_lab_run::{Run, Words};

use super::estimates::{AS_GOOD, mean};
use crate::advise::advice::Advice;
use crate::number::number;

/// Part of a case's id for disks reached over vhost-user, as by VMs.
const ACCESS_METHOD: &str = "+vhost-user+";

/// Returns the cost of image formats relative to raw files. Informational, since a disk's format is
/// set at its creation and changed by `suimon disk convert`.
pub(super) fn formats(run: &Run) -> Option<Advice> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for case in &run.cases {
        let Some((load, rest)) = case.id.split_once(ACCESS_METHOD) else { continue };
        let Some((format, depth)) = rest.split_once('.') else { continue };
        let raw = mean(run, &format!("{load}{ACCESS_METHOD}raw.{depth}"), "rate");
        let Some((rate, raw)) = mean(run, &case.id, "rate").zip(raw) else { continue };
        if format.starts_with("vhd") {
            all.entry(format).or_default().push(rate / raw);
        }
    }
    // The geometric mean is the appropriate mean of ratios.
    let of = |ratios: &Vec<f64>| {
        (ratios.iter().map(|of| of.ln()).sum::<f64>() / ratios.len() as f64).exp()
    };
    let all: Vec<(&str, f64)> = all.iter().map(|(format, ratios)| (*format, of(ratios))).collect();
    if all.is_empty() {
        return None;
    }
    let told: Vec<String> =
        all.iter().map(|(format, of)| format!("{format} {} %", number(100.0 * of, None))).collect();
    let told = told.join(", ");
    let (en, ja) = if all.iter().all(|(_, of)| *of >= AS_GOOD) {
        ("choose by the other properties of the formats", "ほかの機能で選べます")
    } else {
        ("raw if only throughput matters", "速度だけが問題なら raw です")
    };
    Some(Advice {
        reason: Words::new(
            format!(
                "Throughput relative to a raw disk, mean of loads and depths over vhost-user: \
                 {told}; {en}."
            ),
            format!(
                "raw ディスクに対する性能 (vhost-user、全負荷・全同時要求数の平均): {told}。{ja}。"
            ),
        ),
        run: run.id.clone(),
        target: None,
    })
}
