//! Commands of `vmq`: assignment of queues of a team or uplink to workers, with reasons.

use clap::{Args, Subcommand};
use serde_json::json;
use suimon_contract::{
    Name, NicConfig, ResourceKind, SwitchConfig, TeamConfig, UplinkConfig, VmqQueueStatus,
    VmqStatus,
};
use suimon_tables::vmq_tables::{details, explanation, table};

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::settings::{self, Setting};

/// Verbs of `vmq`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum VmqVerb {
    /// List the uplinks and teams with VMQ.
    List,
    /// Show the worker of each queue, and the load of workers and queues.
    Show(ShowFlags),
    /// Set VMQ keys of an uplink or team.
    Set(SetFlags),
    /// Explain why the queues of a NIC or uplink are assigned to their workers.
    Explain(ExplainFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowFlags {
    /// Uplink or team that a switch uses; all of these if absent.
    #[arg(value_name = "UPLINK")]
    uplink: Option<Name>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SetFlags {
    /// Team, or uplink that is not a member of a team.
    #[arg(value_name = "UPLINK")]
    uplink: Name,
    #[arg(
        value_name = "KEY=VALUE|default",
        required = true,
        value_parser = settings::parser(ResourceKind::Vmq),
        help = settings_help(),
        long_help = settings::long_help(&settings_help(), &[ResourceKind::Vmq])
    )]
    settings: Vec<Setting>,
    #[command(flatten)]
    change: ChangeFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainFlags {
    /// NIC on an external switch, or uplink that an external switch uses directly or in a team.
    #[arg(value_name = "NIC|UPLINK")]
    port: Name,
}

fn settings_help() -> String {
    format!(
        "Keys and their values, such as `max_workers=2` or `enabled=off`; `KEY=default` removes \
         a key, so that its default applies. The keys are {}",
        settings::key_names(ResourceKind::Vmq)
    )
}

impl VmqVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => {
                let vmqs = context.client.vmqs().await?;
                Ok(context.show(&vmqs, |vmqs| table(vmqs).render())?)
            }
            Self::Show(ShowFlags { uplink: None }) => {
                let vmqs = context.client.vmqs().await?;
                if vmqs.is_empty() && !context.prints_json {
                    eprintln!("no switch uses an uplink or team, so VMQ has no queues");
                }
                Ok(context
                    .show(&vmqs, |vmqs| vmqs.iter().map(details).collect::<Vec<_>>().join("\n"))?)
            }
            Self::Show(ShowFlags { uplink: Some(uplink) }) => {
                let vmq_status = find_vmq(context, &uplink).await?;
                Ok(context.show(&vmq_status, details)?)
            }
            Self::Set(flags) => flags.run(context).await,
            Self::Explain(flags) => {
                let queues = queues_of(context, &flags.port).await?;
                Ok(context.show(&queues, |queues| queues.iter().map(explanation).collect())?)
            }
        }
    }
}

/// Returns the VMQ state of a team or uplink.
///
/// # Errors
/// The uplink or team does not exist, or no switch uses it.
async fn find_vmq(context: &Context, uplink: &Name) -> Result<VmqStatus, Failure> {
    let vmqs = context.client.vmqs().await?;
    if let Some(vmq_status) = vmqs.into_iter().find(|vmq| vmq.uplink == *uplink) {
        return Ok(vmq_status);
    }
    let owner = Owner::find(context, uplink).await?;
    Err(Failure::not_found(format!(
        "no switch uses {} `{uplink}`, so it has no VMQ; `suimon vmq list` lists uplinks and teams \
         with VMQ",
        owner.kind().noun()
    )))
}

/// Kind of resource that contains the `vmq` key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Team,
    Uplink,
}

impl Owner {
    async fn find(context: &Context, name: &Name) -> Result<Self, Failure> {
        let teams = context.client.list::<TeamConfig>().await?.into_iter();
        let teams: Vec<Name> = teams.map(|team| team.config.name).collect();
        if teams.contains(name) {
            return Ok(Self::Team);
        }
        let uplinks = context.client.list::<UplinkConfig>().await?.into_iter();
        let uplinks: Vec<Name> = uplinks.map(|uplink| uplink.config.name).collect();
        if uplinks.contains(name) {
            return Ok(Self::Uplink);
        }
        let known_names = teams.iter().chain(&uplinks).map(ToString::to_string).collect();
        Err(Failure::no_such_object(&format!("team or uplink `{name}`"), known_names))
    }

    const fn kind(self) -> ResourceKind {
        match self {
            Self::Team => ResourceKind::Team,
            Self::Uplink => ResourceKind::Uplink,
        }
    }
}

impl SetFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let patch = json!({ "vmq": settings::merge_patch(&self.settings)? });
        let (client, options) = (&context.client, self.change.options());
        let outcome = match Owner::find(context, &self.uplink).await? {
            Owner::Team => client.patch::<TeamConfig>(&self.uplink, &patch, options).await,
            Owner::Uplink => client.patch::<UplinkConfig>(&self.uplink, &patch, options).await,
        };
        print_outcome(context, outcome?, self.change).await
    }
}

/// Returns the queues of a NIC or uplink; at least one.
///
/// # Errors
/// No queue belongs to a port of this name.
async fn queues_of(context: &Context, port: &Name) -> Result<Vec<VmqQueueStatus>, Failure> {
    let vmqs = context.client.vmqs().await?;
    let queues = vmqs.iter().flat_map(|vmq| &vmq.queues).filter(|queue| queue.nic == *port);
    let queues: Vec<_> = queues.cloned().collect();
    if !queues.is_empty() {
        return Ok(queues);
    }
    let nics = context.client.list::<NicConfig>().await?.into_iter();
    let nics: Vec<NicConfig> = nics.map(|nic| nic.config).collect();
    if let Some(nic) = nics.iter().find(|nic| nic.name == *port) {
        let uplink = context.client.show::<SwitchConfig>(&nic.switch).await?.config.uplink;
        return Err(Failure::not_found(no_queue_of_nic(nic, uplink.as_ref())));
    }
    let uplinks = context.client.list::<UplinkConfig>().await?.into_iter();
    let uplinks: Vec<Name> = uplinks.map(|uplink| uplink.config.name).collect();
    if uplinks.contains(port) {
        return Err(Failure::not_found(format!(
            "uplink `{port}` has no queue: no switch uses it, or it is not in service; see `suimon \
             uplink show {port}`"
        )));
    }
    let teams = context.client.list::<TeamConfig>().await?.into_iter();
    if let Some(team) = teams.map(|team| team.config).find(|team| team.name == *port) {
        let members: Vec<String> = team.members.iter().map(ToString::to_string).collect();
        return Err(Failure::not_found(format!(
            "`{port}` is a team; name one of its uplinks: {}",
            members.join(", ")
        )));
    }
    let known_names =
        nics.iter().map(|nic| &nic.name).chain(&uplinks).map(ToString::to_string).collect();
    Err(Failure::no_such_object(&format!("NIC or uplink `{port}`"), known_names))
}

fn no_queue_of_nic(nic: &NicConfig, uplink: Option<&Name>) -> String {
    let NicConfig { name, switch, .. } = nic;
    match uplink {
        None => format!(
            "NIC `{name}` is on switch `{switch}`, which has no uplink or team, so it has no VMQ"
        ),
        Some(uplink) => format!(
            "NIC `{name}` has no queue on `{uplink}`; a NIC has queues while its VM or TAP device \
             is connected, see `suimon nic show {name}`"
        ),
    }
}

#[cfg(test)]
#[path = "vmq_tests.rs"]
mod tests;
