//! Metadata contexts (section "Metadata querying"). The only context is `base:allocation`.

use super::option_code::OptionCode;
use super::option_data_reader::OptionDataReader;
use super::option_error::OptionError;
use super::option_reply;
use crate::block_status::ALLOCATION_CONTEXT_ID;
use crate::export::Export;
use crate::export_list::ExportList;
use crate::framing::Framing;
use crate::handshake::export_lookup::find;

/// Maximum number of metadata queries per option.
pub const QUERIES_MAX: u32 = 64;

pub(crate) const ALLOCATION_CONTEXT_NAME: &str = "base:allocation";
/// Query for all contexts of the namespace `base`. It is valid for listing only, and selects no
/// context.
const WILDCARD: &str = "base:";

/// Processes `NBD_OPT_LIST_META_CONTEXT`: appends the contexts that match the queries.
pub(crate) fn list_contexts(
    framing: Framing,
    exports: &(impl ExportList + ?Sized),
    data: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), OptionError> {
    let option = OptionCode::LIST_META_CONTEXT;
    let queries = Queries::read(framing, exports, option, data)?;
    if queries.count == 0 || queries.has_wildcard || queries.has_allocation {
        // Listed contexts have no id, so the field is 0 by convention.
        queries.append_context(option, 0, output);
    }
    Ok(())
}

/// Processes `NBD_OPT_SET_META_CONTEXT`: selects contexts and appends them. Returns the name of the
/// export if its `base:allocation` was selected, otherwise `None`.
pub(crate) fn select_contexts(
    framing: Framing,
    exports: &(impl ExportList + ?Sized),
    data: &[u8],
    output: &mut Vec<u8>,
) -> Result<Option<String>, OptionError> {
    let option = OptionCode::SET_META_CONTEXT;
    let queries = Queries::read(framing, exports, option, data)?;
    if !queries.has_allocation {
        return Ok(None);
    }
    let is_told = queries.append_context(option, ALLOCATION_CONTEXT_ID, output);
    Ok(is_told.then(|| queries.export.name().to_owned()))
}

/// Decoded metadata queries for one export.
struct Queries<'a> {
    export: &'a Export,
    count: u32,
    has_allocation: bool,
    has_wildcard: bool,
}

impl<'a> Queries<'a> {
    fn read(
        framing: Framing,
        exports: &'a (impl ExportList + ?Sized),
        option: OptionCode,
        data: &[u8],
    ) -> Result<Self, OptionError> {
        if !framing.has_chunks() {
            return Err(OptionError::StructuredRepliesRequired { option });
        }
        let mut fields = OptionDataReader::new(option, data);
        let name = fields.string("export name")?;
        let offset = fields.offset();
        let count = fields.u32("number of queries")?;
        if count > QUERIES_MAX {
            let (found, max) = (count, QUERIES_MAX);
            return Err(OptionError::TooManyQueries { option, offset, found, max });
        }
        let (mut has_allocation, mut has_wildcard) = (false, false);
        for _ in 0..count {
            let offset = fields.offset();
            let query = fields.string("query")?;
            if !query.contains(':') {
                return Err(OptionError::NoNamespace { option, offset });
            }
            has_allocation |= query == ALLOCATION_CONTEXT_NAME;
            has_wildcard |= query == WILDCARD;
        }
        fields.check_end()?;
        let export = find(exports, option, name)?;
        Ok(Self { export, count, has_allocation, has_wildcard })
    }

    /// Appends `base:allocation` with context id `id` if the export supports it; returns true in
    /// that case.
    fn append_context(&self, option: OptionCode, id: u32, output: &mut Vec<u8>) -> bool {
        let knows = self.export.features().allocation_status;
        if knows {
            let parts = [&id.to_be_bytes(), ALLOCATION_CONTEXT_NAME.as_bytes()];
            option_reply::append_reply(output, option, option_reply::REP_META_CONTEXT, &parts);
        }
        knows
    }
}
