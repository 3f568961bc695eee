//! Observed state of VMQ for the API.

use std::collections::BTreeMap;

use suimon_contract::{ApiError, Name, ResourceKind, VmqQueueStatus, VmqStatus, VmqWorkerStatus};
use suimon_quantity::{PortId, Time};
use suimon_vmq::{QueueExplanation, StayReason};

use crate::errors::not_found;
use crate::ports::queue_name;
use crate::shared::Shared;
use crate::vmq::events::with_plane_ids;
use crate::vmq::numbering::Numbering;
use crate::vmq::placement::Placement;

impl Shared {
    /// Returns the status of each uplink and team that a switch uses, in the order of switches.
    pub(crate) fn vmqs(&self) -> Vec<VmqStatus> {
        let desired = self.desired();
        let uplinks = desired.config.switches.iter().filter_map(|switch| switch.uplink.as_ref());
        let labels = self.port_labels();
        let now = self.plane.now();
        let inner = self.vmq_table.lock();
        let status = |uplink: &Name| {
            let placing = inner.placements.get(uplink)?;
            Some(VmqStatus {
                uplink: uplink.clone(),
                config: placing.plan().config.clone(),
                workers: workers(placing, &inner.numbering),
                queues: self.vmq_queues(placing, &inner.numbering, &labels, now),
            })
        };
        uplinks.filter_map(status).collect()
    }

    /// Returns the status of one uplink or team.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`](suimon_contract::ErrorCode::NotFound) if no switch uses it.
    pub(crate) fn vmq(&self, uplink: &str) -> Result<VmqStatus, ApiError> {
        let mut statuses = self.vmqs().into_iter();
        statuses
            .find(|vmq| vmq.uplink.as_str() == uplink)
            .ok_or_else(|| not_found(ResourceKind::Vmq, uplink))
    }

    fn vmq_queues(
        &self,
        placing: &Placement,
        numbering: &Numbering,
        labels: &BTreeMap<PortId, String>,
        now: Time,
    ) -> Vec<VmqQueueStatus> {
        let mut queues = Vec::new();
        for (id, (name, _)) in &placing.plan().ports {
            let Some(port) = self.ports.find_id(*id) else { continue };
            let explained = placing.vmq.explain(*id, now).into_iter();
            for explained in explained.flat_map(|explanation| explanation.queues) {
                let queue = queue_name(labels, &port.key, explained.queue);
                queues.push((explained.queue, queue_status(queue, name, &explained, numbering)));
            }
        }
        queues.sort_by(|(a, first), (b, other)| {
            let key = |status: &VmqQueueStatus| status.nic.clone();
            key(first).cmp(&key(other)).then(a.cmp(b))
        });
        queues.into_iter().map(|(_, status)| status).collect()
    }
}

fn workers(placing: &Placement, numbering: &Numbering) -> Vec<VmqWorkerStatus> {
    let views = placing.vmq.workers().into_iter();
    let mut statuses: Vec<VmqWorkerStatus> = views
        .map(|view| VmqWorkerStatus {
            worker: numbering.id(view.worker).unwrap_or(view.worker).0,
            permitted: view.permitted,
            queues: view.queues,
            load_ppm: view.load.ppm(),
            other_load_ppm: view.other_load.ppm(),
        })
        .collect();
    statuses.sort_by_key(|status| status.worker);
    statuses
}

fn queue_status(
    queue: String,
    nic: &Name,
    explained: &QueueExplanation,
    numbering: &Numbering,
) -> VmqQueueStatus {
    VmqQueueStatus {
        queue,
        nic: nic.clone(),
        is_default_queue: explained.stay_reason == StayReason::DefaultQueue,
        worker: numbering.id(explained.worker).unwrap_or(explained.worker).0,
        load_ppm: explained.load.ppm(),
        age_s: explained.placed_for.as_secs(),
        reason: with_plane_ids(explained.reason, numbering).to_string(),
        stay_reason: explained.stay_reason.describe(explained.water_marks),
    }
}
