//! The guest agent's protocol: what QEMU's `qga` answers in a guest
//! (`qga/qapi-schema.json`; the framing in `docs/interop/qemu-ga-ref.rst`,
//! `guest-sync-delimited`).
//!
//! It has QMP's commands and answers in lines of JSON, and neither greeting, numbers nor events. Who
//! connects finds what was left unread by somebody before: so each conversation begins with
//! [`AgentCommand::Sync`], and [`AgentReader`] gives nothing that came before its answer.
//!
//! An agent is a program in a guest. Its words are taken for what they are: texts are cut and
//! cleaned of what a terminal would take for commands, lists have ends, and what makes no sense is
//! an error or left out.

use std::net::IpAddr;

use serde_json::{Value, json};
use thiserror::Error;

use crate::lines::{Lines, TooLong};

/// Bytes of the longest line. A guest with a hundred interfaces takes a tenth.
pub const AGENT_LINE_BYTES_MAX: usize = 256 << 10;
/// What a text is cut to, in characters.
pub const AGENT_TEXT_CHARS_MAX: usize = 128;
/// Interfaces of a guest that are looked at.
pub const AGENT_INTERFACES_MAX: usize = 256;
/// Addresses of an interface that are looked at.
pub const AGENT_ADDRESSES_MAX: usize = 64;

/// Stands before the answer to [`AgentCommand::Sync`], and nowhere in JSON.
const SENTINEL: u8 = 0xff;

/// What an agent is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCommand {
    /// The answer is this number again; what comes before it was somebody else's.
    Sync(u64),
    /// Which version it is, and what it can do ([`agent_version`]).
    Info,
    /// Which system the guest runs ([`agent_system`]).
    System,
    /// The guest's name ([`agent_host_name`]).
    HostName,
    /// The guest's network interfaces ([`agent_interfaces`]).
    Interfaces,
    /// Turn the guest off. There is an answer only if it does not.
    Shutdown,
    /// Write everything that waits to the file systems, and hold writes to them from then on
    /// ([`agent_count`]).
    Freeze,
    /// Let them be written again ([`agent_count`]).
    Thaw,
    /// Whether they are held ([`agent_is_frozen`]).
    FreezeStatus,
}

impl AgentCommand {
    /// Its name in the protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync(_) => "guest-sync-delimited",
            Self::Info => "guest-info",
            Self::System => "guest-get-osinfo",
            Self::HostName => "guest-get-host-name",
            Self::Interfaces => "guest-network-get-interfaces",
            Self::Shutdown => "guest-shutdown",
            Self::Freeze => "guest-fsfreeze-freeze",
            Self::Thaw => "guest-fsfreeze-thaw",
            Self::FreezeStatus => "guest-fsfreeze-status",
        }
    }

    /// The bytes that tell an agent so.
    pub fn bytes(self) -> Vec<u8> {
        let (mut bytes, command) = match self {
            // The agent forgets what it was told in part.
            Self::Sync(id) => {
                (vec![SENTINEL], json!({ "execute": self.name(), "arguments": { "id": id } }))
            }
            _ => (Vec::new(), json!({ "execute": self.name() })),
        };
        bytes.extend_from_slice(command.to_string().as_bytes());
        bytes.push(b'\n');
        bytes
    }
}

/// Why an agent is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AgentError {
    /// It does not do what it was told, in its own words.
    #[error("the guest's agent refuses `{command}`: {text}")]
    Refused {
        /// The command.
        command: &'static str,
        /// Why, in the guest's words.
        text: String,
    },
    /// What it says is none of its protocol.
    #[error("the guest's agent answers `{command}` with what makes no sense: {what}")]
    Nonsense {
        /// The command.
        command: &'static str,
        /// What it is instead.
        what: &'static str,
    },
}

/// Takes what came and gives answers, from that to [`AgentCommand::Sync`] on.
#[derive(Clone, Debug, Default)]
pub struct AgentReader {
    lines: Lines,
    is_synchronised: bool,
}

impl AgentReader {
    /// A reader of a connection on which the first that was sent is [`AgentCommand::Sync`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what came. All answers should be polled before more is handed over.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.is_synchronised {
            return self.lines.handle_bytes(bytes);
        }
        // Several may have come: only the last is an answer that nobody else has begun.
        if let Some(at) = bytes.iter().rposition(|byte| *byte == SENTINEL) {
            self.is_synchronised = true;
            self.lines.handle_bytes(bytes.get(at + 1..).unwrap_or_default());
        }
    }

    /// What came of the command, if all of it has come.
    ///
    /// # Errors
    /// The agent refuses, or says what is no answer.
    pub fn poll_answer(&mut self, command: AgentCommand) -> Result<Option<Value>, AgentError> {
        let nonsense = |what| AgentError::Nonsense { command: command.name(), what };
        loop {
            let line = self.lines.poll_line(AGENT_LINE_BYTES_MAX);
            let line = line.map_err(|TooLong| nonsense("a line that is too long"))?;
            let Some((_, line)) = line else { return Ok(None) };
            // One who asked before may have left a sentinel between lines.
            let line = line.strip_prefix(&[SENTINEL]).unwrap_or(line);
            if !line.is_empty() {
                let value = serde_json::from_slice(line).map_err(|_| nonsense("no JSON"))?;
                return answer(command, value).map(Some);
            }
        }
    }
}

fn answer(command: AgentCommand, value: Value) -> Result<Value, AgentError> {
    let nonsense = |what| AgentError::Nonsense { command: command.name(), what };
    let Value::Object(mut object) = value else { return Err(nonsense("no object")) };
    if let Some(value) = object.remove("return") {
        return Ok(value);
    }
    let error = object.get("error").ok_or_else(|| nonsense("neither result nor error"))?;
    let text = text_of(error.get("desc")).unwrap_or_else(|| "it does not say why".to_owned());
    Err(AgentError::Refused { command: command.name(), text })
}

/// A text of a guest, fit to be shown: without what a terminal would take for commands, cut at
/// [`AGENT_TEXT_CHARS_MAX`].
fn text_of(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?;
    let clean = |c: char| if c.is_control() || is_invisible(c) { '\u{fffd}' } else { c };
    let text: String = text.chars().take(AGENT_TEXT_CHARS_MAX).map(clean).collect();
    (!text.is_empty()).then_some(text)
}

/// Characters that turn the order of others about, or take no place (Unicode's `Bidi_Control`, and
/// zero width).
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What [`AgentCommand::Info`] returned: the agent's version.
pub fn agent_version(value: &Value) -> Option<String> {
    text_of(value.get("version"))
}

/// What [`AgentCommand::HostName`] returned.
pub fn agent_host_name(value: &Value) -> Option<String> {
    text_of(value.get("host-name"))
}

/// A guest's system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSystem {
    /// What it calls itself, like `Debian GNU/Linux 12 (bookworm)`.
    pub name: Option<String>,
    /// Its kernel, like `6.1.0-28-amd64`.
    pub kernel: Option<String>,
    /// What the guest takes the CPU for, like `x86_64`.
    pub machine: Option<String>,
}

/// What [`AgentCommand::System`] returned.
pub fn agent_system(value: &Value) -> AgentSystem {
    AgentSystem {
        name: text_of(value.get("pretty-name")).or_else(|| text_of(value.get("name"))),
        kernel: text_of(value.get("kernel-release")),
        machine: text_of(value.get("machine")),
    }
}

/// A network interface of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInterface {
    /// Its name in the guest.
    pub name: String,
    /// Its Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// Its IP addresses and the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// What [`AgentCommand::Interfaces`] returned; entries that make no sense are left out.
pub fn agent_interfaces(value: &Value) -> Vec<AgentInterface> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().take(AGENT_INTERFACES_MAX).filter_map(interface).collect()
}

fn interface(value: &Value) -> Option<AgentInterface> {
    let addresses = value.get("ip-addresses").and_then(Value::as_array);
    let addresses = addresses.map(Vec::as_slice).unwrap_or_default();
    Some(AgentInterface {
        name: text_of(value.get("name"))?,
        mac: value.get("hardware-address").and_then(Value::as_str).and_then(mac),
        addresses: addresses.iter().take(AGENT_ADDRESSES_MAX).filter_map(address).collect(),
    })
}

fn address(value: &Value) -> Option<(IpAddr, u8)> {
    let address: IpAddr = value.get("ip-address")?.as_str()?.parse().ok()?;
    let prefix = u8::try_from(value.get("prefix")?.as_u64()?).ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    (prefix <= bits).then_some((address, prefix))
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(bytes)
}

/// What [`AgentCommand::Freeze`] and [`AgentCommand::Thaw`] returned: how many file systems that was
/// about.
///
/// # Errors
/// It is no number.
pub fn agent_count(command: AgentCommand, value: &Value) -> Result<u64, AgentError> {
    let what = "no number";
    value.as_u64().ok_or(AgentError::Nonsense { command: command.name(), what })
}

/// What [`AgentCommand::FreezeStatus`] returned.
///
/// # Errors
/// It is neither of both.
pub fn agent_is_frozen(value: &Value) -> Result<bool, AgentError> {
    let (command, what) = (AgentCommand::FreezeStatus.name(), "neither frozen nor thawed");
    match value.as_str() {
        Some("frozen") => Ok(true),
        Some("thawed") => Ok(false),
        _ => Err(AgentError::Nonsense { command, what }),
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
