//! Steps of a change that concern the devices of ports, and their reversal.

use std::fmt;
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, HostConfig};
use suimon_ports::PortDeviceSpec;

use super::claims::exclusive_resource;
use super::desired::RequiredPorts;
use super::devices::Devices;
use super::table::Port;
use super::texts::device_error;
use crate::PortKey;
use crate::control::Controller;
use crate::errors::store_error;
use crate::transaction::{AcquiredResources, ChangePhase};

/// Step of a change that concerns the device of one port.
pub(crate) enum PortStep {
    /// Closes a device that holds a resource of another one, or is opened again with another
    /// resource.
    Close(PortKey),
    /// Changes an open device, without interruption if the device supports the change.
    Change(PortKey, PortDeviceSpec),
    /// Opens a device that is new or was closed by an earlier step.
    Open(PortKey, PortDeviceSpec),
}

/// Action that reverts a step.
pub(crate) enum PortUndo {
    /// Reopens the device of a port that the change closed.
    Reopen(Arc<Port>),
    /// Restores the previous specification of a port that the change modified.
    Restore(Arc<Port>, PortDeviceSpec),
    /// Removes a port that the change created.
    Discard(Arc<Port>),
}

impl PortStep {
    /// Returns the phase in which the step is executed.
    pub(crate) const fn phase(&self) -> ChangePhase {
        match self {
            Self::Close(_) => ChangePhase::ClosePorts,
            Self::Change(..) => ChangePhase::ChangePorts,
            Self::Open(..) => ChangePhase::OpenPorts,
        }
    }

    /// Returns the specification of the device that the step opens or changes.
    pub(crate) const fn opened_spec(&self) -> Option<&PortDeviceSpec> {
        match self {
            Self::Change(_, spec) | Self::Open(_, spec) => Some(spec),
            Self::Close(_) => None,
        }
    }

    /// Returns true if the step opens or changes the device of an uplink.
    pub(crate) const fn opens_uplink(&self) -> bool {
        matches!(self, Self::Change(PortKey::Uplink(_), _) | Self::Open(PortKey::Uplink(_), _))
    }
}

/// Adds the resources that the transition from the first to the second set of ports acquires.
pub(crate) fn add_port_resources(
    acquired: &mut AcquiredResources,
    before: &RequiredPorts,
    after: &RequiredPorts,
) {
    for (key, spec) in after {
        let previous = before.get(key).map(exclusive_resource);
        if before.get(key) != Some(spec) && previous.as_ref() != Some(&exclusive_resource(spec)) {
            acquired.add_exclusive([exclusive_resource(spec)]);
        }
    }
}

/// Returns the steps from the ports `before` to the ports `after`. Ports that are removed and hold
/// no acquired resource are closed at the end of the change.
pub(crate) fn port_steps(
    before: &RequiredPorts,
    after: &RequiredPorts,
    acquired: &AcquiredResources,
) -> Vec<PortStep> {
    let mut steps = Vec::new();
    for (key, spec) in after {
        match before.get(key) {
            Some(old) if old == spec => continue,
            Some(old) if exclusive_resource(old) == exclusive_resource(spec) => {
                steps.push(PortStep::Change(key.clone(), spec.clone()));
                continue;
            }
            Some(_) => steps.push(PortStep::Close(key.clone())),
            None => {}
        }
        steps.push(PortStep::Open(key.clone(), spec.clone()));
    }
    let removed = before.iter().filter(|(key, _)| !after.contains_key(key));
    let conflicting = removed.filter(|(_, spec)| acquired.contains(&exclusive_resource(spec)));
    steps.extend(conflicting.map(|(key, _)| PortStep::Close(key.clone())));
    steps
}

impl Controller {
    /// Executes a step. Its reversal is added to `undo`, also if the step fails.
    pub(crate) fn execute_port_step(
        &mut self,
        step: &PortStep,
        undo: &mut Vec<PortUndo>,
    ) -> Result<(), ApiError> {
        match step {
            PortStep::Close(key) => {
                if let Some(port) = self.shared.ports.find(key) {
                    Devices::close(&port);
                    undo.push(PortUndo::Reopen(port));
                }
                Ok(())
            }
            PortStep::Change(key, spec) => self.change_device(key, spec, undo),
            PortStep::Open(key, spec) => self.open_device(key, spec, undo),
        }
    }

    fn change_device(
        &mut self,
        key: &PortKey,
        spec: &PortDeviceSpec,
        undo: &mut Vec<PortUndo>,
    ) -> Result<(), ApiError> {
        let Some(port) = self.shared.ports.find(key) else {
            return self.open_device(key, spec, undo);
        };
        let mut state = port.lock();
        let old = std::mem::replace(&mut state.spec, spec.clone());
        let changed = match &mut state.device {
            Some(device) => device.apply_spec(spec),
            None => Ok(false),
        };
        if let Err(error) = changed {
            state.spec = old;
            return Err(device_error(key, &error));
        }
        drop(state);
        undo.push(PortUndo::Restore(port.clone(), old));
        if changed.is_ok_and(|live| live) {
            return Ok(());
        }
        Devices::close(&port);
        self.open_noted(&port)
    }

    fn open_device(
        &mut self,
        key: &PortKey,
        spec: &PortDeviceSpec,
        undo: &mut Vec<PortUndo>,
    ) -> Result<(), ApiError> {
        let port = match self.shared.ports.find(key) {
            // The port exists and gets another device. The list of undo steps already contains
            // `Reopen` for its closed device, which uses the restored specification.
            Some(port) => {
                let old = std::mem::replace(&mut port.lock().spec, spec.clone());
                undo.push(PortUndo::Restore(port.clone(), old));
                port
            }
            None => {
                let id = self.shared.ids().port(key).ok_or_else(|| {
                    ApiError::new(ErrorCode::Internal, "no identifier was assigned to the port")
                        .with_resource(key.to_string())
                })?;
                let port = Arc::new(Port::new(key.clone(), id, spec.clone()));
                self.shared.ports.insert(port.clone());
                undo.push(PortUndo::Discard(port.clone()));
                port
            }
        };
        self.open_noted(&port)
    }

    /// Opens a device and records the identity of its socket file.
    fn open_noted(&mut self, port: &Port) -> Result<(), ApiError> {
        self.devices.open(port).map_err(|error| device_error(&port.key, &error))?;
        let spec = port.lock().spec.clone();
        self.devices.created.record_opened([&spec]).map_err(|error| store_error(&error))
    }

    /// Undoes a step. Returns the port if its device must be opened again, after all conflicting
    /// devices are closed.
    pub(crate) fn roll_back_port(&mut self, undo: PortUndo) -> Option<Arc<Port>> {
        match undo {
            PortUndo::Reopen(port) => Some(port),
            PortUndo::Restore(port, spec) => {
                if restore_live(&port, spec) {
                    return None;
                }
                Devices::close(&port);
                Some(port)
            }
            PortUndo::Discard(port) => {
                self.shared.ports.remove(&port.key);
                Devices::close(&port);
                None
            }
        }
    }

    /// Reopens the devices of ports after a rollback to `config`. Devices that cannot be opened are
    /// retried later.
    pub(crate) fn reopen_ports(&mut self, ports: Vec<Arc<Port>>, config: &HostConfig) {
        let was_uplink = ports.iter().any(|port| matches!(port.key, PortKey::Uplink(_)));
        for port in ports {
            let is_closed = port.lock().device.is_none();
            let opened = if is_closed { self.devices.open(&port) } else { Ok(()) };
            if let Err(error) = opened {
                self.fail_port(&port, error.to_string());
            }
        }
        if was_uplink {
            if let Err(error) = self.publish(config) {
                tracing::error!(
                    %error,
                    "the forwarding tables do not contain the devices of uplinks"
                );
            }
        }
    }

    /// Closes the ports that a committed change removed.
    pub(crate) fn close_removed_ports(&mut self, before: &RequiredPorts, after: &RequiredPorts) {
        for key in before.keys().filter(|key| !after.contains_key(key)) {
            if let Some(port) = self.shared.ports.remove(key) {
                Devices::close(&port);
                self.devices.negotiated_features.remove_port(key);
            }
        }
    }
}

/// Restores the previous specification of a port. Returns `false` if the device must be reopened
/// for the specification to take effect.
fn restore_live(port: &Port, old: PortDeviceSpec) -> bool {
    let mut state = port.lock();
    let same_device = exclusive_resource(&state.spec) == exclusive_resource(&old);
    let device = state.device.as_mut().filter(|_| same_device);
    let live = device.is_some_and(|device| device.apply_spec(&old).unwrap_or(false));
    state.spec = old;
    live
}

impl fmt::Display for PortStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Close(key) => write!(f, "close {key}"),
            Self::Change(key, _) => write!(f, "change {key}"),
            Self::Open(key, _) => write!(f, "open {key}"),
        }
    }
}
