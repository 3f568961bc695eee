//! Errors of migrations between nodes with different versions of Suimon.
//!
//! A node rejects requests of another version of the migration protocol. Versions of Suimon with
//! the same protocol can differ in fields of the request, which the destination rejects as well. In
//! both cases the errors name both nodes, their versions, and the action to take.

use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, MIGRATION_PROTOCOL, MigrationHeader, Name};

use crate::remote_nodes::peer_error;
use crate::shared::Shared;
use crate::{Node, PeerError, PeerNode};

/// Maximum length of the host name of a source node in errors, as for Linux.
const HOST_NAME_MAX: usize = 64;

/// Maximum length of the error of a request in the log, in characters.
const LOGGED_MAX: usize = 1000;

/// Maximum length of a key of a request in the response, in bytes. Longer than all keys.
const KEY_MAX: usize = 64;

const ACTION: &str = "install the same version of Suimon on both nodes";

/// Reason why a request to prepare a migration cannot be read, as stated to the source node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Unreadable {
    #[error("the request has a key that the destination node does not know")]
    UnknownKey,
    #[error("the request has a value that the destination node does not accept")]
    InvalidValue,
    #[error("the request is not JSON, lacks a key, or has a value of another type")]
    Malformed,
}

impl Unreadable {
    /// Returns the reason for an error code of the JSON parser.
    const fn of(code: ErrorCode) -> Self {
        match code {
            ErrorCode::UnknownKey => Self::UnknownKey,
            ErrorCode::InvalidValue => Self::InvalidValue,
            _ => Self::Malformed,
        }
    }
}

impl Node {
    /// Returns the error of a request to prepare a migration whose body cannot be parsed. `error`
    /// is the error of the parser. Its text goes to the log only: it contains parts of the request,
    /// and internals of this node.
    pub fn unreadable_migration_error(&self, body: &[u8], error: ApiError) -> ApiError {
        let shared = self.shared();
        let header = MigrationHeader::parse(body);
        let from = source_label(header.as_ref().and_then(|header| header.source_node.as_deref()));
        if shared.unreadable_request_log_limit.try_acquire(Instant::now()) {
            let error = logged(&error);
            tracing::warn!(%from, %error, "rejected a migration whose request cannot be read");
        }
        let (reason, here) = (Unreadable::of(error.code), shared.host_name());
        let Some(header) = header else {
            let text = format!("{reason}; see the log of node {here}");
            return ApiError { field: key(error.field), ..ApiError::new(error.code, text) };
        };
        shared.check_protocol(header.protocol, &from).err().unwrap_or_else(|| {
            let text = format!(
                "{reason}; {from} may have another version of Suimon than node {here} ({}); if so, \
                 {ACTION}; otherwise, see the log of node {here}",
                shared.versions_text()
            );
            ApiError { field: key(error.field), ..ApiError::new(error.code, text) }
        })
    }
}

impl Shared {
    /// Checks that the source node has the same version of the migration protocol.
    ///
    /// # Errors
    /// [`ErrorCode::Unsupported`] with the versions of both nodes.
    pub(super) fn check_protocol(&self, protocol: u64, source: &str) -> Result<(), ApiError> {
        if protocol == u64::from(MIGRATION_PROTOCOL) {
            return Ok(());
        }
        let text = format!(
            "{source} has version {protocol} of the migration protocol, and node {} has {}; \
             {ACTION}",
            self.host_name(),
            self.versions_text()
        );
        Err(ApiError::new(ErrorCode::Unsupported, text)
            .with_resource("arrival")
            .with_field("protocol"))
    }

    /// Returns this node's versions of the migration protocol and of Suimon.
    fn versions_text(&self) -> String {
        format!("version {MIGRATION_PROTOCOL} of the migration protocol, Suimon {}", self.version)
    }

    /// Converts the error of a request to prepare a migration that was sent to node `target`. If
    /// that node cannot read the request, the error contains the versions of both nodes.
    pub(crate) fn migration_request_error(
        &self,
        target: &Name,
        peer: &dyn PeerNode,
        error: PeerError,
    ) -> ApiError {
        let PeerError::Rejected(errors) = &error else { return peer_error(target, error) };
        let is_unreadable = errors.iter().any(|error| {
            matches!(
                error.code,
                ErrorCode::Malformed | ErrorCode::UnknownKey | ErrorCode::MissingKey
            )
        });
        let may_differ = is_unreadable
            || errors.iter().any(|error| {
                matches!(error.code, ErrorCode::InvalidValue | ErrorCode::KeyNotApplicable)
            });
        let mut error = peer_error(target, error);
        if !may_differ {
            return error;
        }
        let version = peer.host().ok().map(|host| host.version);
        let differs = version.as_ref().is_some_and(|version| *version != self.version);
        let reason = match (differs, is_unreadable) {
            (true, _) => "This is a difference between versions",
            (false, true) => "This may be a difference between versions",
            (false, false) => return error,
        };
        let version = version.map_or_else(
            || "an unknown version of Suimon".to_owned(),
            |version| format!("Suimon {version}"),
        );
        error.message = format!(
            "{}. {reason}: node {} has {}, and node {target} has {version}; {ACTION}",
            error.message,
            self.host_name(),
            self.versions_text()
        );
        error
    }
}

/// Returns `name` if it can be a key of a request: at most [`KEY_MAX`] bytes without control
/// characters.
fn key(name: Option<String>) -> Option<String> {
    name.filter(|name| name.len() <= KEY_MAX && !name.chars().any(char::is_control))
}

/// Returns the first [`LOGGED_MAX`] characters of an error that contains text of a peer, with
/// control characters replaced.
fn logged(error: &ApiError) -> String {
    let text = error.to_string();
    let replace_control = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(LOGGED_MAX).map(replace_control).collect()
}

/// Returns how errors name the source node: `node NAME`, or `the source node` if the host name is
/// unknown or cannot be valid.
pub(super) fn source_label(name: Option<&str>) -> String {
    let is_name =
        |name: &&str| name.len() <= HOST_NAME_MAX && name.chars().all(|c| c.is_ascii_graphic());
    name.filter(is_name).map_or_else(|| "the source node".to_owned(), |name| format!("node {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_peer_in_the_log_is_limited() {
        let error = ApiError::new(ErrorCode::UnknownKey, format!("a\nb{}", "x".repeat(4 << 20)));
        let text = logged(&error);
        assert_eq!(text.chars().count(), LOGGED_MAX);
        assert!(text.contains("a\u{fffd}b") && !text.contains('\n'), "{text}");
    }
}
