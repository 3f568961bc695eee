//! How many 64-byte frames a second one processor takes from an ingress to an
//! egress queue when both cost nothing: the engine's own share of a frame.
//!
//! `cargo run --release -p suimon-processor-tests --example engine_rate`

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use suimon_forwarding::{PortRole, PortSpec, SwitchSpec};
use suimon_frame::{Frame, FrameBatch, Offloads, VnetHeader};
use suimon_ports::{FrameSink, FrameSource, PortFault, ProcessorRuntime, QueueHost, Sent, Wakeup};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::PinnedThreads;

/// Always has another batch of the same frame.
struct Endless {
    bytes: [u8; 64],
    never: OwnedFd,
}

impl FrameSource for Endless {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault> {
        let before = batch.len();
        while let Some(frame) = batch.spare() {
            frame.space_mut()[..64].copy_from_slice(&self.bytes);
            frame.set_len(64);
            if frame.admit(&VnetHeader::default(), Offloads::TCP).is_ok() {
                batch.commit();
            }
        }
        Ok(batch.len() - before)
    }

    fn arm(&mut self) -> Wakeup {
        Wakeup::Pending
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }

    fn malformed(&self) -> u64 {
        0
    }
}

/// Takes everything.
struct Bottomless;

impl FrameSink for Bottomless {
    fn transmit(&mut self, frame: &Frame) -> Result<Sent, PortFault> {
        std::hint::black_box(frame.wire());
        Ok(Sent::Accepted)
    }

    fn flush(&mut self) -> Result<(), PortFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}

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
        let never = eventfd(0, EventfdFlags::CLOEXEC)?;
        plane.attach_sink(queue(Direction::Egress), Box::new(Bottomless));
        plane.attach_source(queue(Direction::Ingress), Box::new(Endless { bytes, never }));
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
