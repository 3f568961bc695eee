//! Protocol of the QEMU guest agent (`qga/qapi-schema.json`; framing in
//! `docs/interop/qemu-ga-ref.rst`, `guest-sync-delimited`).
//!
//! Like QMP, the protocol exchanges commands and responses as lines of JSON, but without greeting,
//! command ids or events. A new connection may first receive responses that an earlier client left
//! unread. Each conversation therefore starts with [`AgentCommand::Sync`], and [`AgentReader`]
//! discards everything before the response to it.
//!
//! The agent is a program of the guest and therefore untrusted. Texts are truncated and stripped of
//! terminal control characters, lists are bounded, and malformed values lead to errors or are
//! omitted.

use std::net::IpAddr;

use serde_json::{Value, json};
use thiserror::Error;

use crate::line_buffer::{LineBuffer, LineTooLong, has_few_values};
use crate::text::sanitize_text;

/// Maximum length of a response line in bytes. A guest with a hundred interfaces needs a tenth of
/// it.
pub const AGENT_LINE_BYTES_MAX: usize = 256 << 10;
/// Maximum length of a text in characters; longer texts are truncated.
pub const AGENT_TEXT_CHARS_MAX: usize = 128;
/// Maximum number of interfaces evaluated per guest.
pub const AGENT_INTERFACES_MAX: usize = 256;
/// Maximum number of addresses evaluated per interface.
pub const AGENT_ADDRESSES_MAX: usize = 64;

/// Byte that precedes the response to [`AgentCommand::Sync`]; it does not occur in JSON.
const SENTINEL: u8 = 0xff;

/// Command to a guest agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCommand {
    /// Synchronizes the connection: the agent responds with the same number. Input before this
    /// response belongs to a previous client.
    Sync(u64),
    /// Queries version and supported commands ([`decode_agent_version`]).
    Info,
    /// Queries the operating system ([`decode_agent_system`]).
    System,
    /// Queries the guest's host name ([`decode_agent_host_name`]).
    HostName,
    /// Queries the guest's network interfaces ([`decode_agent_interfaces`]).
    Interfaces,
    /// Powers the guest off. The agent responds only on failure.
    Shutdown,
    /// Flushes and freezes the guest's file systems ([`decode_file_system_count`]).
    Freeze,
    /// Thaws the guest's file systems ([`decode_file_system_count`]).
    Thaw,
    /// Queries whether file systems are frozen ([`decode_is_frozen`]).
    FreezeStatus,
}

impl AgentCommand {
    /// Returns the command's name in the protocol.
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

    /// Returns the command as the bytes to send.
    pub fn bytes(self) -> Vec<u8> {
        let (mut bytes, command) = match self {
            // The leading byte makes the agent discard a partial command.
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

/// Failure of a guest agent command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AgentError {
    /// The agent reported an error.
    #[error("the guest agent rejected `{command}`: {text}")]
    CommandFailed {
        /// Name of the failed command.
        command: &'static str,
        /// Error text of the guest, truncated and sanitized.
        text: String,
    },
    /// The response violates the protocol.
    #[error("the guest agent returned an invalid response to `{command}`: {defect}")]
    InvalidResponse {
        /// Name of the command sent.
        command: &'static str,
        /// Description of the invalid response.
        defect: &'static str,
    },
}

/// Parser of an agent's responses, starting with the response to [`AgentCommand::Sync`].
#[derive(Clone, Debug, Default)]
pub struct AgentReader {
    lines: LineBuffer,
    is_synchronised: bool,
}

impl AgentReader {
    /// Creates a reader for a connection on which [`AgentCommand::Sync`] was sent first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends received bytes. Poll all responses before appending more, so that the buffer stays
    /// bounded.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.is_synchronised {
            return self.lines.handle_bytes(bytes);
        }
        // Several sentinels may be pending; only the last belongs to the response to this client.
        if let Some(index) = bytes.iter().rposition(|byte| *byte == SENTINEL) {
            self.is_synchronised = true;
            self.lines.handle_bytes(bytes.get(index + 1..).unwrap_or_default());
        }
    }

    /// Returns the result that the agent sent in response to `command`; `None` if the response is
    /// incomplete.
    ///
    /// # Errors
    ///
    /// The agent reported an error or sent an invalid response.
    pub fn poll_response(&mut self, command: AgentCommand) -> Result<Option<Value>, AgentError> {
        let nonsense = |defect| AgentError::InvalidResponse { command: command.name(), defect };
        loop {
            let line = self.lines.poll_line(AGENT_LINE_BYTES_MAX);
            let line = line.map_err(|LineTooLong| nonsense("a line that is too long"))?;
            let Some((_, line)) = line else { return Ok(None) };
            // Sync responses to an earlier client may leave a sentinel between lines.
            let line = line.strip_prefix(&[SENTINEL]).unwrap_or(line);
            if !has_few_values(line) {
                return Err(nonsense("a line with too many values"));
            }
            if !line.is_empty() {
                let value = serde_json::from_slice(line).map_err(|_| nonsense("not JSON"))?;
                return results(command, value).map(Some);
            }
        }
    }
}

fn results(command: AgentCommand, value: Value) -> Result<Value, AgentError> {
    let nonsense = |defect| AgentError::InvalidResponse { command: command.name(), defect };
    let Value::Object(mut object) = value else { return Err(nonsense("not a JSON object")) };
    if let Some(value) = object.remove("return") {
        return Ok(value);
    }
    let error = object.get("error").ok_or_else(|| nonsense("neither `return` nor `error`"))?;
    let text = displayable_text(error.get("desc"))
        .unwrap_or_else(|| "no description of the error".to_owned());
    Err(AgentError::CommandFailed { command: command.name(), text })
}

/// Returns a guest's text without terminal control characters, truncated to
/// [`AGENT_TEXT_CHARS_MAX`]; `None` if `value` is not a text.
fn displayable_text(value: Option<&Value>) -> Option<String> {
    let text = sanitize_text(value?.as_str()?, AGENT_TEXT_CHARS_MAX);
    (!text.is_empty()).then_some(text)
}

/// Extracts the agent's version from the result of [`AgentCommand::Info`]; `None` if it has none.
pub fn decode_agent_version(value: &Value) -> Option<String> {
    displayable_text(value.get("version"))
}

/// Extracts the host name from the result of [`AgentCommand::HostName`]; `None` if it has none.
pub fn decode_agent_host_name(value: &Value) -> Option<String> {
    displayable_text(value.get("host-name"))
}

/// Operating system of a guest, as reported by its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSystem {
    /// Name, such as `Debian GNU/Linux 12 (bookworm)`.
    pub name: Option<String>,
    /// Kernel release, such as `6.1.0-28-amd64`.
    pub kernel: Option<String>,
    /// CPU architecture, such as `x86_64`.
    pub architecture: Option<String>,
}

/// Extracts the operating system from the result of [`AgentCommand::System`].
pub fn decode_agent_system(value: &Value) -> AgentSystem {
    AgentSystem {
        name: displayable_text(value.get("pretty-name"))
            .or_else(|| displayable_text(value.get("name"))),
        kernel: displayable_text(value.get("kernel-release")),
        architecture: displayable_text(value.get("machine")),
    }
}

/// Network interface of a guest, as reported by its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInterface {
    /// Interface name in the guest.
    pub name: String,
    /// MAC address of the interface; `None` if it has none.
    pub mac: Option<[u8; 6]>,
    /// IP addresses with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// Extracts the interfaces from the result of [`AgentCommand::Interfaces`]; malformed entries are
/// omitted.
pub fn decode_agent_interfaces(value: &Value) -> Vec<AgentInterface> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().take(AGENT_INTERFACES_MAX).filter_map(interface).collect()
}

fn interface(value: &Value) -> Option<AgentInterface> {
    let addresses = value.get("ip-addresses").and_then(Value::as_array);
    let addresses = addresses.map(Vec::as_slice).unwrap_or_default();
    Some(AgentInterface {
        name: displayable_text(value.get("name"))?,
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

/// Extracts the number of affected file systems from the result of [`AgentCommand::Freeze`] or
/// [`AgentCommand::Thaw`].
///
/// # Errors
///
/// The result is not a number.
pub fn decode_file_system_count(command: AgentCommand, value: &Value) -> Result<u64, AgentError> {
    let defect = "not a number";
    value.as_u64().ok_or(AgentError::InvalidResponse { command: command.name(), defect })
}

/// Extracts the state from the result of [`AgentCommand::FreezeStatus`]: true if file systems are
/// frozen.
///
/// # Errors
///
/// The result is neither `frozen` nor `thawed`.
pub fn decode_is_frozen(value: &Value) -> Result<bool, AgentError> {
    let (command, defect) = (AgentCommand::FreezeStatus.name(), "neither frozen nor thawed");
    match value.as_str() {
        Some("frozen") => Ok(true),
        Some("thawed") => Ok(false),
        _ => Err(AgentError::InvalidResponse { command, defect }),
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
