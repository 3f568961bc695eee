//! Collection of the required state of teams from the configuration and the devices.

use suimon_contract::{HostConfig, Name, TeamConfig, UplinkDriver};
use suimon_ports::LinkProperties;
use suimon_teaming::TeamPort;

use super::RequiredTeam;
use crate::PortKey;
use crate::ports::{PlaneIds, required_teams};
use crate::shared::Shared;
use crate::teams::member::MemberInput;

impl Shared {
    /// Returns the teams that switches use, with the present state of their devices.
    pub(crate) fn collect_required_teams(
        &self,
        config: &HostConfig,
        ids: &PlaneIds,
    ) -> Vec<RequiredTeam> {
        let plan = |(team, switch): (&TeamConfig, &suimon_contract::SwitchConfig)| {
            let nics = config.nics.iter().filter(|nic| nic.switch == switch.name);
            let ports = nics.filter_map(|nic| {
                let id = ids.port(&PortKey::Nic(nic.name.clone()))?;
                Some(TeamPort { id, mac: nic.mac })
            });
            let members = team.members.iter();
            Some(RequiredTeam {
                config: team.clone(),
                id: ids.port(&PortKey::Team(team.name.clone()))?,
                switch: ids.switch(&switch.name)?,
                ports: ports.collect(),
                members: members.filter_map(|name| self.member_facts(config, ids, name)).collect(),
            })
        };
        required_teams(config).filter_map(plan).collect()
    }

    fn member_facts(
        &self,
        config: &HostConfig,
        ids: &PlaneIds,
        name: &Name,
    ) -> Option<MemberInput> {
        let uplink = config.uplinks.iter().find(|uplink| &uplink.name == name)?;
        let key = PortKey::Uplink(name.clone());
        // LACPDUs pass an AF_XDP socket unchanged to the kernel's network stack, where the control
        // socket receives them.
        let has_control = uplink.driver != UplinkDriver::Tap;
        let mut properties = MemberInput {
            port: ids.port(&key)?,
            uplink: name.clone(),
            device: uplink.device.clone(),
            supports_control_socket: has_control,
            generation: 0,
            is_open: false,
            failure: None,
            link: LinkProperties::default(),
            mac: None,
        };
        let Some(port) = self.ports.find(&key) else { return Some(properties) };
        let state = port.lock();
        properties.generation = state.generation;
        properties.failure =
            state.retry.current_failure.as_ref().map(|failure| failure.reason.clone());
        if let Some(device) = &state.device {
            let status = device.status();
            properties.is_open = true;
            properties.link = LinkProperties { is_up: status.link_up, speed: status.speed };
            // The address of a TAP is that of the kernel, which is the peer.
            properties.mac = status.mac.filter(|mac| has_control && mac.is_station());
        }
        Some(properties)
    }
}
