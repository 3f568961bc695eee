//! Steering rules of open devices, and their status.

use std::collections::BTreeMap;

use suimon_contract::{
    HostConfig, NicConfig, SteeredNic, SteeringMode, SteeringStatus, UplinkConfig, UplinkDriver,
    VmqConfig,
};
use suimon_frame::MacAddr;
use suimon_ports::{DeviceStatus, SteeringRule, SteeringState};
use suimon_quantity::{CountedNoun, PortId};
use suimon_vmq::dedicated_queues;

use crate::PortKey;
use crate::ports::{PlaneIds, find_using_switch};
use crate::shared::Shared;

impl Shared {
    /// Updates the steering rules of open devices to the tables that were just published.
    pub(crate) fn publish_steering(&self, config: &HostConfig) {
        let ids = self.ids();
        let mut plan = self.steering.lock();
        let before = std::mem::take(&mut *plan);
        for uplink in config
            .uplinks
            .iter()
            .filter(|uplink_config| uplink_config.driver == UplinkDriver::AfXdp)
        {
            let Some(port) = self.ports.find(&PortKey::Uplink(uplink.name.clone())) else {
                continue;
            };
            let previous = before.get(&port.id).cloned().unwrap_or_default();
            let nics = steered(config, uplink, &ids);
            let ports: Vec<PortId> = nics.iter().map(|(id, ..)| *id).collect();
            let nic_queues = dedicated_queues(uplink.queues, &ports, &previous);
            let rules = nics.iter().filter_map(|(id, nic, mac)| rule(*id, nic, *mac, &nic_queues));
            let rules: Vec<SteeringRule> = rules.collect();
            if let Some(device) = &mut port.lock().device {
                device.set_steering_rules(&rules);
            }
            plan.insert(port.id, nic_queues);
        }
    }

    /// Returns the steering status of an uplink; `None` while its device is not open.
    pub(crate) fn steering_status(
        &self,
        uplink: &UplinkConfig,
        config: &HostConfig,
        device: Option<&DeviceStatus>,
    ) -> Option<SteeringStatus> {
        let device = device?;
        let state = device.steering.clone().unwrap_or_default();
        let ids = self.ids();
        let nics = steered(config, uplink, &ids);
        let steered_nic = |rule: &SteeringRule| {
            let (_, nic, _) = nics.iter().find(|(id, ..)| *id == rule.port)?;
            let (mac, vlan) = (rule.mac, rule.vlan.map(|vlan| vlan.get()));
            Some(SteeredNic { nic: nic.name.clone(), mac, vlan, queue: rule.queue })
        };
        let rules: Vec<SteeredNic> = state.rules.iter().filter_map(steered_nic).collect();
        let is_hardware = !rules.is_empty();
        let reason = if is_hardware {
            partial_reason(nics.len().saturating_sub(rules.len()), &state)
        } else {
            Some(none_reason(config, uplink, device, &state, nics.is_empty()))
        };
        Some(SteeringStatus {
            mode: if is_hardware { SteeringMode::Hardware } else { SteeringMode::Software },
            queues: device.queue_pairs,
            queues_are_exclusive: state.is_exclusive,
            reason,
            nics: rules,
        })
    }
}

/// Returns the NICs behind an uplink that should have their own receive queue, in the order of the
/// configuration.
fn steered<'c>(
    config: &'c HostConfig,
    uplink: &UplinkConfig,
    ids: &PlaneIds,
) -> Vec<(PortId, &'c NicConfig, MacAddr)> {
    let switch = find_using_switch(config, &uplink.name).filter(|_| vmq_of(config, uplink).enabled);
    let Some(switch) = switch else { return Vec::new() };
    let nics = config.nics.iter().filter(|nic| nic.switch == switch.name && nic.vmq_weight > 0);
    nics.filter_map(|nic| Some((ids.port(&PortKey::Nic(nic.name.clone()))?, nic, nic.mac?)))
        .collect()
}

/// Returns the VMQ settings of an uplink: those of its team if it is a member of one.
fn vmq_of<'c>(config: &'c HostConfig, uplink: &'c UplinkConfig) -> &'c VmqConfig {
    let team = config.teams.iter().find(|team| team.members.contains(&uplink.name));
    team.map_or(&uplink.vmq, |team| &team.vmq)
}

/// Returns the steering rule of a NIC. The rule has no VLAN for a trunk or a NIC without `vlan`: it
/// matches frames with any tag, and the switch drops those not permitted.
fn rule(
    port: PortId,
    nic: &NicConfig,
    mac: MacAddr,
    nic_queues: &BTreeMap<PortId, u16>,
) -> Option<SteeringRule> {
    let vlan = nic.vlan.filter(|_| nic.trunk.is_none());
    Some(SteeringRule { port, mac, vlan, queue: *nic_queues.get(&port)? })
}

fn partial_reason(unsteered: usize, state: &SteeringState) -> Option<String> {
    if unsteered == 0 {
        return None;
    }
    let nics = CountedNoun::new(unsteered, "NIC");
    let reason = state.refusal.as_deref().unwrap_or("no receive queue is free");
    Some(format!("frames of {nics} are classified in software: {reason}"))
}

fn none_reason(
    config: &HostConfig,
    uplink: &UplinkConfig,
    device: &DeviceStatus,
    state: &SteeringState,
    wants_none: bool,
) -> String {
    match uplink.driver {
        UplinkDriver::AfXdp => {}
        UplinkDriver::AfPacket => {
            return "driver = \"af_packet\" receives the frames of all hardware queues on one socket"
                .to_owned();
        }
        UplinkDriver::Tap => return "a TAP device has no hardware receive queues".to_owned(),
    }
    if !vmq_of(config, uplink).enabled {
        return "VMQ is off (enabled = false)".to_owned();
    }
    if device.queue_pairs < 2 {
        return "the device has one receive queue".to_owned();
    }
    if wants_none {
        return "no NIC of the switch has a `mac` and a `vmq_weight` above 0".to_owned();
    }
    state.refusal.clone().unwrap_or_else(|| "the steering rules are being set".to_owned())
}
