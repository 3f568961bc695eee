//! Command `disk export`: NBD export of a disk, and its clients.

use clap::Args;
use serde_json::json;
use suimon_contract::{DiskConfig, DiskStatus, Kind, Name};

use crate::change_flags::ChangeFlags;
use crate::disk_tables::{add_clients, used_by};
use crate::exit::Failure;
use crate::lines::{Lines, storage_state};
use crate::output::Context;
use crate::progress::finish;
use crate::settings::{self, Setting};

/// Arguments of `disk export`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExportFlags {
    /// Name of the disk.
    name: Name,
    #[arg(
        value_name = "KEY=VALUE",
        value_parser = settings::parser(Kind::DiskNbd),
        help = keys_help(),
        long_help = settings::long_help(&keys_help(), &[Kind::DiskNbd])
    )]
    settings: Vec<Setting>,
    /// Remove the NBD export; its clients are disconnected.
    #[arg(long, conflicts_with = "settings")]
    none: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

fn keys_help() -> String {
    let keys = settings::keys(Kind::DiskNbd);
    format!(
        "Keys of the export and their values, such as `socket=/run/suimon/nbd.sock`; `KEY=default` \
         removes a key. Without keys, the export is shown. The keys are {keys}"
    )
}

impl ExportFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.settings.is_empty() && !self.none {
            let disk = context.client.show::<DiskConfig>(&self.name).await?;
            return Ok(context.show(&disk, details)?);
        }
        let table = if self.none { None } else { Some(settings::table(&self.settings)?) };
        let patch = json!({ "nbd": table });
        let options = self.change.options();
        let outcome = context.client.patch::<DiskConfig>(&self.name, &patch, options).await?;
        finish(context, outcome, self.change).await
    }
}

/// Returns the export's settings, its URIs and the connected clients.
fn details(disk: &DiskStatus) -> String {
    let mut lines = Lines::default();
    lines.add("disk", &disk.config.name);
    lines.add("state", storage_state(disk.state, disk.reason.as_ref()));
    if let Some(vhost_user) = &disk.config.vhost_user {
        lines.keys_within(Kind::DiskVhostUser, "vhost_user", vhost_user);
    }
    if let Some(nbd) = &disk.config.nbd {
        lines.keys_within(Kind::DiskNbd, "nbd", nbd);
    }
    for uri in uris(&disk.config) {
        lines.add("NBD URI", uri);
    }
    lines.add("used by", used_by(disk));
    add_clients(&mut lines, disk);
    lines.text()
}

/// Returns the URIs for libnbd, QEMU and fio (`doc/uri.md` of the protocol).
fn uris(disk: &DiskConfig) -> Vec<String> {
    let Some(nbd) = &disk.nbd else { return Vec::new() };
    let name = &disk.name;
    let unix = nbd.socket.as_ref();
    let unix = unix.map(|socket| format!("nbd+unix:///{name}?socket={}", socket.display()));
    let scheme = if nbd.has_tls() { "nbds" } else { "nbd" };
    let tcp = nbd.listen.map(|address| format!("{scheme}://{address}/{name}"));
    unix.into_iter().chain(tcp).collect()
}
