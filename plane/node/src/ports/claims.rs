//! Host resources that the devices of ports hold.

use std::path::PathBuf;

use suimon_ports as ports;
use suimon_ports::{PortDeviceSpec, VhostUserMode};

use crate::transaction::{ExclusiveResource, NetworkDeviceId, normalize_path};

/// Returns the host resource that an open device with this specification holds.
pub(crate) fn exclusive_resource(spec: &PortDeviceSpec) -> ExclusiveResource {
    match spec {
        PortDeviceSpec::VhostUser(spec) => ExclusiveResource::Socket(normalize_path(&spec.socket)),
        PortDeviceSpec::Stream(spec) => ExclusiveResource::Socket(normalize_path(&spec.socket)),
        PortDeviceSpec::Tap(spec) => ExclusiveResource::Device(NetworkDeviceId {
            netns: spec.netns.clone(),
            device: spec.device.clone(),
        }),
        PortDeviceSpec::Uplink(spec) => {
            ExclusiveResource::Device(NetworkDeviceId { netns: None, device: spec.device.clone() })
        }
    }
}

/// Returns the TAP that opening a device with this specification creates if the TAP does not exist.
pub(crate) fn created_tap(spec: &PortDeviceSpec) -> Option<NetworkDeviceId> {
    match spec {
        PortDeviceSpec::Tap(spec) => {
            Some(NetworkDeviceId { netns: spec.netns.clone(), device: spec.device.clone() })
        }
        PortDeviceSpec::Uplink(spec) if spec.driver == ports::UplinkDriver::Tap => {
            Some(NetworkDeviceId { netns: None, device: spec.device.clone() })
        }
        PortDeviceSpec::Uplink(_) | PortDeviceSpec::VhostUser(_) | PortDeviceSpec::Stream(_) => {
            None
        }
    }
}

/// Returns the path of the socket file that opening a device with this specification creates.
pub(crate) fn created_socket(spec: &PortDeviceSpec) -> Option<PathBuf> {
    match spec {
        PortDeviceSpec::VhostUser(spec) if spec.mode == VhostUserMode::Server => {
            Some(normalize_path(&spec.socket))
        }
        PortDeviceSpec::Stream(spec) => Some(normalize_path(&spec.socket)),
        PortDeviceSpec::VhostUser(_) | PortDeviceSpec::Tap(_) | PortDeviceSpec::Uplink(_) => None,
    }
}
