//! Layout of the results folder, and the files by which programs communicate there.
//!
//! ```text
//! ID/head.json       a run before its first part
//! ID/parts.jsonl     its parts, one per line, appended as they complete
//! ID/run.json        the complete run, after its end
//! ID/progress.json   Progress
//! ID/report.html, ID/report.json
//! plans.json         available plans
//! worker.json        Worker
//! requests/ID.json   Request; ID.stop: request to stop; ID.done: Done
//! ```
//!
//! A program that performs a run holds an exclusive `flock(2)` on the run's folder; the program
//! that serves requests holds one on `requests`. The kernel releases the locks when the process
//! ends.

use serde::{Deserialize, Serialize};

use crate::localized_text::LocalizedText;

/// Metadata of a run, written before its first repetition.
pub const RUN_METADATA_FILE: &str = "head.json";
/// Repetitions of a run ([`Repetition`](crate::Repetition)), one JSON object per line, appended as
/// they complete.
pub const REPETITIONS_FILE: &str = "parts.jsonl";
/// Complete run, written at its end.
pub const RUN_FILE: &str = "run.json";
/// [`RunProgress`] of a run.
pub const PROGRESS_FILE: &str = "progress.json";
/// Human-readable report of a run (HTML).
pub const HTML_REPORT_FILE: &str = "report.html";
/// Machine-readable report of a run (JSON).
pub const REPORT_FILE: &str = "report.json";
/// Plans that can be requested.
pub const PLANS_FILE: &str = "plans.json";
/// Status of the program that serves requests ([`RequestServerStatus`]).
pub const REQUEST_SERVER_STATUS_FILE: &str = "worker.json";
/// Folder that contains the request files.
pub const REQUESTS_FOLDER: &str = "requests";

/// Maximum length of the id of a plan or run, in bytes.
pub const ID_BYTES_MAX: usize = 128;

/// Returns true if a text is a valid id of a plan, run, case or measure: a file name that cannot
/// refer to another folder.
pub fn is_valid_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.+".contains(&byte);
    !text.is_empty()
        && text.len() <= ID_BYTES_MAX
        && !text.starts_with('.')
        && text.bytes().all(is_plain)
}

/// Error: an id is not a file name that stays in its folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject} `{id}` may contain only letters, digits, `-`, `.` and `+`")]
pub struct InvalidId {
    /// Kind of object that the id names, such as `run`.
    subject: String,
    id: String,
}

/// Checks the id of an object of kind `subject`.
///
/// # Errors
///
/// The text is not an id ([`is_valid_id`]).
pub fn check_id(subject: &str, id: &str) -> Result<(), InvalidId> {
    if is_valid_id(id) {
        Ok(())
    } else {
        Err(InvalidId { subject: subject.to_owned(), id: id.to_owned() })
    }
}

/// Progress of a run in execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProgress {
    /// Process id of the program that performs the run.
    pub pid: u32,
    /// Description of the case being measured.
    pub case: LocalizedText,
    /// Repetition of the case, counted from 1.
    pub repetition: u32,
    /// Number of repetitions, of all cases, completed so far.
    #[serde(rename = "parts_done")]
    pub repetitions_done: u64,
    /// Estimated remaining time in seconds, assuming the minimum number of repetitions.
    pub seconds_left: u64,
}

/// Status of the program that serves requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestServerStatus {
    /// Process id of the program.
    pub pid: u32,
    /// Time of the status in milliseconds since 1970-01-01 UTC; updated every two seconds.
    #[serde(rename = "at_ms")]
    pub updated_unix_ms: u64,
    /// Id of the request in progress; `None` if the program is idle.
    #[serde(default)]
    pub request: Option<String>,
    /// Id of the run that serves the request; `None` before the run has started.
    #[serde(default)]
    pub run: Option<String>,
}

/// Request of a user to perform a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Id of the plan to execute.
    #[serde(rename = "plan")]
    pub plan_id: String,
    /// Scale of the run: `auto`, `quick` or `full`.
    pub scale: String,
    /// True if CPU time is to be profiled.
    #[serde(default)]
    pub profile: bool,
}

/// Result of a completed request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestResult {
    /// Id of the resulting run; `None` if none was started.
    #[serde(default)]
    #[serde(rename = "run")]
    pub run_id: Option<String>,
    /// Reason for which the run was not completed; `None` on success.
    #[serde(default)]
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_contain_path_components() {
        for id in ["vmq-teaming-20260102T030405-2", "a.b", "switch-independent+hyper-v-port"] {
            assert!(is_valid_id(id), "{id}");
        }
        for id in ["", ".", "..", ".hidden", "a/b", "a\\b", "ä", "a b", "a\0", &"x".repeat(129)] {
            assert!(!is_valid_id(id), "{id}");
        }
    }

    #[test]
    fn an_invalid_id_is_an_error_that_names_subject_and_id() {
        assert_eq!(check_id("run", "a.b"), Ok(()));
        assert_eq!(
            check_id("run", "../x").unwrap_err().to_string(),
            "run `../x` may contain only letters, digits, `-`, `.` and `+`"
        );
    }
}
