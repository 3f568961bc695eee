//! Messages that QEMU sends.

use serde_json::{Map, Value};

use crate::event::QmpEvent;
use crate::text::{TEXT_CHARS_MAX, sanitize_text};
use crate::version::Version;

/// First message of a QMP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Version of the connected QEMU.
    pub version: Version,
    /// Package version of the distribution, without control characters; may be empty.
    pub package: String,
}

/// Class of a QMP error (`QapiErrorClass`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Any other class, including classes of later versions.
    Generic,
    /// The command does not exist.
    CommandNotFound,
    /// The device is not active.
    DeviceNotActive,
    /// The device does not exist.
    DeviceNotFound,
    /// KVM lacks a capability that the command requires.
    KvmMissingCap,
}

/// Message from QEMU, received as one line.
#[derive(Clone, Debug, PartialEq)]
pub enum QmpMessage {
    /// First message of the connection.
    Greeting(Greeting),
    /// Successful completion of a command.
    Return {
        /// Id of the command; `None` if absent or not a number.
        id: Option<u64>,
        /// Result. The function that the command's documentation names decodes it.
        value: Value,
    },
    /// Failed completion of a command.
    Error {
        /// Id of the command; `None` if it is absent, not a number, or QEMU could not read it.
        id: Option<u64>,
        /// Class of the reported error.
        class: ErrorClass,
        /// Description of the error by QEMU, without control characters.
        text: String,
    },
    /// Asynchronous event of the VM.
    Event(QmpEvent),
}

impl QmpMessage {
    /// Decodes a message from its JSON value.
    ///
    /// # Errors
    ///
    /// Description of the violation of QMP.
    pub(crate) fn read(value: Value) -> Result<Self, &'static str> {
        let Value::Object(mut object) = value else {
            return Err("a line that is not a JSON object");
        };
        if let Some(greeting) = object.get("QMP") {
            return Greeting::read(greeting).map(Self::Greeting);
        }
        if let Some(name) = object.get("event") {
            let name = name.as_str().ok_or("an event whose name is not a string")?;
            return Ok(Self::Event(QmpEvent::read(
                name,
                object.get("data").unwrap_or(&Value::Null),
            )));
        }
        let id = object.get("id").and_then(Value::as_u64);
        if let Some(value) = object.remove("return") {
            return Ok(Self::Return { id, value });
        }
        let error = object.get("error").and_then(Value::as_object);
        error.map(|error| Self::read_error(id, error)).ok_or("neither greeting, response nor event")
    }

    fn read_error(id: Option<u64>, error: &Map<String, Value>) -> Self {
        let text = |name| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let class = match text("class") {
            "CommandNotFound" => ErrorClass::CommandNotFound,
            "DeviceNotActive" => ErrorClass::DeviceNotActive,
            "DeviceNotFound" => ErrorClass::DeviceNotFound,
            "KVMMissingCap" => ErrorClass::KvmMissingCap,
            _ => ErrorClass::Generic,
        };
        Self::Error { id, class, text: sanitize_text(text("desc"), TEXT_CHARS_MAX) }
    }
}

impl Greeting {
    fn read(value: &Value) -> Result<Self, &'static str> {
        let version = value.get("version").ok_or("a greeting without a version")?;
        let package = version.get("package").and_then(Value::as_str).unwrap_or_default();
        let package = sanitize_text(package, TEXT_CHARS_MAX);
        let version = Version::read(version).ok_or("a greeting with an invalid version")?;
        Ok(Self { version, package })
    }
}
