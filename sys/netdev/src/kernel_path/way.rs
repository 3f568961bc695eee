//! The pair of veth beside a TAP, and the programs at it. [`super::programs`] has the
//! picture.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use suimon_ports::{DeviceError, DeviceErrorKind};

use super::FIELD;
use super::programs::{self, MapFds};
use super::requests::{Hook, Settings};
use crate::bpf::{self, Purpose};
use crate::explain::{error, host};
use crate::link::Link;

/// No frame that a TAP takes is larger: the way has no opinion on lengths.
const WAY_MTU: u32 = 65_535;
/// What the way's end in our namespace is called; the kernel numbers it.
const WAY_PATTERN: &str = "smk%d";

/// Takes away what is attached to the TAP of this index in the calling thread's
/// namespace, whoever attached it.
pub(crate) fn take_away(tap: u32) {
    let Ok(mut settings) = Settings::open() else { return };
    // First frames go into the TAP again, then the way goes.
    match settings.detach(tap, Hook::Egress) {
        Ok(()) | Err(Errno::NOENT | Errno::INVAL | Errno::NODEV) => {}
        Err(errno) => tracing::warn!(%errno, tap, "a TAP keeps the program of a kernel path"),
    }
    let way = Link::new(&name(tap)).and_then(|link| link.index());
    let Ok(way) = way else { return };
    if let Err(errno) = settings.delete(way) {
        tracing::warn!(%errno, tap, "the device of a kernel path was not deleted");
    }
}

/// What the way's end beside a TAP is called.
pub(super) fn name(tap: u32) -> String {
    format!("smk{tap}")
}

/// Both ends of a way.
pub(super) struct Way {
    pub(super) index: u32,
    pub(super) other: u32,
}

/// Makes the pair, from the guest's namespace.
///
/// # Errors
/// The kernel's words.
pub(super) fn make(tap: u32, ours: &OwnedFd) -> Result<Way, DeviceError> {
    let name = name(tap);
    let made = || {
        let mut settings = Settings::open()?;
        settings.make_pair(&name, WAY_MTU, WAY_PATTERN, ours.as_fd())?;
        Ok(settings)
    };
    let mut settings = made().map_err(|errno: Errno| explain(&errno.into()))?;
    let index = Link::new(&name)?.index()?;
    settings.keep_without_address(index);
    let other = settings.other_end(index).map_err(|errno| explain(&errno.into()))?;
    Ok(Way { index, other })
}

/// Guards the way's end in our namespace and brings it up.
///
/// # Errors
/// The kernel's words.
pub(super) fn guard(maps: MapFds, slot: u32, other: u32) -> Result<(), DeviceError> {
    guard_end(maps, slot, other).map_err(|cause| explain(&cause))
}

fn guard_end(maps: MapFds, slot: u32, other: u32) -> io::Result<()> {
    let mut settings = Settings::open()?;
    settings.keep_without_address(other);
    let cross = bpf::load(Purpose::Classifier, &programs::cross(maps, slot))?;
    settings.attach(other, Hook::Ingress, cross.as_fd())?;
    let shut = bpf::load(Purpose::Classifier, &programs::shut())?;
    settings.attach(other, Hook::Egress, shut.as_fd())?;
    settings.bring_up(other)?;
    Ok(())
}

/// Connects a TAP with its way, in the guest's namespace.
///
/// # Errors
/// The kernel's words.
pub(super) fn connect(maps: MapFds, slot: u32, tap: u32, way: u32) -> Result<(), DeviceError> {
    connect_tap(maps, slot, tap, way).map_err(|cause| explain(&cause))
}

fn connect_tap(maps: MapFds, slot: u32, tap: u32, way: u32) -> io::Result<()> {
    let mut settings = Settings::open()?;
    let arrive = bpf::load(Purpose::Classifier, &programs::arrive(tap))?;
    settings.attach(way, Hook::Ingress, arrive.as_fd())?;
    settings.bring_up(way)?;
    let leave = bpf::load(Purpose::Classifier, &programs::leave(maps, slot, way))?;
    settings.attach(tap, Hook::Egress, leave.as_fd())?;
    Ok(())
}

fn explain(cause: &io::Error) -> DeviceError {
    if cause.raw_os_error() == Some(Errno::NOENT.raw_os_error()) {
        return error(
            DeviceErrorKind::Unsupported,
            FIELD,
            "this kernel has no classifier for BPF programs (CONFIG_NET_CLS_BPF, \
             CONFIG_NET_SCH_INGRESS); load `cls_bpf` and `sch_ingress`",
        );
    }
    host(FIELD, "making a path in the kernel", cause)
}
