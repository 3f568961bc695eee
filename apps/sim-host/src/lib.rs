//! Models of a host for the simulator: CPUs, VMs, NICs, teams and the switch.
//!
//! - `network`: a team of NICs, workers and VMs that receive data.
//! - `host`: CPUs, VMs and NICs of a host, and the resources that requests of VMs use.
//! - `processors`: components that both models use.
//!
//! Runs call the production policies; their results depend only on scenario and seed.
#![forbid(unsafe_code)]

mod host;
mod network;
mod processors;

pub use host::HostScenario;
pub use network::NetworkScenario;
