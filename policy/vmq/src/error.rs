//! Errors of VMQ configurations and queues.

use core::fmt;

use suimon_quantity::{CountedNoun, PortId, QueueId, WorkerId};
use thiserror::Error;

use crate::thresholds::WEIGHT_MAX;

/// Reason for which a configuration is rejected. The previous configuration stays in effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VmqSpecError {
    /// The data plane has no worker.
    #[error("there is no worker to service queues; set `[host] worker_cpus` or `floating_workers`")]
    NoWorker,
    /// A worker is listed twice.
    #[error("worker {0} is listed twice; list each worker once")]
    DuplicateWorker(WorkerId),
    /// `max_workers` is 0.
    #[error(
        "max_workers is 0; set 1 or more ({permitted} workers are permitted), or `enabled = \
         false`"
    )]
    MaxWorkers {
        /// Workers that the rest of the configuration permits.
        permitted: usize,
    },
    /// The base worker does not exist.
    #[error("base_worker {base} does not exist; set one of {}", List(.existing_workers))]
    UnknownBase {
        /// Configured base worker number.
        base: WorkerId,
        /// Existing workers of the data plane.
        existing_workers: Vec<WorkerId>,
    },
    /// The highest worker is below the base worker.
    #[error("max_worker_number {highest} is below base_worker {base}; set {base} or more")]
    HighestBelowBase {
        /// Configured `max_worker_number`.
        highest: WorkerId,
        /// Configured `base_worker`.
        base: WorkerId,
    },
    /// The NUMA node has no worker of the data plane.
    #[error("numa_node {numa_node} has no worker; set one of {}", List(.existing_nodes))]
    UnknownNumaNode {
        /// Configured NUMA node number.
        numa_node: u16,
        /// NUMA nodes with workers.
        existing_nodes: Vec<u16>,
    },
    /// The base worker is on another NUMA node.
    #[error(
        "base_worker {base} is not on numa_node {numa_node}; set one of {}", List(.workers_on_node))]
    BaseWorkerOnOtherNumaNode {
        /// Configured `base_worker`.
        base: WorkerId,
        /// Configured `numa_node`.
        numa_node: u16,
        /// Workers on that node, which would be accepted as base worker.
        workers_on_node: Vec<WorkerId>,
    },
    /// No worker is left at or below `max_worker_number`.
    #[error("max_worker_number {highest} leaves no permitted worker; set {lowest} or more")]
    NoPermittedWorker {
        /// Configured `max_worker_number`.
        highest: WorkerId,
        /// Lowest worker that the rest of the configuration permits.
        lowest: WorkerId,
    },
    /// A `vmq_weight` is above 100.
    #[error("NIC {}: vmq_weight {weight} is outside of 0 to {WEIGHT_MAX}", .nic.0)]
    Weight {
        /// NIC with the invalid configuration.
        nic: PortId,
        /// Configured value of `vmq_weight`.
        weight: u8,
    },
    /// The number of queues is 0 or more than the device provides.
    #[error("NIC {}: {} not possible; {}", .nic.0, CountedNoun::with_plural(*requested, "queue is", "queues are"), RemainingQueues(*.queues_max))]
    Queues {
        /// NIC with the invalid configuration.
        nic: PortId,
        /// Number of queues that the NIC is configured with.
        requested: u16,
        /// Queues that the device provides for the NIC.
        queues_max: u16,
    },
}

/// Reason for which a queue is rejected. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The NIC of the queue is unknown.
    #[error("NIC {} is not on this team or uplink; add the NIC before its queues", .0.0)]
    UnknownNic(PortId),
    /// The queue was added before and exists.
    #[error(
        "queue {} ({}) of NIC {} exists already; remove it first", .0.index, .0.direction, .0.port.0)]
    Duplicate(QueueId),
    /// The index is not below the NIC's number of queues.
    #[error("NIC {}: queue index {} is outside of 0 to {}", .queue.port.0, .queue.index, .queues.saturating_sub(1))]
    IndexTooHigh {
        /// Queue with the rejected index.
        queue: QueueId,
        /// Number of queues of the NIC.
        queues: u16,
    },
}

/// Formats numbers as a comma-separated list.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, number) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            number.fmt(f)?;
        }
        Ok(())
    }
}

struct RemainingQueues(u16);

impl fmt::Display for RemainingQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str(
                "the device has no free queue; set vmq_weight to 0 for the default queue",
            ),
            max => write!(f, "the device has {max} free queues for it, set 1 to {max}"),
        }
    }
}
