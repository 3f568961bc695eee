//! Benchmark of the forwarding rate of one worker, in frames per second, from one ingress queue to
//! one egress queue whose own costs are negligible: the cost of the switch itself. Measured for
//! 64-byte frames without a flow, for 64-byte frames of one flow, and for TCP segments of one
//! stream without and with coalescing.
//!
//! `cargo run --release -p suimon-processor-tests --example engine_rate`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::Offloads;
use suimon_ports::{QueueHost, WorkerRuntime};
use suimon_processor_tests::{EndlessSource, NullSink, Supply, mac, queue, small_frame};
use suimon_quantity::{Direction, PortId, SwitchId};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_test_programs::end_program;
use suimon_wait::WorkerThreads;

const WINDOW: Duration = Duration::from_millis(100);
const WINDOWS: usize = 31;

fn main() -> ExitCode {
    end_program("engine_rate", measure_all())
}

fn measure_all() -> Result<()> {
    let no_stream = |id: u8| EndlessSource::new(small_frame(id, 1 - id));
    let stream = |payload_bytes: u16| {
        move |id: u8| EndlessSource::stream([mac(1 - id), mac(id)], 32, payload_bytes)
    };
    for offloads in [Offloads::TCP.without_segmentation(), Offloads::TCP] {
        println!("to an egress that takes {offloads:?}:");
        measure("64 bytes, no stream", no_stream, offloads)?;
        measure("64 bytes of a stream", stream(10), offloads)?;
        measure("1514 bytes of a stream", stream(1460), offloads)?;
    }
    Ok(())
}

/// Measures and prints the rate of ingress frames. Coalescing can make the number of egress frames
/// smaller.
fn measure(
    description: &str,
    source: impl Fn(u8) -> EndlessSource,
    offloads: Offloads,
) -> Result<()> {
    let runtime = Arc::new(WorkerThreads);
    let cpu = runtime.allowed_cpus()[0];
    let plane = DataPlane::start(&[cpu], runtime)?;
    let switch = SwitchId(1);
    let port = |id| PortTopology {
        spec: ForwardingPortSpec::new(PortId(id), switch, PortRole::Nic),
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    plane.publish(Topology {
        switches: vec![SwitchSpec::new(switch)],
        ports: vec![port(0), port(1)],
        teams: Vec::new(),
    })?;
    for id in 0..2_u8 {
        plane.attach_sink(queue(id.into(), Direction::Egress), Box::new(NullSink(offloads)));
        plane.attach_source(queue(id.into(), Direction::Ingress), source(id).source());
    }
    // Skips the first window, in which caches and branch predictors are cold.
    let mut windows: Vec<f64> = (0..WINDOWS).map(|_| ns_per_frame(&plane)).skip(1).collect();
    windows.sort_by(f64::total_cmp);
    let (best, median) = (windows[0], windows[windows.len() / 2]);
    println!(
        "  {description}: {:.2} million frames/s, {median:.2} ns a frame, {best:.2} at best",
        1e3 / median
    );
    plane.stop();
    Ok(())
}

/// Returns the cost of an ingress frame in the next window in ns, computed from the CPU time of the
/// worker, so that other load on the CPU does not count.
fn ns_per_frame(plane: &DataPlane) -> f64 {
    let before = plane.workers().remove(0);
    std::thread::sleep(WINDOW);
    let after = plane.workers().remove(0);
    (after.cpu_time - before.cpu_time).as_nanos() as f64 / (after.frames - before.frames) as f64
}
