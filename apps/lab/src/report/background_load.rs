//! Sentence about external load on the machine.

use suimon_lab_run::{LocalizedText, MachineInfo};

use crate::number::format_number;

/// Load average per CPU before the first repetition above which the machine counts as loaded.
const LOAD_MAX: f64 = 0.3;
/// Excess duration of the slowest of several equal amounts of work, in percent, above which the
/// machine counts as loaded.
const SLOWDOWN_PERCENT_MAX: f64 = 25.0;
/// Percentage of stolen CPU time above which the machine counts as loaded.
const STEAL_PERCENT_MAX: f64 = 2.0;

/// Returns true if other programs loaded the machine before or during the run, and a sentence about
/// it for the report.
pub(super) fn background_load_note(machine: &MachineInfo) -> (bool, LocalizedText) {
    let noise = &machine.background_load;
    let load = noise.load_before / machine.cpus.max(1) as f64;
    let is_noisy = load > LOAD_MAX
        || noise.slowest_excess_percent > SLOWDOWN_PERCENT_MAX
        || noise.steal_percent > STEAL_PERCENT_MAX;
    let text = |value: f64| format_number(value, None);
    let figures = (
        text(noise.load_before),
        text(noise.slowest_excess_percent),
        text(noise.longest_gap_us),
        text(noise.steal_percent),
    );
    let (load, slowest, gap, steal) = figures;
    let mut words = LocalizedText::new(
        format!(
            "Before the run: load average {load}; the slowest of 40 equal pieces of work took \
             {slowest} % longer than the median; the longest interruption was {gap} µs; the \
             hypervisor took {steal} % of the CPU time."
        ),
        format!(
            "開始前のロードアベレージは {load}、同じ作業 40 回のうち最も遅いものは中央値より {slowest} % 長く、最長の中断は {gap} \
             µs、ハイパーバイザーに取られた CPU 時間は {steal} % でした。"
        ),
    );
    if is_noisy {
        words.en = format!(
            "This machine was not idle: differences may be due to other load. {}",
            words.en
        );
        words.ja = format!(
            "このマシンはアイドル状態ではなく、差は他の処理によるものかもしれません。{}",
            words.ja
        );
    }
    (is_noisy, words)
}
