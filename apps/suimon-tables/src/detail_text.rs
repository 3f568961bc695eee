//! Text output of `show`: one line per key and value.

use serde::Serialize;
use serde_json::Value;
use suimon_contract::{
    ByteSize, Condition, DropCounter, Form, Health, KernelPathStatus, OffloadStatus, PortCounters,
    Resource, ResourceKind, StorageState,
};

use crate::offload_tables::offload_table;
use crate::table::Table;
use crate::units;

/// Lines of `key  value`, with tables below them.
#[derive(Default)]
pub(crate) struct DetailText(String);

impl DetailText {
    const KEY_WIDTH: usize = 22;

    /// Returns the lines of a resource's configuration keys and of its condition.
    pub(crate) fn from_resource<R: Resource>(config: &R, condition: &Condition) -> Self {
        let mut lines = Self::default();
        lines.add_keys(R::KIND, config);
        lines.add("health", health(condition));
        lines
    }

    /// Adds a line for each configuration key that the table contains, without arrays of tables.
    pub(crate) fn add_keys<T: Serialize>(&mut self, kind: ResourceKind, table: &T) {
        let table = serde_json::to_value(table).unwrap_or_default();
        for key in kind.keys().iter().filter(|key| !matches!(key.form, Form::Tables(_))) {
            if let Some(value) = table.get(key.name) {
                self.value(key.name, key.form, value);
            }
        }
    }

    /// Adds a line for each configuration key of a table inside a resource. The key is prefixed by
    /// the table's name: `vmq.mode`.
    pub(crate) fn add_nested_keys<T: Serialize>(
        &mut self,
        kind: ResourceKind,
        name: &str,
        table: &T,
    ) {
        let table = serde_json::to_value(table).unwrap_or_default();
        for key in kind.keys() {
            if let Some(value) = table.get(key.name) {
                self.value(&format!("{name}.{}", key.name), key.form, value);
            }
        }
    }

    /// Returns the text of all lines and tables.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn value(&mut self, key: &str, form: Form, value: &Value) {
        match value {
            Value::Object(inner) => {
                for (name, value) in inner {
                    let inner_key = match form {
                        Form::Table(kind) => kind.key(name),
                        _ => None,
                    };
                    let form = inner_key.map_or(form, |key| key.form);
                    self.value(&format!("{key}.{name}"), form, value);
                }
            }
            Value::Number(number) if matches!(form, Form::Bytes { .. }) => {
                self.add(key, ByteSize::new(number.as_u64().unwrap_or_default()));
            }
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(item).collect();
                self.add(key, items.join(", "));
            }
            other => self.add(key, item(other)),
        }
    }

    pub(crate) fn add(&mut self, key: &str, value: impl core::fmt::Display) {
        let width = Self::KEY_WIDTH;
        self.0.push_str(format!("{key:width$}  {value}").trim_end());
        self.0.push('\n');
    }

    pub(crate) fn add_counters(&mut self, counters: &PortCounters) {
        self.add("rx (from the port)", traffic(counters.rx_frames, counters.rx_bytes));
        self.add("tx (to the port)", traffic(counters.tx_frames, counters.tx_bytes));
        self.drops("rx dropped", &counters.rx_dropped);
        self.drops("tx dropped", &counters.tx_dropped);
        self.add("flooded", units::count(counters.flooded));
        self.add("software segmented", units::count(counters.software_segmented));
        self.add("software checksummed", units::count(counters.software_checksummed));
        let segments = units::count(counters.software_coalesced_segments);
        let joined = units::count(counters.software_coalesced_frames);
        self.add("software coalesced", format!("{segments} into {joined}"));
    }

    pub(crate) fn add_kernel_path(&mut self, path: &KernelPathStatus) {
        match &path.reason {
            Some(reason) => self.add("kernel path", format!("closed: {reason}")),
            None => self.add("kernel path", if path.open { "open" } else { "closed" }),
        }
        let [rx, tx] = [(path.rx_frames, path.rx_bytes), (path.tx_frames, path.tx_bytes)]
            .map(|(frames, bytes)| traffic(frames, bytes));
        self.add("  rx on this path", rx);
        self.add("  tx on this path", tx);
    }

    pub(crate) fn add_offloads(&mut self, offloads: &[OffloadStatus]) {
        if !offloads.is_empty() {
            self.add_table(&offload_table(offloads));
        }
    }

    /// Adds a table below the lines.
    pub(crate) fn add_table(&mut self, table: &Table) {
        self.0.push('\n');
        self.0.push_str(&table.render());
    }

    fn drops(&mut self, title: &str, drops: &[DropCounter]) {
        let mut has_drops = false;
        for drop in drops.iter().filter(|drop| drop.frames > 0) {
            has_drops = true;
            self.add(title, format!("{} {}", units::count(drop.frames), drop.reason));
        }
        if !has_drops {
            self.add(title, 0);
        }
    }
}

fn traffic(frames: u64, bytes: u64) -> String {
    format!("{} frames, {}", units::count(frames), units::decimal_bytes(bytes))
}

/// Formats a single value in the user's notation.
fn item(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the number of frames dropped at a port.
pub(crate) fn dropped_frames(counters: &PortCounters) -> u64 {
    counters
        .rx_dropped
        .iter()
        .chain(&counters.tx_dropped)
        .fold(0, |sum, drop| sum.saturating_add(drop.frames))
}

/// Returns a value as serialized by the API.
pub fn serialized_name<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(value_name)) => value_name,
        _ => String::new(),
    }
}

/// Formats a state: `ready`, or `failed: REASON`.
pub(crate) fn storage_state(state: StorageState, stale: bool, reason: Option<&String>) -> String {
    let state = serialized_name(&state) + if stale { " (stale)" } else { "" };
    reason.map_or_else(|| state.clone(), |reason| format!("{state}: {reason}"))
}

pub(crate) fn health(condition: &Condition) -> String {
    let health = serialized_name::<Health>(&condition.health);
    match &condition.reason {
        Some(reason) => format!("{health}: {reason}"),
        None => health,
    }
}
