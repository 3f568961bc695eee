//! Opening devices.

use std::io;
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_ports::{
    ControlSocket, DeviceError, DeviceErrorKind, DeviceFeatures, KernelPathCounters,
    KernelPathTable, LinkFacts, LinkSpeed, MemberDevices, PortDevice, PortObserver, QueueHost,
    TapSpec, UplinkDriver, UplinkSpec,
};
use suimon_quantity::PortId;

use crate::control_socket::DeviceControlSocket;
use crate::device_query::DeviceQuery;
use crate::explain::error;
use crate::kernel_path::KernelPaths;
use crate::link::Link;
use crate::packet_device::{self, PacketDevice};
use crate::tap::{self, TapPlan};
use crate::tap_device::TapDevice;
use crate::watch::LinkWatcher;
use crate::xdp::{self, HeldDevices, XdpDevice};

/// Most queue pairs of one device.
const QUEUE_PAIRS_MAX: u16 = 64;

/// Opens TAPs and uplinks. The methods mean what those of
/// [`suimon_ports::DeviceFactory`] do.
pub struct NetDevices {
    watcher: LinkWatcher,
    query: Arc<DeviceQuery>,
    pub(crate) kernel_paths: KernelPaths,
    with_xdp: HeldDevices,
}

impl NetDevices {
    /// Starts the thread that watches links.
    ///
    /// # Errors
    /// Out of descriptors or threads.
    pub fn new() -> io::Result<Self> {
        let query = Arc::new(DeviceQuery::default());
        let watcher = LinkWatcher::new(Arc::clone(&query))?;
        let (kernel_paths, with_xdp) = (KernelPaths::default(), HeldDevices::default());
        Ok(Self { watcher, query, kernel_paths, with_xdp })
    }

    /// Opens a TAP, made if it does not exist, and attaches its queues.
    ///
    /// # Errors
    /// Nothing was opened.
    pub fn open_tap(
        &self,
        port: PortId,
        spec: &TapSpec,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        check_queue_pairs(spec.queue_pairs)?;
        self.open_tap_device(port, TapPlan::from(spec), false, queues, observer)
    }

    /// Opens an uplink and attaches its queues.
    ///
    /// # Errors
    /// Nothing was opened.
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
                let (watcher, held) = (&self.watcher, &self.with_xdp);
                Ok(Box::new(XdpDevice::open(port, spec, queues, watcher, held, observer)?))
            }
            UplinkDriver::Tap => {
                self.open_tap_device(port, TapPlan::from(spec), true, queues, observer)
            }
        }
    }

    fn open_tap_device(
        &self,
        port: PortId,
        plan: TapPlan,
        is_uplink: bool,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        let (watcher, paths) = (&self.watcher, &self.kernel_paths);
        let device = TapDevice::open(port, plan, is_uplink, queues, watcher, paths, observer)?;
        Ok(Box::new(device))
    }

    /// Has the kernel move the frames of which this table says so; returns who was heard
    /// of since.
    ///
    /// # Errors
    /// The kernel has no room for all of it.
    pub fn set_kernel_paths(
        &self,
        table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        self.kernel_paths.set(table)
    }

    /// What took the kernel's path from and to a port.
    pub fn kernel_path_counters(&self, port: PortId) -> KernelPathCounters {
        self.kernel_paths.counters(port)
    }

    /// Looks whether [`NetDevices::open_tap`] could succeed; changes nothing.
    ///
    /// # Errors
    /// What opening would say.
    pub fn probe_tap(&self, spec: &TapSpec) -> Result<(), DeviceError> {
        check_queue_pairs(spec.queue_pairs)?;
        tap::probe(&TapPlan::from(spec))
    }

    /// Looks whether [`NetDevices::open_uplink`] could succeed; changes nothing.
    ///
    /// # Errors
    /// What opening would say.
    pub fn probe_uplink(&self, spec: &UplinkSpec) -> Result<(), DeviceError> {
        check_queue_pairs(spec.queue_pairs)?;
        match spec.driver {
            UplinkDriver::AfPacket => packet_device::probe(spec),
            UplinkDriver::AfXdp => xdp::probe(spec, &self.with_xdp),
            UplinkDriver::Tap => tap::probe(&TapPlan::from(spec)),
        }
    }

    /// What an uplink's device does itself, asked of the kernel now; `None` for a TAP,
    /// whose other side is the kernel.
    ///
    /// # Errors
    /// The device is not there, or the kernel cannot be asked.
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

    /// Whether a TAP of that name exists in the namespace.
    pub fn tap_exists(&self, device: &str, netns: Option<&str>) -> bool {
        tap::exists(device, netns)
    }

    /// Deletes a TAP. One that is gone already, or whose namespace is, counts as
    /// deleted.
    ///
    /// # Errors
    /// It is another kind of device, or somebody holds it.
    pub fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<(), DeviceError> {
        tap::remove(device, netns)
    }
}

impl MemberDevices for NetDevices {
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError> {
        Ok(Box::new(DeviceControlSocket::open(device)?))
    }

    fn link(&self, device: &str) -> Result<LinkFacts, DeviceError> {
        let link = Link::new(device)?;
        let (index, up) = (link.index()?, link.state()?.is_usable());
        let speed = if up { self.query.speed(index, device)? } else { LinkSpeed::default() };
        Ok(LinkFacts { up, speed })
    }
}

fn check_queue_pairs(pairs: u16) -> Result<(), DeviceError> {
    if (1..=QUEUE_PAIRS_MAX).contains(&pairs) {
        return Ok(());
    }
    let detail = format!("queues = {pairs} is not between 1 and {QUEUE_PAIRS_MAX}");
    Err(error(DeviceErrorKind::Unsupported, "queues", detail))
}

#[cfg(test)]
#[path = "net_devices_tests.rs"]
mod tests;
