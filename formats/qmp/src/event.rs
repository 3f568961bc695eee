//! What has happened to a VM.

use serde_json::Value;

/// Who or what brought something about (`ShutdownCause` of `qapi/run-state.json`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Whether the guest did.
    pub is_guest: bool,
    /// What did, in QEMU's word, like `guest-shutdown` or `host-qmp-quit`; may be empty.
    pub reason: String,
}

/// What has happened. An event that lacks what it should carry has it empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The CPUs were stopped.
    Stop,
    /// The CPUs run again.
    Resume,
    /// The machine was started anew.
    Reset(Trigger),
    /// The machine was turned off; QEMU ends, unless it was told not to.
    Shutdown(Trigger),
    /// Its power button was pressed.
    Powerdown,
    /// A device is gone, which the guest had to agree to.
    DeviceDeleted {
        /// Its id; nothing if it had none.
        device: Option<String>,
        /// Where it was in QEMU's tree of objects.
        path: String,
    },
    /// The guest would not let go of a device.
    DeviceUnplugRefused {
        /// Its id; nothing if it has none.
        device: Option<String>,
    },
    /// A read or write of an emulated disk has failed. If QEMU stops the machine for it,
    /// [`Event::Stop`] follows.
    BlockIoError {
        /// The node of the block layer; empty if it has no name.
        node: String,
        /// Whether the machine is stopped for it. The request is repeated when the machine goes on.
        stops: bool,
        /// Whether there was no space for it.
        is_full: bool,
    },
    /// The guest's kernel has given up.
    GuestPanicked {
        /// What QEMU did then, in its word, like `pause`.
        action: String,
    },
    /// The guest has opened or closed a port of its serial bus.
    PortChanged {
        /// The port's id; empty if it has none.
        id: String,
        /// Whether it is open now.
        is_open: bool,
    },
    /// Any other.
    Other {
        /// Its name.
        name: String,
    },
}

impl Event {
    /// The event of this name with this data.
    pub(crate) fn read(name: &str, data: &Value) -> Self {
        let text = |key| data.get(key).and_then(Value::as_str);
        let owned = |key| text(key).unwrap_or_default().to_owned();
        let trigger = || Trigger {
            is_guest: data.get("guest").and_then(Value::as_bool).unwrap_or(false),
            reason: owned("reason"),
        };
        match name {
            "STOP" => Self::Stop,
            "RESUME" => Self::Resume,
            "RESET" => Self::Reset(trigger()),
            "SHUTDOWN" => Self::Shutdown(trigger()),
            "POWERDOWN" => Self::Powerdown,
            "DEVICE_DELETED" => {
                let device = text("device").map(str::to_owned);
                Self::DeviceDeleted { device, path: owned("path") }
            }
            "DEVICE_UNPLUG_GUEST_ERROR" | "MEM_UNPLUG_ERROR" => {
                Self::DeviceUnplugRefused { device: text("device").map(str::to_owned) }
            }
            "BLOCK_IO_ERROR" => {
                let flag = |key| data.get(key).and_then(Value::as_bool).unwrap_or(false);
                let stops = text("action") == Some("stop");
                Self::BlockIoError { node: owned("node-name"), stops, is_full: flag("nospace") }
            }
            "GUEST_PANICKED" => Self::GuestPanicked { action: owned("action") },
            "VSERPORT_CHANGE" => {
                let is_open = data.get("open").and_then(Value::as_bool).unwrap_or(false);
                Self::PortChanged { id: owned("id"), is_open }
            }
            _ => Self::Other { name: name.to_owned() },
        }
    }
}
