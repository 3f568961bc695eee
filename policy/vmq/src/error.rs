//! What is refused, and what would be accepted.

use core::fmt;

use suimon_quantity::{Count, PortId, ProcessorId, QueueId};
use thiserror::Error;

use crate::spec::WEIGHT_MAX;

/// A specification that contradicts itself or the host. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The host has no processor.
    #[error("there is no processor to work off queues; give the data plane at least one")]
    NoProcessor,
    /// A processor is given twice.
    #[error("processor {0} is given twice; give each processor once")]
    DuplicateProcessor(ProcessorId),
    /// `max_processors` is 0.
    #[error("max_processors is 0; give 1 or more ({permitted} may be used), or `enabled = false`")]
    MaxProcessors {
        /// How many the rest of the specification permits.
        permitted: usize,
    },
    /// The base processor does not exist.
    #[error("base_processor {base} does not exist; there are {}", List(.known))]
    UnknownBase {
        /// What was asked for.
        base: ProcessorId,
        /// What there is.
        known: Vec<ProcessorId>,
    },
    /// The highest processor is below the base processor.
    #[error("max_processor_number {highest} is below base_processor {base}; give {base} or more")]
    HighestBelowBase {
        /// `max_processor_number`.
        highest: ProcessorId,
        /// `base_processor`.
        base: ProcessorId,
    },
    /// The NUMA node has no processor.
    #[error("numa_node {node} has no processor; there are processors on {}", List(.known))]
    UnknownNode {
        /// What was asked for.
        node: u16,
        /// Nodes with processors.
        known: Vec<u16>,
    },
    /// The base processor is on another NUMA node.
    #[error("base_processor {base} is not on numa_node {node}; on it are {}", List(.on_node))]
    BaseOnOtherNode {
        /// `base_processor`.
        base: ProcessorId,
        /// `numa_node`.
        node: u16,
        /// Base processors that would be accepted.
        on_node: Vec<ProcessorId>,
    },
    /// No processor is left below `max_processor_number`.
    #[error("no processor is left up to max_processor_number {highest}; give {lowest} or more")]
    NoneLeft {
        /// `max_processor_number`.
        highest: ProcessorId,
        /// The lowest processor that the rest of the specification permits.
        lowest: ProcessorId,
    },
    /// A weight above 100.
    #[error("NIC {}: vmq_weight {weight} is not from 0 to {WEIGHT_MAX}", .nic.0)]
    Weight {
        /// The NIC.
        nic: PortId,
        /// What was asked for.
        weight: u8,
    },
    /// No queue, or more queues than the device has.
    #[error("NIC {}: {} not possible; {}", .nic.0, Count::irregular(*asked, "queue is", "queues are"), QueuesLeft(*.queues_max))]
    Queues {
        /// The NIC.
        nic: PortId,
        /// What was asked for.
        asked: u16,
        /// How many the device has for it.
        queues_max: u16,
    },
}

/// A queue that cannot be added. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Its NIC is not known.
    #[error("NIC {} is not on this team or uplink; set the NIC before its queues", .0.0)]
    UnknownNic(PortId),
    /// It is there already.
    #[error("queue {} ({}) of NIC {} is there already; remove it first", .0.index, .0.direction, .0.port.0)]
    Duplicate(QueueId),
    /// The NIC has fewer queues.
    #[error("NIC {} has {}; the highest index is {}", .queue.port.0, Count::new(*queues, "queue"), .queues.saturating_sub(1))]
    IndexTooHigh {
        /// The queue.
        queue: QueueId,
        /// Queues of its NIC.
        queues: u16,
    },
}

/// Numbers, with commas.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, number) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            number.fmt(f)?;
        }
        Ok(())
    }
}

struct QueuesLeft(u16);

impl fmt::Display for QueuesLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("the device has none left; set vmq_weight to 0 for the default queue"),
            most => write!(f, "the device has {most} for it, give 1 to {most}"),
        }
    }
}
