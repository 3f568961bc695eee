//! Commands of `offload`: state of offloads per port, the component that performs each, and
//! settings.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use serde::Serialize;
use suimon_contract::{
    DeviceFeaturesStatus, Name, NicConfig, OffloadStatus, ResourceKind, SwitchConfig, SwitchKind,
    UplinkConfig,
};
use suimon_tables::offload_tables::port_offload_table;

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::settings::{self, Setting};

/// Verbs of `offload`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OffloadVerb {
    /// Show which offloads ports use, and why.
    Show(ShowFlags),
    /// Set offloads of a NIC, an uplink, or the host NIC of an internal switch.
    Set(SetFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowFlags {
    /// NICs, uplinks, and internal switches (for their host NICs); all ports if absent. If several
    /// kinds of port have the name: `nic:NAME`, `uplink:NAME` or `switch:NAME`.
    #[arg(value_name = "PORT")]
    ports: Vec<PortName>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SetFlags {
    /// NIC, uplink, or internal switch (for its host NIC). If several kinds of port have the name:
    /// `nic:NAME`, `uplink:NAME` or `switch:NAME`.
    #[arg(value_name = "PORT")]
    port: PortName,
    #[arg(
        value_name = "KEY=on|off|default",
        required = true,
        value_parser = settings::parser(ResourceKind::Offload),
        help = switches_help(),
        long_help = settings::long_help(&switches_help(), &[ResourceKind::Offload])
    )]
    switches: Vec<Setting>,
    #[command(flatten)]
    change: ChangeFlags,
}

/// Kind of port with offloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum PortKind {
    Nic,
    Uplink,
    /// Host NIC of an internal switch, denoted by the switch's name.
    Switch,
}

impl PortKind {
    const ALL: [Self; 3] = [Self::Nic, Self::Uplink, Self::Switch];

    const fn name(self) -> &'static str {
        match self {
            Self::Nic => "nic",
            Self::Uplink => "uplink",
            Self::Switch => "switch",
        }
    }

    /// Returns the key of the resource that contains the offload settings.
    const fn switches_key(self) -> &'static str {
        match self {
            Self::Nic | Self::Uplink => "offload",
            Self::Switch => "host_offload",
        }
    }
}

/// Port named on the command line: `NAME`, or `KIND:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortName {
    /// Kind; `None` if the user gave the name only.
    kind: Option<PortKind>,
    name: Name,
}

impl FromStr for PortName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match text.split_once(':') {
            None => (None, text),
            Some((kind_name, name)) => {
                let kind = PortKind::ALL.into_iter().find(|kind| kind.name() == kind_name);
                let kind = kind.ok_or_else(|| {
                    format!(
                        "`{kind_name}` is not a kind of port; use nic:NAME, uplink:NAME or \
                         switch:NAME"
                    )
                })?;
                (Some(kind), name)
            }
        };
        let name = name.parse().map_err(|error: suimon_contract::NameError| error.to_string())?;
        Ok(Self { kind, name })
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{}:{}", kind.name(), self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

fn switches_help() -> String {
    format!(
        "Offloads to enable (`on`) or disable (`off`), such as `segmentation=off`; `default` \
         removes the key, which enables the offload. The keys are {}",
        settings::key_names(ResourceKind::Offload)
    )
}

/// Offloads of one port, as printed by `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct PortOffloads {
    kind: PortKind,
    name: Name,
    offloads: Vec<OffloadStatus>,
    /// Offload features of an uplink's device.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<DeviceFeaturesStatus>,
}

impl OffloadVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show(flags) => {
                let ports = chosen(ports(context).await?, &flags.ports)?;
                Ok(context.show(&ports, |ports| text(ports))?)
            }
            Self::Set(flags) => {
                let switches = settings::merge_patch(&flags.switches)?;
                let ports = chosen(ports(context).await?, core::slice::from_ref(&flags.port))?;
                for PortOffloads { kind, name, .. } in ports {
                    let (client, options) = (&context.client, flags.change.options());
                    let patch = serde_json::json!({ kind.switches_key(): switches });
                    let outcome = match kind {
                        PortKind::Nic => client.patch::<NicConfig>(&name, &patch, options).await,
                        PortKind::Uplink => {
                            client.patch::<UplinkConfig>(&name, &patch, options).await
                        }
                        PortKind::Switch => {
                            client.patch::<SwitchConfig>(&name, &patch, options).await
                        }
                    };
                    print_outcome(context, outcome?, flags.change).await?;
                }
                Ok(())
            }
        }
    }
}

/// Returns all ports with offloads: NICs, then uplinks, then host NICs.
async fn ports(context: &Context) -> Result<Vec<PortOffloads>, Failure> {
    let nics = context.client.list::<NicConfig>().await?.into_iter().map(|nic| PortOffloads {
        kind: PortKind::Nic,
        name: nic.config.name,
        offloads: nic.offloads,
        device: None,
    });
    let mut ports: Vec<_> = nics.collect();
    let uplinks = context.client.list::<UplinkConfig>().await?;
    ports.extend(uplinks.into_iter().map(|uplink| PortOffloads {
        kind: PortKind::Uplink,
        name: uplink.config.name,
        offloads: uplink.offloads,
        device: Some(uplink.device_features),
    }));
    let switches = context.client.list::<SwitchConfig>().await?.into_iter();
    let internal = switches.filter(|switch| switch.config.kind == SwitchKind::Internal);
    ports.extend(internal.map(|switch| PortOffloads {
        kind: PortKind::Switch,
        name: switch.config.name,
        offloads: switch.host_nic_offloads,
        device: None,
    }));
    Ok(ports)
}

/// Returns the named ports in the order of the names; all ports if no name is given.
///
/// # Errors
/// No port has the name, or several kinds of port do and the kind is not given.
fn chosen(ports: Vec<PortOffloads>, names: &[PortName]) -> Result<Vec<PortOffloads>, Failure> {
    if names.is_empty() {
        return Ok(ports);
    }
    let mut chosen = Vec::new();
    for port_name in names {
        let fits = |port: &&PortOffloads| {
            port.name == port_name.name && port_name.kind.is_none_or(|kind| kind == port.kind)
        };
        match ports.iter().filter(fits).collect::<Vec<_>>()[..] {
            [port] => chosen.push(port.clone()),
            [] => return Err(no_such_port(port_name, &ports)),
            ref several => {
                let choices: Vec<_> = several
                    .iter()
                    .map(|port| format!("{}:{port_name}", port.kind.name()))
                    .collect();
                return Err(Failure::Usage(format!(
                    "`{port_name}` is the name of several ports; use {}",
                    choices.join(" or ")
                )));
            }
        }
    }
    Ok(chosen)
}

fn no_such_port(port_name: &PortName, ports: &[PortOffloads]) -> Failure {
    Failure::no_such_object(&format!("NIC, uplink or host NIC `{port_name}`"), labels(ports))
}

/// Returns the label of each port: the name only, unless it is ambiguous.
fn labels(ports: &[PortOffloads]) -> Vec<String> {
    let (mut names, mut repeated) = (BTreeSet::new(), BTreeSet::new());
    for port in ports {
        if !names.insert(&port.name) {
            repeated.insert(&port.name);
        }
    }
    let kind = |port: &PortOffloads| repeated.contains(&port.name).then_some(port.kind);
    let label = |port: &PortOffloads| PortName { kind: kind(port), name: port.name.clone() };
    ports.iter().map(|port| label(port).to_string()).collect()
}

fn text(ports: &[PortOffloads]) -> String {
    let labels = labels(ports);
    let labels = labels.iter().map(String::as_str);
    let offloads = ports.iter().map(|port| port.offloads.as_slice());
    port_offload_table(labels.zip(offloads)).render()
}

#[cfg(test)]
#[path = "offload_tests.rs"]
mod tests;
