//! What there is to be exported.

use crate::export::Export;

/// The exports that a client can choose from. They may change between two calls.
pub trait ExportList {
    /// The export of this name; the empty name asks for the default export, if there is
    /// one (section "Option types", `NBD_OPT_EXPORT_NAME`).
    fn export(&self, name: &str) -> Option<&Export>;

    /// All of them, in the order in which they are listed.
    fn exports(&self) -> impl Iterator<Item = &Export>;
}

/// The default export is the one without a name, or else the only one.
impl ExportList for [Export] {
    fn export(&self, name: &str) -> Option<&Export> {
        let named = self.iter().find(|export| export.name() == name);
        match self {
            [only] if name.is_empty() => Some(only),
            _ => named,
        }
    }

    fn exports(&self) -> impl Iterator<Item = &Export> {
        self.iter()
    }
}
