//! Rules about image formats.

use std::collections::BTreeMap;

use suimon_lab_run::{LocalizedText, Run};

use super::estimates::{EQUIVALENT_RATIO, mean};
use crate::advise::advice::Advice;
use crate::number::format_number;

/// Substring in the id of a case whose disk is accessed over vhost-user, as by VMs.
const ACCESS_METHOD: &str = "+vhost-user+";

/// Returns the cost of image formats relative to raw files. Informational, since a disk's format is
/// set at its creation and changed by `suimon disk convert`.
pub(super) fn formats(run: &Run) -> Option<Advice> {
    let mut ratios_by_format: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for case in &run.cases {
        let Some((load, rest)) = case.id.split_once(ACCESS_METHOD) else { continue };
        let Some((format, depth)) = rest.split_once('.') else { continue };
        let raw = mean(run, &format!("{load}{ACCESS_METHOD}raw.{depth}"), "rate");
        let Some((rate, raw)) = mean(run, &case.id, "rate").zip(raw) else { continue };
        if format.starts_with("vhd") {
            ratios_by_format.entry(format).or_default().push(rate / raw);
        }
    }
    // The geometric mean is the appropriate mean of ratios.
    let geometric_mean = |ratios: &Vec<f64>| {
        (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
    };
    let means: Vec<(&str, f64)> =
        ratios_by_format.iter().map(|(format, ratios)| (*format, geometric_mean(ratios))).collect();
    if means.is_empty() {
        return None;
    }
    let listed: Vec<String> = means
        .iter()
        .map(|(format, ratio)| format!("{format} {} %", format_number(100.0 * ratio, None)))
        .collect();
    let listed = listed.join(", ");
    let (en, ja) = if means.iter().all(|(_, ratio)| *ratio >= EQUIVALENT_RATIO) {
        ("choose by the other properties of the formats", "ほかの機能で選べます")
    } else {
        ("raw if only throughput matters", "速度だけが問題なら raw です")
    };
    Some(Advice {
        reason: LocalizedText::new(
            format!(
                "Throughput relative to a raw disk, mean of loads and depths over vhost-user: \
                 {listed}; {en}."
            ),
            format!(
                "raw ディスクに対する性能 (vhost-user、全負荷・全同時要求数の平均): {listed}。{ja}。"
            ),
        ),
        run_id: run.id.clone(),
        target: None,
    })
}
