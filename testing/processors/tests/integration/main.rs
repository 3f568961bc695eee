//! Integration tests of this crate, one module per subject. A single program, because linking
//! dominates the build time of tests.

mod answers;
mod bandwidth;
mod bench;
mod confined;
mod detaching;
mod heard;
mod no_allocation;
mod ports;
mod queue_costs;
mod source_addresses;
mod stages;
mod stalls;
mod tails;
mod team;
mod teams;
mod teams_live;
mod waiting_queues;
mod workers;
