//! Encoding of option replies (sections "Fixed newstyle negotiation" and "Option reply types").

use super::option_code::OptionCode;
use super::option_error::OptionError;
use crate::text::{STRING_BYTES_MAX, truncate};

const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// `NBD_REP_ACK`.
const ACK: u32 = 1;
/// `NBD_REP_SERVER`.
pub(crate) const REP_SERVER: u32 = 2;
/// `NBD_REP_INFO`.
pub(crate) const REP_INFO: u32 = 3;
/// `NBD_REP_META_CONTEXT`.
pub(crate) const REP_META_CONTEXT: u32 = 4;

/// Appends an option reply with the concatenation of `parts` as data.
pub(crate) fn append_reply(output: &mut Vec<u8>, option: OptionCode, kind: u32, parts: &[&[u8]]) {
    // The data consists of fields and bounded strings, so its length fits into 32 bits.
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    output.extend_from_slice(&REPLY_MAGIC.to_be_bytes());
    output.extend_from_slice(&option.0.to_be_bytes());
    output.extend_from_slice(&kind.to_be_bytes());
    output.extend_from_slice(&encode_length(bytes));
    for part in parts {
        output.extend_from_slice(part);
    }
}

/// Encodes the length field of a string or reply. Every length here fits into 32 bits.
pub(crate) fn encode_length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}

pub(crate) fn append_ack(output: &mut Vec<u8>, option: OptionCode) {
    append_reply(output, option, ACK, &[]);
}

pub(crate) fn append_error_reply(output: &mut Vec<u8>, option: OptionCode, refusal: &OptionError) {
    let message = refusal.to_string();
    let message = truncate(&message, STRING_BYTES_MAX);
    append_reply(output, option, refusal.reply_type(), &[message.as_bytes()]);
}
