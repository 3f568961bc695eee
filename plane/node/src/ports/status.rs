//! Observed state of the host, its switches, uplinks and NICs, in the API's types.

use std::collections::BTreeMap;

use suimon_contract::{
    AddressStatus, ApiError, Condition, DropCounter, Health, HostConfig, HostStatus, Name,
    NicConfig, NicStatus, PortCounters, QueueStatus, ResourceKind, SwitchConfig, SwitchKind,
    SwitchStatus, TeamConfig, TopPort, TopSnapshot, TopTeam, UplinkConfig, UplinkStatus,
    WorkerStages, WorkerStatus, XdpHook, XdpStatus,
};
use suimon_ports::XdpState;
use suimon_quantity::{PortId, SwitchId};
use suimon_switch::{AddressView, PortCountersView, Stage, StageTimes};

use crate::PortKey;
use crate::errors::not_found;
use crate::offloads::{device_features, host_nic_offloads, nic_offloads, uplink_offloads};
use crate::ports::bound_addresses::Binding;
use crate::ports::desired::{find_using_switch, uplink_spec};
use crate::ports::queue_names::queue_name;
use crate::shared::Shared;

impl Shared {
    /// Returns the configured host name, or the system's host name.
    pub(crate) fn host_name(&self) -> String {
        let desired = self.desired();
        desired.config.host.name.clone().unwrap_or_else(|| self.host_name.clone())
    }

    pub(crate) fn host_status(&self) -> HostStatus {
        let desired = self.desired();
        let config = &desired.config;
        HostStatus {
            name: self.host_name(),
            version: self.version.clone(),
            uptime_s: self.started_at.elapsed().as_secs(),
            revision: desired.revision,
            switches: config.switches.len(),
            uplinks: config.uplinks.len(),
            teams: config.teams.len(),
            nics: config.nics.len(),
            stores: config.stores.len(),
            qos_policies: config.qos_policies.len(),
            disks: config.disks.len(),
            vms: config.vms.len(),
            pfs: config.pfs.len(),
            nodes: config.nodes.len(),
            drain: self.drain_status(),
            state_store: self.state_store_status(),
            confinement: (self.confinement)(),
            nbd: self.disks.host_nbd_status(&config.host),
        }
    }

    pub(crate) fn nics(&self) -> Vec<NicStatus> {
        let config = &self.desired().config;
        let learned = self.learned_by_port(config);
        let bound = self.bound_addresses.bindings_in_effect(config);
        config.nics.iter().map(|nic| self.nic_status(nic, &learned, &bound)).collect()
    }

    pub(crate) fn nic(&self, name: &str) -> Result<NicStatus, ApiError> {
        let config = &self.desired().config;
        let nic = config.nics.iter().find(|nic| nic.name.as_str() == name);
        let nic = nic.ok_or_else(|| not_found(ResourceKind::Nic, name))?;
        let mut learned = BTreeMap::new();
        if let Some(id) = self.ids().switch(&nic.switch) {
            self.count_learned(id, &mut learned);
        }
        Ok(self.nic_status(nic, &learned, &self.bound_addresses.bindings_in_effect(config)))
    }

    pub(crate) fn uplinks(&self) -> Vec<UplinkStatus> {
        let config = &self.desired().config;
        config.uplinks.iter().map(|uplink| self.uplink_status(uplink, config)).collect()
    }

    pub(crate) fn uplink(&self, name: &str) -> Result<UplinkStatus, ApiError> {
        let config = &self.desired().config;
        let uplink = config.uplinks.iter().find(|uplink| uplink.name.as_str() == name);
        let uplink = uplink.ok_or_else(|| not_found(ResourceKind::Uplink, name))?;
        Ok(self.uplink_status(uplink, config))
    }

    pub(crate) fn switches(&self) -> Vec<SwitchStatus> {
        let config = &self.desired().config;
        config.switches.iter().map(|switch| self.switch_status(switch, config)).collect()
    }

    pub(crate) fn switch(&self, name: &str) -> Result<SwitchStatus, ApiError> {
        let config = &self.desired().config;
        let switch = config.switches.iter().find(|switch| switch.name.as_str() == name);
        let switch = switch.ok_or_else(|| not_found(ResourceKind::Switch, name))?;
        Ok(self.switch_status(switch, config))
    }

    pub(crate) fn addresses(&self, switch: &str) -> Result<Vec<AddressStatus>, ApiError> {
        let id = switch.parse::<Name>().ok().and_then(|name| self.ids().switch(&name));
        let id = id.ok_or_else(|| not_found(ResourceKind::Switch, switch))?;
        let labels = self.port_labels();
        let status = |view: AddressView| AddressStatus {
            mac: view.mac,
            vlan: view.vlan.map(|vlan| vlan.get()),
            port: labels.get(&view.port).cloned().unwrap_or_default(),
            is_static: view.is_static,
            age_s: view.age.map(|age| age.as_secs()),
        };
        Ok(self.plane.addresses(id).into_iter().map(status).collect())
    }

    pub(crate) fn queues(&self) -> Vec<QueueStatus> {
        let labels = self.port_labels();
        let mut queues = Vec::new();
        for view in self.plane.queues() {
            let Some(port) = self.ports.find_id(view.id.port) else { continue };
            queues.push(QueueStatus {
                id: queue_name(&labels, &port.key, view.id),
                port: labels.get(&port.id).cloned().unwrap_or_default(),
                worker: view.worker.0,
                frames: view.frames,
                bytes: view.bytes,
                dropped_no_buffer: view.dropped_full,
                moves: view.moves,
            });
        }
        queues
    }

    pub(crate) fn workers(&self) -> Vec<WorkerStatus> {
        let ns = |span: std::time::Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let views = self.plane.workers().into_iter();
        views
            .map(|view| WorkerStatus {
                id: view.id.0,
                cpu: view.placement.cpu(),
                queues: usize::try_from(view.queues).unwrap_or(usize::MAX),
                cpu_time_ns: ns(view.cpu_time),
                busy_ns: view.stages.awake_ns(),
                batches: view.batches,
                frames: view.frames,
                sleeps: view.sleeps,
                asleep: view.is_asleep,
                yields: view.polling_pauses,
                is_yielding: view.is_polling_paused,
                stages: stages(&view.stages),
            })
            .collect()
    }

    pub(crate) fn top(&self) -> TopSnapshot {
        let config = &self.desired().config;
        let nics = config.nics.iter().map(|nic| {
            let key = PortKey::Nic(nic.name.clone());
            self.top_port(&key, Some(nic.switch.clone()))
        });
        let uplinks = config.uplinks.iter().map(|uplink| {
            let switch = find_using_switch(config, &uplink.name);
            let key = PortKey::Uplink(uplink.name.clone());
            self.top_port(&key, switch.map(|switch| switch.name.clone()))
        });
        let mut snapshot = TopSnapshot {
            time_unix_ms: (self.clock)(),
            time_monotonic_ns: self.plane.now().as_ns(),
            nics: nics.collect(),
            uplinks: uplinks.collect(),
            teams: config.teams.iter().map(|team| self.top_team(team, config)).collect(),
            disks: self.top_disks(),
            workers: self.workers(),
            power: self.top_power(),
        };
        snapshot.nics.sort_by(|a, b| a.name.cmp(&b.name));
        snapshot.uplinks.sort_by(|a, b| a.name.cmp(&b.name));
        snapshot.teams.sort_by(|a, b| a.name.cmp(&b.name));
        snapshot
    }

    fn top_team(&self, team: &TeamConfig, config: &HostConfig) -> TopTeam {
        let condition = self.team_condition(&team.name);
        TopTeam {
            name: team.name.clone(),
            switch: find_using_switch(config, &team.name).map(|switch| switch.name.clone()),
            health: condition.map_or(Health::Down, |condition| condition.health),
            members: team.members.clone(),
        }
    }

    fn top_port(&self, key: &PortKey, switch: Option<Name>) -> TopPort {
        let port = self.ports.find(key);
        let health = match &port {
            Some(port) => port.condition().health,
            None => Health::Down,
        };
        let counters = self.counters(port.map(|port| port.id));
        TopPort::new(key.name().clone(), switch, health, &counters)
    }

    fn nic_status(
        &self,
        nic: &NicConfig,
        learned: &BTreeMap<PortId, u32>,
        bound: &BTreeMap<Name, Binding>,
    ) -> NicStatus {
        let port = self.ports.find(&PortKey::Nic(nic.name.clone()));
        let device = port.as_ref().and_then(|port| port.device_status()).unwrap_or_default();
        let id = port.as_ref().map(|port| port.id);
        NicStatus {
            config: nic.clone(),
            condition: match &port {
                Some(port) => port.condition(),
                None if self.desired().config.is_connected(nic) => not_yet(),
                None => not_connected(),
            },
            counters: self.counters(id),
            offloads: nic_offloads(&device, nic),
            virtio_features: device.virtio_features.map(|features| format!("{features:#x}")),
            queue_pairs: device.queue_pairs,
            learned_macs: id.and_then(|id| learned.get(&id).copied()).unwrap_or(0),
            bound_mac: bound.get(&nic.name).map(|binding| binding.mac),
            kernel_path: self.kernel_path_status(nic, port.as_deref()),
            iov: self.iov_status(nic),
        }
    }

    fn uplink_status(&self, uplink: &UplinkConfig, config: &HostConfig) -> UplinkStatus {
        let switch = find_using_switch(config, &uplink.name);
        let port = self.ports.find(&PortKey::Uplink(uplink.name.clone()));
        let device = port.as_ref().and_then(|port| port.device_status());
        // Queried without the port's lock, because the kernel may block the call.
        let feature_result = self.devices.hardware_features(&uplink_spec(uplink));
        let condition = match (&port, switch) {
            (Some(port), _) => port.condition(),
            (None, Some(_)) => not_yet(),
            (None, None) => Condition {
                health: Health::Down,
                reason: Some("not open, because no switch uses the uplink".to_owned()),
            },
        };
        UplinkStatus {
            config: uplink.clone(),
            switch: switch.map(|switch| switch.name.clone()),
            condition,
            counters: self.counters(port.as_ref().map(|port| port.id)),
            mtu: device
                .as_ref()
                .map(|device| device.mtu)
                .filter(|mtu| *mtu > 0)
                .or(uplink.mtu)
                .unwrap_or(0),
            mac: device.as_ref().and_then(|device| device.mac),
            offloads: uplink_offloads(device.as_ref(), uplink, &feature_result),
            device_features: device_features(&feature_result),
            steering: self.steering_status(uplink, config, device.as_ref()),
            af_xdp: device.and_then(|device| device.xdp).map(xdp_status),
        }
    }

    fn switch_status(&self, switch: &SwitchConfig, config: &HostConfig) -> SwitchStatus {
        let uplink_port = match (&switch.uplink, switch.kind) {
            (Some(name), _) if config.teams.iter().any(|team| team.name == *name) => {
                Some(PortKey::Team(name.clone()))
            }
            (Some(uplink), _) => Some(PortKey::Uplink(uplink.clone())),
            (None, SwitchKind::Internal) => Some(PortKey::HostNic(switch.name.clone())),
            (None, _) => None,
        };
        let condition = match &uplink_port {
            None => Condition { health: Health::Up, reason: None },
            Some(key) => self.uplink_condition(key),
        };
        let host_nic = self.ports.find(&PortKey::HostNic(switch.name.clone()));
        let host_nic_offloads = match switch.kind {
            SwitchKind::Internal => {
                let device = host_nic.as_ref().and_then(|port| port.device_status());
                host_nic_offloads(&device.unwrap_or_default(), switch)
            }
            SwitchKind::Private | SwitchKind::External => Vec::new(),
        };
        let nics = config.nics.iter().filter(|nic| nic.switch == switch.name);
        let id = self.ids().switch(&switch.name);
        SwitchStatus {
            config: switch.clone(),
            condition,
            nics: nics.map(|nic| nic.name.clone()).collect(),
            host_nic_counters: host_nic.map(|port| self.counters(Some(port.id))),
            host_nic_offloads,
            addresses: id.map_or(0, |id| self.plane.addresses(id).len()),
        }
    }

    /// Returns the condition of a switch: that of its uplink, team or host NIC.
    fn uplink_condition(&self, key: &PortKey) -> Condition {
        let condition = match key {
            PortKey::Team(name) => self.team_condition(name),
            _ => self.ports.find(key).map(|port| port.condition()),
        };
        let mut condition = condition.unwrap_or_else(not_yet);
        condition.reason = condition.reason.map(|reason| match key {
            PortKey::HostNic(_) => format!("host NIC: {reason}"),
            _ => format!("{key}: {reason}"),
        });
        condition
    }

    pub(crate) fn counters(&self, port: Option<PortId>) -> PortCounters {
        let Some(port) = port else { return PortCounters::default() };
        let mut counters = counters(self.plane.port_counters(port));
        let passed_by = self.devices.kernel_path_counters(port);
        counters.rx_frames = counters.rx_frames.saturating_add(passed_by.sent_frames);
        counters.rx_bytes = counters.rx_bytes.saturating_add(passed_by.sent_bytes);
        counters.tx_frames = counters.tx_frames.saturating_add(passed_by.received_frames);
        counters.tx_bytes = counters.tx_bytes.saturating_add(passed_by.received_bytes);
        counters
    }

    /// Returns the number of learned addresses per port. Queries each switch once.
    fn learned_by_port(&self, config: &HostConfig) -> BTreeMap<PortId, u32> {
        let ids = self.ids();
        let switches = config.switches.iter().filter_map(|switch| ids.switch(&switch.name));
        let mut learned = BTreeMap::new();
        for id in switches {
            self.count_learned(id, &mut learned);
        }
        learned
    }

    fn count_learned(&self, switch: SwitchId, learned: &mut BTreeMap<PortId, u32>) {
        for address in self.plane.addresses(switch).iter().filter(|address| !address.is_static) {
            *learned.entry(address.port).or_default() += 1;
        }
    }
}

fn xdp_status(state: XdpState) -> XdpStatus {
    XdpStatus {
        hook: match state.hook {
            suimon_ports::XdpHook::Driver => XdpHook::Driver,
            suimon_ports::XdpHook::Generic => XdpHook::Generic,
        },
        zero_copy: state.zero_copy,
        multi_buffer: state.multi_buffer,
        chunk_bytes: state.chunk_bytes,
        lost_frames: state.dropped_frames,
    }
}

fn not_connected() -> Condition {
    let reason = "the NIC has neither a VM nor a socket; add it to a VM or set its socket";
    Condition { health: Health::Down, reason: Some(reason.to_owned()) }
}

fn not_yet() -> Condition {
    Condition { health: Health::Failed, reason: Some("being created".to_owned()) }
}

fn stages(times: &StageTimes) -> WorkerStages {
    WorkerStages {
        copy_in_ns: times.ns(Stage::CopyIn),
        classify_ns: times.ns(Stage::Classify),
        coalesce_ns: times.ns(Stage::Coalesce),
        segment_ns: times.ns(Stage::Segment),
        checksum_ns: times.ns(Stage::Checksum),
        copy_out_ns: times.ns(Stage::CopyOut),
        notify_ns: times.ns(Stage::Notify),
        storage_ns: times.ns(Stage::Storage),
        poll_ns: times.ns(Stage::Poll),
        idle_ns: times.ns(Stage::Idle),
    }
}

fn counters(view: PortCountersView) -> PortCounters {
    let drops = |drops: Vec<(&'static str, u64)>| {
        let counted = drops.into_iter().filter(|(_, frames)| *frames > 0);
        counted.map(|(reason, frames)| DropCounter { reason: reason.to_owned(), frames }).collect()
    };
    PortCounters {
        rx_frames: view.rx_frames,
        rx_bytes: view.rx_bytes,
        tx_frames: view.tx_frames,
        tx_bytes: view.tx_bytes,
        rx_dropped: drops(view.rx_dropped),
        tx_dropped: drops(view.tx_dropped),
        flooded: view.flooded,
        software_segmented: view.software_segmented,
        software_checksummed: view.software_checksummed,
        software_coalesced_segments: view.software_coalesced_segments,
        software_coalesced_frames: view.software_coalesced_frames,
    }
}
