//! What commands return.

use serde_json::{Map, Value};
use thiserror::Error;

/// Most items of a list that are looked at; QEMU has fewer of everything that is listed here.
const ITEMS_MAX: usize = 4096;

/// A command returned something else than it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("QEMU's answer to `{command}` makes no sense")]
pub struct AnswerError {
    /// The command's name.
    pub command: &'static str,
}

/// Whether a VM's CPUs run (`RunState` of `qapi/run-state.json`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// They run.
    Running,
    /// They were stopped.
    Paused,
    /// They were not started yet.
    Prelaunch,
    /// The guest's kernel has given up.
    GuestPanicked,
    /// The machine is off.
    Shutdown,
    /// They stand still because a request of an emulated disk has failed; it is repeated when they run
    /// again.
    IoError,
    /// Any other: they stand still, for this reason.
    Other(String),
}

/// What `query-status` returned.
///
/// # Errors
/// It is not that.
pub fn run_state(value: &Value) -> Result<RunState, AnswerError> {
    let state = value.get("status").and_then(Value::as_str);
    let state = state.ok_or(AnswerError { command: "query-status" })?;
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

/// What `query-kvm` returned: whether KVM runs the CPUs.
///
/// # Errors
/// It is not that.
pub fn is_kvm_enabled(value: &Value) -> Result<bool, AnswerError> {
    let enabled = value.get("enabled").and_then(Value::as_bool);
    enabled.ok_or(AnswerError { command: "query-kvm" })
}

/// What `query-cpus-fast` returned: how many CPUs there are.
///
/// # Errors
/// It is not that.
pub fn cpu_count(value: &Value) -> Result<usize, AnswerError> {
    value.as_array().map(Vec::len).ok_or(AnswerError { command: "query-cpus-fast" })
}

/// Returns the bytes of memory that the machine has from its start, as
/// `query-memory-size-summary` reports them.
///
/// # Errors
/// The answer has no such number.
pub fn base_memory(value: &Value) -> Result<u64, AnswerError> {
    let bytes = value.get("base-memory").and_then(Value::as_u64);
    bytes.ok_or(AnswerError { command: "query-memory-size-summary" })
}

/// What `x-query-virtio-status` returned of a NIC: whether the guest's driver has taken it for
/// the standby of another (`VIRTIO_NET_F_STANDBY`).
///
/// # Errors
/// It is not that.
pub fn has_standby(value: &Value) -> Result<bool, AnswerError> {
    let features = value.get("guest-features").and_then(|of| of.get("dev-features"));
    let features = features.and_then(Value::as_array);
    let features = features.ok_or(AnswerError { command: "x-query-virtio-status" })?;
    let is_standby = |name: &Value| {
        name.as_str().and_then(|name| name.split(':').next()) == Some("VIRTIO_NET_F_STANDBY")
    };
    Ok(features.iter().take(ITEMS_MAX).any(is_standby))
}

/// A place for a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuSlot {
    /// Where it is: socket, core, thread.
    pub place: [u64; 3],
    /// The driver of a CPU that goes there.
    pub driver: String,
    /// The properties that say where it goes.
    pub properties: Map<String, Value>,
    /// CPUs that go there at once.
    pub cpus: u64,
    /// Whether it is taken.
    pub is_taken: bool,
}

/// What `query-hotpluggable-cpus` returned, in the order in which places are filled.
///
/// # Errors
/// It is not that.
pub fn cpu_slots(value: &Value) -> Result<Vec<CpuSlot>, AnswerError> {
    let error = AnswerError { command: "query-hotpluggable-cpus" };
    let list = value.as_array().filter(|list| list.len() <= ITEMS_MAX).ok_or(error)?;
    let slot = |item: &Value| {
        let properties = item.get("props")?.as_object()?.clone();
        let number = |name| properties.get(name).and_then(Value::as_u64).unwrap_or(0);
        Some(CpuSlot {
            place: [number("socket-id"), number("core-id"), number("thread-id")],
            driver: item.get("type")?.as_str()?.to_owned(),
            cpus: item.get("vcpus-count")?.as_u64()?,
            is_taken: item.get("qom-path").is_some(),
            properties,
        })
    };
    let slots: Option<Vec<_>> = list.iter().map(slot).collect();
    let mut slots = slots.ok_or(error)?;
    slots.sort_by_key(|slot| slot.place);
    Ok(slots)
}

/// A chardev.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chardev {
    /// Its id.
    pub id: String,
    /// What it is connected to, in QEMU's words.
    pub place: String,
    /// Whether the device in front of it is in use: of a port of the serial bus, whether the
    /// guest has opened it.
    pub is_front_open: bool,
}

impl Chardev {
    /// Whether it is a socket to which nobody is connected.
    pub fn is_disconnected(&self) -> bool {
        self.place.starts_with("disconnected:")
    }
}

/// What `query-chardev` returned.
///
/// # Errors
/// It is not that.
pub fn chardevs(value: &Value) -> Result<Vec<Chardev>, AnswerError> {
    let chardev = |item: &Value| {
        let text = |name| item.get(name)?.as_str().map(str::to_owned);
        let is_front_open = item.get("frontend-open").and_then(Value::as_bool).unwrap_or(false);
        Some(Chardev { id: text("label")?, place: text("filename")?, is_front_open })
    };
    list(value, chardev).ok_or(AnswerError { command: "query-chardev" })
}

/// A property of an object, or another object below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QomProperty {
    /// Its name.
    pub name: String,
    /// Its type, like `child<pcie-root-port>`.
    pub kind: String,
}

/// What `qom-list` returned.
///
/// # Errors
/// It is not that.
pub fn qom_properties(value: &Value) -> Result<Vec<QomProperty>, AnswerError> {
    let property = |item: &Value| {
        let text = |name| item.get(name)?.as_str().map(str::to_owned);
        Some(QomProperty { name: text("name")?, kind: text("type")? })
    };
    list(value, property).ok_or(AnswerError { command: "qom-list" })
}

fn list<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array().filter(|list| list.len() <= ITEMS_MAX)?.iter().map(read).collect()
}
