//! Handling of reports from devices and the switching plane: health states and events.

use std::sync::Arc;
use std::time::Duration;

use suimon_contract::EventKind;
use suimon_frame::MacAddr;
use suimon_ports::{DeviceNotice, FaultKind, PortDeviceSpec, QueueFault, ServedDevice};
use suimon_quantity::{CountedNoun, PortId, WorkerId};
use suimon_switch::SwitchNotice;

use crate::PortKey;
use crate::control::Controller;
use crate::device_notices::{DeviceNotices, DeviceOwner};
use crate::events::EventDraft;
use crate::ports::table::Port;
use crate::ports::texts::port_failed_event;

impl Controller {
    /// Handles the queued notices of a device.
    pub(crate) fn handle_device_notices(&mut self, notices: &DeviceNotices) {
        for notice in notices.take_announced() {
            self.handle_single_notice(notices, notice);
        }
    }

    /// Handles a notice of a device. Notices of a closed device have no effect.
    pub(crate) fn handle_single_notice(&mut self, notices: &DeviceNotices, notice: DeviceNotice) {
        match notices.owner {
            DeviceOwner::Port(port) => self.handle_device_notice(port, notices.generation, notice),
            DeviceOwner::Disk(disk) => self.handle_disk_notice(disk, notices.generation, notice),
        }
    }

    fn handle_device_notice(&mut self, port: PortId, generation: u64, notice: DeviceNotice) {
        let Some(port) = self.shared.ports.find_id(port) else { return };
        let is_open;
        {
            let mut state = port.lock();
            if state.generation != generation {
                return;
            }
            is_open = state.device.is_some();
            match &notice {
                DeviceNotice::LinkUp | DeviceNotice::Negotiated { .. } => state.down_reason = None,
                DeviceNotice::LinkDown { reason } => state.down_reason = Some(reason.clone()),
                DeviceNotice::ProtocolViolation { detail } => {
                    state.down_reason = Some(detail.clone());
                }
                DeviceNotice::LinkChanged(_)
                | DeviceNotice::DeviceLost { .. }
                | DeviceNotice::FeaturesCommitted(_) => {}
            }
        }
        if let DeviceNotice::FeaturesCommitted(negotiated) = notice {
            self.devices.negotiated_features.set_port_features(&port.key, negotiated);
            return;
        }
        if let DeviceNotice::DeviceLost { reason } = notice {
            // A fault of one of the device's queues may have closed the device already.
            if is_open {
                self.fail_port(&port, reason);
            }
            return;
        }
        let is_new_link = notice == DeviceNotice::LinkUp;
        match notice {
            DeviceNotice::LinkUp => self.record_guest_connected(&port.key),
            DeviceNotice::LinkDown { .. } => self.record_guest_disconnected(&port.key),
            _ => {}
        }
        if let Some(draft) = device_event(&port.key, notice) {
            self.drafts.push(draft.rate_limited());
        }
        // The device may have another MTU after a reconnection.
        if is_new_link && matches!(port.key, PortKey::Uplink(_)) {
            self.publish_desired();
        }
    }

    pub(crate) fn handle_plane_notice(&mut self, notice: SwitchNotice) {
        match notice {
            SwitchNotice::QueueFault { queue, fault } => self.handle_fault(queue.port, &fault),
            SwitchNotice::WorkerStalled { worker, device, round_duration: round } => {
                self.report_stall(worker, device, round);
            }
            SwitchNotice::WorkerResumed { worker } => {
                let subject = format!("processor/{worker}");
                let text = format!("Worker {worker} serves its queues again.");
                self.drafts.push(EventDraft::new(EventKind::WorkerResumed, subject, text));
            }
            SwitchNotice::StormLimited { port } => {
                let Some(port) = self.shared.ports.find_id(port) else { return };
                let text = "The port exceeds `storm_limit_fps`; frames to flood beyond the limit \
                            are dropped. Look for a loop or a faulty guest, or raise the limit.";
                self.drafts.push(
                    EventDraft::new(EventKind::StormLimitReached, &port.key, text).rate_limited(),
                );
            }
            SwitchNotice::SpoofedSource { port, mac } => {
                if self.release_absent_owner(port, mac) {
                    return;
                }
                let Some(port) = self.shared.ports.find_id(port) else { return };
                let text = format!(
                    "Frames with source address {mac} are dropped: port security does not allow \
                     this port to send from it. Correct the guest's address or `mac`, or set \
                     mac_spoofing = true."
                );
                let draft = EventDraft::new(EventKind::NicAddressRefused, &port.key, text);
                self.drafts.push(draft.with("mac", mac).rate_limited());
            }
            SwitchNotice::AddressMoved { mac, from, to, move_count: moves } => {
                self.report_move(mac, (from, to), moves);
            }
            SwitchNotice::NewSource { port, mac } => self.bind_source(port, mac),
        }
    }

    fn report_stall(&mut self, worker: WorkerId, device: Option<ServedDevice>, round: Duration) {
        let label = match device {
            Some(ServedDevice::Port(port)) => {
                self.shared.ports.find_id(port).map(|port| port.key.to_string())
            }
            Some(ServedDevice::Disk(disk)) => {
                self.shared.disks.find_id(disk).map(|disk| disk.label())
            }
            None => None,
        };
        let seconds = round.as_secs();
        let text = match &label {
            Some(label) => format!(
                "Worker {worker} has made no progress for {seconds} s while it serves {label}. \
                 None of its queues is served. Disconnect the client of {label}, or restart the \
                 daemon."
            ),
            None => format!(
                "Worker {worker} has made no progress for {seconds} s. None of its queues is \
                 served. Check the load of the host, or restart the daemon."
            ),
        };
        let subject = format!("processor/{worker}");
        let draft = EventDraft::new(EventKind::WorkerStalled, subject, text);
        self.drafts.push(match label {
            Some(label) => draft.with("device", label),
            None => draft,
        });
    }

    fn report_move(&mut self, mac: MacAddr, (from, to): (PortId, PortId), moves: u64) {
        let labels = self.shared.port_labels();
        let (Some(from), Some(to)) = (labels.get(&from), self.shared.port_key(to)) else { return };
        let text = format!(
            "The address {mac} moved to this port from {from} (addresses moved to this port since the \
             last report: {moves}). Set `mac` of NICs whose address must not move."
        );
        let draft = EventDraft::new(EventKind::NicAddressMoved, &to, text);
        self.drafts.push(draft.with("mac", mac).with("from", from).with("moves", moves));
    }

    /// Handles the loss of a queue: the device is closed and reopened after the retry delay, which
    /// a hostile guest cannot shorten.
    fn handle_fault(&mut self, port: PortId, fault: &QueueFault) {
        let Some(port) = self.shared.ports.find_id(port) else { return };
        {
            let state = port.lock();
            // vhost-user NICs report faults of their rings as device notices, and stay open for a
            // restart of the guest's driver. Stream NICs report the end of each connection as a
            // fault, and stay open for the next connection.
            let tells_itself = match state.spec {
                PortDeviceSpec::VhostUser(_) => fault.kind == FaultKind::ProtocolViolation,
                PortDeviceSpec::Stream(_) => true,
                PortDeviceSpec::Tap(_) | PortDeviceSpec::Uplink(_) => false,
            };
            if state.device.is_none() || tells_itself {
                return;
            }
        }
        if fault.kind == FaultKind::ProtocolViolation {
            let text = format!(
                "Queue or connection closed after a protocol violation by the client: {}. Reset the \
                 VM, and update its virtio driver or VMM.",
                fault.detail
            );
            let draft = EventDraft::new(EventKind::NicProtocolViolation, &port.key, text);
            self.drafts.push(draft.with("detail", &fault.detail).rate_limited());
        }
        self.fail_port(&port, fault.detail.clone());
    }

    /// Closes the device of a port, records the reason and emits an event.
    pub(crate) fn fail_port(&mut self, port: &Arc<Port>, reason: String) {
        self.record_guest_disconnected(&port.key);
        let draft = port_failed_event(&port.key, &reason);
        self.devices.fail(port, reason);
        self.drafts.push(draft.rate_limited());
        if matches!(port.key, PortKey::Uplink(_)) {
            // The team's status names the reason, and the tables must not contain the device's MTU.
            let config = self.shared.desired().config.clone();
            if let Err(error) = self.publish(&config) {
                tracing::error!(%error, "the forwarding tables still contain a failed device");
            }
        }
    }
}

/// Returns the event of a device notice. The carrier of a host NIC or a team causes no event.
fn device_event(key: &PortKey, notice: DeviceNotice) -> Option<EventDraft> {
    let draft = match (key, notice) {
        (PortKey::Nic(_), DeviceNotice::LinkUp) => {
            EventDraft::new(EventKind::NicConnected, key, "A VM connected to the NIC.")
        }
        (PortKey::Nic(_), DeviceNotice::LinkDown { reason }) => {
            let text = format!(
                "The VM disconnected from the NIC: {reason}. If the VM was not stopped, check the \
                 log of its QEMU."
            );
            EventDraft::new(EventKind::NicDisconnected, key, text).with("reason", reason)
        }
        (PortKey::Uplink(_), DeviceNotice::LinkUp) => {
            EventDraft::new(EventKind::UplinkLinkUp, key, "The link of the uplink is up.")
        }
        (PortKey::Uplink(_), DeviceNotice::LinkDown { reason }) => {
            let text = format!(
                "The link of the uplink is down: {reason}. Check the cable and the switch port."
            );
            EventDraft::new(EventKind::UplinkLinkDown, key, text).with("reason", reason)
        }
        (
            PortKey::HostNic(_) | PortKey::Team(_),
            DeviceNotice::LinkUp | DeviceNotice::LinkDown { .. },
        ) => return None,
        (_, DeviceNotice::Negotiated { features, queue_pairs }) => {
            let pairs = CountedNoun::new(queue_pairs, "queue pair");
            let text = format!("The guest's driver initialized the NIC with {pairs}.");
            EventDraft::new(EventKind::NicDriverReady, key, text)
                .with("features", format!("{features:#x}"))
                .with("queue_pairs", queue_pairs)
        }
        (
            _,
            DeviceNotice::LinkChanged(_)
            | DeviceNotice::DeviceLost { .. }
            | DeviceNotice::FeaturesCommitted(_),
        ) => return None,
        (_, DeviceNotice::ProtocolViolation { detail }) => {
            let text = format!(
                "Queue or connection closed after a protocol violation by the client: {detail}. \
                 Reset the VM, and update its virtio driver or VMM."
            );
            EventDraft::new(EventKind::NicProtocolViolation, key, text).with("detail", detail)
        }
    };
    Some(draft)
}
