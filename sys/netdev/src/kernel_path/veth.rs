//! The veth pair of a TAP's kernel path, and the attachment of its programs. [`super::programs`]
//! describes both.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use suimon_bpf::ProgramType;
use suimon_netif::rtnetlink::{Hook, RtnetlinkSocket};
use suimon_ports::{DeviceError, DeviceErrorKind};

use super::programs::{self, MapFds};
use crate::errors::{device_error, host_error};
use crate::link::Link;

/// Configuration key that errors name.
pub(super) const CONFIG_KEY: &str = "kernel_path";
/// MTU of the pair in bytes: the maximum frame of a TAP, so that the pair does not limit lengths.
const VETH_MTU: u32 = 65_535;
/// Name pattern of the pair's end in the daemon's namespace; the kernel inserts a number.
const VETH_NAME_PATTERN: &str = "smk%d";

/// Removes the veth pair and the programs of the TAP with the interface index `tap`, in the calling
/// thread's namespace. Another process may have attached them.
pub(crate) fn remove_pair(tap: u32) {
    let Ok(mut settings) = RtnetlinkSocket::open() else { return };
    // First, frames pass to the TAP again; then the pair is deleted.
    match settings.detach(tap, Hook::Egress) {
        Ok(()) | Err(Errno::NOENT | Errno::INVAL | Errno::NODEV) => {}
        Err(errno) => tracing::warn!(
            %errno,
            tap,
            "cannot remove the kernel path's program from a TAP device"
        ),
    }
    let veth = Link::new(&veth_name(tap)).and_then(|link| link.index());
    let Ok(veth) = veth else { return };
    if let Err(errno) = settings.delete(veth) {
        tracing::warn!(%errno, tap, "cannot delete the device of a kernel path");
    }
}

/// Returns the name of the pair's end in the namespace of the TAP with the interface index `tap`.
pub(super) fn veth_name(tap: u32) -> String {
    format!("smk{tap}")
}

/// Interface indices of both ends of a pair, each in its namespace.
pub(super) struct VethPair {
    pub(super) index: u32,
    pub(super) peer_index: u32,
}

/// Creates a pair for the TAP with the interface index `tap`. Must be called in the guest's
/// namespace; the far end is in the namespace `netns`.
///
/// # Errors
/// The kernel's error, with advice.
pub(super) fn create(tap: u32, netns: &OwnedFd) -> Result<VethPair, DeviceError> {
    let name = veth_name(tap);
    let create = || {
        let mut settings = RtnetlinkSocket::open()?;
        settings.create_veth_pair(&name, VETH_MTU, VETH_NAME_PATTERN, netns.as_fd())?;
        Ok(settings)
    };
    let mut settings = create().map_err(|errno: Errno| explain(&errno.into()))?;
    let index = Link::new(&name)?.index()?;
    settings.disable_ipv6_autoconf(index);
    let other = settings.veth_peer_index(index).map_err(|errno| explain(&errno.into()))?;
    Ok(VethPair { index, peer_index: other })
}

/// Attaches the programs to the pair's end `device` in the daemon's namespace, and sets it up.
///
/// # Errors
/// The kernel's error, with advice.
pub(super) fn attach_daemon_end(maps: MapFds, slot: u32, device: u32) -> Result<(), DeviceError> {
    guard_end(maps, slot, device).map_err(|cause| explain(&cause))
}

fn guard_end(maps: MapFds, slot: u32, device: u32) -> io::Result<()> {
    let mut settings = RtnetlinkSocket::open()?;
    settings.disable_ipv6_autoconf(device);
    let cross = suimon_bpf::load_program(
        ProgramType::Classifier,
        &programs::forwarding_program(maps, slot),
    )?;
    settings.attach(device, Hook::Ingress, cross.as_fd())?;
    let shut = suimon_bpf::load_program(ProgramType::Classifier, &programs::drop_all_program())?;
    settings.attach(device, Hook::Egress, shut.as_fd())?;
    settings.bring_up(device)?;
    Ok(())
}

/// Attaches the programs between a TAP and its pair, and sets the pair's end up. Must be called in
/// the guest's namespace.
///
/// # Errors
/// The kernel's error, with advice.
pub(super) fn connect_pair(
    maps: MapFds,
    slot: u32,
    tap: u32,
    veth: u32,
) -> Result<(), DeviceError> {
    connect_tap(maps, slot, tap, veth).map_err(|cause| explain(&cause))
}

fn connect_tap(maps: MapFds, slot: u32, tap: u32, veth: u32) -> io::Result<()> {
    let mut settings = RtnetlinkSocket::open()?;
    let arrive =
        suimon_bpf::load_program(ProgramType::Classifier, &programs::tap_delivery_program(tap))?;
    settings.attach(veth, Hook::Ingress, arrive.as_fd())?;
    settings.bring_up(veth)?;
    let leave = suimon_bpf::load_program(
        ProgramType::Classifier,
        &programs::tap_egress_program(maps, slot, veth),
    )?;
    settings.attach(tap, Hook::Egress, leave.as_fd())?;
    Ok(())
}

fn explain(cause: &io::Error) -> DeviceError {
    if cause.raw_os_error() == Some(Errno::NOENT.raw_os_error()) {
        return device_error(
            DeviceErrorKind::Unsupported,
            CONFIG_KEY,
            "this kernel has no classifier for BPF programs (CONFIG_NET_CLS_BPF, \
             CONFIG_NET_SCH_INGRESS); load `cls_bpf` and `sch_ingress`",
        );
    }
    host_error(CONFIG_KEY, "creating the kernel path", cause)
}
