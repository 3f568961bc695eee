//! Comparison of two runs.

use std::sync::PoisonError;

use suimon_contract::{ApiError, ErrorCode, LabCompared, LabComparison, LabEstimate, LabFinding};
use suimon_lab_run::folder::RUN_FILE;
use suimon_lab_run::{Comparison, ComparisonResult, FORMAT, Run, Statistics, compare};

use super::Lab;
use super::runs::{RUN_FILE_BYTES_MAX, bounded_words};
use crate::folder::unread;
use crate::json_file::read;

impl Lab {
    /// Compares two runs by measure.
    ///
    /// # Errors
    /// A run does not exist or is incomplete, or the runs have no common measure.
    pub fn compare(&self, a: &str, b: &str) -> Result<LabComparison, ApiError> {
        let _one = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        let (a, b) = (self.complete_run(a)?, self.complete_run(b)?);
        let compared: Vec<LabCompared> = compare(&a, &b).into_iter().map(of_measure).collect();
        if compared.is_empty() {
            let text = format!(
                "runs {} and {} have no case with a common measure; compare runs of one plan",
                a.id, b.id
            );
            return Err(ApiError::new(ErrorCode::Unsupported, text).about("lab").field("b"));
        }
        let other_machine = a.machine.cpu != b.machine.cpu || a.machine.cpus != b.machine.cpus;
        Ok(LabComparison { a: a.id, b: b.id, other_machine, compared })
    }

    fn complete_run(&self, id: &str) -> Result<Run, ApiError> {
        let folder = self.run_folder(id)?;
        let Some(mut run) = read::<Run>(&folder, RUN_FILE, RUN_FILE_BYTES_MAX)? else {
            let text = format!(
                "the run is incomplete and cannot be compared; complete it with `suimon lab run \
                 --resume {id}`"
            );
            return Err(ApiError::new(ErrorCode::Unsupported, text).about(format!("lab/{id}")));
        };
        if run.format != FORMAT {
            let text = format!("has format {}, but this daemon reads format {FORMAT}", run.format);
            return Err(unread(&folder.path(RUN_FILE), text));
        }
        // The folder's name takes precedence over the id in the file.
        id.clone_into(&mut run.id);
        Ok(run)
    }
}

fn of_measure(comparison: Comparison) -> LabCompared {
    LabCompared {
        case: comparison.case.id,
        case_words: bounded_words(comparison.case.words),
        measure: comparison.measure.id,
        measure_words: bounded_words(comparison.measure.words),
        unit: comparison.measure.unit,
        a: estimate(&comparison.a),
        b: estimate(&comparison.b),
        more_percent: comparison.difference_percent,
        p: comparison.p_corrected,
        finding: match comparison.finding {
            ComparisonResult::Better => LabFinding::Better,
            ComparisonResult::Worse => LabFinding::Worse,
            ComparisonResult::Different => LabFinding::Different,
            ComparisonResult::NotSignificant => LabFinding::NotShown,
            ComparisonResult::TooFewSamples => LabFinding::TooFew,
        },
    }
}

fn estimate(statistics: &Statistics) -> LabEstimate {
    LabEstimate {
        samples: statistics.samples as u64,
        mean: statistics.mean,
        median: statistics.median,
        least: statistics.min,
        most: statistics.max,
        interval: statistics.interval.map(|(low, high)| [low, high]),
    }
}
