//! Command `disk snapshot`: snapshots, optionally with frozen file systems.

use clap::Args;
use suimon_contract::{
    ApiError, ErrorCode, FREEZE_SECONDS_DEFAULT, FREEZE_SECONDS_MAX, FreezeVmRequest, Name,
    OperationState, SnapshotDiskRequest, StoreFile, VmConfig,
};

use crate::disk_job_flags::DiskJobFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::{await_end, watch};

#[derive(Clone, Debug, Args)]
pub(crate) struct SnapshotFlags {
    #[command(flatten)]
    work: DiskJobFlags,
    /// New differencing file for later writes, relative to the path of the store; it must not
    /// exist.
    file: StoreFile,
    /// Freeze the file systems of the disk's VM through the guest agent until the snapshot is
    /// taken. This creates a file-system-consistent instead of a crash-consistent snapshot.
    #[arg(long, conflicts_with = "no_wait")]
    freeze: bool,
    /// With `--freeze`: time in seconds after which the file systems are thawed automatically, 1 to
    /// 600.
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "freeze",
        default_value_t = FREEZE_SECONDS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=FREEZE_SECONDS_MAX)
    )]
    freeze_seconds: u64,
}

impl SnapshotFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        if !self.freeze {
            return self.take(context).await;
        }
        let vm = self.vm(context).await?;
        let request = FreezeVmRequest { thaw_after_s: self.freeze_seconds };
        let frozen = watch(context, context.client.freeze_vm(&vm, &request).await?).await?;
        if frozen.state != OperationState::Succeeded {
            return Err(Failure::Operation(Box::new(frozen)));
        }
        let snapshot = self.take(context).await;
        let was_frozen = context.client.show::<VmConfig>(&vm).await.map(|vm| vm.time_to_thaw_s);
        let thawed = match context.client.thaw_vm(&vm).await {
            Ok(operation) => watch(context, operation).await,
            Err(error) => Err(error.into()),
        };
        snapshot?;
        let thawed = thawed?;
        if thawed.state != OperationState::Succeeded {
            return Err(Failure::Operation(Box::new(thawed)));
        }
        if was_frozen?.is_none_or(|frozen_s| frozen_s == 0) {
            let text = format!(
                "the file systems were thawed after {} s, before the snapshot was created: the \
                 snapshot is crash-consistent only; create another one with a higher \
                 --freeze-seconds",
                self.freeze_seconds
            );
            return Err(Failure::Refused(vec![ApiError::new(ErrorCode::HostError, text)]));
        }
        Ok(())
    }

    async fn take(&self, context: &Context) -> Result<(), Failure> {
        let request = SnapshotDiskRequest { file: self.file.clone() };
        let operation = context.client.snapshot_disk(&self.work.name, &request).await?;
        await_end(context, operation, self.work.no_wait).await
    }

    /// Returns the VM that the disk belongs to.
    async fn vm(&self, context: &Context) -> Result<Name, Failure> {
        let vms = context.client.list::<VmConfig>().await?;
        let vm = vms.into_iter().find(|vm| vm.disks.contains(&self.work.name));
        vm.map(|vm| vm.config.name).ok_or_else(|| {
            let disk = &self.work.name;
            let text = format!(
                "disk/{disk}: no running VM uses the disk, so no guest can be frozen; omit --freeze"
            );
            Failure::not_found(text)
        })
    }
}
