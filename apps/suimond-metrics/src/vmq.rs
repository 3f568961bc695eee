//! Metrics of queues, and of VMQ: the worker that owns each queue.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::VmqQueueStatus;

use crate::family::{Family, Value};
use crate::readings::Readings;

const MOVES: Family = Family::counter(
    "suimon_queue_moves",
    "",
    &["queue"],
    "Times the queue was moved to another worker, by VMQ or by request",
);

/// Gauge of a queue with the function that reads its value.
type QueueMetric = (Family, fn(&VmqQueueStatus) -> Value);

const LABELS: &[&str] = &["uplink", "nic", "queue"];

const QUEUES: [QueueMetric; 2] = [
    (
        Family::gauge(
            "suimon_vmq_queue_worker",
            "",
            LABELS,
            "Number of the worker that owns the queue",
        ),
        |queue| Value::Real(f64::from(queue.worker)),
    ),
    (
        Family::gauge(
            "suimon_vmq_queue_load_ratio",
            "ratio",
            LABELS,
            "Share of the worker's time that the queue takes",
        ),
        |queue| Value::ratio_from_ppm(queue.load_ppm),
    ),
];

const WORKER_QUEUES: Family = Family::gauge(
    "suimon_vmq_worker_queues",
    "",
    &["uplink", "worker"],
    "Queues of the uplink or team on a permitted worker. A worker with 0 is parked",
);

pub(super) fn families() -> Vec<Family> {
    let queues = QUEUES.map(|(family, _)| family);
    [MOVES].into_iter().chain(queues).chain([WORKER_QUEUES]).collect()
}

impl Readings {
    pub(super) fn encode_vmq(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        // Every queue of the data plane, with or without VMQ.
        let moves =
            self.queues.iter().map(|queue| ([queue.id.clone()], Value::Integer(queue.moves)));
        MOVES.write_if_any(encoder, moves)?;
        for (family, value) in QUEUES {
            let queues = self.vmqs.iter().flat_map(|vmq| {
                vmq.queues.iter().map(move |queue| {
                    let labels =
                        [vmq.uplink.to_string(), queue.nic.to_string(), queue.queue.clone()];
                    (labels, value(queue))
                })
            });
            family.write_if_any(encoder, queues)?;
        }
        let permitted = self.vmqs.iter().flat_map(|vmq| {
            vmq.workers.iter().filter(|worker| worker.permitted).map(move |worker| {
                let labels = [vmq.uplink.to_string(), worker.worker.to_string()];
                (labels, Value::Real(f64::from(worker.queues)))
            })
        });
        WORKER_QUEUES.write_if_any(encoder, permitted)
    }
}
