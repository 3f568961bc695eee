//! A TAP as a port's device.

use std::sync::Arc;

use suimon_frame::Offloads;
use suimon_ports::{
    DeviceError, DeviceStatus, PortDevice, PortObserver, PortSpec, QueueHost, UplinkDriver,
};
use suimon_quantity::{Direction, PortId, QueueId};

use crate::explain::host;
use crate::link::Link;
use crate::namespace::Namespace;
use crate::offload::{self, SharedOffloads};
use crate::tap::{self, TapPlan};
use crate::tap_queue::{TapQueue, TapSink, TapSource};
use crate::watch::{LinkWatch, LinkWatcher};

pub(crate) struct TapDevice {
    port: PortId,
    plan: TapPlan,
    /// Opened as an uplink, not as a NIC.
    is_uplink: bool,
    namespace: Namespace,
    queues: Vec<Arc<TapQueue>>,
    ingress: Arc<SharedOffloads>,
    egress: Arc<SharedOffloads>,
    udp_segmentation: bool,
    watch: LinkWatch,
    host: Arc<dyn QueueHost>,
}

impl TapDevice {
    pub(crate) fn open(
        port: PortId,
        plan: TapPlan,
        is_uplink: bool,
        queue_host: Arc<dyn QueueHost>,
        watcher: &LinkWatcher,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Self, DeviceError> {
        let tap = tap::open(&plan)?;
        let watch =
            watcher.watch(&tap.namespace, tap.index, &plan.device, tap.present, port, observer)?;
        let udp_segmentation = tap.udp_segmentation;
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
        Ok(Self {
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
        })
    }

    fn plan_of(&self, spec: &PortSpec) -> Option<TapPlan> {
        match spec {
            PortSpec::Tap(spec) if !self.is_uplink => Some(spec.into()),
            PortSpec::Uplink(spec) if self.is_uplink && spec.driver == UplinkDriver::Tap => {
                Some(spec.into())
            }
            _ => None,
        }
    }

    fn apply(&self, to: &TapPlan) -> Result<(), DeviceError> {
        self.namespace.run(|| {
            let link = Link::new(&self.plan.device)?;
            if let Some(mtu) = to.mtu {
                link.set_mtu(mtu)?;
            }
            if let Some(mac) = to.mac {
                link.set_address(mac)?;
            }
            Ok(())
        })?;
        let ingress = offload::ingress(to.offload, self.udp_segmentation);
        for queue in &self.queues {
            tap::set_offloads(&queue.fd, ingress)?;
        }
        self.ingress.store(ingress);
        self.egress.store(offload::egress(to.offload, self.udp_segmentation));
        Ok(())
    }

    /// The settings as the device has them, so that they can be put back.
    fn present(&self) -> Result<TapPlan, DeviceError> {
        let (mtu, mac) = self.namespace.run(|| {
            let link = Link::new(&self.plan.device)?;
            Ok((link.mtu()?, link.address()?))
        })?;
        Ok(TapPlan { mtu: Some(mtu), mac, ..self.plan.clone() })
    }
}

impl PortDevice for TapDevice {
    fn status(&self) -> DeviceStatus {
        let link = self.watch.state();
        let all = Offloads { udp_segmentation: self.udp_segmentation, ..offload::ALL };
        DeviceStatus {
            link_up: link.up && link.carrier,
            // At most the u16 that was asked for.
            queue_pairs: u16::try_from(self.queues.len()).unwrap_or(u16::MAX),
            ingress: all,
            egress: all,
            features: None,
            mac: link.mac,
            mtu: link.mtu.or(self.plan.mtu).unwrap_or_default(),
        }
    }

    fn change(&mut self, to: &PortSpec) -> Result<bool, DeviceError> {
        let Some(to) = self.plan_of(to) else { return Ok(false) };
        let live = TapPlan { mac: to.mac, mtu: to.mtu, offload: to.offload, ..self.plan.clone() };
        if live != to {
            return Ok(false);
        }
        let before = self.present()?;
        if let Err(error) = self.apply(&to) {
            // What cannot be put back is said, because it is then not true that
            // the device stayed as it was.
            if let Err(second) = self.apply(&before) {
                let what = format!("{error}; and putting the old settings back");
                return Err(host(error.field, &what, &std::io::Error::other(second)));
            }
            return Err(error);
        }
        self.plan = to;
        Ok(true)
    }
}

impl Drop for TapDevice {
    fn drop(&mut self) {
        self.host.detach_port(self.port);
    }
}
