//! Host resources that the devices of ports hold.

use std::path::PathBuf;

use suimon_ports as ports;
use suimon_ports::{PortDeviceSpec, VhostUserMode};

use crate::transaction::{ExclusiveResource, Tap, clean};

/// Returns the host resource that an open device with this specification holds.
pub(crate) fn resource_of(spec: &PortDeviceSpec) -> ExclusiveResource {
    match spec {
        PortDeviceSpec::VhostUser(spec) => ExclusiveResource::Socket(clean(&spec.socket)),
        PortDeviceSpec::Stream(spec) => ExclusiveResource::Socket(clean(&spec.socket)),
        PortDeviceSpec::Tap(spec) => ExclusiveResource::Device(Tap {
            netns: spec.netns.clone(),
            device: spec.device.clone(),
        }),
        PortDeviceSpec::Uplink(spec) => {
            ExclusiveResource::Device(Tap { netns: None, device: spec.device.clone() })
        }
    }
}

/// Returns the TAP that opening a device with this specification creates if the TAP does not exist.
pub(crate) fn tap_of(spec: &PortDeviceSpec) -> Option<Tap> {
    match spec {
        PortDeviceSpec::Tap(spec) => {
            Some(Tap { netns: spec.netns.clone(), device: spec.device.clone() })
        }
        PortDeviceSpec::Uplink(spec) if spec.driver == ports::UplinkDriver::Tap => {
            Some(Tap { netns: None, device: spec.device.clone() })
        }
        PortDeviceSpec::Uplink(_) | PortDeviceSpec::VhostUser(_) | PortDeviceSpec::Stream(_) => {
            None
        }
    }
}

/// Returns the path of the socket file that opening a device with this specification creates.
pub(crate) fn socket_of(spec: &PortDeviceSpec) -> Option<PathBuf> {
    match spec {
        PortDeviceSpec::VhostUser(spec) if spec.mode == VhostUserMode::Server => {
            Some(clean(&spec.socket))
        }
        PortDeviceSpec::Stream(spec) => Some(clean(&spec.socket)),
        PortDeviceSpec::VhostUser(_) | PortDeviceSpec::Tap(_) | PortDeviceSpec::Uplink(_) => None,
    }
}
