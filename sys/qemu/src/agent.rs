//! A conversation with the agent in a guest, over the socket that QEMU holds for it.
//!
//! Each conversation is a connection of its own: it begins with a number that the agent repeats, and
//! ends after a time that is set before. A guest may answer what it likes, as slowly as it likes.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_frame::MacAddr;
use suimon_ports::{GuestFacts, GuestInterface, GuestSystem, VmError, VmErrorKind};
use suimon_qmp::{
    AgentCommand, AgentError, AgentReader, agent_count, agent_host_name, agent_interfaces,
    agent_is_frozen, agent_system, agent_version,
};

use crate::host::connect_in;

/// The agent's socket, in the VM's folder.
pub(crate) const AGENT_SOCKET: &str = "agent.sock";
/// The port of the guest's serial bus, by its id.
pub(crate) const AGENT_PORT: &str = "agent";
/// The name by which an agent finds its port.
pub(crate) const AGENT_PORT_NAME: &str = "org.qemu.guest_agent.0";

/// An agent that is there answers in milliseconds; a guest may be busy.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// An agent that does not do what has no answer says so at once.
const REFUSAL_LIMIT: Duration = Duration::from_secs(1);
/// A guest that freezes writes first what waits.
const FREEZE_LIMIT: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 16 << 10;

/// A conversation.
#[derive(Debug)]
struct Conversation {
    stream: UnixStream,
    reader: AgentReader,
    until: Instant,
}

fn silent() -> VmError {
    let text = "the guest's agent does not answer; does it run? (on Debian the package \
                qemu-guest-agent)";
    VmError::new(VmErrorKind::Silent, text)
}

/// Why a conversation came to nothing.
#[derive(Debug)]
enum Failed {
    /// There was no answer in time.
    Silent,
    /// There was one.
    Agent(AgentError),
}

impl From<Failed> for VmError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Silent => silent(),
            Failed::Agent(error @ AgentError::Refused { .. }) => {
                Self::new(VmErrorKind::Refused, error.to_string())
            }
            // Whether it has done what it was told is not known, as if it had said nothing.
            Failed::Agent(error @ AgentError::Nonsense { .. }) => {
                Self::new(VmErrorKind::Silent, error.to_string())
            }
        }
    }
}

impl Conversation {
    /// Begins one that is over at the end of this time, whatever the guest does.
    fn begin(folder: &Path, limit: Duration) -> Result<Self, VmError> {
        let stream = connect_in(folder, AGENT_SOCKET).map_err(|error| {
            let text = format!(
                "the line to the guest's agent cannot be used ({error}); a VM that was started by \
                 an earlier version has none until its next start"
            );
            VmError::new(VmErrorKind::Refused, text)
        })?;
        let until = Instant::now() + limit;
        let mut talk = Self { stream, reader: AgentReader::new(), until };
        // Another number each time, so that no late answer is taken for this one's.
        let number = u64::from(std::process::id()) << 32 | u64::from(fresh_number());
        let sync = AgentCommand::Sync(number);
        talk.send(sync)?;
        while talk.hear(sync)?.as_u64() != Some(number) {}
        Ok(talk)
    }

    fn send(&mut self, command: AgentCommand) -> Result<(), Failed> {
        let limit = self.left()?;
        let sent = self.stream.set_write_timeout(Some(limit));
        sent.and_then(|()| self.stream.write_all(&command.bytes())).map_err(|_| Failed::Silent)
    }

    fn left(&self) -> Result<Duration, Failed> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Failed::Silent) } else { Ok(left) }
    }

    fn hear(&mut self, command: AgentCommand) -> Result<Value, Failed> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(value) = self.reader.poll_answer(command).map_err(Failed::Agent)? {
                return Ok(value);
            }
            let limit = self.left()?;
            let count = self
                .stream
                .set_read_timeout(Some(limit))
                .and_then(|()| self.stream.read(&mut buffer));
            match count {
                Ok(0) => return Err(Failed::Silent),
                Ok(count) => self.reader.handle_bytes(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Failed::Silent),
            }
        }
    }

    fn ask(&mut self, command: AgentCommand) -> Result<Value, Failed> {
        self.send(command)?;
        self.hear(command)
    }
}

/// A number that differs from that of the conversation before.
fn fresh_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// What the agent tells of its guest.
pub(crate) fn guest_facts(folder: &Path) -> Result<GuestFacts, VmError> {
    let mut talk = Conversation::begin(folder, ANSWER_LIMIT)?;
    let version = agent_version(&talk.ask(AgentCommand::Info)?);
    let frozen = talk.ask(AgentCommand::FreezeStatus).ok();
    let is_frozen = frozen.is_some_and(|value| agent_is_frozen(&value) == Ok(true));
    // An agent that does not know a command, or takes none while file systems are frozen, refuses
    // it; what it does not tell is not known.
    let mut known = |command| match talk.ask(command) {
        Ok(value) => Ok(Some(value)),
        Err(Failed::Agent(AgentError::Refused { .. })) => Ok(None),
        Err(failed) => Err(failed),
    };
    let system = known(AgentCommand::System)?.map(|value| agent_system(&value)).unwrap_or_default();
    let host_name = known(AgentCommand::HostName)?.as_ref().and_then(agent_host_name);
    let interfaces = known(AgentCommand::Interfaces)?.as_ref().map(agent_interfaces);
    Ok(GuestFacts {
        agent_version: version,
        host_name,
        system: GuestSystem { name: system.name, kernel: system.kernel, machine: system.machine },
        interfaces: interfaces.unwrap_or_default().into_iter().map(interface).collect(),
        is_frozen,
    })
}

fn interface(found: suimon_qmp::AgentInterface) -> GuestInterface {
    GuestInterface {
        name: found.name,
        mac: found.mac.map(MacAddr::new),
        addresses: found.addresses,
    }
}

/// Has the guest turn itself off. That an agent does so shows in what comes after.
pub(crate) fn shut_down(folder: &Path) -> Result<(), VmError> {
    let mut talk = Conversation::begin(folder, ANSWER_LIMIT)?;
    talk.send(AgentCommand::Shutdown)?;
    talk.until = Instant::now() + REFUSAL_LIMIT;
    match talk.hear(AgentCommand::Shutdown) {
        // There is no answer if it does.
        Err(Failed::Silent) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Has the guest hold writes to its file systems. Returns how many those are.
pub(crate) fn freeze(folder: &Path) -> Result<u64, VmError> {
    // One that does not even answer was not told to freeze, and has not.
    let begun = Conversation::begin(folder, ANSWER_LIMIT);
    let mut talk = begun.map_err(|error| VmError::new(VmErrorKind::Refused, error.text))?;
    talk.until = Instant::now() + FREEZE_LIMIT;
    let count = talk.ask(AgentCommand::Freeze)?;
    Ok(agent_count(AgentCommand::Freeze, &count).map_err(Failed::Agent)?)
}

/// Has it write again. Returns how many file systems that was about.
pub(crate) fn thaw(folder: &Path) -> Result<u64, VmError> {
    let mut talk = Conversation::begin(folder, ANSWER_LIMIT)?;
    let count = talk.ask(AgentCommand::Thaw)?;
    Ok(agent_count(AgentCommand::Thaw, &count).map_err(Failed::Agent)?)
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
