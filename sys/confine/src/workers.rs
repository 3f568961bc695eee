//! Worker runtime that confines each worker before it owns a queue.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use suimon_ports::{CpuAffinity, Waker, WorkerJoin, WorkerMain, WorkerRuntime};
use suimon_quantity::Time;

use crate::confinement::{Confinement, ThreadRole};

/// Worker runtime that confines each worker of another runtime before its body runs.
pub struct ConfinedWorkers<R> {
    runtime: R,
    confinement: Confinement,
}

impl<R: WorkerRuntime> ConfinedWorkers<R> {
    /// Wraps `runtime` so that its workers are confined by `confinement`.
    pub fn new(runtime: R, confinement: Confinement) -> Self {
        Self { runtime, confinement }
    }
}

impl<R: WorkerRuntime> WorkerRuntime for ConfinedWorkers<R> {
    /// Starts a worker thread and confines it.
    ///
    /// # Errors
    /// An error of the wrapped runtime, or the thread could not be confined; its body was not run
    /// then.
    fn start(
        &self,
        name: &str,
        placement: CpuAffinity,
        body: WorkerMain,
    ) -> io::Result<(Arc<dyn Waker>, WorkerJoin)> {
        let confinement = self.confinement.clone();
        let (report, outcome) = sync_channel(1);
        let confined = move |wait| {
            let confined = confinement.confine_thread(ThreadRole::Worker);
            let is_confined = confined.is_ok();
            // The caller waits for this message, so sending cannot fail.
            let _ = report.send(confined);
            if is_confined {
                body(wait);
            }
        };
        let (waker, join) = self.runtime.start(name, placement, Box::new(confined))?;
        match outcome.recv() {
            Ok(Ok(())) => Ok((waker, join)),
            Ok(Err(error)) => {
                join();
                Err(error.into())
            }
            Err(_) => {
                join();
                Err(io::Error::other("the worker's thread ended before it was confined"))
            }
        }
    }

    fn allowed_cpus(&self) -> Vec<u16> {
        self.runtime.allowed_cpus()
    }

    fn now(&self) -> Time {
        self.runtime.now()
    }
}
