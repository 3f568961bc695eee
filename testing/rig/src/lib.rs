//! Harness of tests, demonstration and benchmarks: real, independent components around the daemon.
//!
//! - [`Rig`]: a temporary folder and unique names; the root of everything else.
//! - [`Daemon`]: a suimond with its host file, and its CLI.
//! - [`Namespace`], [`Veth`], [`NamespaceGuest`]: namespace guests and the outside world.
//! - [`LoadedHost`]: namespace guests that load a switch, and the reaction of VMQ.
//! - [`Guest`]: a VM with Debian's kernel.
//! - [`IovMachine`]: a machine that has an adapter with SR-IOV, for Suimon inside it.
//! - [`ServiceHost`]: a host with systemd, on which Suimon is installed.
//! - [`Testpmd`]: NICs of two VMs at full speed, with DPDK.
//! - [`make_static_group`]: the other side of a static team.
//! - [`iperf`], [`nginx`], [`ovs`]: traffic and a switch for comparison.
//! - [`BlockDevice`]: a device that can be stalled and made to fail; [`FaultyStore`]: a folder
//!   whose file system fails, delays or truncates operations by rules.
//! - [`Sampling`]: requests that disks have completed over time.
//! - [`fio`]: load on disks; [`LastingLoad`]: load for some seconds, with the result over time;
//!   [`DiskPart`]: load that outlives the server of a disk; [`SlowDisk`]: a disk of a known speed;
//!   [`NbdFolder`]: a file system on an exported disk; [`serve_client`], [`EngineDisks`]: disks
//!   without a daemon.
//!
//! Each value removes what it created when it is dropped, also when a test panics: processes (by
//! their id), namespaces, devices, sockets, files. The test runner also starts tests in separate
//! namespaces (`scripts/isolated`). What a killed harness left behind is removed by the next
//! [`Rig::new`] or by the program `sweep`.
//!
//! Invariants
//! - A wait is for a condition and has a deadline; no command runs without a time limit.
//! - No device, process or namespace is changed that the harness did not create, and nothing is
//!   sent outside of the machine.
#![forbid(unsafe_code)]

mod authority;
mod block_device;
mod capture_file;
mod command;
mod daemon;
mod disk_counts;
mod disk_load;
mod engine_disks;
mod etcd;
mod faulty_store;
mod file_systems;
pub mod fio;
mod guest;
mod host_device;
mod hugepages;
mod inside;
pub mod iperf;
mod lasting_load;
mod leftovers;
mod light_guest;
mod load_step;
mod loop_device;
mod mounted;
mod namespace;
mod nbd_client;
pub mod nginx;
pub mod ovs;
mod priority;
mod process;
mod programs;
mod rig;
mod served_client;
mod service_host;
mod slow_disk;
mod static_group;
mod stop_signal;
mod testpmd;
mod wait;

pub use authority::create_certificates;
pub use block_device::BlockDevice;
pub use capture_file::{CaptureSummary, summarize_capture};
pub use command::{Output, run, run_any};
pub use daemon::{Daemon, DaemonOptions, HttpResponse};
pub use disk_counts::{DiskCounts, Sampling};
pub use disk_load::{DiskPart, LoadDone, LoadEnd, Random};
pub use engine_disks::{EngineAsks, EngineDisks};
pub use etcd::{Etcd, EtcdNetwork};
pub use faulty_store::{FaultyStore, StoreCounts};
pub use file_systems::{LoopFolder, NbdFolder};
pub use guest::{
    Accelerator, BondStatus, Boot, Guest, GuestConsole, GuestDisk, GuestDiskInfo, GuestFiles,
    GuestNic, GuestShell, GuestSpec, HostedVms, IovMachine, IovSpec, accelerator, guest_files,
    make_boot_sector, make_root_disk, prepare_guest_files,
};
pub use host_device::HostDevice;
pub use hugepages::Hugepages;
pub use inside::enter_namespace;
pub use lasting_load::{Delivered, LastingLoad, WINDOW_MS, extremes, now_ms};
pub use leftovers::sweep_leftovers;
pub use light_guest::{NamespaceGuest, private_lan};
pub use load_step::{Load, LoadedHost, QueueMove, UnixMs};
pub use loop_device::LoopDevice;
pub use mounted::Mounted;
pub use namespace::{Namespace, Veth};
pub use nbd_client::{NbdClient, NbdFailure};
pub use priority::{PREFERRED, prefer_threads};
pub use process::Process;
pub use programs::{example, program, system_program};
pub use rig::Rig;
pub use served_client::{fill_disk, serve_client};
pub use service_host::ServiceHost;
pub use slow_disk::SlowDisk;
pub use static_group::make_static_group;
pub use stop_signal::StopSignal;
pub use suimon_image_files::{DiskFormat, DiskKind};
pub use suimon_test_programs::{FaultEffect, StoreFault, StoreOperation};
pub use testpmd::{PortStats, Testpmd, TestpmdSpec};
pub use wait::{is_listening, wait_for_value, wait_until};
