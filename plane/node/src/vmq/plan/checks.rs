//! Checks of a configuration's VMQ keys.

use suimon_contract::{ApiError, ErrorCode, HostConfig, UplinkConfig, VmqConfig};
use suimon_quantity::Time;
use suimon_vmq::{Vmq, VmqSpecError};

use super::vmq_spec;
use crate::ports::placements;
use crate::power::data_plane;
use crate::shared::Shared;
use crate::vmq::numbering::Numbering;

impl Shared {
    /// Returns an error for each uplink and team whose VMQ configuration does not fit the host's
    /// workers.
    pub(crate) fn check_vmqs(&self, config: &HostConfig) -> Vec<ApiError> {
        let placements = placements(&config.host);
        let workers = Numbering::from_placements(&placements, &self.cpu_topology).workers();
        let share = data_plane(config.power.as_ref());
        let check = |resource: String, vmq: &VmqConfig| {
            let error = Vmq::new(vmq_spec(vmq, share), &workers, Time::ZERO).err()?;
            Some(refusal(&error).with_resource(resource))
        };
        let in_team = |uplink: &UplinkConfig| {
            config.teams.iter().any(|team| team.members.contains(&uplink.name))
        };
        let uplinks = config.uplinks.iter().filter(|uplink| !in_team(uplink));
        let uplinks =
            uplinks.filter_map(|uplink| check(format!("uplink/{}", uplink.name), &uplink.vmq));
        let teams =
            config.teams.iter().filter_map(|team| check(format!("team/{}", team.name), &team.vmq));
        uplinks.chain(teams).collect()
    }
}

fn refusal(error: &VmqSpecError) -> ApiError {
    let field = match error {
        VmqSpecError::MaxWorkers { .. } => "vmq.max_workers",
        VmqSpecError::UnknownBase { .. } | VmqSpecError::BaseWorkerOnOtherNumaNode { .. } => {
            "vmq.base_worker"
        }
        VmqSpecError::HighestBelowBase { .. } | VmqSpecError::NoPermittedWorker { .. } => {
            "vmq.max_worker_number"
        }
        VmqSpecError::UnknownNumaNode { .. } => "vmq.numa_node",
        _ => "vmq",
    };
    ApiError::new(ErrorCode::InvalidValue, error.to_string()).with_field(field)
}
