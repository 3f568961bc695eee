//! QMP events.

use serde_json::Value;

use crate::text::{TEXT_CHARS_MAX, sanitize_text};

/// Cause of a shutdown or reset (`ShutdownCause` of `qapi/run-state.json`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownCause {
    /// True if the guest caused it.
    pub is_guest_initiated: bool,
    /// Cause in QMP, such as `guest-shutdown` or `host-qmp-quit`; may be empty.
    pub reason: String,
}

/// QMP event. Missing data fields are represented by empty values. Texts contain no control
/// characters and have at most [`TEXT_CHARS_MAX`] characters; QEMU's identifiers are shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QmpEvent {
    /// The CPUs of the VM were stopped.
    Stop,
    /// The CPUs of the VM were resumed.
    Resume,
    /// The machine of the VM was reset.
    Reset(ShutdownCause),
    /// The machine was powered off; QEMU exits unless started with `-no-shutdown`.
    Shutdown(ShutdownCause),
    /// The ACPI power button was pressed.
    Powerdown,
    /// A device was removed after the guest released it.
    DeviceDeleted {
        /// Identifier of the device; `None` if it had none.
        device: Option<String>,
        /// QOM path of the device.
        path: String,
    },
    /// The guest refused to release a device.
    DeviceUnplugGuestError {
        /// Identifier of the device; `None` if it has none.
        device: Option<String>,
    },
    /// A request of an emulated disk failed. [`QmpEvent::Stop`] follows if QEMU stops the machine.
    BlockIoError {
        /// Node name of the block layer; empty if the node has no name.
        node: String,
        /// True if QEMU stops the machine. QEMU repeats the request when the machine is resumed.
        stops_vm: bool,
        /// True if the request failed because the store has no space.
        is_out_of_space: bool,
    },
    /// The guest reported a kernel panic.
    GuestPanicked {
        /// Action taken by QEMU, such as `pause`.
        action: String,
    },
    /// The guest opened or closed a virtio-serial port.
    VserportChange {
        /// Identifier of the port; empty if it has none.
        id: String,
        /// True if the port is open now.
        is_open: bool,
    },
    /// Event without a variant of its own.
    Other {
        /// Name of the event in QMP.
        name: String,
    },
}

impl QmpEvent {
    /// Decodes an event from its name and data. Never fails: unknown events become
    /// [`QmpEvent::Other`].
    pub(crate) fn read(name: &str, data: &Value) -> Self {
        let text = |key| data.get(key).and_then(Value::as_str);
        let displayed = |text: &str| sanitize_text(text, TEXT_CHARS_MAX);
        let owned = |key| displayed(text(key).unwrap_or_default());
        let trigger = || ShutdownCause {
            is_guest_initiated: data.get("guest").and_then(Value::as_bool).unwrap_or(false),
            reason: owned("reason"),
        };
        match name {
            "STOP" => Self::Stop,
            "RESUME" => Self::Resume,
            "RESET" => Self::Reset(trigger()),
            "SHUTDOWN" => Self::Shutdown(trigger()),
            "POWERDOWN" => Self::Powerdown,
            "DEVICE_DELETED" => {
                let device = text("device").map(displayed);
                Self::DeviceDeleted { device, path: owned("path") }
            }
            "DEVICE_UNPLUG_GUEST_ERROR" | "MEM_UNPLUG_ERROR" => {
                Self::DeviceUnplugGuestError { device: text("device").map(displayed) }
            }
            "BLOCK_IO_ERROR" => {
                let flag = |key| data.get(key).and_then(Value::as_bool).unwrap_or(false);
                let stops = text("action") == Some("stop");
                Self::BlockIoError {
                    node: owned("node-name"),
                    stops_vm: stops,
                    is_out_of_space: flag("nospace"),
                }
            }
            "GUEST_PANICKED" => Self::GuestPanicked { action: owned("action") },
            "VSERPORT_CHANGE" => {
                let is_open = data.get("open").and_then(Value::as_bool).unwrap_or(false);
                Self::VserportChange { id: owned("id"), is_open }
            }
            _ => Self::Other { name: displayed(name) },
        }
    }
}
