//! Open device of the factory without devices.

use std::path::PathBuf;

use suimon_frame::Offloads;
use suimon_ports::{
    DeviceError, DeviceStatus, FileIdentity, KernelPathState, PortDevice, PortDeviceSpec,
    SteeringRule, SteeringState,
};

use super::{FakeDevices, LINK, Opened, mac_of};
use crate::ports::exclusive_resource;
use crate::transaction::ExclusiveResource;

/// Device that [`FakeDevices`] has opened.
pub(super) struct FakeDevice {
    pub(super) host: FakeDevices,
    pub(super) claim: ExclusiveResource,
    /// Socket file of a vhost-user device.
    pub(super) socket: Option<(FileIdentity, PathBuf)>,
}

impl PortDevice for FakeDevice {
    fn status(&self) -> DeviceStatus {
        let inner = self.host.lock();
        let opened = inner.open.get(&self.claim);
        let has_kernel_path = matches!(
            opened,
            Some(Opened { spec: PortDeviceSpec::Tap(tap), .. }) if tap.may_use_kernel_path
        );
        let uplink = match opened {
            Some(Opened { spec: PortDeviceSpec::Uplink(uplink), .. }) => {
                Some(uplink.device.as_str())
            }
            _ => None,
        };
        let steering = uplink.and_then(|device| inner.steering.get(device)).map(|rules| {
            let refusal = inner.steers_not.clone();
            let rules = if refusal.is_some() { Vec::new() } else { rules.clone() };
            SteeringState { is_exclusive: !rules.is_empty(), rules, refusal }
        });
        let queue_pairs = match opened {
            Some(Opened { spec: PortDeviceSpec::Uplink(uplink), .. }) => uplink.queue_pairs,
            _ => 1,
        };
        let link = uplink.map_or(LINK, |device| inner.links.get(device).copied().unwrap_or(LINK));
        let mac = |device: &str| inner.macs.get(device).copied().unwrap_or_else(|| mac_of(device));
        DeviceStatus {
            link_up: link.is_up,
            speed: link.speed,
            mac: uplink.map(mac),
            queue_pairs,
            steering,
            mtu: 1400,
            ingress_offloads: Offloads::TCP,
            egress_offloads: Offloads::TCP,
            kernel_path: has_kernel_path.then_some(KernelPathState::Ready),
            ..DeviceStatus::default()
        }
    }

    /// Behaves like real devices: TAPs and uplinks change live except for their queues, and
    /// vhost-user devices do not.
    fn apply_spec(&mut self, to: &PortDeviceSpec) -> Result<bool, DeviceError> {
        let mut inner = self.host.lock();
        inner.count_call()?;
        let opened = inner.open.get_mut(&self.claim).unwrap();
        assert_eq!(exclusive_resource(to), self.claim, "a device cannot become another");
        let live = match (&opened.spec, to) {
            (PortDeviceSpec::Tap(from), PortDeviceSpec::Tap(to)) => {
                from.queue_pairs == to.queue_pairs
            }
            (PortDeviceSpec::Uplink(from), PortDeviceSpec::Uplink(to)) => {
                from.queue_pairs == to.queue_pairs && from.driver == to.driver
            }
            _ => false,
        };
        if live {
            opened.spec = to.clone();
        }
        Ok(live)
    }

    fn set_steering_rules(&mut self, rules: &[SteeringRule]) {
        let ExclusiveResource::Device(tap) = &self.claim else { return };
        self.host.lock().steering.insert(tap.device.clone(), rules.to_vec());
    }
}

impl Drop for FakeDevice {
    fn drop(&mut self) {
        let mut inner = self.host.lock();
        inner.open.remove(&self.claim);
        if let ExclusiveResource::Device(tap) = &self.claim {
            inner.steering.remove(&tap.device);
        }
        drop(inner);
        if let Some((identity, path)) = &self.socket {
            self.host.bound.release(path);
            let mut host_state = self.host.left();
            if host_state.sockets.get(path) == Some(identity) {
                host_state.sockets.remove(path);
            }
        }
    }
}
