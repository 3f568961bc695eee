//! Switches, uplinks and NICs as tables and in detail.

use serde::Serialize;
use serde_json::Value;
use suimon_contract::{
    Condition, DropCounter, Health, KernelPathStatus, NicBackend, NicConfig, NicStatus,
    OffloadStatus, PortCounters, Resource, SwitchConfig, SwitchStatus, UplinkConfig, UplinkStatus,
};

use crate::offload::offload_table;
use crate::table::{Table, or_dash};
use crate::units;

/// A kind of resource that can be shown.
pub(crate) trait Shown: Resource + 'static {
    /// What one is called in help texts, without an article.
    const NOUN: &'static str;

    /// What several are called.
    const PLURAL: &'static str;

    /// What the verb `set` does.
    const ABOUT_SET: &'static str;

    /// What the verb `delete` does.
    const ABOUT_DELETE: &'static str;

    /// All of them, a line each.
    fn table(all: &[Self::Status]) -> Table;

    /// Everything about one.
    fn details(one: &Self::Status) -> String;
}

impl Shown for SwitchConfig {
    const NOUN: &'static str = "switch";
    const PLURAL: &'static str = "switches";
    const ABOUT_SET: &'static str = "Change keys of a switch while its traffic goes on";
    const ABOUT_DELETE: &'static str = "Delete a switch that nothing is connected to";

    fn table(all: &[SwitchStatus]) -> Table {
        let mut table = Table::new(&["NAME", "KIND", "UPLINK", ">NICS", ">ADDRESSES", "HEALTH"]);
        for switch in all {
            table.row([
                switch.config.name.to_string(),
                word(&switch.config.kind),
                or_dash(switch.config.uplink.as_ref()),
                switch.nics.len().to_string(),
                units::count(switch.addresses as u64),
                health(&switch.condition),
            ]);
        }
        table
    }

    fn details(one: &SwitchStatus) -> String {
        let mut lines = Lines::of(&one.config, &one.condition);
        lines.add("addresses", units::count(one.addresses as u64));
        let nics: Vec<_> = one.nics.iter().map(ToString::to_string).collect();
        lines.add("nics", if nics.is_empty() { "–".to_owned() } else { nics.join(", ") });
        if let Some(counters) = &one.host_nic {
            lines.counters(counters);
        }
        lines.offloads(&one.host_nic_offloads);
        lines.0
    }
}

impl Shown for UplinkConfig {
    const NOUN: &'static str = "uplink";
    const PLURAL: &'static str = "uplinks";
    const ABOUT_SET: &'static str = "Change keys of an uplink";
    const ABOUT_DELETE: &'static str = "Delete an uplink that no switch uses";

    fn table(all: &[UplinkStatus]) -> Table {
        let titles =
            ["NAME", "DEVICE", "DRIVER", "SWITCH", ">MTU", ">RX", ">TX", ">DROPS", "HEALTH"];
        let mut table = Table::new(&titles);
        for uplink in all {
            table.row([
                uplink.config.name.to_string(),
                uplink.config.device.clone(),
                word(&uplink.config.driver),
                or_dash(uplink.switch.as_ref()),
                uplink.mtu.to_string(),
                units::bytes(uplink.counters.rx_bytes),
                units::bytes(uplink.counters.tx_bytes),
                units::count(drops(&uplink.counters)),
                health(&uplink.condition),
            ]);
        }
        table
    }

    fn details(one: &UplinkStatus) -> String {
        let mut lines = Lines::of(&one.config, &one.condition);
        lines.add("used by switch", or_dash(one.switch.as_ref()));
        lines.add("mtu now", one.mtu);
        lines.add("address", or_dash(one.mac));
        if let Some(xdp) = &one.af_xdp {
            lines.add("AF_XDP", xdp);
            lines.add("  lost to it", format!("{} frames", units::count(xdp.lost_frames)));
        }
        lines.counters(&one.counters);
        lines.offloads(&one.offloads);
        lines.0
    }
}

impl Shown for NicConfig {
    const NOUN: &'static str = "NIC";
    const PLURAL: &'static str = "NICs";
    const ABOUT_SET: &'static str = "Change keys of a NIC";
    const ABOUT_DELETE: &'static str = "Delete a NIC";

    fn table(all: &[NicStatus]) -> Table {
        let titles =
            ["NAME", "SWITCH", "BACKEND", "VLAN", ">QUEUES", ">RX", ">TX", ">DROPS", "HEALTH"];
        let mut table = Table::new(&titles);
        for nic in all {
            table.row([
                nic.config.name.to_string(),
                nic.config.switch.to_string(),
                backend(&nic.config),
                vlans(&nic.config),
                nic.queue_pairs.to_string(),
                units::bytes(nic.counters.rx_bytes),
                units::bytes(nic.counters.tx_bytes),
                units::count(drops(&nic.counters)),
                health(&nic.condition),
            ]);
        }
        table
    }

    fn details(one: &NicStatus) -> String {
        let mut lines = Lines::of(&one.config, &one.condition);
        lines.add("queue pairs in use", one.queue_pairs);
        lines.add("addresses learned", one.learned);
        if let Some(features) = &one.virtio_features {
            lines.add("virtio features", features);
        }
        lines.counters(&one.counters);
        if let Some(path) = &one.kernel_path {
            lines.kernel_path(path);
        }
        lines.offloads(&one.offloads);
        lines.0
    }
}

fn traffic(frames: u64, bytes: u64) -> String {
    format!("{} frames, {}", units::count(frames), units::bytes(bytes))
}

/// `key  value` lines.
struct Lines(String);

impl Lines {
    const KEY_WIDTH: usize = 22;

    /// The keys of a resource as they are desired, and how it is.
    fn of<R: Resource>(config: &R, condition: &Condition) -> Self {
        let mut lines = Self(String::new());
        let table = serde_json::to_value(config).unwrap_or_default();
        for key in R::KIND.keys() {
            if let Some(value) = table.get(key.name) {
                lines.value(key.name, value);
            }
        }
        lines.add("health", health(condition));
        lines
    }

    fn value(&mut self, key: &str, value: &Value) {
        match value {
            Value::Object(inner) => {
                for (name, value) in inner {
                    self.value(&format!("{key}.{name}"), value);
                }
            }
            Value::String(text) => self.add(key, text),
            other => self.add(key, other),
        }
    }

    fn add(&mut self, key: &str, value: impl core::fmt::Display) {
        let width = Self::KEY_WIDTH;
        self.0.push_str(format!("{key:width$}  {value}").trim_end());
        self.0.push('\n');
    }

    fn counters(&mut self, counters: &PortCounters) {
        self.add("rx (from the port)", traffic(counters.rx_frames, counters.rx_bytes));
        self.add("tx (to the port)", traffic(counters.tx_frames, counters.tx_bytes));
        self.drops("rx dropped", &counters.rx_dropped);
        self.drops("tx dropped", &counters.tx_dropped);
        self.add("flooded", units::count(counters.flooded));
        self.add("software segmented", units::count(counters.software_segmented));
        self.add("software checksummed", units::count(counters.software_checksummed));
        let segments = units::count(counters.software_coalesced_segments);
        let joined = units::count(counters.software_coalesced_units);
        self.add("software coalesced", format!("{segments} into {joined}"));
    }

    fn kernel_path(&mut self, path: &KernelPathStatus) {
        match &path.reason {
            Some(reason) => self.add("kernel path", format!("closed: {reason}")),
            None => self.add("kernel path", if path.open { "open" } else { "closed" }),
        }
        let [rx, tx] = [(path.rx_frames, path.rx_bytes), (path.tx_frames, path.tx_bytes)]
            .map(|(frames, bytes)| traffic(frames, bytes));
        self.add("  rx of these", rx);
        self.add("  tx of these", tx);
    }

    /// A table of its own below the lines.
    fn offloads(&mut self, offloads: &[OffloadStatus]) {
        if !offloads.is_empty() {
            self.0.push('\n');
            self.0.push_str(&offload_table(offloads).render());
        }
    }

    fn drops(&mut self, title: &str, drops: &[DropCounter]) {
        let mut any = false;
        for drop in drops.iter().filter(|drop| drop.frames > 0) {
            any = true;
            self.add(title, format!("{} {}", units::count(drop.frames), drop.reason));
        }
        if !any {
            self.add(title, 0);
        }
    }
}

/// All frames dropped at a port.
fn drops(counters: &PortCounters) -> u64 {
    counters
        .rx_dropped
        .iter()
        .chain(&counters.tx_dropped)
        .fold(0, |sum, drop| sum.saturating_add(drop.frames))
}

/// A value as the API writes it.
fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

fn health(condition: &Condition) -> String {
    let health = word::<Health>(&condition.health);
    match &condition.reason {
        Some(reason) => format!("{health}: {reason}"),
        None => health,
    }
}

fn backend(nic: &NicConfig) -> String {
    match (nic.backend, nic.device_name(), &nic.netns) {
        (NicBackend::VhostUser, ..) => "vhost-user".to_owned(),
        (NicBackend::Tap, Some(device), Some(netns)) => format!("tap {device} in {netns}"),
        (NicBackend::Tap, device, _) => format!("tap {}", device.unwrap_or_default()),
    }
}

/// `10`, or `10 trunk 20,30-39`.
fn vlans(nic: &NicConfig) -> String {
    let native = nic.vlan.map(|vlan| vlan.to_string());
    let Some(trunk) = &nic.trunk else { return or_dash(native) };
    let ranges: Vec<String> = trunk
        .0
        .iter()
        .map(|range| {
            if range.first() == range.last() {
                range.first().to_string()
            } else {
                format!("{}-{}", range.first(), range.last())
            }
        })
        .collect();
    let trunk = format!("trunk {}", ranges.join(","));
    native.map_or_else(|| trunk.clone(), |native| format!("{native} {trunk}"))
}

#[cfg(test)]
#[path = "resource_tables_tests.rs"]
mod tests;
