//! Incoming migrations (arrivals): checks of the source node's requests, and their dispatch to the
//! driver of the VM that is migrating to this node.

mod abandoned;
mod preconditions;
mod requests;
mod spec;

use std::os::fd::OwnedFd;
use std::sync::mpsc::SyncSender;

use suimon_contract::{ApiError, ErrorCode, IncomingMigrationRequest, IncomingMigrationState};

pub(crate) use self::abandoned::AbandonedMigrations;
pub(crate) use self::spec::incoming_vm_spec;
use crate::PeerStream;

/// Hexadecimal digits of a migration id and of a machine's UUID.
const ID_DIGITS: usize = 32;

/// Request of the source node to the driver of a VM that is migrating to this node.
pub(crate) enum IncomingRequest {
    /// Query the state of the migration. The request also shows that the source is alive.
    Query,
    /// Open a connection for the memory or a disk.
    OpenConnection(PeerStream),
    /// Make this node the owner of the VM.
    Activate,
    /// Abandon the migration, and delete the VM on this node.
    Abandon,
}

/// Response of the driver to an [`IncomingRequest`].
pub(crate) enum IncomingResponse {
    Connection(OwnedFd),
    State(IncomingMigrationState),
}

/// Request to a VM's driver with the channel for its response.
pub(crate) type IncomingRequestMessage =
    (IncomingRequest, SyncSender<Result<IncomingResponse, ApiError>>);

fn hex(text: &str) -> Option<[u8; 16]> {
    let is_hex = text.len() == ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
    Some(number.to_be_bytes())
}

/// Returns the machine's UUID of a VM that is migrating to this node.
///
/// # Errors
/// [`ErrorCode::InvalidValue`] if it is not 32 hexadecimal digits.
pub(crate) fn parse_vm_uuid(request: &IncomingMigrationRequest) -> Result<[u8; 16], ApiError> {
    hex(&request.uuid).ok_or_else(|| not_hexadecimal("uuid"))
}

fn not_hexadecimal(field: &str) -> ApiError {
    let text = format!("must have {ID_DIGITS} hexadecimal digits");
    ApiError::new(ErrorCode::InvalidValue, text).with_resource("arrival").with_field(field)
}
