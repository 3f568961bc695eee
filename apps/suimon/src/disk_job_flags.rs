//! Arguments of operations on a disk's file.

use clap::Args;
use suimon_contract::Name;

#[derive(Clone, Debug, Args)]
pub(crate) struct DiskJobFlags {
    /// Name of the disk.
    pub(crate) name: Name,
    /// Print the number of the operation and return without waiting for its end.
    #[arg(long)]
    pub(crate) no_wait: bool,
}
