//! Result of a handshake, and the state negotiated during it.

use crate::export::Export;
use crate::flags::TransmissionFlags;
use crate::framing::Framing;

/// Result of a completed handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegotiatedParameters {
    /// Copy of the selected export's properties at the time of selection.
    pub export: Export,
    /// Transmission flags sent to the client.
    pub flags: TransmissionFlags,
    /// Negotiated format of requests and replies.
    pub framing: Framing,
    /// True if `base:allocation` was selected, so that `NBD_CMD_BLOCK_STATUS` is permitted.
    pub base_allocation: bool,
    /// True if the connection is encrypted.
    pub tls: bool,
}

/// State negotiated so far. It is discarded when TLS starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct NegotiatedState {
    pub(crate) framing: Framing,
    /// Name of the export for which `base:allocation` was selected; `None` if it was not.
    pub(crate) allocation_export: Option<String>,
}
