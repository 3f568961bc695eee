//! What desired state and the open devices say of the teams.

use suimon_contract::{HostConfig, Name, TeamConfig, UplinkDriver};
use suimon_ports::LinkFacts;
use suimon_quantity::{PortId, SwitchId};
use suimon_teaming::TeamPort;

use super::member::MemberFacts;
use crate::PortKey;
use crate::shared::Shared;
use crate::topology::Ids;
use crate::wanted::wanted_teams;

/// How a team is to be, and what there is of it.
#[derive(Clone, Debug)]
pub(crate) struct TeamPlan {
    pub(crate) config: TeamConfig,
    /// The port of the switch that it is.
    pub(crate) id: PortId,
    pub(crate) switch: SwitchId,
    /// The switch's other ports.
    pub(crate) ports: Vec<TeamPort>,
    /// In the order in which they are configured.
    pub(crate) members: Vec<MemberFacts>,
}

impl Shared {
    /// The teams that switches use, with their devices as they are now.
    pub(crate) fn team_plans(&self, config: &HostConfig, ids: &Ids) -> Vec<TeamPlan> {
        let plan = |(team, switch): (&TeamConfig, &suimon_contract::SwitchConfig)| {
            let nics = config.nics.iter().filter(|nic| nic.switch == switch.name);
            let ports = nics.filter_map(|nic| {
                let id = ids.port(&PortKey::Nic(nic.name.clone()))?;
                Some(TeamPort { id, mac: nic.mac })
            });
            let members = team.members.iter();
            Some(TeamPlan {
                config: team.clone(),
                id: ids.port(&PortKey::Team(team.name.clone()))?,
                switch: ids.switch(&switch.name)?,
                ports: ports.collect(),
                members: members.filter_map(|name| self.member_facts(config, ids, name)).collect(),
            })
        };
        wanted_teams(config).filter_map(plan).collect()
    }

    fn member_facts(&self, config: &HostConfig, ids: &Ids, name: &Name) -> Option<MemberFacts> {
        let uplink = config.uplinks.iter().find(|uplink| &uplink.name == name)?;
        let key = PortKey::Uplink(name.clone());
        // An AF_XDP socket leaves LACPDUs to the kernel's stack.
        let has_control = uplink.driver != UplinkDriver::Tap;
        let mut facts = MemberFacts {
            port: ids.port(&key)?,
            uplink: name.clone(),
            device: uplink.device.clone(),
            has_control,
            generation: 0,
            is_open: false,
            failure: None,
            link: LinkFacts::default(),
            mac: None,
        };
        let Some(port) = self.ports.find(&key) else { return Some(facts) };
        let state = port.lock();
        facts.generation = state.generation;
        facts.failure = state.failing.now.as_ref().map(|failure| failure.reason.clone());
        if let Some(device) = &state.device {
            let status = device.status();
            facts.is_open = true;
            facts.link = LinkFacts { up: status.link_up, speed: status.speed };
            // A TAP's address is that of the kernel, which is the other side.
            facts.mac = status.mac.filter(|mac| has_control && mac.is_station());
        }
        Some(facts)
    }
}
