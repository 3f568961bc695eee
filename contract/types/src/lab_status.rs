//! State of the lab as reported by the API: plans, worker, requests and runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Text in both languages of the lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "LabWords")]
#[schema(as = LabWords)]
pub struct LabText {
    /// English text.
    pub en: String,
    /// Japanese text.
    pub ja: String,
}

/// Response of `GET /1.0/lab`: state of the lab.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabStatus {
    /// Folder that contains the runs.
    #[serde(rename = "results")]
    pub results_folder: String,
    /// Process that carries out requests; absent if none is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<LabWorker>,
    /// Action to start a worker; absent if one is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Available plans, as reported by the last worker.
    pub plans: Vec<LabPlan>,
    /// Requests, oldest first: all that are queued or in progress, and the last that ended.
    pub requests: Vec<LabRequest>,
}

/// Process that runs experiments: `suimon lab work`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabWorker {
    /// Process id of the worker.
    pub pid: u32,
}

/// Plan of an experiment that can be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabPlan {
    /// Id of the plan.
    pub id: String,
    /// Title of the plan in both languages.
    pub title: LabText,
    /// Question that the experiment answers.
    pub question: LabText,
    /// Short name of the document that the experiment reproduces.
    pub document: String,
    /// Simulator scenario of the same experiment; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<String>,
    /// Requirements and duration at each scale.
    pub scales: Vec<LabPlanScale>,
}

/// Requirements of a plan at one scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabPlanScale {
    /// Scale that the values apply to.
    pub scale: LabScale,
    /// Estimated duration of the run in seconds.
    pub seconds: f64,
    /// Requirements that this machine does not meet, with how to meet them. The plan can be run if
    /// empty.
    #[serde(rename = "missing")]
    pub unmet_requirements: Vec<LabText>,
}

/// Scale of a run: duration and size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabScale {
    /// As the plan specifies, adapted to this machine.
    #[default]
    Auto,
    /// At most two minutes: verifies that the plan works, with little precision.
    Quick,
    /// Duration and size of the published experiment.
    Full,
}

impl LabScale {
    /// Returns the scale as serialized by the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// Body of `POST /1.0/lab/runs`: request for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabRunRequest {
    /// Id of the plan.
    pub plan: String,
    /// Scale of the requested run.
    #[serde(default)]
    pub scale: LabScale,
    /// True if `perf` records where CPU time is spent, at the cost of some CPU time.
    #[serde(default)]
    pub profile: bool,
}

/// Request for a run, queued or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabRequest {
    /// Id of the request: time of submission in milliseconds since 1970-01-01 UTC.
    pub id: String,
    /// Id of the plan; absent once the request ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Scale of the run; absent once the request ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<LabScale>,
    /// Current state of the request.
    pub state: LabRequestState,
    /// Id of the run that the request started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "run")]
    pub run_id: Option<String>,
    /// Reason why the request failed or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// State of a request for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabRequestState {
    /// Queued behind other requests, or without a running worker.
    #[serde(rename = "waiting")]
    Queued,
    /// The run is in progress.
    #[serde(rename = "under-way")]
    InProgress,
    /// The run is being cancelled.
    Stopping,
    /// The run was completed successfully.
    Done,
    /// The run failed or was cancelled.
    Failed,
}

/// Entry of the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabRun {
    /// Id of the run: the name of its folder.
    pub id: String,
    /// Id of the plan.
    pub plan: String,
    /// True if the run is of the simulator, not of this host.
    pub simulated: bool,
    /// Scale that the run was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// Start time (RFC 3339, UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "began")]
    pub started_at: Option<String>,
    /// Current state of the run.
    pub state: LabRunState,
    /// Progress; absent unless the run is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<LabProgress>,
    /// Result in one or two sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<LabText>,
    /// Reason why a part of the run cannot be read, with the file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// State of a lab run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabRunState {
    /// Completed: every measurement was made.
    #[serde(rename = "whole")]
    Complete,
    /// Measurements are in progress.
    #[serde(rename = "under-way")]
    InProgress,
    /// Ended before all measurements; can be resumed.
    Interrupted,
}

/// Progress of a run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabProgress {
    /// Case that is currently measured.
    pub case: LabText,
    /// Number of its current repetition, counted from 1.
    pub repetition: u32,
    /// Parts completed; a part is one repetition of one case.
    #[serde(rename = "parts_done")]
    pub repetitions_done: u64,
    /// Start of the current part in milliseconds since 1970-01-01 UTC.
    #[serde(rename = "part_began_ms")]
    pub repetition_started_unix_ms: u64,
    /// Estimated time in seconds from the start of the current part to the end of the run, without
    /// repetitions beyond those of the plan.
    #[serde(rename = "seconds_left")]
    pub remaining_s: u64,
}
