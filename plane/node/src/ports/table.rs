//! Existing ports and their open devices: observed state.
//!
//! The control thread writes the table; any thread reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use suimon_contract::{Condition, Health};
use suimon_ports::{DeviceStatus, PortDevice, PortDeviceSpec};
use suimon_quantity::PortId;

use crate::PortKey;
use crate::device_notices::DeviceNotices;
use crate::retry::RetryState;

/// Table of the existing ports, by key.
#[derive(Default)]
pub(crate) struct PortTable {
    ports: RwLock<BTreeMap<PortKey, Arc<Port>>>,
}

impl PortTable {
    pub(crate) fn find(&self, key: &PortKey) -> Option<Arc<Port>> {
        self.read().get(key).cloned()
    }

    pub(crate) fn find_id(&self, id: PortId) -> Option<Arc<Port>> {
        self.read().values().find(|port| port.id == id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Port>> {
        self.read().values().cloned().collect()
    }

    pub(crate) fn insert(&self, port: Arc<Port>) {
        let mut ports = self.ports.write().unwrap_or_else(PoisonError::into_inner);
        ports.insert(port.key.clone(), port);
    }

    pub(crate) fn remove(&self, key: &PortKey) -> Option<Arc<Port>> {
        self.ports.write().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<PortKey, Arc<Port>>> {
        self.ports.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One port of a switch, with its device.
pub(crate) struct Port {
    pub(crate) key: PortKey,
    pub(crate) id: PortId,
    state: Mutex<PortState>,
}

/// State of a port and its device.
pub(crate) struct PortState {
    /// Required specification of the device.
    pub(crate) spec: PortDeviceSpec,
    /// Open device; `None` if it could not be opened or was closed.
    pub(crate) device: Option<Box<dyn PortDevice>>,
    /// Number of openings and closings of the device. Distinguishes notices of a closed device from
    /// those of its successor.
    pub(crate) generation: u64,
    /// Notice queue of the device opened last.
    pub(crate) notices: Option<Arc<DeviceNotices>>,
    /// Failure of the device and time of the next retry.
    pub(crate) retry: RetryState,
    /// Interface index of the network device that had the configured name at the last attempt to
    /// open it; `None` if no device had this name.
    pub(crate) attempted_if_index: Option<u32>,
    /// Reason for which the link is down, as reported by the device.
    pub(crate) down_reason: Option<String>,
}

impl Port {
    pub(crate) fn new(key: PortKey, id: PortId, spec: PortDeviceSpec) -> Self {
        let state = PortState {
            spec,
            device: None,
            generation: 0,
            notices: None,
            retry: RetryState::default(),
            attempted_if_index: None,
            down_reason: None,
        };
        Self { key, id, state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PortState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the status of the device; `None` if it is not open.
    pub(crate) fn device_status(&self) -> Option<DeviceStatus> {
        self.lock().device.as_ref().map(|device| device.status())
    }

    /// Returns the health of the port and the reason.
    pub(crate) fn condition(&self) -> Condition {
        let state = self.lock();
        if let Some(failure) = &state.retry.current_failure {
            return Condition { health: Health::Failed, reason: Some(failure.reason.clone()) };
        }
        let Some(device) = &state.device else {
            return Condition { health: Health::Failed, reason: Some("being opened".to_owned()) };
        };
        if device.status().link_up {
            return Condition { health: Health::Up, reason: None };
        }
        let reason = state.down_reason.clone().unwrap_or_else(|| absent(&state.spec).to_owned());
        Condition { health: Health::Down, reason: Some(reason) }
    }
}

/// Returns the reason for a link that is down, if the device reports none.
fn absent(spec: &PortDeviceSpec) -> &'static str {
    match spec {
        PortDeviceSpec::VhostUser(_) | PortDeviceSpec::Stream(_) => {
            "no VM is connected to the socket"
        }
        PortDeviceSpec::Tap(_) => "the device is administratively down (`ip link set DEVICE up`)",
        PortDeviceSpec::Uplink(_) => "no carrier",
    }
}
