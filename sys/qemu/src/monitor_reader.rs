//! Thread that reads a VM's monitor and the launcher's report of the process's end.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use suimon_ports::{VmDevice, VmNotice, VmObserver, VmRunState};
use suimon_qmp::{Greeting, QmpEvent, QmpMessage, QmpReader};

use crate::agent::AGENT_PORT;
use crate::client::{LauncherEvent, ProcessWatch};
use crate::message_rate::MessageRateLimiter;
use crate::messages::wait_readable;
use crate::monitor::{Outcome, REPLY_TIMEOUT, ReplyRecipient, SharedMonitor, lock};
use crate::spec_check::is_name;
use crate::unplug_queue::UnplugQueue;

/// Time within which a process must end after it has closed its monitor. Afterwards it is killed.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Interval between attempts to remove a QEMU object that is in use.
const RETRY: Duration = Duration::from_millis(100);
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Minimum number of bytes that one read counts as. A QEMU that sends single bytes causes the cost
/// of a read for each.
const READ_COSTS: u32 = 512;
/// Maximum number of reads after the process has ended. So many reads receive more than its socket
/// can hold.
pub(crate) const LAST_READS_MAX: u32 = 64;

/// State of the thread that reads the monitor.
pub(crate) struct MonitorReader {
    pub(crate) shared: Arc<SharedMonitor>,
    pub(crate) watch: Option<ProcessWatch>,
    pub(crate) observer: Arc<dyn VmObserver>,
    pub(crate) greeting_sender: Option<SyncSender<Greeting>>,
    pub(crate) event_rate: MessageRateLimiter,
    pub(crate) byte_rate: MessageRateLimiter,
    pub(crate) unplugging: UnplugQueue,
    /// Report of the process's end, kept while its last messages are read.
    pub(crate) process_end: Option<LauncherEvent>,
    pub(crate) last_reads_remaining: u32,
}

impl MonitorReader {
    pub(crate) fn run(mut self) {
        let mut reader = QmpReader::new();
        let reason = loop {
            match self.poll(&mut reader) {
                Ok(None) => {}
                Ok(Some(event)) => return self.finish(Some(event), "QEMU has ended"),
                Err(reason) => break reason,
            }
        };
        let _ = self.shared.stream.shutdown(Shutdown::Both);
        self.greeting_sender = None;
        lock(&self.shared.reply_recipients).clear();
        if self.shared.end_description().is_some() {
            return;
        }
        let event = self.process_end.take();
        let event =
            event.or_else(|| self.watch.as_ref().and_then(|watch| watch.wait_timeout(END_LIMIT)));
        let event = event.or_else(|| {
            let watch = self.watch.as_ref()?;
            watch.kill();
            watch.wait_timeout(REPLY_TIMEOUT)
        });
        self.finish(event, &reason);
    }

    /// Waits for one event and processes it. Returns the report of the process's end, once it was
    /// received.
    ///
    /// # Errors
    /// The reason why the monitor can no longer be read.
    pub(crate) fn poll(&mut self, reader: &mut QmpReader) -> Result<Option<LauncherEvent>, String> {
        if self.process_end.is_some() {
            let last = wait_readable([self.shared.stream.as_fd()], Some(Duration::ZERO));
            self.last_reads_remaining = self.last_reads_remaining.saturating_sub(1);
            if self.last_reads_remaining == 0 || !matches!(last, Ok([true])) {
                return Ok(self.process_end.take());
            }
            return self.read(reader).map(|()| None);
        }
        let limit = self.unplugging.has_retry_pending().then_some(RETRY);
        let stream = self.shared.stream.as_fd();
        let ready = match &self.watch {
            Some(watch) => wait_readable([stream, watch.descriptor()], limit),
            None => wait_readable([stream], limit).map(|[ready]| [ready, false]),
        };
        let [has_words, has_news] =
            ready.map_err(|error| format!("its monitor cannot be read: {error}"))?;
        if has_words {
            self.read(reader)?;
        } else if has_news {
            self.read_launcher_event();
        } else {
            self.unplug_further();
        }
        Ok(None)
    }

    /// Receives the launcher's report on the process.
    fn read_launcher_event(&mut self) {
        match self.watch.as_ref().map(ProcessWatch::wait) {
            Some(event @ LauncherEvent::Ended(_)) => self.process_end = Some(event),
            _ => self.watch = None,
        }
    }

    /// Stops reading for `pause`, or until the end of the process is reported.
    pub(crate) fn pause_reading(&mut self, pause: Duration) {
        if pause.is_zero() || self.process_end.is_some() {
            return;
        }
        let Some(watch) = &self.watch else { return std::thread::sleep(pause) };
        if matches!(wait_readable([watch.descriptor()], Some(pause)), Ok([true])) {
            self.read_launcher_event();
        }
    }

    pub(crate) fn read(&mut self, reader: &mut QmpReader) -> Result<(), String> {
        let mut buffer = vec![0; READ_BYTES];
        let length = match self.shared.stream.read_bytes(&mut buffer) {
            Ok(0) => return Err("QEMU closed its monitor".to_owned()),
            Ok(length) => length,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) =>
            {
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(error.to_string());
            }
            Err(error) => return Err(format!("QEMU closed its monitor ({error})")),
        };
        let cost = u32::try_from(length).unwrap_or(u32::MAX).max(READ_COSTS);
        let pause = self.byte_rate.consume(cost, Instant::now());
        self.pause_reading(pause);
        reader.handle_bytes(buffer.get(..length).unwrap_or_default());
        while let Some(message) = reader.poll_message().map_err(|error| error.to_string())? {
            // The session was closed meanwhile.
            if self.shared.end_description().is_some() {
                return Err("the daemon released it".to_owned());
            }
            self.handle_message(message);
        }
        Ok(())
    }

    pub(crate) fn handle_message(&mut self, message: QmpMessage) {
        match message {
            QmpMessage::Greeting(greeting) => match self.greeting_sender.take() {
                Some(sender) => {
                    let _ = sender.try_send(greeting);
                }
                None => self.handle_unasked(),
            },
            QmpMessage::Return { id, value } => self.handle_reply(id, Ok(value)),
            QmpMessage::Error { id, text, .. } => self.handle_reply(id, Err(text)),
            QmpMessage::Event(event) => self.handle_event(event),
        }
    }

    pub(crate) fn handle_reply(&mut self, id: Option<u64>, outcome: Outcome) {
        let waiting =
            id.and_then(|id| Some((id, lock(&self.shared.reply_recipients).remove(&id)?)));
        let Some((id, waiting)) = waiting else { return self.handle_unasked() };
        match waiting {
            ReplyRecipient::Caller(sender) => {
                let _ = sender.try_send(outcome);
            }
            ReplyRecipient::Abandoned => {}
            ReplyRecipient::Unplugging => {
                if let Some(device) = self.unplugging.handle_reply(id, outcome.err().as_deref()) {
                    self.observer.handle_notice(VmNotice::Unplugged(device));
                }
                if !self.unplugging.has_retry_pending() {
                    self.unplug_further();
                }
            }
        }
    }

    /// Counts a message that is no reply to a command in flight towards the limit of events.
    fn handle_unasked(&mut self) {
        let pause = self.event_rate.consume(1, Instant::now());
        self.pause_reading(pause);
    }

    /// Sends the next command that removes an object of an unplugged device, if there is one.
    fn unplug_further(&mut self) {
        while let Some(command) = self.unplugging.poll_command() {
            match self.shared.send(&command, None, ReplyRecipient::Unplugging) {
                Ok(id) => self.unplugging.handle_sent(id),
                Err(_) => return,
            }
        }
    }

    fn handle_event(&mut self, event: QmpEvent) {
        let pause = self.event_rate.consume(1, Instant::now());
        self.pause_reading(pause);
        // The process has ended. Its remaining messages are handled only within the rate limit,
        // except for the reason for a shutdown.
        let is_excess = !pause.is_zero() && self.process_end.is_some();
        if is_excess && !matches!(event, QmpEvent::Shutdown(_)) {
            return;
        }
        match event {
            QmpEvent::Stop => {
                // QEMU stops a guest as a consequence of its panic.
                if lock(&self.shared.known_state).state == VmRunState::Running {
                    self.set_run_state(VmRunState::Paused);
                }
            }
            QmpEvent::Resume => {
                lock(&self.shared.known_state).waits_for_space = false;
                self.set_run_state(VmRunState::Running);
            }
            QmpEvent::BlockIoError { stops_vm: true, is_out_of_space: true, .. } => {
                // A guest that was paused before remains paused for the earlier reason.
                let mut status = lock(&self.shared.known_state);
                status.waits_for_space |= status.state == VmRunState::Running;
            }
            QmpEvent::GuestPanicked { .. } => self.set_run_state(VmRunState::Panicked),
            QmpEvent::Reset(_) => self.observer.handle_notice(VmNotice::Reset),
            QmpEvent::Shutdown(trigger) => {
                lock(&self.shared.known_state).shutdown_reason = Some(trigger.reason);
                self.set_run_state(VmRunState::Off);
            }
            QmpEvent::DeviceDeleted { device: Some(device), .. } => {
                // A VF has no backend that would have to be removed.
                if let Some(nic) = device.strip_prefix("vf-").filter(|nic| is_name(nic)) {
                    let device = VmDevice::Vf(nic.to_owned());
                    return self.observer.handle_notice(VmNotice::Unplugged(device));
                }
                self.unplugging.handle_deleted(&device);
                self.unplug_further();
            }
            QmpEvent::DeviceUnplugGuestError { device } => {
                tracing::warn!(
                    vm = self.shared.name,
                    ?device,
                    "the guest does not release a device"
                );
            }
            QmpEvent::VserportChange { id, is_open } if id == AGENT_PORT => {
                lock(&self.shared.known_state).has_agent = is_open;
            }
            QmpEvent::VserportChange { .. }
            | QmpEvent::BlockIoError { .. }
            | QmpEvent::DeviceDeleted { .. }
            | QmpEvent::Powerdown
            | QmpEvent::Other { .. } => {}
        }
    }

    pub(crate) fn set_run_state(&self, state: VmRunState) {
        let mut status = lock(&self.shared.known_state);
        if status.state != state {
            status.state = state;
            drop(status);
            self.observer.handle_notice(VmNotice::StateChanged(state));
        }
    }

    /// Reports the end of the process to callers and observer: as the launcher has reported it, or
    /// else as `fallback` describes it.
    fn finish(&self, event: Option<LauncherEvent>, fallback: &str) {
        let off_reason = lock(&self.shared.known_state).shutdown_reason.clone();
        let (is_known_bad, end_text) = match event {
            Some(LauncherEvent::Ended(exit)) => (exit.is_success == Some(false), Some(exit.text())),
            _ => (false, None),
        };
        let qemu_reason = off_reason.as_deref().unwrap_or_default();
        let is_orderly = matches!(qemu_reason, "guest-shutdown" | "host-qmp-quit") && !is_known_bad;
        let reason = match (qemu_reason, end_text) {
            ("guest-shutdown", _) if is_orderly => "the guest has shut down".to_owned(),
            ("host-qmp-quit", _) if is_orderly => "QEMU was requested to end".to_owned(),
            ("", Some(end_text)) => end_text,
            (qemu_reason, Some(end_text)) => format!("{end_text} (QEMU reported: {qemu_reason})"),
            (_, None) => format!("{fallback}; the exit status of its process is unknown"),
        };
        self.handle_end(&reason, is_orderly);
    }

    pub(crate) fn handle_end(&self, reason: &str, is_orderly: bool) {
        let mut status = lock(&self.shared.known_state);
        if status.end_description.is_some() {
            return;
        }
        status.end_description = Some(reason.to_owned());
        status.state = VmRunState::Off;
        drop(status);
        lock(&self.shared.reply_recipients).clear();
        self.shared.end_reported.notify_all();
        self.observer.handle_notice(VmNotice::Ended { is_orderly, reason: reason.to_owned() });
    }
}
