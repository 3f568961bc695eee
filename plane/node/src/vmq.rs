//! VMQ: placement of NIC and uplink queues on workers.
//!
//! Each uplink or team of a switch has a [`Vmq`](suimon_vmq::Vmq), which places the queues of the
//! NICs on that switch and those of the uplink or team itself. The control thread publishes the
//! configuration to it, and lets it measure and move queues four times per second.
//!
//! - [`plan`]: conversion of the configuration.
//! - [`numbering`]: numbers of workers. A configuration numbers them in the order of its CPUs; the
//!   plane keeps the id of a worker as long as the worker runs.
//! - [`placing`]: queues of one uplink or team, in the policy and in the plane.
//! - [`table`]: all uplinks and teams; measures, and executes moves.
//! - [`told`]: events. [`status`]: observed state.
//!
//! A queue that was moved by an operator is treated like any other: dynamic placement moves it when
//! its worker is overloaded or can be emptied; static placement keeps it until the configuration
//! changes.

mod numbering;
mod placing;
mod plan;
mod status;
mod table;
mod told;

pub(crate) use table::VmqTable;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
