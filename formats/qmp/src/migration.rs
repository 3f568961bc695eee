//! How a VM's memory and devices go to another QEMU (`qapi/migration.json`).

use serde_json::Value;

use crate::AnswerError;

/// Longest text of QEMU's about a failure that is kept, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What a QEMU is told of how it sends, or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationCapability {
    /// The receiver tells the sender how it went.
    ReturnPath,
    /// The sender waits, with its CPUs stopped, before it sends the rest.
    PauseBeforeSwitchover,
    /// The sender's CPUs are slowed down if they write faster than can be sent.
    AutoConverge,
    /// The receiver takes disks when its CPUs run, and not before.
    LateBlockActivate,
}

impl MigrationCapability {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ReturnPath => "return-path",
            Self::PauseBeforeSwitchover => "pause-before-switchover",
            Self::AutoConverge => "auto-converge",
            Self::LateBlockActivate => "late-block-activate",
        }
    }
}

/// Where a migration is (`MigrationStatus`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationStage {
    /// None was begun.
    None,
    /// It is being set up, or memory is sent.
    Active,
    /// The sender waits before it sends the rest.
    PreSwitchover,
    /// The rest is sent.
    Device,
    /// All was sent, and received.
    Completed,
    /// It came to nothing, in QEMU's words.
    Failed(String),
    /// It was cancelled, or is about to be.
    Cancelled,
}

/// What `query-migrate` returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Where it is.
    pub stage: MigrationStage,
    /// Bytes of memory sent.
    pub bytes_sent: u64,
    /// Bytes of memory left.
    pub bytes_left: u64,
}

/// What `query-migrate` returned.
///
/// # Errors
/// It is not that.
pub fn migration(value: &Value) -> Result<Migration, AnswerError> {
    let error = AnswerError { command: "query-migrate" };
    let object = value.as_object().ok_or(error)?;
    let ram = |key| value.get("ram").and_then(|ram| ram.get(key)).and_then(Value::as_u64);
    let reason = || {
        let text = object.get("error-desc").and_then(Value::as_str);
        text.unwrap_or("QEMU does not say why").chars().take(REASON_CHARS_MAX).collect()
    };
    let stage = match object.get("status").map(Value::as_str) {
        None => MigrationStage::None,
        Some(Some("none")) => MigrationStage::None,
        Some(Some("setup" | "active" | "wait-unplug")) => MigrationStage::Active,
        Some(Some("pre-switchover")) => MigrationStage::PreSwitchover,
        Some(Some("device")) => MigrationStage::Device,
        Some(Some("completed")) => MigrationStage::Completed,
        Some(Some("failed")) => MigrationStage::Failed(reason()),
        Some(Some("cancelling" | "cancelled")) => MigrationStage::Cancelled,
        Some(_) => return Err(error),
    };
    let (bytes_sent, bytes_left) = (ram("transferred"), ram("remaining"));
    Ok(Migration {
        stage,
        bytes_sent: bytes_sent.unwrap_or(0),
        bytes_left: bytes_left.unwrap_or(0),
    })
}

/// What `qom-get` returned of the machine's `type`, like `pc-q35-7.2-machine`: the name by which
/// QEMU is told to emulate it.
///
/// # Errors
/// It is not that.
pub fn machine_name(value: &Value) -> Result<String, AnswerError> {
    let kind = value.as_str().and_then(|kind| kind.strip_suffix("-machine"));
    let is_name = |name: &&str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
    };
    let name = kind.filter(is_name).ok_or(AnswerError { command: "qom-get" })?;
    Ok(name.to_owned())
}
