//! How busy this machine's CPUs were: what a test program that mostly waits is told by.

use std::fmt;
use std::time::Instant;

/// A moment, and the CPU time that was used up to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    /// Worked, and in all, in ticks of all CPUs; `None` where the kernel does not tell.
    ticks: Option<(u64, u64)>,
}

impl Moment {
    /// Now.
    pub(crate) fn now() -> Self {
        let told = std::fs::read_to_string("/proc/stat").ok();
        Self { at: Instant::now(), ticks: told.as_deref().and_then(ticks_in) }
    }

    /// What went by since then.
    pub(crate) fn took(&self) -> Took {
        let busy = Self::now().ticks.zip(self.ticks).and_then(|(now, then)| {
            let all = now.1.checked_sub(then.1).filter(|all| *all > 0)?;
            Some(now.0.saturating_sub(then.0) * 100 / all)
        });
        Took { seconds: self.at.elapsed().as_secs(), busy_percent: busy }
    }
}

/// How long something took, and how busy the CPUs were meanwhile, with whatever it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) seconds: u64,
    busy_percent: Option<u64>,
}

impl fmt::Display for Took {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.busy_percent {
            Some(busy) => write!(out, "{} s, CPUs {busy} % busy", self.seconds),
            None => write!(out, "{} s", self.seconds),
        }
    }
}

/// Ticks in which CPUs worked, and all ticks, of `/proc/stat` (proc(5)): user, nice, system, idle,
/// iowait, irq, softirq, steal. What guests use counts as user.
fn ticks_in(stat: &str) -> Option<(u64, u64)> {
    let numbers = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> =
        numbers.split_whitespace().take(8).map_while(|number| number.parse().ok()).collect();
    let all: u64 = numbers.iter().sum();
    let idle = numbers.get(3)? + numbers.get(4)?;
    Some((all - idle, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_disks_is_idle() {
        let stat = "cpu  10 1 5 70 4 2 3 5 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(ticks_in(stat), Some((26, 100)));
        assert_eq!(ticks_in("intr 1 2"), None);
        assert_eq!(ticks_in("cpu  1 2"), None);
    }
}
