//! How many 64-byte frames a second one processor takes from an ingress to an
//! egress queue when both cost nothing: the engine's own share of a frame.
//!
//! `cargo run --release -p suimon-processor-tests --example engine_rate`

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_forwarding::{PortRole, PortSpec, SwitchSpec};
use suimon_ports::{ProcessorRuntime, QueueHost};
use suimon_processor_tests::{Bottomless, Endless};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::PinnedThreads;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Arc::new(PinnedThreads);
    let cpu = runtime.cpus()[0];
    let plane = DataPlane::start(&[cpu], runtime)?;
    let switch = SwitchId(1);
    let port = |id| PortTopology {
        spec: PortSpec::new(PortId(id), switch, PortRole::Nic),
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    plane.publish(Topology {
        switches: vec![SwitchSpec::new(switch)],
        ports: vec![port(0), port(1)],
    })?;
    for id in 0..2_u8 {
        let queue = |direction| QueueId { port: PortId(u32::from(id)), direction, index: 0 };
        let mut bytes = [0; 64];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1 - id, 2, 0, 0, 0, 0, id, 0x88, 0xb5]);
        plane.attach_sink(queue(Direction::Egress), Box::new(Bottomless));
        plane.attach_source(queue(Direction::Ingress), Box::new(Endless::new(bytes)));
    }
    for _ in 0..5 {
        let before = plane.processors()[0].frames;
        let began = Instant::now();
        std::thread::sleep(Duration::from_secs(1));
        let frames = (plane.processors()[0].frames - before) as f64;
        let ns = began.elapsed().as_nanos() as f64;
        println!("{:.2} million frames/s, {:.1} ns a frame", frames * 1e3 / ns, ns / frames);
    }
    plane.stop();
    Ok(())
}
