//! Command `suimon lab compare`.

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;
use suimon_lab_run::{Comparison, ComparisonResult, LocalizedText, Run, compare};

use crate::number::{decimal_places, format_number};
use crate::output::print;
use crate::shared_flags::{OutputFlags, ResultsFlags};

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompareFlags {
    /// First run: its id, its folder, or the name of a plan for its last run.
    a: String,
    /// Second run, given in the same way: of the same plan, or of a plan with cases of the same
    /// names.
    b: String,
    /// Print measures without a significant difference, too.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    form: OutputFlags,
    #[command(flatten)]
    results: ResultsFlags,
}

fn finding_text(finding: ComparisonResult) -> LocalizedText {
    match finding {
        ComparisonResult::Better => LocalizedText::new("better", "改善"),
        ComparisonResult::Worse => LocalizedText::new("worse", "悪化"),
        ComparisonResult::Different => LocalizedText::new("different", "相違"),
        ComparisonResult::NotSignificant => {
            LocalizedText::new("no significant difference", "差は認められない")
        }
        ComparisonResult::TooFewSamples => {
            LocalizedText::new("too few repetitions to show a difference", "差を示すには回数が不足")
        }
    }
}

impl CompareFlags {
    pub(crate) fn run(self) -> Result<()> {
        let results = self.results.folder();
        let (a, b) = (results.find(&self.a)?.load()?, results.find(&self.b)?.load()?);
        let comparisons = compare(&a, &b);
        ensure!(
            !comparisons.is_empty(),
            "runs {} and {} have no case with a common measure; compare runs of one plan",
            a.id,
            b.id
        );
        if self.form.json {
            return print(&format!(
                "{:#}\n",
                json!({ "a": a.id, "b": b.id, "compared": comparisons })
            ));
        }
        print(&self.text(&a, &b, &comparisons))
    }

    fn text(&self, a: &Run, b: &Run, comparisons: &[Comparison]) -> String {
        let language = self.form.language;
        let mut text = format!(
            "A {}, {}\nB {}, {}\n",
            a.id, a.machine.suimon_commit, b.id, b.machine.suimon_commit
        );
        if a.machine.cpu_model != b.machine.cpu_model || a.machine.cpus != b.machine.cpus {
            let words = LocalizedText::new(
                "The runs were made on different machines.",
                "異なるマシンでの測定です。",
            );
            text += &format!("{}\n", words.in_language(language));
        }
        let is_shown = |comparison: &&Comparison| {
            self.all
                || !matches!(
                    comparison.finding,
                    ComparisonResult::NotSignificant | ComparisonResult::TooFewSamples
                )
        };
        for comparison in comparisons.iter().filter(is_shown) {
            let value =
                |value: f64| format_number(value, decimal_places(comparison.first_run.mean));
            let change = comparison
                .difference_percent
                .map_or_else(String::new, |change| format!(" ({change:+.1} %)"));
            let unit = &comparison.measure.unit;
            text += &format!(
                "{}, {}: {} → {} {unit}{change}, p = {:.3}, {}\n",
                comparison.case.description.in_language(language),
                comparison.measure.description.in_language(language),
                value(comparison.first_run.mean),
                value(comparison.second_run.mean),
                comparison.p_corrected,
                finding_text(comparison.finding).in_language(language),
            );
        }
        let count = |finding: ComparisonResult| {
            comparisons.iter().filter(|comparison| comparison.finding == finding).count()
        };
        let summary = LocalizedText::new(
            format!(
                "{} measures compared by Mann–Whitney with Holm's correction: {} better, {} \
                 worse, {} different, {} without a significant difference, {} with too few \
                 repetitions.",
                comparisons.len(),
                count(ComparisonResult::Better),
                count(ComparisonResult::Worse),
                count(ComparisonResult::Different),
                count(ComparisonResult::NotSignificant),
                count(ComparisonResult::TooFewSamples)
            ),
            format!(
                "{} 項目を Mann–Whitney 検定 (Holm 補正) で比較: 改善 {}、悪化 {}、相違 {}、有意差なし {}、回数不足 {}。",
                comparisons.len(),
                count(ComparisonResult::Better),
                count(ComparisonResult::Worse),
                count(ComparisonResult::Different),
                count(ComparisonResult::NotSignificant),
                count(ComparisonResult::TooFewSamples)
            ),
        );
        text + summary.in_language(language) + "\n"
    }
}
