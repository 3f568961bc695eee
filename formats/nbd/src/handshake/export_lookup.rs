//! Lookup of the export that an option names.

use crate::export::Export;
use crate::export_list::ExportList;
use crate::handshake::option_code::OptionCode;
use crate::handshake::option_error::OptionError;

/// Returns the export with this name.
///
/// # Errors
///
/// [`OptionError::UnknownExport`], which is sent as the reply to `option`.
pub(crate) fn find<'a>(
    exports: &'a (impl ExportList + ?Sized),
    option: OptionCode,
    name: &str,
) -> Result<&'a Export, OptionError> {
    let unknown = || OptionError::UnknownExport { option, name: name.to_owned() };
    exports.export(name).ok_or_else(unknown)
}

/// Checks that the client can use the export: the client requested block sizes, or the export's
/// minimum block size is at most the default.
///
/// # Errors
///
/// [`OptionError::BlockSizeRequired`], which is sent as the reply to `option`.
pub(crate) fn check_block_sizes(
    option: OptionCode,
    export: &Export,
    requested: bool,
) -> Result<&Export, OptionError> {
    if export.requires_block_sizes() && !requested {
        return Err(OptionError::BlockSizeRequired { option, min: export.block_sizes().min });
    }
    Ok(export)
}
