//! Brings the devices of `sys` to the node.

use std::io;
use std::sync::Arc;

use suimon_confine::{Confinement, Role};
use suimon_frame::MacAddr;
use suimon_netdev::NetDevices;
use suimon_ports::{
    ControlSocket, DeviceError, DeviceFactory, DeviceFeatures, KernelPathCounters, KernelPathTable,
    LinkFacts, MemberDevices, PortDevice, PortObserver, PortSpec, QueueHost, ThreadStart,
};
use suimon_quantity::PortId;
use suimon_stream_nic::StreamNic;
use suimon_vhost_user::VhostUserNic;

/// The devices of this host: vhost-user and stream sockets, TAPs and packet sockets.
pub struct HostDevices {
    net: NetDevices,
    /// Confines the threads that read what front-ends say.
    on_front_end_start: ThreadStart,
}

impl HostDevices {
    /// Starts what watches the host's links.
    ///
    /// # Errors
    /// The host is out of descriptors or threads.
    pub fn new(confinement: Confinement) -> io::Result<Self> {
        let on_front_end_start: ThreadStart =
            Arc::new(move || confinement.confine_thread(Role::FrontEnd).map_err(Into::into));
        Ok(Self { net: NetDevices::new()?, on_front_end_start })
    }
}

impl DeviceFactory for HostDevices {
    fn probe(&self, spec: &PortSpec) -> Result<(), DeviceError> {
        match spec {
            PortSpec::VhostUser(spec) => VhostUserNic::probe(spec),
            PortSpec::Stream(spec) => StreamNic::probe(spec),
            PortSpec::Tap(spec) => self.net.probe_tap(spec),
            PortSpec::Uplink(spec) => self.net.probe_uplink(spec),
        }
    }

    fn open(
        &self,
        port: PortId,
        spec: &PortSpec,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        match spec {
            PortSpec::VhostUser(spec) => {
                let on_start = &self.on_front_end_start;
                Ok(Box::new(VhostUserNic::open_with(port, spec, queues, observer, on_start)?))
            }
            PortSpec::Stream(spec) => {
                let on_start = &self.on_front_end_start;
                Ok(Box::new(StreamNic::open(port, spec, queues, observer, on_start)?))
            }
            PortSpec::Tap(spec) => self.net.open_tap(port, spec, queues, observer),
            PortSpec::Uplink(spec) => self.net.open_uplink(port, spec, queues, observer),
        }
    }

    fn features(&self, spec: &PortSpec) -> Result<Option<DeviceFeatures>, DeviceError> {
        match spec {
            PortSpec::Uplink(spec) => self.net.uplink_features(spec),
            PortSpec::VhostUser(_) | PortSpec::Stream(_) | PortSpec::Tap(_) => Ok(None),
        }
    }

    fn set_kernel_paths(
        &self,
        table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        self.net.set_kernel_paths(table)
    }

    fn kernel_path_counters(&self, port: PortId) -> KernelPathCounters {
        self.net.kernel_path_counters(port)
    }

    fn tap_exists(&self, device: &str, netns: Option<&str>) -> bool {
        self.net.tap_exists(device, netns)
    }

    fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<(), DeviceError> {
        self.net.remove_tap(device, netns)
    }
}

impl MemberDevices for HostDevices {
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError> {
        self.net.open_control(device)
    }

    fn link(&self, device: &str) -> Result<LinkFacts, DeviceError> {
        self.net.link(device)
    }
}
