//! Provides the network devices of `sys` to the node.

use std::io;
use std::path::Path;
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_netdev::NetDevices;
use suimon_ports::{
    ControlSocket, DeviceError, DeviceFactory, DeviceFeatures, KernelPathCounters, KernelPathTable,
    LinkProperties, MemberDevices, PortDevice, PortObserver, PortSpec, QueueHost,
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
        let net = NetDevices::new()?.owned_by(&owner.to_string_lossy());
        Ok(Self { net, threads })
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
                Ok(Box::new(VhostUserNic::open(port, spec, queues, observer, &self.threads)?))
            }
            PortSpec::Stream(spec) => {
                let runtime = &self.threads.serving;
                Ok(Box::new(StreamNic::open(port, spec, queues, observer, runtime)?))
            }
            PortSpec::Tap(spec) => self.net.open_tap(port, spec, queues, observer),
            PortSpec::Uplink(spec) => self.net.open_uplink(port, spec, queues, observer),
        }
    }

    fn hardware_features(&self, spec: &PortSpec) -> Result<Option<DeviceFeatures>, DeviceError> {
        match spec {
            PortSpec::Uplink(spec) => self.net.uplink_features(spec),
            PortSpec::VhostUser(_) | PortSpec::Stream(_) | PortSpec::Tap(_) => Ok(None),
        }
    }

    fn device_index(&self, spec: &PortSpec) -> Option<u32> {
        match spec {
            PortSpec::Uplink(spec) => self.net.uplink_index(spec),
            PortSpec::VhostUser(_) | PortSpec::Stream(_) | PortSpec::Tap(_) => None,
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

    fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<bool, DeviceError> {
        self.net.remove_tap(device, netns)
    }
}

impl MemberDevices for HostDevices {
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError> {
        self.net.open_control(device)
    }

    fn link(&self, device: &str) -> Result<LinkProperties, DeviceError> {
        self.net.link(device)
    }
}
