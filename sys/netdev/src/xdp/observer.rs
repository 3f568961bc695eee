//! Detection of a deleted device, which the sockets of an AF_XDP uplink do not report to a waiter.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::netdevice::index_to_name;
use suimon_ports::{DeviceNotice, PortObserver};
use suimon_quantity::PortId;

/// Observer that forwards notices, and adds one if the device was deleted.
pub(super) struct LossObserver {
    pub(super) inner: Arc<dyn PortObserver>,
    pub(super) index: u32,
    pub(super) device: Arc<str>,
    /// Socket of the device's namespace, for requests about devices.
    pub(super) socket: OwnedFd,
}

impl PortObserver for LossObserver {
    fn handle_notice(&self, port: PortId, notice: DeviceNotice) {
        let is_down = matches!(notice, DeviceNotice::LinkDown { .. });
        self.inner.handle_notice(port, notice);
        if is_down && index_to_name(&self.socket, self.index).is_err() {
            let reason = format!("device {} was deleted, and its sockets with it", self.device);
            self.inner.handle_notice(port, DeviceNotice::DeviceLost { reason });
        }
    }
}
