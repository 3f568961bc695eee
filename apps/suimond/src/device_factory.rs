//! Network devices of the `sys` layer, as the node uses them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_netdev::NetDevices;
use suimon_ports::{
    ControlSocket, DeviceError, DeviceFactory, DeviceFeatures, KernelPathCounters, KernelPathTable,
    LinkProperties, MemberDevices, PortDevice, PortDeviceSpec, PortObserver, QueueHost,
};
use suimon_quantity::PortId;
use suimon_stream_nic::StreamNic;
use suimon_vhost_user::{VhostUserNic, VhostUserThreads};

/// Network devices of this host: vhost-user and stream sockets, TAP devices and packet sockets.
pub(crate) struct HostDevices {
    net: NetDevices,
    threads: VhostUserThreads,
}

impl HostDevices {
    /// Starts the thread that monitors the host's links. `threads` serve the sockets of NICs.
    /// `state_dir` is the daemon's state directory, which the alias of created TAPs contains.
    ///
    /// # Errors
    /// The host has no descriptor or thread left, or the directory does not exist.
    pub(crate) fn new(threads: VhostUserThreads, state_dir: &Path) -> io::Result<Self> {
        let owner = state_dir.canonicalize()?;
        let net = NetDevices::new()?.with_owner(&owner.to_string_lossy());
        Ok(Self { net, threads })
    }
}

impl DeviceFactory for HostDevices {
    fn probe(&self, spec: &PortDeviceSpec) -> Result<(), DeviceError> {
        match spec {
            PortDeviceSpec::VhostUser(spec) => VhostUserNic::probe(spec),
            PortDeviceSpec::Stream(spec) => StreamNic::probe(spec),
            PortDeviceSpec::Tap(spec) => self.net.probe_tap(spec),
            PortDeviceSpec::Uplink(spec) => self.net.probe_uplink(spec),
        }
    }

    fn open(
        &self,
        port: PortId,
        spec: &PortDeviceSpec,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        match spec {
            PortDeviceSpec::VhostUser(spec) => {
                Ok(Box::new(VhostUserNic::open(port, spec, queues, observer, &self.threads)?))
            }
            PortDeviceSpec::Stream(spec) => {
                let runtime = &self.threads.serving_runtime;
                Ok(Box::new(StreamNic::open(port, spec, queues, observer, runtime)?))
            }
            PortDeviceSpec::Tap(spec) => self.net.open_tap(port, spec, queues, observer),
            PortDeviceSpec::Uplink(spec) => self.net.open_uplink(port, spec, queues, observer),
        }
    }

    fn hardware_features(
        &self,
        spec: &PortDeviceSpec,
    ) -> Result<Option<DeviceFeatures>, DeviceError> {
        match spec {
            PortDeviceSpec::Uplink(spec) => self.net.uplink_features(spec),
            PortDeviceSpec::VhostUser(_) | PortDeviceSpec::Stream(_) | PortDeviceSpec::Tap(_) => {
                Ok(None)
            }
        }
    }

    fn device_index(&self, spec: &PortDeviceSpec) -> Option<u32> {
        match spec {
            PortDeviceSpec::Uplink(spec) => self.net.uplink_index(spec),
            PortDeviceSpec::VhostUser(_) | PortDeviceSpec::Stream(_) | PortDeviceSpec::Tap(_) => {
                None
            }
        }
    }

    fn set_kernel_path_table(
        &self,
        table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        self.net.set_kernel_paths(table)
    }

    fn kernel_path_counters(&self, port: PortId) -> KernelPathCounters {
        self.net.kernel_path_counters(port)
    }

    fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<bool, DeviceError> {
        self.net.remove_tap(device, netns)
    }
}

impl MemberDevices for HostDevices {
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError> {
        self.net.open_control(device)
    }

    fn link_properties(&self, device: &str) -> Result<LinkProperties, DeviceError> {
        self.net.link_properties(device)
    }
}
