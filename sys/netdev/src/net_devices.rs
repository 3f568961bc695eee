//! [`NetDevices`]: opens TAPs and uplinks.

use std::io;
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_ports::{
    ControlSocket, DeviceError, DeviceErrorKind, DeviceFeatures, KernelPathCounters,
    KernelPathTable, LinkProperties, LinkSpeed, MemberDevices, PortDevice, PortObserver, QueueHost,
    TapSpec, UplinkDriver, UplinkSpec,
};
use suimon_quantity::PortId;

use crate::control_socket::DeviceControlSocket;
use crate::device_query::DeviceQuery;
use crate::errors::device_error;
use crate::kernel_path::KernelPaths;
use crate::link::Link;
use crate::packet_device::{self, PacketDevice};
use crate::tap::{self, TapSettings};
use crate::tap_device::{TapDependencies, TapDevice};
use crate::watch::LinkWatcher;
use crate::xdp::{self, AttachedDevices, XdpDevice};

/// Maximum number of queue pairs of one device.
const QUEUE_PAIRS_MAX: u16 = 64;

/// Maximum length of a network device's alias in bytes (`IFALIASZ` - 1).
const ALIAS_BYTES_MAX: usize = 255;

/// Factory of TAPs and uplinks. The methods correspond to those of [`suimon_ports::DeviceFactory`].
pub struct NetDevices {
    watcher: LinkWatcher,
    query: Arc<DeviceQuery>,
    pub(crate) kernel_paths: KernelPaths,
    with_xdp: AttachedDevices,
    /// Alias of TAPs that this process creates, by which it recognises them after a restart.
    tap_mark: String,
}

impl NetDevices {
    /// Starts the thread that monitors links.
    ///
    /// # Errors
    /// No file descriptor or thread is available.
    pub fn new() -> io::Result<Self> {
        let query = Arc::new(DeviceQuery::default());
        let watcher = LinkWatcher::new(Arc::clone(&query))?;
        let (kernel_paths, with_xdp) = (KernelPaths::default(), AttachedDevices::default());
        Ok(Self { watcher, query, kernel_paths, with_xdp, tap_mark: tap_mark("") })
    }

    /// Gives created TAPs the alias `suimon OWNER`; without this call it is `suimon`. Only TAPs
    /// with the alias are deleted, so `owner` must be the same after a restart, and differ from
    /// that of other processes in the same network namespace.
    #[must_use]
    pub fn with_owner(mut self, owner: &str) -> Self {
        self.tap_mark = tap_mark(owner);
        self
    }

    /// Opens a TAP, which is created if it does not exist, and attaches its queues to `queues`.
    ///
    /// # Errors
    /// The device cannot be opened or configured; no queue is attached.
    pub fn open_tap(
        &self,
        port: PortId,
        spec: &TapSpec,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        check_queue_pairs(spec.queue_pairs)?;
        self.open_tap_device(port, TapSettings::from(spec), false, queues, observer)
    }

    /// Opens an uplink and attaches its queues to `queues`.
    ///
    /// # Errors
    /// The device cannot be opened or configured; no queue is attached.
    pub fn open_uplink(
        &self,
        port: PortId,
        spec: &UplinkSpec,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        check_queue_pairs(spec.queue_pairs)?;
        match spec.driver {
            UplinkDriver::AfPacket => {
                let device = PacketDevice::open(port, spec, queues, &self.watcher, observer)?;
                Ok(Box::new(device))
            }
            UplinkDriver::AfXdp => {
                let (watcher, attached) = (&self.watcher, &self.with_xdp);
                Ok(Box::new(XdpDevice::open(port, spec, queues, watcher, attached, observer)?))
            }
            UplinkDriver::Tap => {
                self.open_tap_device(port, TapSettings::from(spec), true, queues, observer)
            }
        }
    }

    fn open_tap_device(
        &self,
        port: PortId,
        plan: TapSettings,
        is_uplink: bool,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        let parts = TapDependencies {
            watcher: &self.watcher,
            kernel_paths: &self.kernel_paths,
            alias: &self.tap_mark,
        };
        let device = TapDevice::open(port, plan, is_uplink, queues, parts, observer)?;
        Ok(Box::new(device))
    }

    /// Makes the kernel forward the frames that `table` permits. Returns the addresses from which
    /// the kernel has forwarded frames since the previous report, each with its group.
    ///
    /// # Errors
    /// The kernel has no space for the whole table.
    pub fn set_kernel_paths(
        &self,
        table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        self.kernel_paths.set_table(table)
    }

    /// Returns the counters of frames that a port has sent and received on the kernel path.
    pub fn kernel_path_counters(&self, port: PortId) -> KernelPathCounters {
        self.kernel_paths.counters(port)
    }

    /// Checks whether [`NetDevices::open_tap`] could succeed, without changing anything.
    ///
    /// # Errors
    /// The error that opening would return.
    pub fn probe_tap(&self, spec: &TapSpec) -> Result<(), DeviceError> {
        check_queue_pairs(spec.queue_pairs)?;
        tap::probe(&TapSettings::from(spec))
    }

    /// Checks whether [`NetDevices::open_uplink`] could succeed, without changing anything.
    ///
    /// # Errors
    /// The error that opening would return.
    pub fn probe_uplink(&self, spec: &UplinkSpec) -> Result<(), DeviceError> {
        check_queue_pairs(spec.queue_pairs)?;
        match spec.driver {
            UplinkDriver::AfPacket => packet_device::probe(spec),
            UplinkDriver::AfXdp => xdp::probe(spec, &self.with_xdp),
            UplinkDriver::Tap => tap::probe(&TapSettings::from(spec)),
        }
    }

    /// Queries the kernel for the features of an uplink's device. Returns `None` if the uplink is a
    /// TAP, which has no device behind it.
    ///
    /// # Errors
    /// The device does not exist, or the kernel does not support the query.
    pub fn uplink_features(
        &self,
        spec: &UplinkSpec,
    ) -> Result<Option<DeviceFeatures>, DeviceError> {
        match spec.driver {
            UplinkDriver::AfPacket | UplinkDriver::AfXdp => {
                self.query.features(&spec.device).map(Some)
            }
            UplinkDriver::Tap => Ok(None),
        }
    }

    /// Returns the interface index of the uplink's device. Returns `None` if no device with this
    /// name exists, or if the uplink is a TAP, which the daemon creates itself.
    pub fn uplink_index(&self, spec: &UplinkSpec) -> Option<u32> {
        match spec.driver {
            UplinkDriver::AfPacket | UplinkDriver::AfXdp => {
                Link::new(&spec.device).and_then(|link| link.index()).ok()
            }
            UplinkDriver::Tap => None,
        }
    }

    /// Returns true if a TAP of this name exists in the namespace.
    #[cfg(test)]
    pub(crate) fn tap_exists(&self, device: &str, netns: Option<&str>) -> bool {
        tap::exists(device, netns)
    }

    /// Deletes a TAP that [`NetDevices::open_tap`] or [`NetDevices::open_uplink`] has created.
    /// Succeeds if the TAP or its namespace does not exist. Returns false if another program has
    /// created the device, which is kept.
    ///
    /// # Errors
    /// The TAP is in use.
    pub fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<bool, DeviceError> {
        tap::remove(device, netns, &self.tap_mark)
    }
}

impl MemberDevices for NetDevices {
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError> {
        Ok(Box::new(DeviceControlSocket::open(device)?))
    }

    fn link_properties(&self, device: &str) -> Result<LinkProperties, DeviceError> {
        let link = Link::new(device)?;
        let (index, up) = (link.index()?, link.state()?.is_usable());
        let speed = if up { self.query.speed(index, device)? } else { LinkSpeed::default() };
        Ok(LinkProperties { is_up: up, speed })
    }
}

/// Returns the alias of TAPs that `owner` creates. A long `owner` is shortened to its end.
fn tap_mark(owner: &str) -> String {
    let mut owner = owner;
    let len_max = ALIAS_BYTES_MAX - "suimon ".len();
    while owner.len() > len_max {
        let mut rest = owner.chars();
        rest.next();
        owner = rest.as_str();
    }
    format!("suimon {owner}").trim_end().to_owned()
}

fn check_queue_pairs(pairs: u16) -> Result<(), DeviceError> {
    if (1..=QUEUE_PAIRS_MAX).contains(&pairs) {
        return Ok(());
    }
    let detail = format!("queues = {pairs} is outside of 1 to {QUEUE_PAIRS_MAX}");
    Err(device_error(DeviceErrorKind::Unsupported, "queues", detail))
}

#[cfg(test)]
#[path = "net_devices_tests.rs"]
mod tests;
