//! Errors as the API gives them.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind of error. The names are part of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The body or file is not JSON or TOML, or a value has the wrong type.
    Malformed,
    /// A key that does not exist.
    UnknownKey,
    /// A value out of its range or not of its form.
    InvalidValue,
    /// A key that must be there is not.
    MissingKey,
    /// A key that has no meaning here.
    KeyNotApplicable,
    /// Two resources of one kind have one name.
    DuplicateName,
    /// Two resources claim one device, socket, MAC address or uplink.
    Conflict,
    /// VLANs overlap.
    OverlappingVlans,
    /// It names a resource that does not exist in the file.
    UnknownReference,
    /// The resource asked for does not exist.
    NotFound,
    /// The resource exists already.
    AlreadyExists,
    /// Something else refers to the resource.
    InUse,
    /// A device, namespace, directory or CPU does not exist on this host.
    DeviceMissing,
    /// A device is held by something else.
    DeviceBusy,
    /// The host does not let the daemon do this.
    PermissionDenied,
    /// The device or host cannot do this.
    Unsupported,
    /// The host refused; the text has its words.
    HostError,
    /// No or a wrong token.
    Unauthorized,
    /// The operation was cancelled.
    Cancelled,
    /// A defect of the daemon.
    Internal,
}

/// One error: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiError {
    /// What kind.
    pub code: ErrorCode,
    /// What is wrong and what to do next.
    pub message: String,
    /// The resource, like `nic/web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The key, like `vlan` or `offload.tx_checksum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The file, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// All that was found wrong, most important first; never empty.
    pub errors: Vec<ApiError>,
}

impl ApiError {
    /// An error that names no place yet.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), resource: None, field: None, file: None, line: None }
    }

    /// The same, about a resource like `nic/web`.
    #[must_use]
    pub fn about(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// The same, about one key of it.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl fmt::Display for ApiError {
    /// `host.toml:12: nic/web: vlan: message`, as far as each part is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if let Some(resource) = &self.resource {
            write!(f, "{resource}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
