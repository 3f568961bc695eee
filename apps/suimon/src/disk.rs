//! Commands of `disk`: operations on a disk and its file.

use clap::{Args, Subcommand};
use serde_json::json;
use suimon_contract::{
    ByteSize, ConvertDiskRequest, DiskConfig, DiskFormat, DiskKind, Name, StoreFile,
};

use crate::change_flags::ChangeFlags;
use crate::choices::one_of_parser;
use crate::disk_export::ExportFlags;
use crate::disk_job_flags::DiskJobFlags;
use crate::disk_snapshot::SnapshotFlags;
use crate::exit::Failure;
use crate::kind_specific_verb::KindSpecificVerb;
use crate::output::Context;
use crate::progress::{await_end, print_outcome};
use crate::resource::ResourceVerb;

/// Verbs of `disk`.
pub(crate) type DiskVerb = ResourceVerb<DiskConfig, DiskSpecificVerb>;

/// Verbs that only disks have.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DiskSpecificVerb {
    /// Show or change the NBD export of a disk.
    Export(ExportFlags),
    /// Enlarge a disk while it is in use.
    Resize(ResizeFlags),
    /// Check the image file of a disk that is not in use.
    Check(DiskJobFlags),
    /// Compact the image file of a disk that is not in use.
    Compact(DiskJobFlags),
    /// Copy a disk that is not in use to a file of another format or kind.
    Convert(ConvertFlags),
    /// Create a snapshot of a disk while it is in use.
    Snapshot(SnapshotFlags),
    /// Merge the differencing file of a disk that is not in use into its parent.
    Merge(DiskJobFlags),
    /// Reopen the image of a disk to permit writes after a failed flush.
    Reopen(DiskJobFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ResizeFlags {
    /// Name of the disk.
    name: Name,
    /// New size in bytes or with a unit (KiB, MiB, GiB, TiB), such as 20GiB: a multiple of 512
    /// bytes, not below the present size.
    size: ByteSize,
    #[command(flatten)]
    change: ChangeFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ConvertFlags {
    #[command(flatten)]
    work: DiskJobFlags,
    /// New file, relative to the path of the store; it must not exist.
    file: StoreFile,
    /// Image format of the new file.
    #[arg(long, value_name = "FORMAT", value_parser = one_of_parser::<DiskFormat>(&["raw", "vhd", "vhdx"]))]
    format: DiskFormat,
    /// Kind of the new file; `fixed` if absent with format `raw`, else `dynamic`.
    #[arg(long, value_name = "KIND", value_parser = one_of_parser::<DiskKind>(&["fixed", "dynamic"]))]
    kind: Option<DiskKind>,
}

impl KindSpecificVerb for DiskSpecificVerb {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let client = &context.client;
        let (operation, no_wait) = match self {
            Self::Export(flags) => return flags.run(context).await,
            Self::Resize(flags) => return flags.run(context).await,
            Self::Check(work) => (client.check_disk(&work.name).await, work.no_wait),
            Self::Compact(work) => (client.compact_disk(&work.name).await, work.no_wait),
            Self::Merge(work) => (client.merge_disk(&work.name).await, work.no_wait),
            Self::Reopen(work) => (client.reopen_disk(&work.name).await, work.no_wait),
            Self::Convert(ConvertFlags { work, file, format, kind }) => {
                let request = ConvertDiskRequest { file, format, kind };
                (client.convert_disk(&work.name, &request).await, work.no_wait)
            }
            Self::Snapshot(flags) => return flags.run(context).await,
        };
        await_end(context, operation?, no_wait).await
    }
}

impl ResizeFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let patch = json!({ "size_bytes": self.size });
        let options = self.change.options();
        let outcome = context.client.patch::<DiskConfig>(&self.name, &patch, options).await?;
        print_outcome(context, outcome, self.change).await
    }
}
