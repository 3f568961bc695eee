//! Current distance of two CPUs.
//!
//! A virtual machine's CPUs may alternate between one cache domain and two; transfers between them
//! then cost several times as much, for tens of seconds. A result that depends on the distance must
//! be reported with it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Round trips per window; few, so that few windows are interrupted.
const ROUNDS: u32 = 64;
/// Maximum number of measured windows.
const TIMES: usize = 2001;
/// Time limit, after which the windows measured so far are used.
const LIMIT: Duration = Duration::from_secs(5);

/// Maximum transfer time within one cache domain. Neighbouring cores take 20 to 60 ns, cores in
/// different domains more than 100 ns.
const NEAR_NS_MAX: f64 = 80.0;

/// Distance of two CPUs in the cache hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Distance {
    /// The CPUs share a cache.
    Near,
    /// The CPUs share no cache.
    Far,
}

impl Distance {
    /// Classifies a transfer time in nanoseconds.
    pub(crate) fn classify(handover_ns: f64) -> Self {
        if handover_ns < NEAR_NS_MAX { Self::Near } else { Self::Far }
    }
}

/// Returns the transfer time of a cache line between the CPUs in nanoseconds: half of the round
/// trip of a word that two threads exchange. The median of 2001 short windows, or of those that end
/// within 5 s, excludes the effect of other threads.
///
/// # Errors
/// The CPUs do not exist or are the same, or are so busy that no window ended within 5 s.
pub(crate) fn handover_ns(cpus: [u16; 2]) -> Result<f64> {
    handover_within(cpus, LIMIT)
}

fn handover_within(cpus: [u16; 2], limit: Duration) -> Result<f64> {
    anyhow::ensure!(cpus[0] != cpus[1], "a line is handed over between two CPUs");
    let cell = AtomicU32::new(0);
    thread::scope(|scope| {
        let answering = scope.spawn(|| {
            pin(cpus[1])?;
            answer(&cell);
            anyhow::Ok(())
        });
        let asking = scope.spawn(|| {
            let result = pin(cpus[0]).and_then(|()| measure_round_trips(&cell, limit));
            cell.store(STOP, Ordering::Release);
            result
        });
        let result = asking.join().ok().context("the asking thread panicked")?;
        answering.join().ok().context("the answering thread panicked")??;
        result
    })
}

/// Value that ends both threads. Otherwise the word is even when the requesting thread continues,
/// and odd when the replying one does.
const STOP: u32 = u32::MAX;

fn answer(cell: &AtomicU32) {
    loop {
        match cell.load(Ordering::Acquire) {
            STOP => return,
            value if value % 2 == 1 => cell.store(value + 1, Ordering::Release),
            _ => {}
        }
    }
}

fn measure_round_trips(cell: &AtomicU32, limit: Duration) -> Result<f64> {
    let deadline = Instant::now() + limit;
    let mut windows = Vec::with_capacity(TIMES);
    'windows: for _ in 0..TIMES {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            let sent_value = cell.load(Ordering::Acquire);
            cell.store(sent_value + 1, Ordering::Release);
            let mut spins: u32 = 0;
            while cell.load(Ordering::Acquire) != sent_value + 2 {
                spins += 1;
                if spins % 65_536 == 0 && Instant::now() >= deadline {
                    break 'windows;
                }
            }
        }
        windows.push(started.elapsed());
    }
    windows.sort();
    let median =
        windows.get(windows.len() / 2).context("the other CPU is busy with other threads")?;
    Ok(median.as_secs_f64() * 1e9 / f64::from(ROUNDS) / 2.0)
}

fn pin(cpu: u16) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu));
    sched_setaffinity(None, &set).with_context(|| format!("CPU {cpu} cannot be used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_over_takes_a_nanosecond_or_more() {
        // The upper limit depends on the load of the CPUs.
        let ns = handover_within([0, 1], Duration::from_secs(60)).unwrap();
        assert!(ns >= 1.0, "{ns}");
    }

    #[test]
    fn one_cpu_has_no_distance() {
        assert!(handover_ns([0, 0]).is_err());
    }
}
