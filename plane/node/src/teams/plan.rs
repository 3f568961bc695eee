//! Teams according to the configuration and the state of their devices.

mod collecting;

use suimon_contract::TeamConfig;
use suimon_quantity::{PortId, SwitchId};
use suimon_teaming::TeamPort;

use super::member::MemberInput;

/// Planned state of a team.
#[derive(Clone, Debug)]
pub(crate) struct TeamPlan {
    pub(crate) config: TeamConfig,
    /// Port of the switch that the team is.
    pub(crate) id: PortId,
    pub(crate) switch: SwitchId,
    /// Other ports of the switch.
    pub(crate) ports: Vec<TeamPort>,
    /// Members in configured order.
    pub(crate) members: Vec<MemberInput>,
}
