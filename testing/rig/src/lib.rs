//! The harness of tests, demonstration and benchmarks: everything around the
//! daemon that is real and that nobody here wrote.
//!
//! - [`Rig`]: a temporary folder and unique names; the root of everything else.
//! - [`Daemon`]: a suimond with its host file, and the CLI beside it.
//! - [`Namespace`], [`Veth`], [`LightGuest`]: light guests and the outside world.
//! - [`Guest`]: a VM with Debian's kernel.
//! - [`Testpmd`]: two VMs' NICs at full speed, by DPDK.
//! - [`iperf`], [`nginx`], [`ovs`]: traffic and a peer to compare with.
//!
//! Each value removes what it made when it is dropped, also when a test panics:
//! processes (by their id), namespaces, devices, sockets, files. What a harness
//! that was killed left behind is removed by the next [`Rig::new`].
//!
//! Invariants: a wait is for a condition and has a deadline; no command runs
//! without a limit of time.
//!
//! What it does not do: it never touches a device, process or namespace it did
//! not make, and sends nothing outside the machine.
#![forbid(unsafe_code)]

mod capture_file;
mod command;
mod cpu_distance;
mod daemon;
mod guest;
mod hugepages;
pub mod iperf;
mod leftovers;
mod light_guest;
mod namespace;
pub mod nginx;
pub mod ovs;
mod process;
mod programs;
mod rig;
mod stop_signal;
mod testpmd;
mod wait;

pub use capture_file::{CaptureSummary, summarize_capture};
pub use command::{Output, run, run_any};
pub use cpu_distance::{Distance, handover_ns};
pub use daemon::{Daemon, DaemonOptions, HttpAnswer};
pub use guest::{Accelerator, Guest, GuestFiles, GuestNic, GuestSpec, accelerator, guest_files};
pub use hugepages::Hugepages;
pub use light_guest::{LightGuest, private_lan};
pub use namespace::{Namespace, Veth};
pub use process::Process;
pub use programs::program;
pub use rig::Rig;
pub use stop_signal::StopSignal;
pub use testpmd::{PortStats, Testpmd, TestpmdSpec};
pub use wait::{until, until_some};
