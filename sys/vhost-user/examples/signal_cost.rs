//! Benchmark of the cost of an interrupt: CPU time of the worker for one signal of a front-end's
//! eventfd, beside a plain write to the eventfd, which a front-end could block (decision 68). Both
//! are measured alternately, without a waiting thread and with one that sleeps and is woken.
//!
//!     cargo run --release -p suimon-vhost-user --example signal_cost

use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use rustix::time::{ClockId, clock_gettime};
use suimon_eventfd::PeerEventFd;
use suimon_test_programs::end_program;

const PAIRS: usize = 31;
/// Ranks (from 0) of the bounds of the 95 % confidence interval of the median of [`PAIRS`] sorted
/// values.
const INTERVAL: [usize; 2] = [9, 21];
const SIGNALS: u32 = 20_000;
const WAKE_UPS: u32 = 500;

/// How an eventfd is signalled.
#[derive(Clone, Copy)]
enum SignalMethod {
    Write,
    Signal,
}

fn main() -> ExitCode {
    end_program("signal_cost", measure_all())
}

fn measure_all() -> Result<()> {
    report("signal of an eventfd for which no thread waits", signals)?;
    report("round trip with a thread that sleeps until it is signalled", wake_ups)
}

/// Measures both methods in alternation, and prints medians and the ratio with its confidence
/// interval.
fn report(name: &str, measure: fn(SignalMethod) -> Result<f64>) -> Result<()> {
    let (mut writes, mut peers, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (write, peer) = (measure(SignalMethod::Write)?, measure(SignalMethod::Signal)?);
        writes.push(write);
        peers.push(peer);
        ratios.push(peer / write);
    }
    for values in [&mut writes, &mut peers, &mut ratios] {
        values.sort_by(f64::total_cmp);
    }
    let [low, high] = INTERVAL.map(|rank| ratios[rank]);
    println!(
        "{name}: write {:.0} ns, signal {:.0} ns, ratio {:.2} ({low:.2} to {high:.2})",
        writes[PAIRS / 2],
        peers[PAIRS / 2],
        ratios[PAIRS / 2]
    );
    Ok(())
}

/// Eventfd as this process holds it, and a descriptor of it as another process would hold it.
struct Line {
    fd: OwnedFd,
    peer: PeerEventFd,
}

impl Line {
    fn new(flags: EventfdFlags) -> Result<Self> {
        let fd = eventfd(0, flags | EventfdFlags::CLOEXEC)?;
        Ok(Self { peer: PeerEventFd::for_signalling(fd.try_clone()?)?, fd })
    }

    fn signal(&self, method: SignalMethod) -> Result<(), Errno> {
        match method {
            SignalMethod::Write => write(&self.fd, &1_u64.to_ne_bytes()).map(drop),
            SignalMethod::Signal => {
                self.peer.signal();
                Ok(())
            }
        }
    }

    fn wait(&self) -> Result<(), Errno> {
        read(&self.fd, &mut [0; 8]).map(drop)
    }
}

/// Returns the CPU time of one signal in ns.
fn signals(method: SignalMethod) -> Result<f64> {
    let line = Line::new(EventfdFlags::NONBLOCK)?;
    let start = cpu_time();
    for _ in 0..SIGNALS {
        line.signal(method)?;
    }
    Ok((cpu_time() - start).as_nanos() as f64 / f64::from(SIGNALS))
}

/// Returns the CPU time in ns of one signal that wakes a thread, and of the sleep until the
/// thread's reply.
fn wake_ups(method: SignalMethod) -> Result<f64> {
    let (request_line, reply_line) =
        (Line::new(EventfdFlags::empty())?, Line::new(EventfdFlags::empty())?);
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            (0..WAKE_UPS).try_for_each(|_| {
                request_line.wait().and_then(|()| reply_line.signal(SignalMethod::Write))
            })
        });
        let start = cpu_time();
        for _ in 0..WAKE_UPS {
            request_line.signal(method)?;
            reply_line.wait()?;
        }
        let spent = cpu_time() - start;
        echo.join().expect("no panic")?;
        Ok(spent.as_nanos() as f64 / f64::from(WAKE_UPS))
    })
}

/// Returns the CPU time used by this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
