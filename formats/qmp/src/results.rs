//! Decoding of command results.

use serde_json::{Map, Value};
use thiserror::Error;

/// Maximum number of list items evaluated; QEMU's lists are shorter.
const ITEMS_MAX: usize = 4096;
/// Maximum number of virtual CPUs per slot, and of present ones. Machines of QEMU have at most
/// 4096.
const CPUS_MAX: u64 = 65_535;

/// Error: the result of a command has an unexpected structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("QEMU returned an invalid response to `{command}`")]
pub struct ResultError {
    /// Name of the QMP command.
    pub command: &'static str,
}

/// Run state of a VM (`RunState` of `qapi/run-state.json`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The VM's CPUs are running.
    Running,
    /// The CPUs were stopped by a command.
    Paused,
    /// The CPUs have not been started yet.
    Prelaunch,
    /// The guest reported a kernel panic.
    GuestPanicked,
    /// The guest powered the machine off.
    Shutdown,
    /// QEMU stopped the CPUs because a request of an emulated disk failed. QEMU repeats the request
    /// when they are resumed.
    IoError,
    /// Another state in which the CPUs are stopped. Contains its name in QMP.
    Other(String),
}

/// Decodes the result of `query-status`.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_run_state(value: &Value) -> Result<RunState, ResultError> {
    let state = value.get("status").and_then(Value::as_str);
    let state = state.ok_or(ResultError { command: "query-status" })?;
    Ok(match state {
        "running" => RunState::Running,
        "paused" => RunState::Paused,
        "prelaunch" => RunState::Prelaunch,
        "guest-panicked" => RunState::GuestPanicked,
        "shutdown" => RunState::Shutdown,
        "io-error" => RunState::IoError,
        other => RunState::Other(other.to_owned()),
    })
}

/// Decodes the result of `query-kvm`: true if KVM is the accelerator.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_kvm_enabled(value: &Value) -> Result<bool, ResultError> {
    let enabled = value.get("enabled").and_then(Value::as_bool);
    enabled.ok_or(ResultError { command: "query-kvm" })
}

/// Decodes the result of `query-cpus-fast`: the number of present CPUs.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_cpu_count(value: &Value) -> Result<usize, ResultError> {
    value.as_array().map(Vec::len).ok_or(ResultError { command: "query-cpus-fast" })
}

/// Decodes the result of `query-memory-size-summary`: the machine's initial memory in bytes.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_base_memory_bytes(value: &Value) -> Result<u64, ResultError> {
    let bytes = value.get("base-memory").and_then(Value::as_u64);
    bytes.ok_or(ResultError { command: "query-memory-size-summary" })
}

/// Decodes the result of `x-query-virtio-status` for a NIC: true if the guest's driver negotiated
/// `VIRTIO_NET_F_STANDBY`.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_standby_negotiated(value: &Value) -> Result<bool, ResultError> {
    let features = value.get("guest-features").and_then(|object| object.get("dev-features"));
    let features = features.and_then(Value::as_array);
    let features = features.ok_or(ResultError { command: "x-query-virtio-status" })?;
    let is_standby = |name: &Value| {
        name.as_str().and_then(|name| name.split(':').next()) == Some("VIRTIO_NET_F_STANDBY")
    };
    Ok(features.iter().take(ITEMS_MAX).any(is_standby))
}

/// Decodes the result of `x-query-virtio-status`: true if the guest's driver has set
/// `VIRTIO_CONFIG_S_DRIVER_OK`. False if the result has no status.
#[must_use]
pub fn decode_driver_ready(value: &Value) -> bool {
    let statuses =
        value.get("status").and_then(|object| object.get("statuses")).and_then(Value::as_array);
    let is_ready = |name: &Value| {
        name.as_str().and_then(|name| name.split(':').next()) == Some("VIRTIO_CONFIG_S_DRIVER_OK")
    };
    statuses.is_some_and(|statuses| statuses.iter().take(ITEMS_MAX).any(is_ready))
}

/// Slot for a hot-pluggable CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuSlot {
    /// Topology position: socket, core, thread.
    pub socket_core_thread: [u64; 3],
    /// Driver name of the CPU device for this slot (`device_add`).
    pub driver: String,
    /// Properties that select the slot (`device_add`).
    pub properties: Map<String, Value>,
    /// Number of virtual CPUs that one device adds.
    pub cpus: u64,
    /// True if the slot is occupied.
    pub is_occupied: bool,
}

/// Decodes the result of `query-hotpluggable-cpus`. Returns the slots in the order in which they
/// are filled.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_cpu_slots(value: &Value) -> Result<Vec<CpuSlot>, ResultError> {
    let error = ResultError { command: "query-hotpluggable-cpus" };
    let list = value.as_array().filter(|list| list.len() <= ITEMS_MAX).ok_or(error)?;
    let slot = |item: &Value| {
        let properties = item.get("props")?.as_object()?.clone();
        let number = |name| properties.get(name).and_then(Value::as_u64).unwrap_or(0);
        Some(CpuSlot {
            socket_core_thread: [number("socket-id"), number("core-id"), number("thread-id")],
            driver: item.get("type")?.as_str()?.to_owned(),
            cpus: item.get("vcpus-count")?.as_u64().filter(|cpus| *cpus <= CPUS_MAX)?,
            is_occupied: item.get("qom-path").is_some(),
            properties,
        })
    };
    let slots: Option<Vec<_>> = list.iter().map(slot).collect();
    let mut slots = slots.ok_or(error)?;
    slots.sort_by_key(|slot| slot.socket_core_thread);
    Ok(slots)
}

/// Character device back-end of QEMU (chardev).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chardev {
    /// Identifier of the chardev (`label`).
    pub id: String,
    /// Description of the connection (QMP's `filename`).
    pub filename: String,
    /// True if the front-end device is open; for a virtio-serial port, if the guest has opened it.
    pub is_frontend_open: bool,
}

impl Chardev {
    /// Returns true if the chardev is a socket without a connection.
    pub fn is_disconnected(&self) -> bool {
        self.filename.starts_with("disconnected:")
    }
}

/// Decodes the result of `query-chardev`.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_chardevs(value: &Value) -> Result<Vec<Chardev>, ResultError> {
    let chardev = |item: &Value| {
        let text = |name| item.get(name)?.as_str().map(str::to_owned);
        let is_front_open = item.get("frontend-open").and_then(Value::as_bool).unwrap_or(false);
        Some(Chardev {
            id: text("label")?,
            filename: text("filename")?,
            is_frontend_open: is_front_open,
        })
    };
    list(value, chardev).ok_or(ResultError { command: "query-chardev" })
}

/// Property or child object in the QEMU Object Model (QOM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QomProperty {
    /// Name of the QOM property.
    pub name: String,
    /// Type, such as `child<pcie-root-port>`.
    pub kind: String,
}

/// Decodes the result of `qom-list`.
///
/// # Errors
///
/// The result has an unexpected structure.
pub fn decode_qom_properties(value: &Value) -> Result<Vec<QomProperty>, ResultError> {
    let property = |item: &Value| {
        let text = |name| item.get(name)?.as_str().map(str::to_owned);
        Some(QomProperty { name: text("name")?, kind: text("type")? })
    };
    list(value, property).ok_or(ResultError { command: "qom-list" })
}

fn list<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array().filter(|list| list.len() <= ITEMS_MAX)?.iter().map(read).collect()
}
