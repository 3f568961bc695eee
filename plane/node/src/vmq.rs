//! VMQ: drives the placement policy and reports its status.
//!
//! A separate [`Vmq`](suimon_vmq::Vmq) policy places the queues of each uplink or team that a
//! switch uses: the queues of the NICs on the switch and those of the uplink or team itself. The
//! control thread passes configuration changes to the policy, and measures loads and moves queues
//! four times per second.
//!
//! - [`plan`]: parameters that a configuration gives the policy.
//! - [`numbering`]: numbers of workers. A configuration numbers workers in the order of its CPU
//!   list; the plane keeps the number of a worker while the worker runs.
//! - [`placement`]: queues of one uplink or team, in the policy and in the plane.
//! - [`table`]: all uplinks and teams; measures loads and carries out moves.
//! - [`workers`]: set of workers. [`steering`]: flow rules of devices.
//! - [`events`], [`texts`]: events. [`status`]: status in the API's types.
//!
//! A queue that an operator moved is treated as any other queue at its new worker. Dynamic
//! placement moves it again if the worker is overloaded or can be emptied. Static placement leaves
//! it there until the configuration changes.

mod events;
mod numbering;
mod placement;
mod plan;
mod queue_moves;
mod status;
mod steering;
mod table;
mod texts;
mod workers;

pub(crate) use self::steering::SteeringPlan;
pub(crate) use self::table::VmqTable;
pub(crate) use self::workers::{WorkersStep, workers_step};

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
