//! Commands `qos show` and `qos set`: limits of one disk.

use clap::Args;
use serde_json::{Map, Value};
use suimon_client::ChangeOptions;
use suimon_contract::{DiskConfig, Name, ResourceKind};

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::settings::{self, Setting};

/// Arguments of `qos set`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetFlags {
    /// Name of the disk.
    disk: Name,
    #[arg(
        value_name = "KEY=VALUE",
        required_unless_present = "policy",
        value_parser = settings::parser(ResourceKind::DiskQos),
        help = keys_help(),
        long_help = settings::long_help(&keys_help(), &[ResourceKind::DiskQos])
    )]
    settings: Vec<Setting>,
    /// Policy whose limits the disk has from now on, instead of limits of its own.
    #[arg(long, value_name = "NAME", conflicts_with = "settings")]
    policy: Option<Name>,
    /// Accept minimums that exceed 90 % of the capacity of the store, or on a store of unknown
    /// capacity.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

fn keys_help() -> String {
    let keys = settings::key_names(ResourceKind::DiskQos);
    format!(
        "Limits of the disk and their values, such as `min_iops=500`; `KEY=default` removes a limit. \
         The keys are {keys}"
    )
}

impl SetFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let patch = Value::Object(self.patch()?);
        let options = ChangeOptions { force: self.force, ..self.change.options() };
        let outcome = context.client.patch::<DiskConfig>(&self.disk, &patch, options).await?;
        print_outcome(context, outcome, self.change).await
    }

    /// Returns the merge patch. A disk has either limits of its own or a policy.
    fn patch(&self) -> Result<Map<String, Value>, Failure> {
        let (policy, limits) = match &self.policy {
            Some(policy) => (Value::from(policy.as_str()), Value::Null),
            None => (Value::Null, Value::Object(settings::merge_patch(&self.settings)?)),
        };
        let pairs = [("qos_policy", policy), ("qos", limits)];
        Ok(pairs.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
    }
}
