//! Teams according to the configuration and the state of their devices.

mod collecting;

use suimon_contract::TeamConfig;
use suimon_quantity::{PortId, SwitchId};
use suimon_teaming::TeamPort;

use super::member::MemberInput;

/// Required state of a team: its configuration, and the state of its members' devices.
#[derive(Clone, Debug)]
pub(crate) struct RequiredTeam {
    pub(crate) config: TeamConfig,
    /// Port that represents the team on its switch.
    pub(crate) id: PortId,
    pub(crate) switch: SwitchId,
    /// Ports of the switch besides the team's own.
    pub(crate) ports: Vec<TeamPort>,
    /// Members in the order of the configuration.
    pub(crate) members: Vec<MemberInput>,
}
