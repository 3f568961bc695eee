//! Device of a port that is a TAP.

use std::sync::Arc;

use suimon_frame::Offloads;
use suimon_ports::{
    DeviceError, DeviceStatus, KernelPathState, PortDevice, PortDeviceSpec, PortObserver,
    QueueHost, UplinkDriver,
};
use suimon_quantity::{Direction, PortId, QueueId};

use crate::errors::host_error;
use crate::kernel_path::{KernelPaths, TapKernelPath};
use crate::link::Link;
use crate::namespace::Namespace;
use crate::offload::{self, SharedOffloads};
use crate::tap::{self, TapSettings};
use crate::tap_queue::{TapQueue, TapSink, TapSource};
use crate::watch::{LinkWatch, LinkWatcher};
use crate::watched_link::WatchSubject;

/// Dependencies that an open TAP gets from [`NetDevices`](crate::NetDevices).
#[derive(Clone, Copy)]
pub(crate) struct TapDependencies<'a> {
    pub(crate) watcher: &'a LinkWatcher,
    pub(crate) kernel_paths: &'a KernelPaths,
    /// Interface alias (`IFLA_IFALIAS`) that marks TAPs created by the daemon.
    pub(crate) alias: &'a str,
}

pub(crate) struct TapDevice {
    port: PortId,
    plan: TapSettings,
    /// True if the TAP was opened as an uplink, false for a NIC.
    is_uplink: bool,
    namespace: Namespace,
    queues: Vec<Arc<TapQueue>>,
    ingress: Arc<SharedOffloads>,
    egress: Arc<SharedOffloads>,
    udp_segmentation: bool,
    watch: LinkWatch,
    host: Arc<dyn QueueHost>,
    kernel_paths: KernelPaths,
    /// Kernel path of the TAP: `None` if it was not requested, an error's text if it could not be
    /// attached.
    kernel_path: Option<Result<TapKernelPath, String>>,
}

impl TapDevice {
    pub(crate) fn open(
        port: PortId,
        plan: TapSettings,
        is_uplink: bool,
        queue_host: Arc<dyn QueueHost>,
        TapDependencies { watcher, kernel_paths, alias: mark }: TapDependencies<'_>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Self, DeviceError> {
        let tap = tap::open(&plan, mark)?;
        let subject = WatchSubject {
            index: tap.index,
            device: &plan.device,
            initial_state: tap.initial_state,
            reports_speed: is_uplink,
            is_lost_on_rename: false,
        };
        let watch = watcher.watch(&tap.namespace, subject, port, observer)?;
        let udp_segmentation = tap.supports_udp_segmentation;
        let shared = |forms| Arc::new(SharedOffloads::new(forms));
        let ingress = shared(offload::ingress(plan.offload, udp_segmentation));
        let egress = shared(offload::egress(plan.offload, udp_segmentation));
        let name: Arc<str> = plan.device.as_str().into();
        let queue = |fd| {
            let (ingress, egress) = (Arc::clone(&ingress), Arc::clone(&egress));
            TapQueue { fd, device: Arc::clone(&name), ingress, egress }
        };
        let queues: Vec<_> = tap.queues.into_iter().map(|fd| Arc::new(queue(fd))).collect();
        for (index, queue) in (0..).zip(&queues) {
            let id = |direction| QueueId { port, direction, index };
            let sink = TapSink::new(Arc::clone(queue));
            queue_host.attach_sink(id(Direction::Egress), Box::new(sink));
            let source = TapSource::new(Arc::clone(queue));
            queue_host.attach_source(id(Direction::Ingress), Box::new(source));
        }
        let (namespace, host) = (tap.namespace, queue_host);
        let mut device = Self {
            port,
            plan,
            is_uplink,
            namespace,
            queues,
            ingress,
            egress,
            udp_segmentation,
            watch,
            host,
            kernel_paths: kernel_paths.clone(),
            kernel_path: None,
        };
        device.attach_kernel_path();
        Ok(device)
    }

    /// Attaches or detaches the kernel path, as the plan requires. The NIC works without it: a
    /// failure is reported in the status only.
    fn attach_kernel_path(&mut self) {
        if !self.plan.allows_kernel_path {
            self.kernel_path = None;
        } else if !matches!(self.kernel_path, Some(Ok(_))) {
            let attached = self.kernel_paths.attach(self.port, &self.namespace, &self.plan.device);
            self.kernel_path = Some(attached.map_err(|error| {
                tracing::warn!(device = self.plan.device, %error, "no kernel path");
                error.to_string()
            }));
        }
    }

    fn tap_plan(&self, spec: &PortDeviceSpec) -> Option<TapSettings> {
        match spec {
            PortDeviceSpec::Tap(spec) if !self.is_uplink => Some(spec.into()),
            PortDeviceSpec::Uplink(spec) if self.is_uplink && spec.driver == UplinkDriver::Tap => {
                Some(spec.into())
            }
            _ => None,
        }
    }

    fn apply(&self, plan: &TapSettings) -> Result<(), DeviceError> {
        self.namespace.run(|| {
            let link = Link::new(&self.plan.device)?;
            if let Some(mtu) = plan.mtu {
                link.set_mtu(mtu)?;
            }
            let is_kept = plan.keeps_mac && plan.mac == self.plan.mac;
            if let Some(mac) = plan.mac.filter(|_| !is_kept) {
                link.set_address(mac)?;
            }
            Ok(())
        })?;
        let ingress = offload::ingress(plan.offload, self.udp_segmentation);
        for queue in &self.queues {
            tap::set_offloads(&queue.fd, ingress)?;
        }
        self.ingress.store(ingress);
        self.egress.store(offload::egress(plan.offload, self.udp_segmentation));
        Ok(())
    }

    /// Returns the current settings of the device, which are restored after a failed change.
    fn present(&self) -> Result<TapSettings, DeviceError> {
        let (mtu, mac) = self.namespace.run(|| {
            let link = Link::new(&self.plan.device)?;
            Ok((link.mtu()?, link.address()?))
        })?;
        Ok(TapSettings { mtu: Some(mtu), mac, keeps_mac: false, ..self.plan.clone() })
    }
}

impl PortDevice for TapDevice {
    fn status(&self) -> DeviceStatus {
        let link = self.watch.state();
        let offloads = Offloads { udp_segmentation: self.udp_segmentation, ..offload::ALL };
        DeviceStatus {
            link_up: link.is_usable(),
            speed: self.watch.speed(),
            // At most the requested number, a u16.
            queue_pairs: u16::try_from(self.queues.len()).unwrap_or(u16::MAX),
            ingress_offloads: offloads,
            egress_offloads: offloads,
            virtio_features: None,
            mac: link.mac,
            mtu: link.mtu.or(self.plan.mtu).unwrap_or_default(),
            kernel_path: self.kernel_path.as_ref().map(|attached| match attached {
                Ok(_) => KernelPathState::Ready,
                Err(reason) => KernelPathState::Unavailable { reason: reason.clone() },
            }),
            xdp: None,
            steering: None,
        }
    }

    fn apply_spec(&mut self, spec: &PortDeviceSpec) -> Result<bool, DeviceError> {
        let Some(plan) = self.tap_plan(spec) else { return Ok(false) };
        let live = TapSettings {
            mac: plan.mac,
            keeps_mac: plan.keeps_mac,
            mtu: plan.mtu,
            offload: plan.offload,
            allows_kernel_path: plan.allows_kernel_path,
            ..self.plan.clone()
        };
        if live != plan {
            return Ok(false);
        }
        let before = self.present()?;
        if let Err(error) = self.apply(&plan) {
            // A failed restoration is reported, because the device then did not stay as it was.
            if let Err(second) = self.apply(&before) {
                let operation = format!("{error}; restoring the former settings also failed");
                return Err(host_error(error.field, &operation, &std::io::Error::other(second)));
            }
            return Err(error);
        }
        self.plan = plan;
        self.attach_kernel_path();
        Ok(true)
    }
}

impl Drop for TapDevice {
    fn drop(&mut self) {
        self.kernel_path = None;
        self.host.detach_port(self.port);
    }
}
