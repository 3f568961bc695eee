//! Connection to a VM's monitor. One thread reads it and receives the report of the process's end;
//! callers that send commands block until the reply.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_ports::{ThreadStart, VmDevice, VmError, VmErrorKind, VmNotice, VmObserver, VmRunState};
use suimon_qmp::{Command, Event, Greeting, Message, QmpReader};

use crate::agent::AGENT_PORT;
use crate::client::{LauncherEvent, Watch};
use crate::pace::MessageRate;
use crate::peer::{wait_readable, write_line};
use crate::qemu_stream::{Closing, QemuStream};
use crate::spec_check::is_name;
use crate::unplugging::Unplugging;

/// Time limit for a reply of QEMU.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for an operation of several commands, such as a query of all ports. A QEMU that replies
/// to each of them just in time would occupy the VM's thread for many minutes.
const OPERATION_LIMIT: Duration = Duration::from_secs(60);
/// Time for a process to end after it closed its monitor, before it is killed.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Interval at which the removal of an object that is still in use is repeated.
const RETRY: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 64 << 10;

/// Bytes that a read counts for at least: a QEMU that sends single bytes causes the costs of a read
/// for each.
const READ_COSTS: u32 = 512;
/// Reads after the process has ended: more than its socket can hold.
const LAST_READS_MAX: u32 = 64;

/// Result of a command: return value or error text.
pub(crate) type Outcome = Result<Value, String>;

/// Receiver of the reply to a command.
enum Waiting {
    Caller(SyncSender<Outcome>),
    Unplugging,
}

/// Current state of the VM.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) state: VmRunState,
    /// True if the VM is or is being paused because a write found no space.
    pub(crate) waits_for_space: bool,
    /// True if an agent in the guest has opened its port.
    pub(crate) has_agent: bool,
    /// QEMU's reason for a shutdown of the machine.
    off_because: Option<String>,
    /// Description of the end of QEMU's process; `None` while it runs.
    ended: Option<String>,
}

/// State shared by callers and the reading thread.
pub(crate) struct Shared {
    name: String,
    stream: QemuStream,
    writing: Mutex<u64>,
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    known: Mutex<Known>,
    has_ended: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Sends a command, with an optional descriptor; the reply is delivered to `waiting`. Returns
    /// the id of the command.
    fn send(
        &self,
        command: &Command,
        descriptor: Option<BorrowedFd<'_>>,
        waiting: Waiting,
    ) -> io::Result<u64> {
        let mut last = lock(&self.writing);
        *last += 1;
        let id = *last;
        lock(&self.waiting).insert(id, waiting);
        let sent = write_line(&self.stream, &command.line(id), descriptor);
        if sent.is_err() {
            lock(&self.waiting).remove(&id);
            // A partly sent command would corrupt the next one.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        sent.map(|()| id)
    }

    /// Sends a command and blocks until the reply, at most [`ANSWER_LIMIT`].
    pub(crate) fn request(&self, command: &Command) -> Result<Value, VmError> {
        self.request_with(command, None)
    }

    /// Passes a descriptor to QEMU, which keeps it under this name.
    pub(crate) fn hand_over(&self, name: &'static str, fd: BorrowedFd<'_>) -> Result<(), VmError> {
        self.request_with(&Command::GetFd { name }, Some(fd)).map(drop)
    }

    fn request_with(
        &self,
        command: &Command,
        fd: Option<BorrowedFd<'_>>,
    ) -> Result<Value, VmError> {
        let (sender, receiver) = sync_channel(1);
        let id =
            self.send(command, fd, Waiting::Caller(sender)).map_err(|_| self.is_disconnected())?;
        let answer = receiver.recv_timeout(ANSWER_LIMIT);
        lock(&self.waiting).remove(&id);
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(text)) => {
                let text = format!("QEMU rejected `{}`: {text}", command.name());
                Err(VmError::new(VmErrorKind::Refused, text))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.is_disconnected()),
            Err(RecvTimeoutError::Timeout) => Err(self.silent(command.name())),
        }
    }

    /// Returns an error if an operation that began at `began` exceeds [`OPERATION_LIMIT`].
    pub(crate) fn check_time(&self, began: Instant, what: &str) -> Result<(), VmError> {
        if began.elapsed() < OPERATION_LIMIT {
            return Ok(());
        }
        Err(self.silent_for(what, OPERATION_LIMIT))
    }

    pub(crate) fn silent(&self, what: &str) -> VmError {
        self.silent_for(what, ANSWER_LIMIT)
    }

    fn silent_for(&self, what: &str, limit: Duration) -> VmError {
        let (name, limit) = (&self.name, limit.as_secs());
        let text = format!("VM {name}: QEMU did not complete `{what}` within {limit} s");
        VmError::new(VmErrorKind::Timeout, text)
    }

    fn is_disconnected(&self) -> VmError {
        let (name, how) = (&self.name, self.how_it_ended());
        VmError::new(VmErrorKind::NotRunning, format!("VM {name} has ended: {how}"))
    }

    /// Returns how the process ended, or that it has closed its monitor.
    pub(crate) fn how_it_ended(&self) -> String {
        let ended = lock(&self.known).ended.clone();
        ended.unwrap_or_else(|| "QEMU closed its monitor".to_owned())
    }

    pub(crate) fn known(&self) -> Known {
        lock(&self.known).clone()
    }

    /// Stores the state queried from QEMU. An event may already have reported the agent.
    pub(crate) fn set_known(&self, state: VmRunState, waits_for_space: bool, has_agent: bool) {
        let mut known = lock(&self.known);
        known.state = state;
        known.waits_for_space |= waits_for_space;
        known.has_agent |= has_agent;
    }

    /// Blocks until the end of the process was reported, at most `limit`. Returns false on timeout.
    pub(crate) fn wait_end(&self, limit: Duration) -> bool {
        let known = lock(&self.known);
        let waited = self.has_ended.wait_timeout_while(known, limit, |known| known.ended.is_none());
        waited.map_or(true, |(known, _)| known.ended.is_some())
    }

    /// Returns how the process ended, if it has.
    fn ended(&self) -> Option<String> {
        lock(&self.known).ended.clone()
    }
}

/// Open session. Dropping it closes the connection; the VM continues.
pub(crate) struct Session {
    shared: Arc<Shared>,
}

impl Drop for Session {
    fn drop(&mut self) {
        // The thread sees the end of the connection and does not report it.
        lock(&self.shared.known).ended.get_or_insert_with(|| "the daemon released it".to_owned());
        let _ = self.shared.stream.shutdown(Shutdown::Both);
    }
}

/// Parameters of a session.
pub(crate) struct SessionParts<'a> {
    pub(crate) name: &'a str,
    pub(crate) stream: UnixStream,
    pub(crate) watch: Watch,
    pub(crate) observer: Arc<dyn VmObserver>,
    pub(crate) thread_start: ThreadStart,
}

impl Session {
    /// Starts the reading thread. The greeting arrives on the returned channel.
    pub(crate) fn start(parts: SessionParts<'_>) -> io::Result<(Self, Receiver<Greeting>)> {
        let SessionParts { name, stream, watch, observer, thread_start } = parts;
        let stream = QemuStream::new(stream, &Closing::default())?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        let known = Known {
            state: VmRunState::Paused,
            waits_for_space: false,
            has_agent: false,
            off_because: None,
            ended: None,
        };
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            stream,
            writing: Mutex::new(0),
            waiting: Mutex::default(),
            known: Mutex::new(known),
            has_ended: Condvar::new(),
        });
        let (greeting, greeted) = sync_channel(1);
        let reading = Reading {
            shared: Arc::clone(&shared),
            watch: Some(watch),
            observer,
            greeting: Some(greeting),
            events: MessageRate::of_events(Instant::now()),
            bytes: MessageRate::of_bytes(Instant::now()),
            unplugging: Unplugging::default(),
            heard: None,
            last_reads: LAST_READS_MAX,
        };
        let builder = std::thread::Builder::new().name("vm".to_owned());
        builder.spawn(move || match thread_start() {
            Ok(()) => reading.run(),
            Err(error) => {
                tracing::error!(%error, "a thread of a VM could not drop its privileges");
                reading.end(&format!("its monitor cannot be read: {error}"), false);
            }
        })?;
        Ok((Self { shared }, greeted))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// State of the reading thread.
struct Reading {
    shared: Arc<Shared>,
    watch: Option<Watch>,
    observer: Arc<dyn VmObserver>,
    greeting: Option<SyncSender<Greeting>>,
    events: MessageRate,
    bytes: MessageRate,
    unplugging: Unplugging,
    /// How the process ended, while its last messages are read.
    heard: Option<LauncherEvent>,
    last_reads: u32,
}

impl Reading {
    fn run(mut self) {
        let mut reader = QmpReader::new();
        let why = loop {
            match self.poll(&mut reader) {
                Ok(None) => {}
                Ok(Some(heard)) => return self.finish(Some(heard), "QEMU has ended"),
                Err(why) => break why,
            }
        };
        let _ = self.shared.stream.shutdown(Shutdown::Both);
        self.greeting = None;
        lock(&self.shared.waiting).clear();
        if self.shared.ended().is_some() {
            return;
        }
        let heard = self.heard.take();
        let heard =
            heard.or_else(|| self.watch.as_ref().and_then(|watch| watch.read_within(END_LIMIT)));
        let heard = heard.or_else(|| {
            let watch = self.watch.as_ref()?;
            watch.kill();
            watch.read_within(ANSWER_LIMIT)
        });
        self.finish(heard, &why);
    }

    /// Waits for one event and handles it. Returns the end of the process if it was reported.
    ///
    /// # Errors
    /// The reason why the monitor can no longer be read.
    fn poll(&mut self, reader: &mut QmpReader) -> Result<Option<LauncherEvent>, String> {
        if self.heard.is_some() {
            let last = wait_readable([self.shared.stream.as_fd()], Some(Duration::ZERO));
            self.last_reads = self.last_reads.saturating_sub(1);
            if self.last_reads == 0 || !matches!(last, Ok([true])) {
                return Ok(self.heard.take());
            }
            return self.read(reader).map(|()| None);
        }
        let limit = self.unplugging.is_waiting().then_some(RETRY);
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
            self.hear_news();
        } else {
            self.unplug_further();
        }
        Ok(None)
    }

    /// Reads a report of the launcher.
    fn hear_news(&mut self) {
        match self.watch.as_ref().map(Watch::read) {
            Some(heard @ LauncherEvent::Ended(_)) => self.heard = Some(heard),
            _ => self.watch = None,
        }
    }

    /// Stops reading for `pause`, or until the end of the process is reported.
    fn hold(&mut self, pause: Duration) {
        if pause.is_zero() || self.heard.is_some() {
            return;
        }
        let Some(watch) = &self.watch else { return std::thread::sleep(pause) };
        if matches!(wait_readable([watch.descriptor()], Some(pause)), Ok([true])) {
            self.hear_news();
        }
    }

    fn read(&mut self, reader: &mut QmpReader) -> Result<(), String> {
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
        let pause = self.bytes.count(cost, Instant::now());
        self.hold(pause);
        reader.handle_bytes(buffer.get(..length).unwrap_or_default());
        while let Some(message) = reader.poll_message().map_err(|error| error.to_string())? {
            // The session was closed meanwhile.
            if self.shared.ended().is_some() {
                return Err("the daemon released it".to_owned());
            }
            self.handle(message);
        }
        Ok(())
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Greeting(greeting) => match self.greeting.take() {
                Some(sender) => {
                    let _ = sender.try_send(greeting);
                }
                None => self.handle_unasked(),
            },
            Message::Return { id, value } => self.handle_answer(id, Ok(value)),
            Message::Error { id, text, .. } => self.handle_answer(id, Err(text)),
            Message::Event(event) => self.handle_event(event),
        }
    }

    fn handle_answer(&mut self, id: Option<u64>, outcome: Outcome) {
        let waiting = id.and_then(|id| Some((id, lock(&self.shared.waiting).remove(&id)?)));
        let Some((id, waiting)) = waiting else { return self.handle_unasked() };
        match waiting {
            Waiting::Caller(sender) => {
                let _ = sender.try_send(outcome);
            }
            Waiting::Unplugging => {
                if let Some(device) = self.unplugging.handle_answer(id, outcome.err().as_deref()) {
                    self.observer.handle_notice(VmNotice::Unplugged(device));
                }
                if !self.unplugging.is_waiting() {
                    self.unplug_further();
                }
            }
        }
    }

    /// Counts a message that nothing has requested as an event.
    fn handle_unasked(&mut self) {
        let pause = self.events.count(1, Instant::now());
        self.hold(pause);
    }

    /// Sends the next command that removes the backend of an unplugged device.
    fn unplug_further(&mut self) {
        while let Some(command) = self.unplugging.poll_command() {
            match self.shared.send(&command, None, Waiting::Unplugging) {
                Ok(id) => self.unplugging.handle_sent(id),
                Err(_) => return,
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        let pause = self.events.count(1, Instant::now());
        self.hold(pause);
        // Of the messages of a process that has ended, only those within the pace are handled, and the
        // reason of a shutdown.
        let is_excess = !pause.is_zero() && self.heard.is_some();
        if is_excess && !matches!(event, Event::Shutdown(_)) {
            return;
        }
        match event {
            Event::Stop => {
                // A guest that has panicked is stopped as a consequence.
                if lock(&self.shared.known).state == VmRunState::Running {
                    self.change(VmRunState::Paused);
                }
            }
            Event::Resume => {
                lock(&self.shared.known).waits_for_space = false;
                self.change(VmRunState::Running);
            }
            Event::BlockIoError { stops: true, is_full: true, .. } => {
                // One that was paused before stays paused for that reason.
                let mut known = lock(&self.shared.known);
                known.waits_for_space |= known.state == VmRunState::Running;
            }
            Event::GuestPanicked { .. } => self.change(VmRunState::Panicked),
            Event::Reset(_) => self.observer.handle_notice(VmNotice::Reset),
            Event::Shutdown(trigger) => {
                lock(&self.shared.known).off_because = Some(trigger.reason);
                self.change(VmRunState::Off);
            }
            Event::DeviceDeleted { device: Some(device), .. } => {
                // A VF has no backend that would remain.
                if let Some(nic) = device.strip_prefix("vf-").filter(|nic| is_name(nic)) {
                    let device = VmDevice::Vf(nic.to_owned());
                    return self.observer.handle_notice(VmNotice::Unplugged(device));
                }
                self.unplugging.handle_deleted(&device);
                self.unplug_further();
            }
            Event::DeviceUnplugGuestError { device } => {
                tracing::warn!(
                    vm = self.shared.name,
                    ?device,
                    "the guest does not release a device"
                );
            }
            Event::VserportChange { id, is_open } if id == AGENT_PORT => {
                lock(&self.shared.known).has_agent = is_open;
            }
            Event::VserportChange { .. }
            | Event::BlockIoError { .. }
            | Event::DeviceDeleted { .. }
            | Event::Powerdown
            | Event::Other { .. } => {}
        }
    }

    fn change(&self, state: VmRunState) {
        let mut known = lock(&self.shared.known);
        if known.state != state {
            known.state = state;
            drop(known);
            self.observer.handle_notice(VmNotice::State(state));
        }
    }

    /// Reports how the process ended: as the launcher reports, or else as the monitor did.
    fn finish(&self, heard: Option<LauncherEvent>, why: &str) {
        let off = lock(&self.shared.known).off_because.clone();
        let (is_known_bad, how) = match heard {
            Some(LauncherEvent::Ended(ended)) => {
                (ended.is_success == Some(false), Some(ended.text()))
            }
            _ => (false, None),
        };
        let word = off.as_deref().unwrap_or_default();
        let is_orderly = matches!(word, "guest-shutdown" | "host-qmp-quit") && !is_known_bad;
        let reason = match (word, how) {
            ("guest-shutdown", _) if is_orderly => "the guest has shut down".to_owned(),
            ("host-qmp-quit", _) if is_orderly => "QEMU was requested to end".to_owned(),
            ("", Some(how)) => how,
            (word, Some(how)) => format!("{how} (QEMU reported: {word})"),
            (_, None) => format!("{why}; the exit status of its process is unknown"),
        };
        self.end(&reason, is_orderly);
    }

    fn end(&self, reason: &str, is_orderly: bool) {
        let mut known = lock(&self.shared.known);
        if known.ended.is_some() {
            return;
        }
        known.ended = Some(reason.to_owned());
        known.state = VmRunState::Off;
        drop(known);
        lock(&self.shared.waiting).clear();
        self.shared.has_ended.notify_all();
        self.observer.handle_notice(VmNotice::Ended { is_orderly, reason: reason.to_owned() });
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
