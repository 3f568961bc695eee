//! The folder of results: what is where, and what programs tell each other there.
//!
//! ```text
//! ID/head.json       a run before its first part
//! ID/parts.jsonl     its parts, one a line, as they are made
//! ID/run.json        everything, once it came to its end
//! ID/progress.json   Progress
//! ID/report.html, ID/report.json
//! plans.json         what can be asked for
//! worker.json        Worker
//! requests/ID.json   Request; ID.stop: it is to end; ID.done: Done
//! ```
//!
//! A program that makes a run, and the one that does requests, has an exclusive `flock(2)` on the
//! folder of the run, and on `requests`: as long as it lives, and no longer.

use serde::{Deserialize, Serialize};

use crate::words::Words;

/// A run before its first part.
pub const HEAD: &str = "head.json";
/// Its parts as they are made, one a line.
pub const PARTS: &str = "parts.jsonl";
/// Everything of a run that came to its end.
pub const WHOLE: &str = "run.json";
/// [`Progress`].
pub const PROGRESS: &str = "progress.json";
/// The report for people.
pub const PAGE: &str = "report.html";
/// The report for programs.
pub const REPORT: &str = "report.json";
/// What can be asked for.
pub const PLANS: &str = "plans.json";
/// [`Worker`].
pub const WORKER: &str = "worker.json";
/// The folder of requests.
pub const REQUESTS: &str = "requests";

/// Longest id of a plan or run, in bytes.
pub const ID_BYTES_MAX: usize = 128;

/// Whether a text can be the id of a plan, run, case or measure: it names a folder, and leads out of none.
pub fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.+".contains(&byte);
    !text.is_empty()
        && text.len() <= ID_BYTES_MAX
        && !text.starts_with('.')
        && text.bytes().all(is_plain)
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The process that works.
    pub pid: u32,
    /// What is measured now.
    pub case: Words,
    /// From 1.
    pub repetition: u32,
    /// Repetitions of cases that are done.
    pub parts_done: u64,
    /// About how long it takes from now on, if no repetition is needed but the least.
    pub seconds_left: u64,
}

/// Who does requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its process.
    pub pid: u32,
    /// When it said so, in milliseconds since 1970; every two seconds.
    pub at_ms: u64,
    /// Id of the request that it does.
    #[serde(default)]
    pub request: Option<String>,
    /// The run that this became.
    #[serde(default)]
    pub run: Option<String>,
}

/// A run that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The plan's id.
    pub plan: String,
    /// `auto`, `quick` or `full`.
    pub scale: String,
    /// Whether it is to be told where CPU time goes.
    #[serde(default)]
    pub profile: bool,
}

/// What became of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The run.
    #[serde(default)]
    pub run: Option<String>,
    /// Why it did not come to its end.
    #[serde(default)]
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_nowhere_else() {
        for id in ["vmq-teaming-20260102T030405-2", "a.b", "switch-independent+hyper-v-port"] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", ".", "..", ".hidden", "a/b", "a\\b", "ä", "a b", "a\0", &"x".repeat(129)] {
            assert!(!is_id(id), "{id}");
        }
    }
}
