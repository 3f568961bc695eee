//! Commands of `vm`: actions on a VM.

use clap::{Args, Subcommand};
use suimon_client::ChangeOutcome;
use suimon_contract::{
    ByteSize, FREEZE_SECONDS_DEFAULT, FREEZE_SECONDS_MAX, FreezeVmRequest, MigrateVmRequest, Name,
    STOP_SECONDS_DEFAULT, STOP_SECONDS_MAX, StopMethod, StopVmRequest, VmConfig,
};
use suimon_tables::vm_tables::guest_text;

use crate::change_flags::ChangeFlags;
use crate::choices::one_of_parser;
use crate::downtime::parse_downtime_ms;
use crate::exit::Failure;
use crate::kind_specific_verb::KindSpecificVerb;
use crate::output::{Context, print};
use crate::progress::{await_end, print_outcome};
use crate::resource::{NameArgument, ResourceVerb};

/// Verbs of `vm`.
pub(crate) type VmVerb = ResourceVerb<VmConfig, VmSpecificVerb>;

/// Verbs that only VMs have.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum VmSpecificVerb {
    /// Start a VM.
    Start(ActionFlags),
    /// Stop a VM by a shutdown of its guest.
    Stop(StopFlags),
    /// Kill a VM, like a loss of power.
    Kill(ActionFlags),
    /// Pause a running VM.
    Pause(ActionFlags),
    /// Resume a paused VM.
    Resume(ActionFlags),
    /// Reset a VM, as a reset button does.
    Reset(ActionFlags),
    /// Freeze the file systems of a guest for a limited time.
    Freeze(FreezeFlags),
    /// Thaw the file systems of a guest.
    Thaw(ActionFlags),
    /// Migrate a running VM to another node.
    Migrate(MigrateFlags),
    /// Show operating system, host name and IP addresses as reported by the guest agent.
    Guest(NameArgument<VmConfig>),
    /// Connect this terminal to the serial console of a VM.
    Console(NameArgument<VmConfig>),
    /// Print libvirt domain XML for the NICs and disks of a VM.
    Xml(NameArgument<VmConfig>),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ActionFlags {
    /// Name of the VM.
    name: Name,
    /// Print the number of the operation and return without waiting for its end.
    #[arg(long)]
    no_wait: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StopFlags {
    #[command(flatten)]
    tell: ActionFlags,
    /// Time for the guest to shut down in seconds, 1 to 3600.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = STOP_SECONDS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=STOP_SECONDS_MAX)
    )]
    seconds: u64,
    /// Kill the VM if the guest has not shut down after `--seconds`.
    #[arg(long)]
    force: bool,
    /// Method of the request: `agent` (guest agent), `power-button` (ACPI), or `auto`, which uses
    /// the guest agent if it responds, else the power button.
    #[arg(long, value_name = "METHOD", default_value = "auto",
        value_parser = one_of_parser::<StopMethod>(&["auto", "power-button", "agent"]))]
    by: StopMethod,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct FreezeFlags {
    #[command(flatten)]
    tell: ActionFlags,
    /// Time in seconds after which the file systems are thawed automatically, 1 to 600.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = FREEZE_SECONDS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=FREEZE_SECONDS_MAX)
    )]
    seconds: u64,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MigrateFlags {
    /// Name of the VM.
    name: Name,
    /// Destination node, as shown by `suimon node list`.
    #[arg(long, value_name = "NODE")]
    to: Name,
    /// Target downtime of the VM at the end of the migration, 1ms to 60s, such as 300ms or 2s.
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_downtime_ms)]
    downtime: u32,
    /// Limit of memory transfer in bytes per second, such as 100MiB; no limit if absent.
    #[arg(long, value_name = "SIZE")]
    bandwidth: Option<ByteSize>,
    /// Delete the image files of the VM on this host after the migration, except in shared stores.
    #[arg(long)]
    with_files: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

impl MigrateFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let request = MigrateVmRequest {
            destination: self.to,
            downtime_ms: self.downtime,
            bandwidth_max_bytes_per_s: self.bandwidth,
            deletes_source_files: self.with_files,
        };
        let outcome = if self.change.dry_run {
            ChangeOutcome::Planned(context.client.check_migration(&self.name, &request).await?)
        } else {
            let operation = context.client.migrate_vm(&self.name, &request).await?;
            ChangeOutcome::Started(Box::new(operation))
        };
        print_outcome(context, outcome, self.change).await
    }
}

impl KindSpecificVerb for VmSpecificVerb {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let client = &context.client;
        let (operation, no_wait) = match self {
            Self::Console(NameArgument { name, .. }) => {
                return crate::vm_console::run(context, &name).await;
            }
            Self::Xml(NameArgument { name, .. }) => {
                return Ok(print(&client.vm_libvirt_xml(&name).await?)?);
            }
            Self::Migrate(flags) => return flags.run(context).await,
            Self::Guest(NameArgument { name, .. }) => return guest(context, &name).await,
            Self::Freeze(FreezeFlags { tell: flags, seconds }) => {
                let request = FreezeVmRequest { thaw_after_s: seconds };
                (client.freeze_vm(&flags.name, &request).await, flags.no_wait)
            }
            Self::Thaw(flags) => (client.thaw_vm(&flags.name).await, flags.no_wait),
            Self::Start(flags) => (client.start_vm(&flags.name).await, flags.no_wait),
            Self::Kill(flags) => (client.kill_vm(&flags.name).await, flags.no_wait),
            Self::Pause(flags) => (client.pause_vm(&flags.name).await, flags.no_wait),
            Self::Resume(flags) => (client.resume_vm(&flags.name).await, flags.no_wait),
            Self::Reset(flags) => (client.reset_vm(&flags.name).await, flags.no_wait),
            Self::Stop(StopFlags { tell: flags, seconds, force, by: method }) => {
                let request = StopVmRequest { timeout_s: seconds, force, method };
                (client.stop_vm(&flags.name, &request).await, flags.no_wait)
            }
        };
        await_end(context, operation?, no_wait).await
    }
}

async fn guest(context: &Context, vm: &Name) -> Result<(), Failure> {
    let guest = context.client.vm_guest(vm).await?;
    Ok(context.show(&guest, guest_text)?)
}
