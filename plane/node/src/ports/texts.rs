//! Errors of port devices, and events of failed and recovered ports.

use suimon_contract::{ApiError, EventKind};
use suimon_ports::DeviceError;

use crate::PortKey;
use crate::errors::error_code;
use crate::events::EventDraft;

/// Converts an error of a port's device into an API error.
pub(crate) fn device_error(key: &PortKey, error: &DeviceError) -> ApiError {
    ApiError::new(error_code(error.kind), error.detail.clone())
        .with_resource(key.to_string())
        .with_field(key.config_field(error.field))
}

/// Returns the event of a failed device.
pub(crate) fn port_failed_event(key: &PortKey, reason: &str) -> EventDraft {
    let kind = match key {
        PortKey::Uplink(_) | PortKey::Team(_) => EventKind::UplinkFailed,
        PortKey::Nic(_) | PortKey::HostNic(_) => EventKind::NicFailed,
    };
    let text = format!("{} failed and the daemon retries: {reason}", port_noun(key));
    EventDraft::new(kind, key, text).with("reason", reason)
}

/// Returns the event of a device that works again.
pub(crate) fn port_recovered_event(key: &PortKey) -> EventDraft {
    let kind = match key {
        PortKey::Uplink(_) | PortKey::Team(_) => EventKind::UplinkRecovered,
        PortKey::Nic(_) | PortKey::HostNic(_) => EventKind::NicRecovered,
    };
    EventDraft::new(kind, key, format!("{} is in service again.", port_noun(key)))
}

fn port_noun(key: &PortKey) -> &'static str {
    match key {
        PortKey::Nic(_) => "The NIC",
        PortKey::Uplink(_) => "The uplink",
        PortKey::HostNic(_) => "The host NIC of the switch",
        PortKey::Team(_) => "The team",
    }
}
