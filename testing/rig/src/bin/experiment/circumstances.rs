//! What a record was made on.

use std::fs;

use serde::Serialize;

/// The machine, and how busy it was.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Circumstances {
    cpus: usize,
    linux: String,
    /// Runnable threads, the mean of the last minute, before the first step.
    load_before: f64,
    /// The same after the last one, the experiment's own load among them.
    load_after: Option<f64>,
}

impl Circumstances {
    pub(crate) fn now() -> Self {
        let linux = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            linux: linux.trim().to_owned(),
            load_before: load(),
            load_after: None,
        }
    }

    pub(crate) fn end(&mut self) {
        self.load_after = Some(load());
    }

    /// In a sentence.
    pub(crate) fn text(&self) -> String {
        format!(
            "{} CPUs, Linux {}, load of the machine {:.1} before and {:.1} after",
            self.cpus,
            self.linux,
            self.load_before,
            self.load_after.unwrap_or(self.load_before)
        )
    }
}

/// The first figure of `/proc/loadavg` (proc(5)).
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}
