//! Errors of migrations between nodes with different versions of Suimon.
//!
//! A node rejects requests of another version of the migration protocol. Versions of Suimon with the
//! same protocol can differ in fields of the request, which the destination rejects as well. In both
//! cases the errors name both nodes, their versions, and the action to take.

use suimon_contract::{ApiError, ErrorCode, MIGRATION_PROTOCOL, MigrationHeader, Name};

use crate::remote_nodes::peer_error;
use crate::shared::Shared;
use crate::{Node, PeerError, PeerNode};

/// Maximum length of the host name of a source node in errors, as for Linux.
const HOST_NAME_MAX: usize = 64;

const ACTION: &str = "install the same version of Suimon on both nodes";

impl Node {
    /// Returns the error of an arrival request whose body cannot be parsed. `error` is the error of
    /// the parser.
    pub fn unreadable_arrival(&self, body: &[u8], error: ApiError) -> ApiError {
        let Some(header) = MigrationHeader::parse(body) else { return error };
        let shared = self.shared();
        let from = source_label(header.from.as_deref());
        let error = shared.check_protocol(header.protocol, &from).err().unwrap_or_else(|| {
            let message = format!(
                "{}; {from} and node {} ({}) have different versions of Suimon: {ACTION}",
                error.message,
                shared.host_name(),
                shared.spoken()
            );
            ApiError { message, ..error }
        });
        tracing::warn!(%error, "rejected a migration from a node with another version");
        error
    }
}

impl Shared {
    /// Checks that the source node has the same version of the migration protocol.
    ///
    /// # Errors
    /// [`ErrorCode::Unsupported`] with the versions of both nodes.
    pub(super) fn check_protocol(&self, protocol: u64, from: &str) -> Result<(), ApiError> {
        if protocol == u64::from(MIGRATION_PROTOCOL) {
            return Ok(());
        }
        let text = format!(
            "{from} has version {protocol} of the migration protocol, and node {} has {}; {ACTION}",
            self.host_name(),
            self.spoken()
        );
        Err(ApiError::new(ErrorCode::Unsupported, text).about("arrival").field("protocol"))
    }

    /// Returns this node's versions of the migration protocol and of Suimon.
    fn spoken(&self) -> String {
        format!("version {MIGRATION_PROTOCOL} of the migration protocol, Suimon {}", self.version)
    }

    /// Converts the error of an arrival request to the node `to`. If that node cannot read the
    /// request, the error contains the versions of both nodes.
    pub(crate) fn arrival_error(
        &self,
        to: &Name,
        peer: &dyn PeerNode,
        error: PeerError,
    ) -> ApiError {
        let PeerError::Rejected(errors) = &error else { return peer_error(to, error) };
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
        let mut error = peer_error(to, error);
        if !may_differ {
            return error;
        }
        let there = peer.host().ok().map(|host| host.version);
        if !is_unreadable && there.as_ref().is_none_or(|there| *there == self.version) {
            return error;
        }
        let there = there.map_or_else(
            || "an unknown version of Suimon".to_owned(),
            |version| format!("Suimon {version}"),
        );
        error.message = format!(
            "{}. This is a difference between versions: node {} has {}, and node {to} has {there}; \
             {ACTION}",
            error.message,
            self.host_name(),
            self.spoken()
        );
        error
    }
}

/// Returns the label of the source node in errors. Host names that cannot be valid are left out.
fn source_label(name: Option<&str>) -> String {
    let is_name =
        |name: &&str| name.len() <= HOST_NAME_MAX && name.chars().all(|c| c.is_ascii_graphic());
    name.filter(is_name).map_or_else(|| "the source node".to_owned(), |name| format!("node {name}"))
}
