//! Operations on a VM and their preconditions.

mod plugged;
mod requests;

use suimon_contract::{ApiError, ErrorCode, FreezeVmRequest, Name, StopVmRequest, VmState};

/// Operation on a VM, requested by API or `autostart`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmAction {
    /// Starts the VM's process.
    Start,
    /// Requests a shutdown from the guest and waits until the guest has powered off.
    Stop(StopVmRequest),
    /// Kills the VM's process, like a loss of power.
    Kill,
    /// Stops the virtual CPUs.
    Pause,
    /// Resumes stopped virtual CPUs.
    Resume,
    /// Resets the machine, like its reset button.
    Reset,
    /// Freezes the guest's file systems through the guest agent.
    Freeze(FreezeVmRequest),
    /// Thaws the guest's file systems through the guest agent.
    Thaw,
}

impl VmAction {
    /// Returns the verb of the CLI and of error messages: `start`, `stop`, …
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop(_) => "stop",
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Reset => "reset",
            Self::Freeze(_) => "freeze",
            Self::Thaw => "thaw",
        }
    }

    /// Checks that the operation is permitted in this state of the VM.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] with the reason and the command that resolves it.
    pub(super) fn check(&self, name: &Name, state: VmState) -> Result<(), ApiError> {
        let command = |verb: &str| format!("`suimon vm {verb} {name}`");
        let text = match (self, state) {
            (Self::Start, VmState::Stopped)
            | (Self::Stop(_) | Self::Freeze(_) | Self::Thaw, VmState::Running)
            | (Self::Pause, VmState::Running | VmState::Stopping)
            | (Self::Resume, VmState::Paused)
            | (Self::Reset, VmState::Running | VmState::Stopping | VmState::Panicked) => {
                return Ok(());
            }
            (Self::Kill, state)
                if !matches!(
                    state,
                    VmState::Stopped | VmState::Starting | VmState::IncomingMigration
                ) =>
            {
                return Ok(());
            }
            (_, VmState::IncomingMigration) => {
                "the VM is migrating from another node; use that node, or wait until the VM has \
                 arrived"
                    .to_owned()
            }
            (_, VmState::HandedOver) => {
                "the VM was handed over to another node, which does not respond; use that node \
                 (`suimon vm show` names it)"
                    .to_owned()
            }
            (_, VmState::NotResponding) => {
                format!("QEMU of the VM does not respond; {} ends it", command("kill"))
            }
            (Self::Start, VmState::Paused) => {
                format!("the VM is paused; {} resumes it", command("resume"))
            }
            (Self::Start, VmState::Starting) => "the VM is being started".to_owned(),
            (Self::Start, _) => "the VM is already running".to_owned(),
            (_, VmState::Starting) => "the VM is being started; wait until it runs".to_owned(),
            (_, VmState::Stopped) => {
                format!("the VM is not running; {} starts it", command("start"))
            }
            (Self::Stop(_), VmState::Stopping) => {
                format!(
                    "the guest was already requested to shut down; {} ends the VM at once",
                    command("kill")
                )
            }
            (Self::Stop(_), VmState::Panicked) => {
                format!("the guest reported a kernel panic; {} ends the VM", command("kill"))
            }
            (Self::Stop(_) | Self::Reset | Self::Freeze(_) | Self::Thaw, VmState::Paused) => {
                format!(
                    "the VM is paused and its guest cannot respond; {} resumes it, {} ends it",
                    command("resume"),
                    command("kill")
                )
            }
            (_, state) => format!("the VM is {state}"),
        };
        Err(ApiError::new(ErrorCode::Conflict, text).with_resource(format!("vm/{name}")))
    }
}
