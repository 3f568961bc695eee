//! CPU time of a process in nanoseconds.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, ensure};

/// CPU time of each thread of a process in nanoseconds. The time of the whole process has a
/// resolution of 10 ms, which is more than an idle switch uses.
pub(crate) struct CpuTimes(BTreeMap<String, u64>);

impl CpuTimes {
    /// Returns the current CPU times of a process.
    ///
    /// # Errors
    /// The process no longer runs, or the kernel does not report the times.
    pub(crate) fn read(process: u32) -> Result<Self> {
        let mut times = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            let path = task?.path();
            // A thread may end meanwhile.
            let schedstat = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            if let Some(ns) = schedstat.split(' ').next().and_then(|ns| ns.parse().ok()) {
                times.insert(path.to_string_lossy().into_owned(), ns);
            }
        }
        ensure!(
            !times.is_empty(),
            "this kernel does not tell threads' CPU time (CONFIG_SCHED_INFO)"
        );
        Ok(Self(times))
    }

    /// Returns the CPU time that all threads have used since `before`, in nanoseconds.
    pub(crate) fn since(&self, before: &Self) -> u64 {
        let used = |(thread, ns): (&String, &u64)| {
            ns.saturating_sub(before.0.get(thread).copied().unwrap_or_default())
        };
        self.0.iter().map(used).sum()
    }
}
