//! The lab as the API shows it: plans, who runs them, what was asked for, and runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The same in both languages of the lab.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabWords {
    /// English.
    pub en: String,
    /// Japanese.
    pub ja: String,
}

/// The lab.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabStatus {
    /// The folder of runs.
    pub results: String,
    /// Who does what is asked for; absent if nobody is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<LabWorker>,
    /// What to do so that somebody is there; absent if somebody is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// What can be asked for, as the last worker told.
    pub plans: Vec<LabPlan>,
    /// What was asked for, oldest first: all that waits or is under way, and the last that ended.
    pub requests: Vec<LabRequest>,
}

/// The program that runs experiments: `suimon lab work`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabWorker {
    /// Its process.
    pub pid: u32,
}

/// A plan that can be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabPlan {
    /// What it is called.
    pub id: String,
    /// Its title.
    pub title: LabWords,
    /// What it is to find out.
    pub question: LabWords,
    /// The document it is after, by its short name.
    pub document: String,
    /// The simulator's scenario of the same experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<String>,
    /// What it takes at each scale.
    pub scales: Vec<LabPlanScale>,
}

/// A plan at one scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabPlanScale {
    /// How large.
    pub scale: LabScale,
    /// About how long it takes.
    pub seconds: f64,
    /// What it needs that this machine lacks, with how to get it; it can be run if there is
    /// nothing.
    pub missing: Vec<LabWords>,
}

/// How large a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabScale {
    /// As the plan says, fitted to this machine.
    #[default]
    Auto,
    /// Two minutes at most: whether it works, hardly what comes out.
    Quick,
    /// As long and as large as in the document.
    Full,
}

impl LabScale {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// `POST /1.0/lab/runs`: a run that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabRunRequest {
    /// The plan's id.
    pub plan: String,
    /// How large.
    #[serde(default)]
    pub scale: LabScale,
    /// Whether `perf` says meanwhile where CPU time goes, which takes some itself.
    #[serde(default)]
    pub profile: bool,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabRequest {
    /// When it was asked for, in milliseconds since 1970: requests are told apart by it.
    pub id: String,
    /// The plan; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// How large; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<LabScale>,
    /// How far it is.
    pub state: LabRequestState,
    /// The run it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Why it did not come to its end, or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabRequestState {
    /// Others are before it, or nobody is there.
    Waiting,
    /// It is run.
    UnderWay,
    /// It is to end.
    Stopping,
    /// Its run came to its end.
    Done,
    /// It did not.
    Failed,
}

/// A run in the list of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabRun {
    /// The name of its folder.
    pub id: String,
    /// The plan's id.
    pub plan: String,
    /// Whether it is of the simulator, not of this host.
    pub simulated: bool,
    /// As it was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
    /// When: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// How far it is.
    pub state: LabRunState,
    /// Where it is, while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<LabProgress>,
    /// What came out, in a sentence or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<LabWords>,
    /// Why something of it cannot be read; it names the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabRunState {
    /// It came to its end.
    Whole,
    /// It is being made.
    UnderWay,
    /// It ended before all was measured, and can be taken up again.
    Interrupted,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabProgress {
    /// What is measured now.
    pub case: LabWords,
    /// For the how many-th time, from 1.
    pub repetition: u32,
    /// How many parts are done; a part is one repetition of one case.
    pub parts_done: u64,
    /// When this part began, in milliseconds since 1970.
    pub part_began_ms: u64,
    /// About how many seconds the run takes from then on, if nothing has to be
    /// repeated more often than the plan says.
    pub seconds_left: u64,
}
