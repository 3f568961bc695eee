//! Session with the QEMU guest agent, over the Unix socket that QEMU serves.
//!
//! Each session is a separate connection. It begins with a unique number that the agent must
//! repeat, and ends at a fixed deadline, regardless of the guest's replies.

use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_frame::MacAddr;
use suimon_ports::{GuestInfo, GuestInterface, GuestSystem, VmError, VmErrorKind};
use suimon_qmp::{
    AgentCommand, AgentError, AgentReader, decode_agent_host_name, decode_agent_interfaces,
    decode_agent_system, decode_agent_version, decode_file_system_count, decode_is_frozen,
};
use suimon_unix_socket::CloseQueue;

use crate::messages::wait_readable;
use crate::qemu_stream::QemuStream;
use crate::vm_socket::connect_in;

/// File name of the guest agent's socket, in the VM's folder.
pub(crate) const AGENT_SOCKET: &str = "agent.sock";
/// Chardev id of the guest agent's port on the virtio-serial bus.
pub(crate) const AGENT_PORT: &str = "agent";
/// Name of the virtio-serial port on which a guest agent listens.
pub(crate) const AGENT_PORT_NAME: &str = "org.qemu.guest_agent.0";

/// Time limit for a reply of an agent. An idle guest's agent replies in milliseconds; the guest may
/// be busy. In tests it is longer, because the guest's thread may wait for a CPU.
const REPLY_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 3 });
/// Time to wait for an error after a command that has no reply on success. In tests it is longer,
/// as [`REPLY_TIMEOUT`].
const REFUSAL_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 1 });
/// Time limit for freezing file systems: the guest first writes its dirty pages.
const FREEZE_LIMIT: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 16 << 10;

/// Port of the guest agent of a VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentPort<'p> {
    pub(crate) folder: &'p Path,
    /// Queue that closes the connection of the previous session; a session starts only when it is
    /// empty.
    pub(crate) close_queue: &'p CloseQueue,
}

/// Session with the guest agent of a VM.
#[derive(Debug)]
struct AgentSession {
    stream: QemuStream,
    reader: AgentReader,
    deadline: Instant,
}

/// Returns the error for a connection to `peer` of QEMU that cannot be opened before the previous
/// one is closed.
pub(crate) fn not_closed(peer: &str) -> VmError {
    let text = format!(
        "the previous connection to the {peer} is not closed yet: QEMU delays the close, or the \
         daemon cannot start the thread that closes it. If the limit of threads is reached \
         (`TasksMax` of the suimond service, `kernel.threads-max`), raise it; otherwise kill the VM \
         (`suimon vm kill`)"
    );
    VmError::new(VmErrorKind::Timeout, text)
}

fn silent() -> VmError {
    let text = "the guest agent does not respond; check that it runs in the guest (Debian: \
                package qemu-guest-agent)";
    VmError::new(VmErrorKind::Timeout, text)
}

/// Reason why an exchange with the agent failed.
#[derive(Debug)]
enum Failed {
    /// No reply was received within the time limit.
    Silent,
    /// The agent replied with an error, or the reply is invalid.
    Agent(AgentError),
}

impl From<Failed> for VmError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Silent => silent(),
            Failed::Agent(error @ AgentError::CommandFailed { .. }) => {
                Self::new(VmErrorKind::Refused, error.to_string())
            }
            // As after a missing reply, the effect of the command is unknown.
            Failed::Agent(error @ AgentError::InvalidResponse { .. }) => {
                Self::new(VmErrorKind::Timeout, error.to_string())
            }
        }
    }
}

impl AgentSession {
    /// Connects to the VM's guest agent and synchronises with it. All exchanges of the session fail
    /// after `limit`.
    fn begin(port: AgentPort<'_>, limit: Duration) -> Result<Self, VmError> {
        let deadline = Instant::now() + limit;
        if !port.close_queue.wait(limit) {
            return Err(not_closed("guest agent"));
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        let connected = connect_in(port.folder, AGENT_SOCKET, remaining)
            .and_then(|stream| QemuStream::new(stream, port.close_queue));
        let stream = connected.map_err(|error| {
            if error.kind() == ErrorKind::TimedOut {
                return silent();
            }
            let text = format!(
                "the channel to the guest agent cannot be used ({error}); a VM started by an \
                 earlier version has none until its next start"
            );
            VmError::new(VmErrorKind::Refused, text)
        })?;
        Self { stream, reader: AgentReader::new(), deadline }.synchronize()
    }

    /// Exchanges a unique number with the agent, so that earlier replies are discarded.
    fn synchronize(self) -> Result<Self, VmError> {
        let mut session = self;
        // The number is unique, so that a late reply to an earlier session is not mistaken for a
        // reply to this one.
        let number = u64::from(std::process::id()) << 32 | u64::from(fresh_number());
        let sync = AgentCommand::Sync(number);
        session.send(sync)?;
        while session.receive_reply(sync)?.as_u64() != Some(number) {}
        Ok(session)
    }

    fn send(&mut self, command: AgentCommand) -> Result<(), Failed> {
        let limit = self.time_left()?;
        let result = self.stream.set_write_timeout(Some(limit));
        let bytes = command.bytes();
        result.and_then(|()| (&*self.stream).write_all(&bytes)).map_err(|_| Failed::Silent)
    }

    fn time_left(&self) -> Result<Duration, Failed> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(Failed::Silent) } else { Ok(remaining) }
    }

    fn receive_reply(&mut self, command: AgentCommand) -> Result<Value, Failed> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(value) = self.reader.poll_response(command).map_err(Failed::Agent)? {
                return Ok(value);
            }
            let limit = self.time_left()?;
            let [has_bytes] =
                wait_readable([self.stream.as_fd()], Some(limit)).map_err(|_| Failed::Silent)?;
            if !has_bytes {
                continue;
            }
            match self.stream.read_bytes(&mut buffer) {
                Ok(0) => return Err(Failed::Silent),
                Ok(count) => self.reader.handle_bytes(buffer.get(..count).unwrap_or_default()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(_) => return Err(Failed::Silent),
            }
        }
    }

    fn request(&mut self, command: AgentCommand) -> Result<Value, Failed> {
        self.send(command)?;
        self.receive_reply(command)
    }
}

/// Returns a number that no earlier session of this process used.
fn fresh_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// Returns the guest's properties as far as the agent reports them.
pub(crate) fn query_guest_info(port: AgentPort<'_>) -> Result<GuestInfo, VmError> {
    let mut session = AgentSession::begin(port, REPLY_TIMEOUT)?;
    let version = decode_agent_version(&session.request(AgentCommand::Info)?);
    let frozen = session.request(AgentCommand::FreezeStatus).ok();
    let is_frozen = frozen.is_some_and(|value| decode_is_frozen(&value) == Ok(true));
    // An agent rejects commands that it does not support, or does not permit while file systems are
    // frozen. Such properties are reported as unknown.
    let mut query = |command| match session.request(command) {
        Ok(value) => Ok(Some(value)),
        Err(Failed::Agent(AgentError::CommandFailed { .. })) => Ok(None),
        Err(failed) => Err(failed),
    };
    let system =
        query(AgentCommand::System)?.map(|value| decode_agent_system(&value)).unwrap_or_default();
    let host_name = query(AgentCommand::HostName)?.as_ref().and_then(decode_agent_host_name);
    let interfaces = query(AgentCommand::Interfaces)?.as_ref().map(decode_agent_interfaces);
    Ok(GuestInfo {
        agent_version: version,
        host_name,
        system: GuestSystem {
            name: system.name,
            kernel: system.kernel,
            architecture: system.architecture,
        },
        interfaces: interfaces.unwrap_or_default().into_iter().map(interface).collect(),
        is_frozen,
    })
}

fn interface(interface: suimon_qmp::AgentInterface) -> GuestInterface {
    GuestInterface {
        name: interface.name,
        mac: interface.mac.map(MacAddr::new),
        addresses: interface.addresses,
    }
}

/// Requests that the guest shuts down. The agent does not report whether the shutdown succeeds.
pub(crate) fn shut_down(port: AgentPort<'_>) -> Result<(), VmError> {
    let mut session = AgentSession::begin(port, REPLY_TIMEOUT)?;
    session.send(AgentCommand::Shutdown)?;
    session.deadline = Instant::now() + REFUSAL_LIMIT;
    match session.receive_reply(AgentCommand::Shutdown) {
        // On success, the agent shuts the guest down without a reply.
        Err(Failed::Silent) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Freezes the guest's file systems. Returns the number of frozen file systems.
pub(crate) fn freeze(port: AgentPort<'_>) -> Result<u64, VmError> {
    // If the agent does not reply to the synchronisation, the command to freeze was not sent.
    let result = AgentSession::begin(port, REPLY_TIMEOUT);
    let mut session = result.map_err(|error| VmError::new(VmErrorKind::Refused, error.text))?;
    session.deadline = Instant::now() + FREEZE_LIMIT;
    let count = session.request(AgentCommand::Freeze)?;
    Ok(decode_file_system_count(AgentCommand::Freeze, &count).map_err(Failed::Agent)?)
}

/// Thaws the guest's file systems. Returns the number of thawed file systems.
pub(crate) fn thaw(port: AgentPort<'_>) -> Result<u64, VmError> {
    let mut session = AgentSession::begin(port, REPLY_TIMEOUT)?;
    let count = session.request(AgentCommand::Thaw)?;
    Ok(decode_file_system_count(AgentCommand::Thaw, &count).map_err(Failed::Agent)?)
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
