//! Creation, takeover and deletion of TAP devices.
//!
//! A created TAP gets an alias (`ip link show`), its mark. Only TAPs with the mark are deleted, so
//! that a TAP of another program with a configured name is kept. The mark is set before the TAP
//! becomes persistent: a process that is killed leaves no TAP without it.

use std::ffi::c_int;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rustix::io::Errno;
use suimon_frame::{MacAddr, Offloads, VNET_HEADER_BYTES};
use suimon_netif::ioctl::{self, IfRequest};
use suimon_netif::netlink::LinkState;
use suimon_netif::rtnetlink::RtnetlinkSocket;
use suimon_ports::{DeviceError, DeviceErrorKind, OffloadToggles, TapSpec, UplinkSpec};

use crate::errors::{device_error, host_error};
use crate::kernel_path;
use crate::link::Link;
use crate::namespace::Namespace;
use crate::offload;

const CLONE_DEVICE: &str = "/dev/net/tun";

/// Queue length of a TAP in packets. The kernel's default of 1000 is less than one TCP window of
/// MTU-sized frames; packets beyond it are lost.
const QUEUE_PACKETS: u16 = 8192;

/// Maximum number of repeated attempts to attach to a TAP that is in use.
const BUSY_RETRIES: u32 = 10;
/// Pause between these attempts.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Required settings of a TAP, for a NIC or an uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TapSettings {
    pub(crate) device: String,
    pub(crate) netns: Option<String>,
    pub(crate) queue_pairs: u16,
    pub(crate) mac: Option<MacAddr>,
    /// True if a MAC address that was changed on the device is kept; see [`TapSpec::keeps_mac`].
    pub(crate) keeps_mac: bool,
    /// MTU in bytes; `None` keeps the device's MTU.
    pub(crate) mtu: Option<u16>,
    /// Offload settings of the kernel's side of the TAP.
    pub(crate) offload: OffloadToggles,
    /// True if the kernel may forward the TAP's frames (kernel path).
    pub(crate) allows_kernel_path: bool,
}

impl From<&TapSpec> for TapSettings {
    fn from(spec: &TapSpec) -> Self {
        Self {
            device: spec.device.clone(),
            netns: spec.netns.clone(),
            queue_pairs: spec.queue_pairs,
            mac: spec.mac,
            keeps_mac: spec.keeps_mac,
            mtu: Some(spec.mtu),
            offload: spec.offload,
            allows_kernel_path: spec.may_use_kernel_path,
        }
    }
}

impl From<&UplinkSpec> for TapSettings {
    fn from(spec: &UplinkSpec) -> Self {
        Self {
            device: spec.device.clone(),
            netns: None,
            queue_pairs: spec.queue_pairs,
            mac: None,
            keeps_mac: true,
            mtu: spec.mtu,
            offload: spec.offload.with_directions_swapped(),
            allows_kernel_path: false,
        }
    }
}

/// Open TAP device, with its state.
pub(crate) struct OpenTap {
    pub(crate) namespace: Namespace,
    /// One non-blocking descriptor per queue pair.
    pub(crate) queues: Vec<OwnedFd>,
    pub(crate) index: u32,
    /// Link state of the device when it was opened.
    pub(crate) initial_state: LinkState,
    /// True if the kernel supports large UDP frames (USO) on TAPs.
    pub(crate) supports_udp_segmentation: bool,
}

/// Opens a TAP. If it does not exist, creates it with the alias `mark`.
///
/// # Errors
/// No new device remains. An existing device may keep settings made before the error.
pub(crate) fn open(plan: &TapSettings, mark: &str) -> Result<OpenTap, DeviceError> {
    let namespace = Namespace::open(plan.netns.as_deref())?;
    let (queues, index, present, udp_segmentation) = namespace.run(|| {
        let link = Link::new(&plan.device)?;
        let existed = link.exists();
        if existed && !link.is_tap()? {
            return Err(not_a_tap(&plan.device));
        }
        let queues = attach_all(plan, existed)?;
        if existed {
            // Remainder of a process that was killed.
            kernel_path::remove_pair(link.index()?);
        } else {
            set_mark(&link, &plan.device, mark)?;
        }
        let udp_segmentation = configure(plan, &link, &queues)?;
        if let Some(mac) = plan.mac.filter(|_| !existed || !plan.keeps_mac) {
            link.set_address(mac)?;
        }
        link.bring_up()?;
        // Last, so that a new device whose set-up failed disappears with its queues.
        for queue in &queues {
            persist(queue, true, &plan.device)?;
        }
        Ok((queues, link.index()?, link.state()?, udp_segmentation))
    })?;
    Ok(OpenTap {
        namespace,
        queues,
        index,
        initial_state: present,
        supports_udp_segmentation: udp_segmentation,
    })
}

/// Checks whether [`open`] could succeed, without changing anything.
///
/// # Errors
/// The error that [`open`] would return.
pub(crate) fn probe(plan: &TapSettings) -> Result<(), DeviceError> {
    Namespace::open(plan.netns.as_deref())?.run(|| {
        let link = Link::new(&plan.device)?;
        if link.exists() && !link.is_tap()? {
            return Err(not_a_tap(&plan.device));
        }
        open_clone_device().map(drop)
    })
}

/// Returns true if a TAP of this name exists in the namespace.
#[cfg(test)]
pub(crate) fn exists(device: &str, netns: Option<&str>) -> bool {
    let tap = Namespace::open(netns).and_then(|namespace| {
        namespace.run(|| {
            let link = Link::new(device)?;
            Ok(link.exists() && link.is_tap()?)
        })
    });
    tap.unwrap_or(false)
}

/// Deletes a TAP with the alias `mark`. Succeeds if the TAP or its namespace does not exist.
/// Returns false if the device has another alias, and keeps it.
///
/// # Errors
/// The TAP is in use.
pub(crate) fn remove(device: &str, netns: Option<&str>, mark: &str) -> Result<bool, DeviceError> {
    let namespace = match Namespace::open(netns) {
        Err(error) if error.kind == DeviceErrorKind::Missing => return Ok(true),
        namespace => namespace?,
    };
    namespace.run(|| {
        let link = Link::new(device)?;
        if !link.exists() {
            return Ok(true);
        }
        if !link.is_tap()? || !has_mark(&link, device, mark)? {
            return Ok(false);
        }
        let queue = match attach(device, 0) {
            Err(cause) if is_errno(&cause, Errno::INVAL) => attach(device, libc::IFF_MULTI_QUEUE),
            other => other,
        };
        let queue = queue.map_err(|cause| explain_attach(device, &cause))?;
        // Another program may have replaced the device before it was attached.
        if !has_mark(&link, device, mark)? {
            return Ok(false);
        }
        kernel_path::remove_pair(link.index()?);
        persist(&queue, false, device).map(|()| true)
    })
}

fn set_mark(link: &Link, device: &str, mark: &str) -> Result<(), DeviceError> {
    let index = link.index()?;
    let set = RtnetlinkSocket::open().and_then(|mut settings| settings.set_alias(index, mark));
    set.map_err(|errno| {
        host_error("device", &format!("setting the alias of TAP {device}"), &errno.into())
    })
}

fn has_mark(link: &Link, device: &str, mark: &str) -> Result<bool, DeviceError> {
    let index = link.index()?;
    let alias = RtnetlinkSocket::open().and_then(|mut settings| settings.alias(index));
    let operation = || format!("reading the alias of TAP {device}");
    let alias = alias.map_err(|errno| host_error("device", &operation(), &errno.into()))?;
    Ok(alias == mark.as_bytes())
}

/// Applies offloads to an open TAP. Returns true if the kernel supports large UDP frames (USO).
///
/// # Errors
/// The kernel rejected the offloads; they are unchanged.
pub(crate) fn set_offloads(queue: &OwnedFd, offloads: Offloads) -> Result<bool, DeviceError> {
    let set = |offloads| {
        ioctl::execute_tap_op(queue.as_fd(), ioctl::TAP_OFFLOAD, offload::tap_flags(offloads))
    };
    match set(offloads) {
        Ok(()) => Ok(true),
        // Kernels before 6.2 do not support USO.
        Err(cause) if is_errno(&cause, Errno::INVAL) && offloads.udp_segmentation => {
            set(Offloads { udp_segmentation: false, ..offloads })
                .map(|()| false)
                .map_err(|cause| host_error("offload", "setting the offloads", &cause))
        }
        Err(cause) => Err(host_error("offload", "setting the offloads", &cause)),
    }
}

fn configure(plan: &TapSettings, link: &Link, queues: &[OwnedFd]) -> Result<bool, DeviceError> {
    let mut udp_segmentation = true;
    for queue in queues {
        let bytes = VNET_HEADER_BYTES as u8;
        ioctl::set_tap_header_bytes(queue.as_fd(), bytes).map_err(|cause| {
            host_error("device", "setting the virtio-net header of frames", &cause)
        })?;
        udp_segmentation &= set_offloads(queue, offload::ingress(plan.offload, true))?;
    }
    if let Some(mtu) = plan.mtu {
        link.set_mtu(mtu)?;
    }
    link.set_queue_length(QUEUE_PACKETS)?;
    Ok(udp_segmentation)
}

fn attach_all(plan: &TapSettings, existed: bool) -> Result<Vec<OwnedFd>, DeviceError> {
    let explain = |cause| explain_attach(&plan.device, &cause);
    // A device that another program has created since the check is not taken for a new one.
    let first = if existed { 0 } else { libc::IFF_TUN_EXCL };
    if plan.queue_pairs <= 1 {
        let queue = match attach(&plan.device, first) {
            // The TAP was created with several queues, of which one is used.
            Err(cause) if existed && is_errno(&cause, Errno::INVAL) => {
                attach(&plan.device, libc::IFF_MULTI_QUEUE)
            }
            other => other,
        };
        return Ok(vec![queue.map_err(explain)?]);
    }
    let queues = (0..plan.queue_pairs).map(|index| {
        let extra_flags = if index == 0 { first } else { 0 };
        attach(&plan.device, libc::IFF_MULTI_QUEUE | extra_flags)
    });
    queues.collect::<io::Result<Vec<_>>>().map_err(|cause| {
        if existed && is_errno(&cause, Errno::INVAL) {
            let detail = format!(
                "TAP device {0} exists with a single queue, so it cannot have {1}; set queues = \
                 1, or delete it (`ip link delete {0}`) and have it created again",
                plan.device, plan.queue_pairs
            );
            return device_error(DeviceErrorKind::Unsupported, "queues", detail);
        }
        explain_attach(&plan.device, &cause)
    })
}

/// Attaches to a TAP, with `extra_flags` of `TUNSETIFF` in addition to the usual ones. Retries
/// while the TAP is in use, because its holder may be ending, or be a child process between fork
/// and exec. Blocks up to [`BUSY_RETRIES`] times [`BUSY_PAUSE`].
fn attach(device: &str, extra_flags: c_int) -> io::Result<OwnedFd> {
    for _ in 0..BUSY_RETRIES {
        match attach_once(device, extra_flags) {
            Err(cause) if is_errno(&cause, Errno::BUSY) => std::thread::sleep(BUSY_PAUSE),
            other => return other,
        }
    }
    attach_once(device, extra_flags)
}

fn attach_once(device: &str, extra_flags: c_int) -> io::Result<OwnedFd> {
    let queue = open_clone_device_raw()?;
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | extra_flags;
    // The field is a short; all TUN flags fit 16 bits.
    let mut request = IfRequest::new(device).with_data((flags as u16).to_ne_bytes());
    ioctl::execute_interface_op(queue.as_fd(), ioctl::TAP_ATTACH, &mut request)?;
    Ok(queue)
}

fn persist(queue: &OwnedFd, keep: bool, device: &str) -> Result<(), DeviceError> {
    ioctl::execute_tap_op(queue.as_fd(), ioctl::TAP_PERSIST, u32::from(keep)).map_err(|cause| {
        host_error("device", &format!("setting the persistence of TAP device {device}"), &cause)
    })
}

fn open_clone_device_raw() -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    options.open(CLONE_DEVICE).map(OwnedFd::from)
}

fn open_clone_device() -> Result<OwnedFd, DeviceError> {
    open_clone_device_raw().map_err(|cause| {
        if matches!(cause.kind(), io::ErrorKind::NotFound) || is_errno(&cause, Errno::NODEV) {
            let detail = format!(
                "{CLONE_DEVICE} does not work: {cause}; load the kernel module with `modprobe tun`"
            );
            return device_error(DeviceErrorKind::Unsupported, "device", detail);
        }
        host_error("device", &format!("opening {CLONE_DEVICE}"), &cause)
    })
}

fn explain_attach(device: &str, cause: &io::Error) -> DeviceError {
    if let Err(error) = open_clone_device() {
        return error;
    }
    if is_errno(cause, Errno::BUSY) {
        let detail = format!(
            "TAP device {device} is in use by another process, perhaps another suimond or a VM; \
             stop that process or choose another device"
        );
        return device_error(DeviceErrorKind::Busy, "device", detail);
    }
    host_error("device", &format!("attaching to TAP device {device}"), cause)
}

fn not_a_tap(device: &str) -> DeviceError {
    let detail = format!(
        "device {device} exists but is not a TAP device; choose another name, or use it as an \
         uplink with driver = \"af_packet\""
    );
    device_error(DeviceErrorKind::Unsupported, "device", detail)
}

fn is_errno(cause: &io::Error, errno: Errno) -> bool {
    cause.raw_os_error() == Some(errno.raw_os_error())
}
