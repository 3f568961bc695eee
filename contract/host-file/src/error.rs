//! Errors of the API.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Kind of an error. The names are part of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The body or file is not JSON or TOML, or a value has the wrong type.
    Malformed,
    /// The key does not exist.
    UnknownKey,
    /// The value is out of range or has an invalid form.
    InvalidValue,
    /// A required key is missing.
    MissingKey,
    /// The key does not apply in this configuration.
    KeyNotApplicable,
    /// Two resources of one kind, or an uplink and a team, have the same name.
    DuplicateName,
    /// Two resources use the same device, socket, MAC address, uplink, team or file.
    Conflict,
    /// VLAN ids or ranges of a trunk overlap.
    OverlappingVlans,
    /// The value names a resource that does not exist in the file.
    UnknownReference,
    /// The requested resource does not exist.
    NotFound,
    /// The resource exists but does not support the HTTP method.
    MethodNotAllowed,
    /// A resource with this name already exists.
    AlreadyExists,
    /// Another resource refers to the resource.
    InUse,
    /// The sum of the minimums would exceed the store's capacity.
    Overcommitted,
    /// A device, file, namespace, directory or CPU does not exist on this host.
    DeviceMissing,
    /// Another program or resource uses the device.
    DeviceBusy,
    /// Another host named by the request does not respond.
    Unreachable,
    /// The daemon lacks a permission on the host.
    PermissionDenied,
    /// The device or host does not support the operation.
    Unsupported,
    /// A system call or host service failed; the message contains its error.
    HostError,
    /// The token is missing or wrong.
    Unauthorized,
    /// The operation was cancelled on request.
    Cancelled,
    /// Internal error: a defect in the daemon.
    Internal,
}

impl ErrorCode {
    /// Error codes in the order of the reference.
    pub const ALL: [Self; 23] = [
        Self::Malformed,
        Self::UnknownKey,
        Self::InvalidValue,
        Self::MissingKey,
        Self::KeyNotApplicable,
        Self::DuplicateName,
        Self::Conflict,
        Self::OverlappingVlans,
        Self::UnknownReference,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::AlreadyExists,
        Self::InUse,
        Self::Overcommitted,
        Self::DeviceMissing,
        Self::DeviceBusy,
        Self::Unreachable,
        Self::PermissionDenied,
        Self::Unsupported,
        Self::HostError,
        Self::Unauthorized,
        Self::Cancelled,
        Self::Internal,
    ];

    /// Returns the code as serialized by the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::InvalidValue => "invalid_value",
            Self::MissingKey => "missing_key",
            Self::KeyNotApplicable => "key_not_applicable",
            Self::DuplicateName => "duplicate_name",
            Self::Conflict => "conflict",
            Self::OverlappingVlans => "overlapping_vlans",
            Self::UnknownReference => "unknown_reference",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::AlreadyExists => "already_exists",
            Self::InUse => "in_use",
            Self::Overcommitted => "overcommitted",
            Self::DeviceMissing => "device_missing",
            Self::DeviceBusy => "device_busy",
            Self::Unreachable => "unreachable",
            Self::PermissionDenied => "permission_denied",
            Self::Unsupported => "unsupported",
            Self::HostError => "host_error",
            Self::Unauthorized => "unauthorized",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// Returns the HTTP status of a response whose first error has this code.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthorized => 401,
            Self::PermissionDenied => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::DuplicateName
            | Self::Conflict
            | Self::AlreadyExists
            | Self::InUse
            | Self::DeviceBusy
            | Self::Cancelled => 409,
            Self::UnknownKey
            | Self::InvalidValue
            | Self::MissingKey
            | Self::KeyNotApplicable
            | Self::OverlappingVlans
            | Self::UnknownReference
            | Self::Overcommitted
            | Self::DeviceMissing
            | Self::Unreachable
            | Self::Unsupported => 422,
            Self::HostError | Self::Internal => 500,
        }
    }

    /// Returns the meaning of the code in one sentence, for references.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Malformed => {
                "The body is not JSON, the host file is not TOML, or a value has the wrong type."
            }
            Self::UnknownKey => "The request or host file contains a key that does not exist.",
            Self::InvalidValue => "A value is out of its range or not of the required form.",
            Self::MissingKey => "A required key is missing.",
            Self::KeyNotApplicable => {
                "A key is not permitted together with the values of other keys."
            }
            Self::DuplicateName => {
                "Two resources of one kind, or an uplink and a team, have the same name."
            }
            Self::Conflict => {
                "Two resources use the same device, socket, MAC address, uplink, team or file, or the \
                 state of an object does not permit the request."
            }
            Self::OverlappingVlans => "VLANs or ranges of VLANs of one port overlap.",
            Self::UnknownReference => {
                "A key names a resource that does not exist in the desired state."
            }
            Self::NotFound => "The requested object does not exist.",
            Self::MethodNotAllowed => "The path exists and does not support this HTTP method.",
            Self::AlreadyExists => "A resource of this kind and name exists already.",
            Self::InUse => "The resource is in use, or another resource refers to it.",
            Self::Overcommitted => {
                "The minimums of a store exceed 90 % of its capacity. The change can be forced (`--force`, in the API `force=true`)."
            }
            Self::DeviceMissing => {
                "A device, file, namespace, directory or CPU does not exist on this host."
            }
            Self::DeviceBusy => "Another process uses a device.",
            Self::Unreachable => "Another host that the request names does not respond.",
            Self::PermissionDenied => {
                "The token does not permit the request, or the host denies the daemon a permission."
            }
            Self::Unsupported => "The device or host does not support the request.",
            Self::HostError => {
                "A system call, QEMU, a guest agent or another node failed; the message contains the \
                 error."
            }
            Self::Unauthorized => "The bearer token is missing or wrong.",
            Self::Cancelled => "The operation was cancelled.",
            Self::Internal => {
                "The daemon has a defect; its log has the cause (`journalctl -u suimond`). Save the \
                 log and report the defect. If a change ended with this error, restart the daemon, \
                 which undoes an incomplete change."
            }
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error with its location and the action to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiError {
    /// Code of the kind of error.
    pub code: ErrorCode,
    /// Cause, and what to do next.
    pub message: String,
    /// Resource concerned, such as `nic/web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Key concerned, such as `vlan` or `offload.tx_checksum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// File concerned; absent if the configuration came from no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in the file, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// Body of every unsuccessful response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// Errors found, most important first; never empty.
    pub errors: Vec<ApiError>,
}

impl ApiError {
    /// Returns an error without a location.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), resource: None, field: None, file: None, line: None }
    }

    /// Sets the resource concerned, such as `nic/web`.
    #[must_use]
    pub fn with_resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Sets the key concerned, such as `vlan`.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl fmt::Display for ApiError {
    /// Writes `host.toml:12: nic/web: vlan: message`, omitting unknown parts.
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

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn codes_are_written_as_they_are_serialised_and_none_is_left_out() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
        let mut sorted = ErrorCode::ALL.to_vec();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted, ErrorCode::ALL, "in the order of the declaration, each once");
        assert_eq!(*sorted.last().unwrap() as usize + 1, sorted.len());
    }
}
