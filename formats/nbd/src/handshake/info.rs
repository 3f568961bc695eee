//! Export information (`NBD_OPT_INFO`, `NBD_OPT_GO`; `NBD_REP_INFO`).

use super::option_code::OptionCode;
use super::option_data_reader::OptionDataReader;
use super::option_error::OptionError;
use super::option_reply;
use crate::export::BlockSizes;
use crate::handshake::negotiated::NegotiatedParameters;

/// `NBD_INFO_EXPORT`.
const EXPORT: u16 = 0;
/// `NBD_INFO_NAME`.
const NAME: u16 = 1;
/// `NBD_INFO_DESCRIPTION`.
const DESCRIPTION: u16 = 2;
/// `NBD_INFO_BLOCK_SIZE`.
const BLOCK_SIZE: u16 = 3;

/// Decoded data of `NBD_OPT_INFO` or `NBD_OPT_GO`: name of an export and the information requested
/// about it.
pub(crate) struct InfoRequest<'a> {
    pub(crate) name: &'a str,
    requests_name: bool,
    requests_description: bool,
    pub(crate) requests_block_sizes: bool,
}

impl<'a> InfoRequest<'a> {
    /// Decodes the option's data. Unknown and repeated information requests are ignored, as the
    /// protocol requires.
    pub(crate) fn read(option: OptionCode, data: &'a [u8]) -> Result<Self, OptionError> {
        let mut fields = OptionDataReader::new(option, data);
        let name = fields.string("export name")?;
        let mut request = Self {
            name,
            requests_name: false,
            requests_description: false,
            requests_block_sizes: false,
        };
        for _ in 0..fields.u16("number of information requests")? {
            match fields.u16("information request")? {
                NAME => request.requests_name = true,
                DESCRIPTION => request.requests_description = true,
                BLOCK_SIZE => request.requests_block_sizes = true,
                _ => {}
            }
        }
        fields.check_end()?;
        Ok(request)
    }

    /// Appends the information replies, without the final acknowledgement. Block sizes other than
    /// the defaults are sent even if the client did not request them.
    pub(crate) fn append_replies(
        &self,
        option: OptionCode,
        negotiated: &NegotiatedParameters,
        output: &mut Vec<u8>,
    ) {
        let export = &negotiated.export;
        let mut append = |kind: u16, parts: [&[u8]; 3]| {
            let [first, second, third] = parts;
            let parts = [&kind.to_be_bytes(), first, second, third];
            option_reply::append_reply(output, option, option_reply::REP_INFO, &parts);
        };
        let (size, flags) = (export.size().to_be_bytes(), negotiated.flags.bits().to_be_bytes());
        append(EXPORT, [&size, &flags, &[]]);
        if self.requests_name {
            append(NAME, [export.name().as_bytes(), &[], &[]]);
        }
        if self.requests_description && !export.description().is_empty() {
            append(DESCRIPTION, [export.description().as_bytes(), &[], &[]]);
        }
        let sizes = export.block_sizes();
        if self.requests_block_sizes || sizes != BlockSizes::default() {
            let fields = [sizes.min, sizes.preferred, sizes.payload_max].map(u32::to_be_bytes);
            let [min, preferred, payload_max] = &fields;
            append(BLOCK_SIZE, [min, preferred, payload_max]);
        }
    }
}
