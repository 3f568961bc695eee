//! Comparison of two runs.

use std::sync::PoisonError;

use suimon_contract::{
    ApiError, ErrorCode, LabComparison, LabEstimate, LabFinding, LabMeasureComparison,
};
use suimon_lab_run::folder::RUN_FILE;
use suimon_lab_run::{Comparison, ComparisonResult, FORMAT_VERSION, Run, Statistics, compare};

use super::Lab;
use super::runs::{RUN_FILE_BYTES_MAX, truncated_texts};
use crate::folder::file_error;
use crate::json_file::read;

impl Lab {
    /// Compares two runs by measure.
    ///
    /// # Errors
    /// A run does not exist or is incomplete, or the runs have no common measure.
    pub fn compare(&self, a: &str, b: &str) -> Result<LabComparison, ApiError> {
        let _one = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        let (a, b) = (self.complete_run(a)?, self.complete_run(b)?);
        let compared: Vec<LabMeasureComparison> =
            compare(&a, &b).into_iter().map(of_measure).collect();
        if compared.is_empty() {
            let text = format!(
                "runs {} and {} have no case with a common measure; compare runs of one plan",
                a.id, b.id
            );
            return Err(ApiError::new(ErrorCode::Unsupported, text)
                .with_resource("lab")
                .with_field("b"));
        }
        let other_machine =
            a.machine.cpu_model != b.machine.cpu_model || a.machine.cpus != b.machine.cpus;
        Ok(LabComparison {
            first_run: a.id,
            second_run: b.id,
            machines_differ: other_machine,
            measures: compared,
        })
    }

    fn complete_run(&self, id: &str) -> Result<Run, ApiError> {
        let folder = self.run_folder(id)?;
        let Some(mut run) = read::<Run>(&folder, RUN_FILE, RUN_FILE_BYTES_MAX)? else {
            let text = format!(
                "the run is incomplete and cannot be compared; complete it with `suimon lab run \
                 --resume {id}`"
            );
            return Err(
                ApiError::new(ErrorCode::Unsupported, text).with_resource(format!("lab/{id}"))
            );
        };
        if run.format_version != FORMAT_VERSION {
            let text = format!(
                "has format {}, but this daemon reads format {FORMAT_VERSION}",
                run.format_version
            );
            return Err(file_error(&folder.path(RUN_FILE), text));
        }
        // The folder's name takes precedence over the id in the file.
        id.clone_into(&mut run.id);
        Ok(run)
    }
}

fn of_measure(comparison: Comparison) -> LabMeasureComparison {
    LabMeasureComparison {
        case: comparison.case.id,
        case_text: truncated_texts(comparison.case.description),
        measure: comparison.measure.id,
        measure_text: truncated_texts(comparison.measure.description),
        unit: comparison.measure.unit,
        first_run: estimate(&comparison.first_run),
        second_run: estimate(&comparison.second_run),
        difference_percent: comparison.difference_percent,
        p_value: comparison.p_corrected,
        finding: match comparison.finding {
            ComparisonResult::Better => LabFinding::Better,
            ComparisonResult::Worse => LabFinding::Worse,
            ComparisonResult::Different => LabFinding::Different,
            ComparisonResult::NotSignificant => LabFinding::NotSignificant,
            ComparisonResult::TooFewSamples => LabFinding::TooFewSamples,
        },
    }
}

fn estimate(statistics: &Statistics) -> LabEstimate {
    LabEstimate {
        samples: statistics.sample_count as u64,
        mean: statistics.mean,
        median: statistics.median,
        min: statistics.min,
        max: statistics.max,
        confidence_interval: statistics.confidence_interval.map(|(low, high)| [low, high]),
    }
}
