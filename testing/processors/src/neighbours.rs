//! Cost of a frame in the switch while other workers are busy, or one of them reads no mail.
//!
//! The queues cost nothing, so the result is the cost of the switch itself. It is computed from the
//! CPU time of the workers, so that other load on their CPUs does not count.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::{FrameBatch, MacAddr, Offloads};
use suimon_ports::{CpuAffinity, QueueFault, QueueHost, WorkerRuntime};
use suimon_quantity::{Direction, PortId, SwitchId, WorkerId};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::WorkerThreads;

use crate::{EndlessSource, NullSink, Supply, mac, queue, small_frame};

/// Ingress queues of each worker.
const SOURCES: u8 = 8;
/// Windows measured by one call; the lowest cost counts.
const WINDOWS: usize = 5;
/// Windows before the first measured one, in which caches are cold and queues fill.
const WARM_UP_WINDOWS: usize = 2;

/// Returns the CPU time per frame in ns of `workers` workers on CPUs of their own. Each forwards
/// batches of `batch_frames` frames from 8 ports to another port of its own, so that the workers
/// share nothing but the published tables.
///
/// # Errors
/// The host has fewer CPUs than workers, or cannot start a thread.
pub fn ns_per_frame_of_workers(
    workers: u8,
    batch_frames: usize,
    window: Duration,
) -> io::Result<f64> {
    let cpus = WorkerThreads.allowed_cpus();
    let cpus = cpus.get(..workers.into()).ok_or(io::ErrorKind::Unsupported)?;
    let placements: Vec<CpuAffinity> = cpus.iter().map(|cpu| CpuAffinity::Pinned(*cpu)).collect();
    let plane = started(&placements, SOURCES + 1)?;
    for worker in 0..workers {
        let sink = port_of(worker, 0);
        for nth in 1..=SOURCES {
            attach_source(&plane, port_of(worker, nth), sink, batch_frames);
        }
    }
    let ns = ns_per_frame(&plane, workers, window);
    plane.stop();
    Ok(ns)
}

/// Returns the CPU time per frame in ns of `senders` workers beside one that reads no mail. Each
/// sends single frames from one port to a port of its own, and from another one to the port of that
/// worker. A worker may have about 800 frames in flight to another one, whose mailbox has room for
/// 4096: it is full if there are at least 6 senders.
///
/// # Errors
/// The host cannot start a thread.
pub fn ns_per_frame_beside_full_mailbox(senders: u8, window: Duration) -> io::Result<f64> {
    let placements = vec![CpuAffinity::Floating; usize::from(senders) + 1];
    let plane = started(&placements, 3)?;
    let blocked = port_of(senders, 0);
    for worker in 0..senders {
        attach_source(&plane, port_of(worker, 1), port_of(worker, 0), 1);
        attach_source(&plane, port_of(worker, 2), blocked, 1);
    }
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let source = Blocking(Arc::clone(&gate)).source();
    plane.attach_source(queue(port_of(senders, 1).into(), Direction::Ingress), source);
    let ns = ns_per_frame(&plane, senders, window);
    *gate.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    gate.1.notify_all();
    plane.stop();
    Ok(ns)
}

/// Source that blocks its worker until it is released.
struct Blocking(Arc<(Mutex<bool>, Condvar)>);

impl Supply for Blocking {
    fn fill(&mut self, _: &mut FrameBatch) -> Result<usize, QueueFault> {
        let (is_released, condvar) = &*self.0;
        let guard = is_released.lock().unwrap_or_else(PoisonError::into_inner);
        drop(condvar.wait_while(guard, |is_released| !*is_released));
        Ok(0)
    }
}

/// Returns the port with this index on a worker.
fn port_of(worker: u8, nth: u8) -> u8 {
    worker * (SOURCES + 1) + nth
}

/// Starts workers with one switch. Each has `ports` ports, of which the first has an egress queue.
fn started(placements: &[CpuAffinity], ports: u8) -> io::Result<DataPlane> {
    let plane = DataPlane::start(placements, Arc::new(WorkerThreads))?;
    let workers = 0..placements.len() as u8;
    let queues =
        workers.flat_map(|worker| (0..ports).map(move |nth| (worker, port_of(worker, nth))));
    let queues: Vec<(u8, u8)> = queues.collect();
    let home = |(worker, port): &(u8, u8)| (PortId((*port).into()), WorkerId((*worker).into()));
    plane.set_initial_workers(queues.iter().map(home).collect());
    let port = |(_, port): &(u8, u8)| PortTopology {
        spec: ForwardingPortSpec {
            mac: Some(MacAddr::new(mac(*port))),
            ..ForwardingPortSpec::new(PortId((*port).into()), SwitchId(1), PortRole::Nic)
        },
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    let switches = vec![SwitchSpec::new(SwitchId(1))];
    let topology =
        Topology { switches, ports: queues.iter().map(port).collect(), teams: Vec::new() };
    plane.publish(topology).map_err(io::Error::other)?;
    for worker in 0..placements.len() as u8 {
        let queue = queue(port_of(worker, 0).into(), Direction::Egress);
        plane.attach_sink(queue, Box::new(NullSink(Offloads::TCP)));
    }
    Ok(plane)
}

fn attach_source(plane: &DataPlane, from: u8, to: u8, batch_frames: usize) {
    let source = EndlessSource::new(small_frame(from, to)).in_batches_of(batch_frames);
    plane.attach_source(queue(from.into(), Direction::Ingress), source.source());
}

/// Returns the CPU time per ingress frame of the first `workers` workers in ns.
fn ns_per_frame(plane: &DataPlane, workers: u8, window: Duration) -> f64 {
    let total = || {
        let workers = plane.workers().into_iter().take(workers.into());
        workers.fold((0, 0), |(ns, frames), worker| {
            (ns + worker.cpu_time.as_nanos(), frames + worker.frames)
        })
    };
    let windows = (0..WARM_UP_WINDOWS + WINDOWS).map(|_| {
        let before = total();
        std::thread::sleep(window);
        let after = total();
        (after.0 - before.0) as f64 / (after.1 - before.1) as f64
    });
    windows.skip(WARM_UP_WINDOWS).fold(f64::INFINITY, f64::min)
}
