//! Access of a handshake to the server's exports.

use crate::export::Export;

/// Exports that clients can select. The list may change between calls.
pub trait ExportList {
    /// Returns the export with this name; `None` if there is none. The empty name selects the
    /// default export, if there is one (section "Option types", `NBD_OPT_EXPORT_NAME`).
    fn export(&self, name: &str) -> Option<&Export>;

    /// Returns every export, in listing order.
    fn exports(&self) -> impl Iterator<Item = &Export>;
}

/// The default export is the export with the empty name, or the only export.
impl ExportList for [Export] {
    fn export(&self, name: &str) -> Option<&Export> {
        let export = self.iter().find(|export| export.name() == name);
        match self {
            [only] if name.is_empty() => Some(only),
            _ => export,
        }
    }

    fn exports(&self) -> impl Iterator<Item = &Export> {
        self.iter()
    }
}
