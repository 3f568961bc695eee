//! Benchmark of the time that this machine takes to wake a thread on another CPU, and the first one
//! again: the lower bound of a ping through a switch outside of the kernel.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Number of pings and the pause between two of them.
pub(crate) struct Pings {
    pub(crate) count: u32,
    pub(crate) between: Duration,
}

/// Measures round trips in microseconds between two sleeping threads, one on each of these CPUs.
pub(crate) fn round_trips(cpus: [u16; 2], pings: &Pings) -> Result<Vec<f64>> {
    let new = || eventfd(0, EventfdFlags::CLOEXEC);
    let (ping, pong) = (new()?, new()?);
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer(cpus[1], pings.count, &ping, &pong));
        let asking = scope.spawn(|| measure_pings(cpus[0], pings, &ping, &pong));
        let times = asking.join().ok().context("the asking thread panicked")?;
        answering.join().ok().context("the answering thread panicked")??;
        times
    })
}

fn answer(cpu: u16, count: u32, ping: &OwnedFd, pong: &OwnedFd) -> Result<()> {
    pin(cpu)?;
    for _ in 0..count {
        read(ping, &mut [0; 8])?;
        write(pong, &1_u64.to_ne_bytes())?;
    }
    Ok(())
}

fn measure_pings(cpu: u16, pings: &Pings, ping: &OwnedFd, pong: &OwnedFd) -> Result<Vec<f64>> {
    pin(cpu)?;
    let mut times = Vec::new();
    for _ in 0..pings.count {
        thread::sleep(pings.between);
        let started = Instant::now();
        write(ping, &1_u64.to_ne_bytes())?;
        read(pong, &mut [0; 8])?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

fn pin(cpu: u16) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu));
    sched_setaffinity(None, &set).with_context(|| format!("pinning to CPU {cpu}"))
}
