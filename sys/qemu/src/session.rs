//! Session with a VM's monitor. One thread reads the monitor and receives the report of the
//! process's end; callers that send commands block until the reply.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use suimon_ports::{ThreadInit, VmObserver, VmRunState};
use suimon_qmp::Greeting;
use suimon_unix_socket::CloseQueue;

use crate::client::ProcessWatch;
use crate::message_rate::MessageRateLimiter;
use crate::monitor::{KnownVmState, REPLY_TIMEOUT, SharedMonitor, lock};
use crate::monitor_reader::{LAST_READS_MAX, MonitorReader};
use crate::qemu_stream::QemuStream;
use crate::unplug_queue::UnplugQueue;

/// Open session with a VM's monitor. Dropping it closes the connection; the VM continues.
pub(crate) struct Session {
    shared: Arc<SharedMonitor>,
}

impl Drop for Session {
    fn drop(&mut self) {
        // The reading thread detects the end of the connection and does not report it as an error.
        lock(&self.shared.known_state)
            .end_description
            .get_or_insert_with(|| "the daemon released it".to_owned());
        let _ = self.shared.stream.shutdown(Shutdown::Both);
    }
}

/// Parameters for starting a session.
pub(crate) struct SessionParameters<'a> {
    pub(crate) name: &'a str,
    pub(crate) stream: UnixStream,
    pub(crate) watch: ProcessWatch,
    pub(crate) observer: Arc<dyn VmObserver>,
    pub(crate) thread_start: ThreadInit,
    /// Queue that closes the connections of sessions; it outlives each session.
    pub(crate) close_queue: &'a CloseQueue,
}

impl Session {
    /// Starts the reading thread. Returns the session, and the channel on which QEMU's greeting
    /// will arrive.
    pub(crate) fn start(parts: SessionParameters<'_>) -> io::Result<(Self, Receiver<Greeting>)> {
        let SessionParameters { name, stream, watch, observer, thread_start, close_queue: closes } =
            parts;
        let stream = QemuStream::new(stream, closes)?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        let status = KnownVmState {
            state: VmRunState::Paused,
            waits_for_space: false,
            has_agent: false,
            shutdown_reason: None,
            end_description: None,
        };
        let shared = Arc::new(SharedMonitor {
            name: name.to_owned(),
            stream,
            last_command_id: Mutex::new(0),
            reply_recipients: Mutex::default(),
            known_state: Mutex::new(status),
            end_reported: Condvar::new(),
        });
        let (greeting, greeted) = sync_channel(1);
        let reading = MonitorReader {
            shared: Arc::clone(&shared),
            watch: Some(watch),
            observer,
            greeting_sender: Some(greeting),
            event_rate: MessageRateLimiter::for_events(Instant::now()),
            byte_rate: MessageRateLimiter::for_bytes(Instant::now()),
            unplugging: UnplugQueue::default(),
            process_end: None,
            last_reads_remaining: LAST_READS_MAX,
        };
        let builder = std::thread::Builder::new().name("vm".to_owned());
        builder.spawn(move || match thread_start() {
            Ok(()) => reading.run(),
            Err(error) => {
                tracing::error!(%error, "a thread of a VM could not drop its privileges");
                reading.handle_end(&format!("its monitor cannot be read: {error}"), false);
            }
        })?;
        Ok((Self { shared }, greeted))
    }

    pub(crate) fn shared(&self) -> &Arc<SharedMonitor> {
        &self.shared
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
