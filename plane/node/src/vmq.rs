//! VMQ: what drives it, and how it stands.
//!
//! Each uplink or team that a switch uses has its queues placed by a
//! [`Vmq`](suimon_vmq::Vmq) of its own: those of the NICs on that switch, and its own,
//! which are work like any other. The control thread publishes to it what is configured
//! and lets it measure and move four times a second.
//!
//! - [`plan`]: what a configuration asks of it.
//! - [`numbering`]: the numbers of processors. A configuration counts them in the order in
//!   which it names CPUs; the plane keeps the number of a processor as long as that runs.
//! - [`placing`]: one uplink's or team's queues, as the policy has them and as the plane
//!   has them.
//! - [`table`]: all of them; measures, and carries moves out.
//! - [`told`]: the events. [`status`]: how it stands.
//!
//! A queue that somebody moved by hand counts as being there and is treated as any other:
//! dynamic placement moves it on when its processor is too busy or can be emptied, static
//! placement lets it be until the configuration changes.

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
