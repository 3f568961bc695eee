//! Runs: list and results.

use std::collections::BTreeMap;

use serde::Deserialize;
use suimon_contract::{
    ApiError, ErrorCode, LabFigure, LabProgress, LabRun, LabRunDetails, LabRunState,
    LabSimulatedFigure, LabText,
};
use suimon_lab_run::folder::{
    HTML_REPORT_FILE, PROGRESS_FILE, REPORT_FILE, RUN_FILE, RUN_METADATA_FILE, RunProgress,
    is_valid_id,
};
use suimon_lab_run::{LocalizedText, RunOrigin};

use super::folder::{FileStamp, Folder};
use crate::json_file::{SMALL_FILE_BYTES_MAX, read};

/// Largest number of listed runs; the latest ones are listed.
const LISTED_MAX: usize = 500;
/// Largest accepted report in bytes.
const REPORT_BYTES_MAX: u64 = 4 << 20;
const PAGE_BYTES_MAX: u64 = 32 << 20;
/// Largest length of a text in a response, in characters.
const TEXT_CHARS_MAX: usize = 1000;
/// Largest accepted `run.json` in bytes, which contains every sample.
pub(super) const RUN_FILE_BYTES_MAX: u64 = 64 << 20;

/// Stamps of the files that determine a run's entry in the list.
type Stamps = [Option<FileStamp>; 3];

/// Cache of runs by id, with the stamps of their files.
#[derive(Default)]
pub(super) struct RunCache(BTreeMap<String, (Stamps, LabRun)>);

/// Fields that `head.json`, `run.json` and `report.json` have in common.
#[derive(Deserialize)]
struct Head {
    origin: RunOrigin,
    scale: String,
    began: String,
    /// Verdict; contained in `report.json` only.
    #[serde(default)]
    verdict: Option<LocalizedText>,
}

/// Fields of `report.json` in addition to those of [`Head`].
#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    cut_short: Option<String>,
    figures: Vec<LabFigure>,
    #[serde(default)]
    simulated: Vec<LabSimulatedFigure>,
}

impl RunCache {
    /// Returns the runs of a folder, latest first. Unchanged runs are not read again.
    pub(super) fn list(&mut self, folder: &Folder) -> Result<Vec<LabRun>, ApiError> {
        let mut ids = folder.entry_names()?;
        ids.retain(|id| is_valid_id(id) && split(id).is_some());
        ids.sort_by(|a, b| {
            split(b).map(|parts| parts.1).cmp(&split(a).map(|parts| parts.1)).then(a.cmp(b))
        });
        let mut before = std::mem::take(&mut self.0);
        let mut runs = Vec::new();
        for id in ids.into_iter().take(LISTED_MAX) {
            let Some(run) = folder.open_subfolder(&id)? else { continue };
            let stamps = stamps(&run)?;
            if stamps == [None; 3] {
                continue;
            }
            let cached = before.remove(&id).filter(|(cached_stamps, _)| *cached_stamps == stamps);
            let lab_run = cached.map_or_else(|| entry(&run, &id, &stamps), |(_, lab_run)| lab_run);
            self.0.insert(id, (stamps, lab_run.clone()));
            runs.push(with_current_state(&run, lab_run)?);
        }
        Ok(runs)
    }
}

/// Splits the id of a run, such as `vmq-teaming-20260102T030405-2`, into the plan's id and the
/// start time; `None` if it has another form.
fn split(id: &str) -> Option<(&str, &str)> {
    let is_time = |text: &str| {
        let bytes = text.as_bytes();
        let digits = |from: usize, to: usize| {
            bytes.get(from..to).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
        };
        digits(0, 8) && bytes.get(8) == Some(&b'T') && digits(9, 15)
    };
    let mut starts = id
        .match_indices('-')
        .filter_map(|(offset, _)| Some((id.get(..offset)?, id.get(offset + 1..)?)));
    starts.rfind(|(plan, time)| !plan.is_empty() && is_time(time))
}

fn stamps(run: &Folder) -> Result<Stamps, ApiError> {
    Ok([
        run.file_stamp(REPORT_FILE)?,
        run.file_stamp(RUN_FILE)?,
        run.file_stamp(RUN_METADATA_FILE)?,
    ])
}

/// Returns true if the folder contains a run.
pub(super) fn is_run(folder: &Folder) -> Result<bool, ApiError> {
    Ok(folder.contains_entry(RUN_FILE)? || folder.contains_entry(RUN_METADATA_FILE)?)
}

/// Returns the entry of a run in the list, read from the smallest available file.
fn entry(run: &Folder, id: &str, [report, whole_report, _]: &Stamps) -> LabRun {
    let (name, max_bytes) = match (report, whole_report) {
        (Some(_), _) => (REPORT_FILE, REPORT_BYTES_MAX),
        (None, Some(_)) if !matches!(run.contains_entry(RUN_METADATA_FILE), Ok(true)) => {
            (RUN_FILE, RUN_FILE_BYTES_MAX)
        }
        _ => (RUN_METADATA_FILE, SMALL_FILE_BYTES_MAX),
    };
    let (head, error) = match read::<Head>(run, name, max_bytes) {
        Ok(head) => (head, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let is_whole = whole_report.is_some();
    let mut lab_run = LabRun {
        id: id.to_owned(),
        plan: split(id).map_or(id, |(plan, _)| plan).to_owned(),
        simulated: false,
        scale: None,
        started_at: None,
        state: if is_whole { LabRunState::Complete } else { LabRunState::Interrupted },
        progress: None,
        verdict: None,
        error,
    };
    if let Some(head) = head {
        lab_run.simulated = head.origin != RunOrigin::Real;
        lab_run.scale = Some(truncated_texts(LocalizedText::untranslated(head.scale)).en);
        lab_run.started_at = Some(truncated_texts(LocalizedText::untranslated(head.began)).en);
        lab_run.verdict = head.verdict.map(truncated_texts);
    }
    lab_run
}

/// Adds the current state of a run.
fn with_current_state(run: &Folder, mut lab_run: LabRun) -> Result<LabRun, ApiError> {
    if lab_run.state == LabRunState::Complete || !run.is_locked()? {
        return Ok(lab_run);
    }
    lab_run.state = LabRunState::InProgress;
    lab_run.verdict = None;
    // The file is written at the start of each repetition.
    let started = run.file_stamp(PROGRESS_FILE)?.map_or(0, |(_, _, seconds, nanoseconds)| {
        seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
    });
    match read::<RunProgress>(run, PROGRESS_FILE, SMALL_FILE_BYTES_MAX) {
        Ok(progress) => {
            lab_run.progress = progress.map(|progress| LabProgress {
                case: truncated_texts(progress.case),
                repetition: progress.repetition,
                repetitions_done: progress.repetitions_done,
                repetition_started_unix_ms: u64::try_from(started).unwrap_or_default(),
                remaining_s: progress.seconds_left,
            });
        }
        Err(error) => lab_run.error = Some(error.to_string()),
    }
    Ok(lab_run)
}

/// Returns one run with its results.
pub(super) fn details(folder: &Folder, id: &str) -> Result<LabRunDetails, ApiError> {
    let run = with_current_state(folder, entry(folder, id, &stamps(folder)?))?;
    let report = match &run.error {
        // The error already names the damaged file.
        Some(_) => None,
        None => read::<Report>(folder, REPORT_FILE, REPORT_BYTES_MAX)?,
    };
    let report =
        report.unwrap_or(Report { cut_short: None, figures: Vec::new(), simulated: Vec::new() });
    Ok(LabRunDetails {
        run,
        has_report: folder.contains_entry(HTML_REPORT_FILE)?,
        early_end_reason: report.cut_short,
        figures: report.figures,
        simulated_figures: report.simulated,
    })
}

/// Returns the report of a run as HTML.
pub(super) fn html_report(folder: &Folder, id: &str) -> Result<Vec<u8>, ApiError> {
    folder.read_file(HTML_REPORT_FILE, PAGE_BYTES_MAX)?.ok_or_else(|| {
        let text = format!("the run has no report yet; create one with `suimon lab report {id}`");
        ApiError::new(ErrorCode::NotFound, text).with_resource(format!("lab/{id}"))
    })
}

/// Truncates texts to [`TEXT_CHARS_MAX`], since the list of runs is sent to the console every
/// second.
pub(super) fn truncated_texts(words: LocalizedText) -> LabText {
    let bounded = |mut text: String| {
        if let Some((offset, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
            text.truncate(offset);
            text.push('…');
        }
        text
    };
    LabText { en: bounded(words.en), ja: bounded(words.ja) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_truncated_at_a_character_boundary() {
        let long_words = truncated_texts(LocalizedText::untranslated("水".repeat(5000)));
        assert_eq!(
            (long_words.en.chars().count(), long_words.ja.chars().last()),
            (1001, Some('…'))
        );
        assert_eq!(truncated_texts(LocalizedText::untranslated("short")).en, "short");
    }

    #[test]
    fn a_runs_id_has_its_plan_and_when_it_began() {
        assert_eq!(split("web-20260102T030405"), Some(("web", "20260102T030405")));
        assert_eq!(
            split("vmq-teaming-20260102T030405-2"),
            Some(("vmq-teaming", "20260102T030405-2"))
        );
        for other in ["requests", "web", "-20260102T030405", "web-20260102", "web-2026010aT030405"]
        {
            assert_eq!(split(other), None, "{other}");
        }
    }
}
