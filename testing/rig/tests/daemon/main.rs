//! API, command line, host file, confinement, power, metrics, tested with third-party components.
//! One module per subject.

mod api;
mod command_line;
mod confinement;
mod endurance;
mod first_run;
mod host_file;
mod isolation;
mod later_starts;
mod monitoring;
mod openapi;
mod parts;
mod power;
mod soak;
#[cfg(target_arch = "x86_64")]
mod stalled_workers;
mod state_directory;
#[path = "../support/mod.rs"]
mod support;
mod threads;
