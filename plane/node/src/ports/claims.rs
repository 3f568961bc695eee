//! Host resources that the devices of ports hold.

use std::path::PathBuf;

use suimon_ports as ports;
use suimon_ports::{PortSpec, VhostUserMode};

use crate::transaction::{Claim, Tap, clean};

/// Returns the host resource that an open device with this specification holds.
pub(crate) fn resource_of(spec: &PortSpec) -> Claim {
    match spec {
        PortSpec::VhostUser(spec) => Claim::Socket(clean(&spec.socket)),
        PortSpec::Stream(spec) => Claim::Socket(clean(&spec.socket)),
        PortSpec::Tap(spec) => {
            Claim::Device(Tap { netns: spec.netns.clone(), device: spec.device.clone() })
        }
        PortSpec::Uplink(spec) => Claim::Device(Tap { netns: None, device: spec.device.clone() }),
    }
}

/// Returns the TAP that opening a device with this specification creates if the TAP does not exist.
pub(crate) fn tap_of(spec: &PortSpec) -> Option<Tap> {
    match spec {
        PortSpec::Tap(spec) => Some(Tap { netns: spec.netns.clone(), device: spec.device.clone() }),
        PortSpec::Uplink(spec) if spec.driver == ports::UplinkDriver::Tap => {
            Some(Tap { netns: None, device: spec.device.clone() })
        }
        PortSpec::Uplink(_) | PortSpec::VhostUser(_) | PortSpec::Stream(_) => None,
    }
}

/// Returns the path of the socket file that opening a device with this specification creates.
pub(crate) fn socket_of(spec: &PortSpec) -> Option<PathBuf> {
    match spec {
        PortSpec::VhostUser(spec) if spec.mode == VhostUserMode::Server => {
            Some(clean(&spec.socket))
        }
        PortSpec::Stream(spec) => Some(clean(&spec.socket)),
        PortSpec::VhostUser(_) | PortSpec::Tap(_) | PortSpec::Uplink(_) => None,
    }
}
