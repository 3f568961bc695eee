//! Fuzz oracle of the reader of QMP messages.
//!
//! The input is the byte stream of QEMU. It is read as a whole, byte by byte, and in chunks of
//! seven bytes; the messages are compared with the input's lines, each parsed separately.

use serde_json::Value;
use suimon_qmp::{
    AGENT_TEXT_CHARS_MAX, AgentCommand, AgentReader, LINE_BYTES_MAX, QmpEvent, QmpMessage,
    QmpReadError, QmpReader, ReadErrorKind, TEXT_CHARS_MAX, decode_agent_host_name,
    decode_agent_interfaces, decode_agent_system, decode_agent_version, decode_base_memory_bytes,
    decode_chardevs, decode_cpu_count, decode_cpu_slots, decode_driver_ready,
    decode_file_system_count, decode_is_frozen, decode_kvm_enabled, decode_machine_type,
    decode_migration, decode_qom_properties, decode_run_state, decode_standby_negotiated,
};

/// Statistics of an input, with which tests verify that seeds reach the intended states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Messages of each kind.
    pub greetings: usize,
    pub returns: usize,
    pub errors: usize,
    pub events: usize,
    /// True if the reader failed.
    pub was_cut: bool,
}

/// Reads the input, and checks all messages and their decoded contents.
///
/// # Panics
///
/// The reader or a decoder violates a rule.
pub fn check(input: &[u8]) -> Outcome {
    let expected = read(input, usize::MAX);
    for chunk_bytes in [1, 7] {
        assert_eq!(read(input, chunk_bytes), expected, "the same bytes in pieces of {chunk_bytes}");
    }
    read_agent(input);
    let (messages, error) = expected;
    judge(input, &messages, error.as_ref());
    let mut outcome = Outcome { was_cut: error.is_some(), ..Outcome::default() };
    for message in &messages {
        match message {
            QmpMessage::Greeting(greeting) => {
                outcome.greetings += 1;
                check_text(&greeting.package);
            }
            QmpMessage::Return { value, .. } => {
                outcome.returns += 1;
                read_answers(value);
            }
            QmpMessage::Error { text, .. } => {
                outcome.errors += 1;
                check_text(text);
            }
            QmpMessage::Event(event) => {
                outcome.events += 1;
                check_event(event);
            }
        }
    }
    outcome
}

fn read(input: &[u8], chunk_bytes: usize) -> (Vec<QmpMessage>, Option<QmpReadError>) {
    let mut reader = QmpReader::new();
    let mut messages = Vec::new();
    for bytes in input.chunks(chunk_bytes.min(input.len().max(1))) {
        reader.handle_bytes(bytes);
        loop {
            match reader.poll_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(
                        reader.poll_message(),
                        Err(error.clone()),
                        "an error is not permanent"
                    );
                    return (messages, Some(error));
                }
            }
        }
    }
    (messages, None)
}

/// Reads the input as the byte stream of a guest agent, after the 0xff byte that precedes its first
/// response.
fn read_agent(input: &[u8]) {
    let command = AgentCommand::Info;
    let mut reader = AgentReader::new();
    reader.handle_bytes(&[&b"\xff"[..], input].concat());
    while let Ok(Some(value)) = reader.poll_response(command) {
        let texts = [
            decode_agent_version(&value),
            decode_agent_host_name(&value),
            decode_agent_system(&value).name,
        ];
        let names =
            decode_agent_interfaces(&value).into_iter().map(|interface| Some(interface.name));
        for text in texts.into_iter().chain(names).flatten() {
            assert!(text.chars().count() <= AGENT_TEXT_CHARS_MAX, "{text:?} is too long");
            assert!(!text.chars().any(char::is_control), "{text:?} contains control characters");
        }
        let _ = (decode_is_frozen(&value), decode_file_system_count(command, &value));
    }
}

/// Checks that each complete non-empty line is a message, up to the first invalid one.
fn judge(input: &[u8], messages: &[QmpMessage], error: Option<&QmpReadError>) {
    let mut offset = 0;
    let mut expected = messages.iter();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let is_whole = line.ends_with(b"\n");
        let fails = error.is_some_and(|error| error.offset == offset as u64);
        if line.len() > LINE_BYTES_MAX || (!is_whole && line.len() == LINE_BYTES_MAX) {
            assert!(fails && error.unwrap().kind == ReadErrorKind::TooLong);
            break;
        }
        if !is_whole {
            break;
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            let object = serde_json::from_slice::<Value>(text).ok();
            let keys = ["QMP", "event", "return", "error"];
            let is_one =
                object.is_some_and(|value| keys.iter().any(|key| value.get(key).is_some()));
            if fails {
                break;
            }
            assert!(is_one, "a line that is not QMP was accepted at {offset}");
            assert!(expected.next().is_some(), "the message at {offset} is missing");
        }
        offset += line.len();
    }
    assert!(expected.next().is_none(), "a message that was not sent");
}

/// Checks a text that becomes part of an error or event.
fn check_text(text: &str) {
    assert!(text.chars().count() <= TEXT_CHARS_MAX, "a text of {} bytes", text.len());
    assert!(!text.chars().any(char::is_control), "{text:?} has control characters");
}

fn check_event(event: &QmpEvent) {
    match event {
        QmpEvent::Reset(trigger) | QmpEvent::Shutdown(trigger) => check_text(&trigger.reason),
        QmpEvent::DeviceDeleted { device, path } => {
            check_text(device.as_deref().unwrap_or_default());
            check_text(path);
        }
        QmpEvent::DeviceUnplugGuestError { device } => {
            check_text(device.as_deref().unwrap_or_default());
        }
        QmpEvent::BlockIoError { node: text, .. }
        | QmpEvent::GuestPanicked { action: text }
        | QmpEvent::VserportChange { id: text, .. }
        | QmpEvent::Other { name: text } => check_text(text),
        QmpEvent::Stop | QmpEvent::Resume | QmpEvent::Powerdown => {}
    }
}

fn read_answers(value: &Value) {
    if let Ok(slots) = decode_cpu_slots(value) {
        // A sum of all slots does not overflow.
        assert!(slots.iter().all(|slot| slot.cpus <= u64::from(u16::MAX)));
    }
    if let Ok(read) = decode_migration(value) {
        assert!(read.bytes_sent <= 1 << 56 && read.remaining_bytes <= 1 << 56);
    }
    let _ =
        (decode_machine_type(value), decode_standby_negotiated(value), decode_driver_ready(value));
    let _ = (
        decode_run_state(value),
        decode_kvm_enabled(value),
        decode_cpu_count(value),
        decode_cpu_slots(value),
    );
    let _ = decode_base_memory_bytes(value);
    let _ = (decode_chardevs(value), decode_qom_properties(value));
}
