//! Conversion of the configuration to inputs of the VMQ policy.

mod checks;

use std::collections::BTreeMap;

use suimon_contract::{
    HostConfig, Name, NicConfig, TeamConfig, UplinkConfig, VmqConfig, VmqMode as ConfiguredMode,
};
use suimon_power::DataPlaneSettings;
use suimon_quantity::{PortId, WorkerId};
use suimon_vmq::{NicSpec, VmqMode, VmqSpec};

use crate::PortKey;
use crate::ports::PlaneIds;
use crate::power::{data_plane, water_marks};

/// Inputs of the VMQ policy for one uplink or team that a switch uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VmqPlan {
    pub(super) uplink: Name,
    pub(super) config: VmqConfig,
    /// Data-plane parameters of the power plan.
    pub(super) data_plane: DataPlaneSettings,
    /// Team without its VMQ keys, if it is a team. A change of it changes the load distribution.
    pub(super) team: Option<TeamConfig>,
    /// Ports whose queues are placed, with their resource names.
    pub(super) ports: BTreeMap<PortId, (Name, NicSpec)>,
}

impl VmqPlan {
    /// Returns the plans in the order of switches. Ports without an id are omitted.
    pub(super) fn all(config: &HostConfig, ids: &PlaneIds) -> Vec<Self> {
        let of_switch = |switch: &suimon_contract::SwitchConfig| {
            let name = switch.uplink.as_ref()?;
            let switch_nics =
                |nic: &&NicConfig| nic.switch == switch.name && config.is_connected(nic);
            let nics = config.nics.iter().filter(switch_nics).map(of_nic);
            let uplink = config.uplinks.iter().find(|uplink| &uplink.name == name);
            let team = config.teams.iter().find(|team| &team.name == name);
            let (vmq, members) = match (uplink, team) {
                (Some(uplink), _) => (&uplink.vmq, vec![uplink]),
                (None, Some(team)) => (&team.vmq, members(config, team)),
                (None, None) => return None,
            };
            let required_ports = members.into_iter().map(of_uplink).chain(nics);
            let ports = required_ports
                .filter_map(|(key, spec)| Some((ids.port(&key)?, (key.name().clone(), spec))));
            Some(Self {
                uplink: name.clone(),
                config: vmq.clone(),
                data_plane: data_plane(config.power.as_ref()),
                team: team.map(|team| TeamConfig { vmq: VmqConfig::default(), ..team.clone() }),
                ports: ports.collect(),
            })
        };
        config.switches.iter().filter_map(of_switch).collect()
    }
}

fn members<'c>(config: &'c HostConfig, team: &TeamConfig) -> Vec<&'c UplinkConfig> {
    config.uplinks.iter().filter(|uplink| team.members.contains(&uplink.name)).collect()
}

fn of_nic(nic: &NicConfig) -> (PortKey, NicSpec) {
    let spec = NicSpec { vmq_weight: nic.vmq_weight, queues: nic.queues };
    (PortKey::Nic(nic.name.clone()), spec)
}

/// Returns key and specification of an uplink's port. Its queues have the default weight of a NIC.
fn of_uplink(uplink: &UplinkConfig) -> (PortKey, NicSpec) {
    let spec = NicSpec { queues: uplink.queues, ..NicSpec::default() };
    (PortKey::Uplink(uplink.name.clone()), spec)
}

/// Returns the specification of the VMQ policy for a configuration and a power plan.
pub(super) fn vmq_spec(config: &VmqConfig, share: DataPlaneSettings) -> VmqSpec {
    VmqSpec {
        enabled: config.enabled,
        mode: match config.mode {
            ConfiguredMode::Static => VmqMode::Static,
            ConfiguredMode::Dynamic => VmqMode::Dynamic,
        },
        base_worker: config.base_worker.map(WorkerId),
        max_workers: config.max_workers,
        max_worker_number: config.max_worker_number.map(WorkerId),
        numa_node: config.numa_node,
        water_marks: water_marks(share),
        parking: share.parking,
    }
}
