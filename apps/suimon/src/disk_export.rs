//! Command `disk export`: NBD export of a disk, and its clients.

use clap::Args;
use serde_json::json;
use suimon_contract::{DiskConfig, Name, ResourceKind};
use suimon_tables::disk_tables::export_details;

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::settings::{self, Setting};

/// Arguments of `disk export`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExportFlags {
    /// Name of the disk.
    name: Name,
    #[arg(
        value_name = "KEY=VALUE",
        value_parser = settings::parser(ResourceKind::DiskNbd),
        help = keys_help(),
        long_help = settings::long_help(&keys_help(), &[ResourceKind::DiskNbd])
    )]
    settings: Vec<Setting>,
    /// Remove the NBD export; its clients are disconnected.
    #[arg(long, conflicts_with = "settings")]
    none: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

fn keys_help() -> String {
    let keys = settings::key_names(ResourceKind::DiskNbd);
    format!(
        "Keys of the export and their values, such as `socket=/run/suimon/nbd.sock`; `KEY=default` \
         removes a key. Without keys, the export is shown. The keys are {keys}"
    )
}

impl ExportFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.settings.is_empty() && !self.none {
            let disk = context.client.show::<DiskConfig>(&self.name).await?;
            return Ok(context.show(&disk, export_details)?);
        }
        let table = if self.none { None } else { Some(settings::merge_patch(&self.settings)?) };
        let patch = json!({ "nbd": table });
        let options = self.change.options();
        let outcome = context.client.patch::<DiskConfig>(&self.name, &patch, options).await?;
        print_outcome(context, outcome, self.change).await
    }
}
