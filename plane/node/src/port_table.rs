//! The ports that exist and the devices open under them: observed state.
//!
//! Written by the control thread only; read by whoever asks for status.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use suimon_contract::{Condition, Health};
use suimon_ports::{DeviceStatus, PortDevice, PortSpec};
use suimon_quantity::PortId;

use crate::PortKey;
use crate::device_notices::DeviceNotices;
use crate::failing::Failing;

/// All ports, by what they belong to.
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

/// One port.
pub(crate) struct Port {
    pub(crate) key: PortKey,
    pub(crate) id: PortId,
    state: Mutex<PortState>,
}

/// What is known of a port's device.
pub(crate) struct PortState {
    /// What it stands on, or is to stand on.
    pub(crate) spec: PortSpec,
    /// The device, if it could be opened.
    pub(crate) device: Option<Box<dyn PortDevice>>,
    /// Counts the devices that were opened, so that a notice of one that was
    /// closed is not taken for one of its successor.
    pub(crate) generation: u64,
    /// Notices of the device that was opened last.
    pub(crate) notices: Option<Arc<DeviceNotices>>,
    /// Why there is no device.
    pub(crate) failing: Failing,
    /// Index of the network device that had the name when the port was opened last, or could not be;
    /// `None` if there was none.
    pub(crate) tried_index: Option<u32>,
    /// Why the other side is not there, in the device's words.
    pub(crate) down_reason: Option<String>,
}

impl Port {
    pub(crate) fn new(key: PortKey, id: PortId, spec: PortSpec) -> Self {
        let state = PortState {
            spec,
            device: None,
            generation: 0,
            notices: None,
            failing: Failing::default(),
            tried_index: None,
            down_reason: None,
        };
        Self { key, id, state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PortState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the device looks now, if it is open.
    pub(crate) fn device_status(&self) -> Option<DeviceStatus> {
        self.lock().device.as_ref().map(|device| device.status())
    }

    /// Health, and why.
    pub(crate) fn condition(&self) -> Condition {
        let state = self.lock();
        if let Some(failure) = &state.failing.now {
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

/// What the absence of the other side is called.
fn absent(spec: &PortSpec) -> &'static str {
    match spec {
        PortSpec::VhostUser(_) | PortSpec::Stream(_) => "no VM is connected to the socket",
        PortSpec::Tap(_) => "the device is administratively down (`ip link set DEVICE up`)",
        PortSpec::Uplink(_) => "no carrier",
    }
}
