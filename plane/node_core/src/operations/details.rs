//! Details of operations that have ended: plan, report and error.

use std::io::{self, Write};

use suimon_contract::Operation;

use crate::texts::shorten;

/// Maximum size of the details of all operations that have ended, in bytes of JSON. Beyond it, the
/// operations that ended first lose their details.
pub const DETAIL_BYTES_MAX: usize = 16 << 20;

/// Maximum length of the message of an error whose operation has lost its details, in bytes.
const BRIEF_ERROR_BYTES_MAX: usize = 4 << 10;

/// Returns the size of the operation's details, in bytes of JSON.
pub(super) fn detail_bytes(operation: &Operation) -> usize {
    let mut bytes = ByteCount(0);
    let details = (&operation.plan, &operation.report, &operation.error);
    if let Err(error) = serde_json::to_writer(&mut bytes, &details) {
        tracing::error!(%error, "cannot determine the size of an operation");
    }
    bytes.0
}

/// Removes the operation's plan and report, and shortens its error.
pub(super) fn drop_details(operation: &mut Operation) {
    operation.plan = None;
    operation.report = Vec::new();
    if let Some(error) = &mut operation.error {
        shorten(&mut error.message, BRIEF_ERROR_BYTES_MAX);
        error.message.shrink_to_fit();
    }
    operation.details_dropped = true;
}

/// Returns true if [`drop_details`] removes any detail.
pub(super) fn has_details(operation: &Operation) -> bool {
    let has_long_error =
        operation.error.as_ref().is_some_and(|error| error.message.len() > BRIEF_ERROR_BYTES_MAX);
    operation.plan.is_some() || !operation.report.is_empty() || has_long_error
}

/// Writer that counts bytes.
struct ByteCount(usize);

impl Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
