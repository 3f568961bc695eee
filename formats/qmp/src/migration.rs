//! Live migration (`qapi/migration.json`).

use serde_json::Value;

use crate::ResultError;
use crate::text::{TEXT_CHARS_MAX, sanitize_text};

/// Maximum amount of memory that is reported, 64 PiB: more than any machine has. Larger values are
/// reduced to it, so that sums and percentages do not overflow.
const BYTES_MAX: u64 = 1 << 56;

/// Migration capability that can be enabled on source or target (`MigrationCapability`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationCapability {
    /// The target reports its result to the source.
    ReturnPath,
    /// The source pauses with stopped CPUs before it transfers the remaining state.
    PauseBeforeSwitchover,
    /// The source throttles its CPUs if they dirty memory faster than it can be sent.
    AutoConverge,
    /// The target activates its disks when its CPUs start, not earlier.
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

/// Stage of a migration (`MigrationStatus` in QMP, with some states merged).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationStage {
    /// No migration has been started.
    None,
    /// QEMU sets up the migration, or transfers memory while the CPUs run.
    Active,
    /// The source has stopped its CPUs and paused ([`MigrationCapability::PauseBeforeSwitchover`]).
    PreSwitchover,
    /// QEMU transfers the remaining state while the CPUs are stopped.
    Device,
    /// The transfer is complete on both sides.
    Completed,
    /// The migration failed. Contains QEMU's description.
    Failed(String),
    /// The migration was cancelled, or its cancellation is in progress.
    Cancelled,
}

/// Progress of a migration, from `query-migrate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationProgress {
    /// Current stage of the migration.
    pub stage: MigrationStage,
    /// Memory transferred so far, in bytes; at most 2^56.
    pub bytes_sent: u64,
    /// Memory remaining to transfer, in bytes; at most 2^56.
    pub remaining_bytes: u64,
}

/// Decodes the result of `query-migrate`.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_migration(value: &Value) -> Result<MigrationProgress, ResultError> {
    let error = ResultError { command: "query-migrate" };
    let object = value.as_object().ok_or(error)?;
    let ram = |key| value.get("ram").and_then(|ram| ram.get(key)).and_then(Value::as_u64);
    let reason = || {
        let text = object.get("error-desc").and_then(Value::as_str);
        sanitize_text(text.unwrap_or("QEMU reported no reason"), TEXT_CHARS_MAX)
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
    Ok(MigrationProgress {
        stage,
        bytes_sent: bytes_sent.unwrap_or(0).min(BYTES_MAX),
        remaining_bytes: bytes_left.unwrap_or(0).min(BYTES_MAX),
    })
}

/// Decodes the machine type from the `type` property of the machine object, such as
/// `pc-q35-7.2-machine`. Returns the name for `-machine`, here `pc-q35-7.2`.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_machine_type(value: &Value) -> Result<String, ResultError> {
    let kind = value.as_str().and_then(|kind| kind.strip_suffix("-machine"));
    let is_name = |name: &&str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
    };
    let name = kind.filter(is_name).ok_or(ResultError { command: "qom-get" })?;
    Ok(name.to_owned())
}
