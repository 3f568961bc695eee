//! A switch with NICs on one worker, and frames between the NICs.

use std::sync::Arc;

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::MacAddr;
use suimon_ports::WorkerRuntime;
use suimon_quantity::{Direction, PortId, QueueId, SwitchId};
use suimon_switch::{DataPlane, PortTopology, Topology};

/// Returns the MAC address of the guest at a port.
pub fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

/// Returns a frame of 64 bytes that is not IP, with an EtherType for local experiments (RFC 9542,
/// section 2.3.4).
pub fn small_frame(from: u8, to: u8) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..6].copy_from_slice(&mac(to));
    bytes[6..12].copy_from_slice(&mac(from));
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
    bytes
}

/// Returns the ID of the first queue of a port.
pub fn queue(port: u32, direction: Direction) -> QueueId {
    QueueId { port: PortId(port), direction, index: 0 }
}

/// Starts one worker with switch 1 and `nics` NICs with configured addresses. The queues are not
/// yet attached.
///
/// # Panics
/// The host cannot start a thread.
pub fn plane_of_nics(runtime: Arc<dyn WorkerRuntime>, nics: u8) -> DataPlane {
    let cpu = *runtime.allowed_cpus().first().expect("a CPU to run on");
    let plane = DataPlane::start(&[cpu], runtime).expect("a processor");
    let port = |id: u8| PortTopology {
        spec: ForwardingPortSpec {
            mac: Some(MacAddr::new(mac(id))),
            ..ForwardingPortSpec::new(PortId(id.into()), SwitchId(1), PortRole::Nic)
        },
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    let switches = vec![SwitchSpec::new(SwitchId(1))];
    let topology = Topology { switches, ports: (0..nics).map(port).collect(), teams: Vec::new() };
    plane.publish(topology).expect("a topology that is valid");
    plane
}
