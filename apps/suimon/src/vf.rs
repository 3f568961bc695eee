//! Commands of `vf`: virtual functions of SR-IOV adapters.
//!
//! Changes apply to the desired state in the adapter's `[[pf]]`, which the first change creates if
//! it does not exist.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use suimon_contract::{Form, Name, PfConfig, ResourceKind, SriovAdapter, VfConfig, parse_resource};
use suimon_tables::vf_tables::{adapter_details, adapter_table, vf_details};

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::settings::{self, Setting};

/// Verbs of `vf`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum VfVerb {
    /// List the SR-IOV adapters of the host with their VFs.
    List,
    /// Show an adapter with its VFs, or one VF.
    Show(ShowFlags),
    /// Set the number of VFs of an adapter.
    Enable(EnableFlags),
    /// Set keys of a VF while it is in use.
    Set(SetFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowFlags {
    /// Adapter: its network device, its PCI address, or the name of its `[[pf]]`.
    pf: String,
    /// Number of a VF, from 0; the adapter with all VFs if absent.
    index: Option<u16>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EnableFlags {
    /// Adapter: its network device, its PCI address, or the name of its `[[pf]]`.
    pf: String,
    /// Number of VFs, from 0 (removes all) to the number that the adapter supports.
    #[arg(long, value_name = "NUMBER")]
    count: u16,
    #[command(flatten)]
    change: ChangeFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SetFlags {
    /// Adapter: its network device, its PCI address, or the name of its `[[pf]]`.
    pf: String,
    /// Number of the VF, from 0.
    index: u16,
    #[arg(
        value_name = "KEY=VALUE|default",
        required = true,
        value_parser = settings::parser(ResourceKind::Vf),
        help = settings_help(),
        long_help = settings::long_help(&settings_help(), &[ResourceKind::Vf])
    )]
    settings: Vec<Setting>,
    #[command(flatten)]
    change: ChangeFlags,
}

fn settings_help() -> String {
    let keys = ResourceKind::Vf.keys().iter().filter(|key| key.name != "index");
    let keys: Vec<_> = keys.map(|key| key.name).collect();
    format!(
        "Keys and their values, such as `vlan=20` or `trust=on`; `KEY=default` removes a key, which \
         leaves the setting of the VF as it is. The keys are {}",
        keys.join(", ")
    )
}

impl VfVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => {
                let adapters = context.client.sriov_adapters().await?;
                if adapters.is_empty() && !context.prints_json {
                    eprintln!("no network adapter of this host supports SR-IOV");
                }
                Ok(context.show(&adapters, |adapters| adapter_table(adapters))?)
            }
            Self::Show(ShowFlags { pf, index: None }) => {
                let adapter_status = context.client.sriov_adapter(&pf).await?;
                Ok(context.show(&adapter_status, adapter_details)?)
            }
            Self::Show(ShowFlags { pf, index: Some(index) }) => {
                let adapter = context.client.sriov_adapter(&pf).await?;
                let vf = adapter.vfs.iter().find(|vf| vf.index == index);
                let vf = vf.ok_or_else(|| {
                    let vf_count = adapter.vfs.len();
                    Failure::not_found(format!(
                        "`{pf}` has no VF {index}; it has {vf_count} VFs, numbered from 0"
                    ))
                })?;
                Ok(context.show(vf, vf_details)?)
            }
            Self::Enable(flags) => flags.run(context).await,
            Self::Set(flags) => flags.run(context).await,
        }
    }
}

/// Returns the desired state of an adapter, if configured.
async fn desired(context: &Context, adapter: &SriovAdapter) -> Result<Option<PfConfig>, Failure> {
    Ok(match &adapter.pf {
        Some(name) => Some(context.client.show::<PfConfig>(name).await?.config),
        None => None,
    })
}

impl EnableFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let adapter = context.client.sriov_adapter(&self.pf).await?;
        let (client, options) = (&context.client, self.change.options());
        let outcome = match desired(context, &adapter).await? {
            None => client.create(&new_pf(&adapter, self.count)?, options).await,
            Some(config) => {
                // Settings of removed VFs would be rejected.
                let kept_vfs = config.vf_settings.into_iter().filter(|vf| vf.index < self.count);
                let patch = json!({"vfs": self.count, "vf": kept_vfs.collect::<Vec<_>>()});
                client.patch::<PfConfig>(&config.name, &patch, options).await
            }
        };
        print_outcome(context, outcome?, self.change).await
    }
}

/// Returns the initial desired state of an unconfigured adapter.
fn new_pf(adapter: &SriovAdapter, vfs: u16) -> Result<PfConfig, Failure> {
    let device_name = adapter.device.as_ref().filter(|_| adapter.netns.is_none());
    let device = device_name.unwrap_or(&adapter.address);
    // A PCI address contains colons, which names may not.
    let fallback = adapter.address.replace(':', "-");
    let is_name = Form::Name.accepts(&Value::from(device.as_str()));
    let name = if is_name { device } else { &fallback };
    let table = json!({"name": name, "device": device, "vfs": vfs});
    parse_resource(table.to_string().as_bytes()).map_err(Failure::Refused)
}

impl SetFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let adapter = context.client.sriov_adapter(&self.pf).await?;
        let changes = settings::merge_patch(&self.settings)?;
        let (client, options) = (&context.client, self.change.options());
        let outcome = match desired(context, &adapter).await? {
            None => {
                let pf = new_pf(&adapter, adapter.vfs_enabled)?;
                let pf = with_vf(pf, self.index, &changes)?;
                client.create(&pf, options).await
            }
            Some(config) => {
                let name: Name = config.name.clone();
                let pf = with_vf(config, self.index, &changes)?;
                let patch = json!({ "vf": pf.vf_settings });
                client.patch::<PfConfig>(&name, &patch, options).await
            }
        };
        print_outcome(context, outcome?, self.change).await
    }
}

/// Returns the adapter's configuration with changed keys of one VF. Null removes a key.
fn with_vf(
    mut pf: PfConfig,
    index: u16,
    changes: &Map<String, Value>,
) -> Result<PfConfig, Failure> {
    let position = pf.vf_settings.iter().position(|vf| vf.index == index);
    let before =
        position.map_or_else(|| VfConfig::new(index), |index| pf.vf_settings[index].clone());
    let mut table = serde_json::to_value(&before).unwrap_or_default();
    if let Some(table) = table.as_object_mut() {
        for (key, value) in changes {
            table.insert(key.clone(), value.clone());
        }
    }
    let after: VfConfig = serde_json::from_value(table)
        .map_err(|error| Failure::Usage(format!("the settings of the VF are invalid: {error}")))?;
    if after.index != index {
        let text = "`index` cannot be changed; `suimon vf enable` sets the number of VFs";
        return Err(Failure::Usage(text.to_owned()));
    }
    let is_empty = after == VfConfig::new(index);
    match (position, is_empty) {
        (Some(index), true) => drop(pf.vf_settings.remove(index)),
        (Some(index), false) => pf.vf_settings[index] = after,
        (None, true) => {}
        (None, false) => pf.vf_settings.push(after),
    }
    Ok(pf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(device: Option<&str>) -> SriovAdapter {
        serde_json::from_value(json!({
            "address": "0000:01:00.0", "device": device, "support": "Supported",
            "vfs_supported": 7, "vfs_enabled": 2, "vfs_in_use": 0, "vfs": [],
        }))
        .unwrap()
    }

    #[test]
    fn an_adapter_without_a_description_is_given_one_by_its_own_name() {
        let pf = new_pf(&adapter(Some("eth0")), 4).unwrap();
        assert_eq!((pf.name.as_str(), pf.device.as_str(), pf.vf_count), ("eth0", "eth0", 4));
        let pf = new_pf(&adapter(None), 0).unwrap();
        assert_eq!((pf.name.as_str(), pf.device.as_str()), ("0000-01-00.0", "0000:01:00.0"));
        let mut adapter_in_netns = adapter(Some("eth0"));
        adapter_in_netns.netns = Some("blue".to_owned());
        assert_eq!(new_pf(&adapter_in_netns, 0).unwrap().device, "0000:01:00.0");
    }

    #[test]
    fn keys_of_one_vf_change_without_effect_on_others() {
        let change = |assignments: &str| {
            let pairs = assignments.split(' ').map(|pair| pair.split_once('=').unwrap());
            pairs
                .map(|(key, value)| (key.to_owned(), serde_json::from_str(value).unwrap()))
                .collect()
        };
        let pf = new_pf(&adapter(Some("eth0")), 2).unwrap();
        let pf = with_vf(pf, 1, &change("vlan=20 trust=true")).unwrap();
        let pf = with_vf(pf, 0, &change("spoof_check=false")).unwrap();
        let pf = with_vf(pf, 1, &change("vlan=null")).unwrap();
        assert_eq!(
            (pf.vf_settings[0].index, pf.vf_settings[0].vlan, pf.vf_settings[0].trust),
            (1, None, Some(true))
        );
        let pf = with_vf(pf, 1, &change("trust=null")).unwrap();
        assert_eq!((pf.vf_settings.len(), pf.vf_settings[0].index), (1, 0));
        assert!(with_vf(pf, 0, &change("index=1")).is_err());
    }
}
