//! What QEMU says.

use serde_json::{Map, Value};

use crate::event::Event;
use crate::version::Version;

/// What QEMU says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Its version.
    pub version: Version,
    /// Who packaged it, in their words; may be empty.
    pub package: String,
}

/// What QEMU's errors are sorted by (`QapiErrorClass`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// None of the others, and those that later versions add.
    Generic,
    /// There is no such command.
    CommandNotFound,
    /// The device is not active.
    DeviceNotActive,
    /// There is no such device.
    DeviceNotFound,
    /// KVM is missing something.
    KvmMissingCap,
}

/// One line that QEMU sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The first one.
    Greeting(Greeting),
    /// What came of a command.
    Return {
        /// The command's number; nothing if QEMU names none of ours.
        id: Option<u64>,
        /// What it returned.
        value: Value,
    },
    /// Why a command was not carried out.
    Error {
        /// The command's number; nothing if QEMU could not read that, or names none of ours.
        id: Option<u64>,
        /// What kind of error it is.
        class: ErrorClass,
        /// What is wrong, in QEMU's words.
        text: String,
    },
    /// Something has happened.
    Event(Event),
}

impl Message {
    /// What a line of JSON says.
    pub(crate) fn read(value: Value) -> Result<Self, &'static str> {
        let Value::Object(mut object) = value else { return Err("a line that is no object") };
        if let Some(greeting) = object.get("QMP") {
            return Greeting::read(greeting).map(Self::Greeting);
        }
        if let Some(name) = object.get("event") {
            let name = name.as_str().ok_or("an event whose name is no text")?;
            return Ok(Self::Event(Event::read(name, object.get("data").unwrap_or(&Value::Null))));
        }
        let id = object.get("id").and_then(Value::as_u64);
        if let Some(value) = object.remove("return") {
            return Ok(Self::Return { id, value });
        }
        let error = object.get("error").and_then(Value::as_object);
        error.map(|error| Self::read_error(id, error)).ok_or("neither greeting, answer nor event")
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
        Self::Error { id, class, text: text("desc").to_owned() }
    }
}

impl Greeting {
    fn read(value: &Value) -> Result<Self, &'static str> {
        let version = value.get("version").ok_or("a greeting without a version")?;
        let package = version.get("package").and_then(Value::as_str).unwrap_or_default();
        let package = package.to_owned();
        let version = Version::read(version).ok_or("a greeting whose version is none")?;
        Ok(Self { version, package })
    }
}
