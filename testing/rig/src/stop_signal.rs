//! Handling of Ctrl-C and termination signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};

/// Flag that is set when the program should stop, because of Ctrl-C, `kill` or the end of its
/// terminal. Once it is created, these signals no longer end the program.
#[derive(Clone, Debug)]
pub struct StopSignal {
    is_requested: Arc<AtomicBool>,
}

impl StopSignal {
    /// Installs the signal handling.
    ///
    /// # Errors
    /// The signals cannot be handled.
    pub fn new() -> Result<Self> {
        let is_requested = Arc::new(AtomicBool::new(false));
        let handler_flag = Arc::clone(&is_requested);
        let (ready, is_ready) = mpsc::channel();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(anyhow!(error)))),
            };
            runtime.block_on(async {
                let signals =
                    [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
                let mut streams = Vec::new();
                for kind in signals {
                    match signal(kind) {
                        Ok(stream) => streams.push(stream),
                        Err(error) => return drop(ready.send(Err(anyhow!(error)))),
                    }
                }
                let _ = ready.send(Ok(()));
                let [interrupt, terminate, hangup] = streams.as_mut_slice() else { return };
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                handler_flag.store(true, Ordering::Release);
            });
        })?;
        is_ready.recv().context("cannot listen for signals")??;
        Ok(Self { is_requested })
    }

    /// Returns true if the program should stop.
    pub fn is_asked(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }
}
