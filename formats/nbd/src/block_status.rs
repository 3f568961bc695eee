//! Encoding of replies to block status requests (NBD specification, section "Structured reply
//! types", `NBD_REPLY_TYPE_BLOCK_STATUS` and `NBD_REPLY_TYPE_BLOCK_STATUS_EXT`).

use crate::command::ExportRange;
use crate::extent::{ExtentState, StatusExtent};
use crate::field_codec::{BufferTooShort, FieldWriter};
use crate::reply::{ReplyEncoder, kind};

/// Context id assigned to `base:allocation`.
pub const ALLOCATION_CONTEXT_ID: u32 = 1;

/// Maximum number of extents in one reply (`NBD_REPLY_TYPE_BLOCK_STATUS`).
pub const EXTENTS_MAX: usize = 1 << 20;

/// Minimum length in bytes of the output buffer: sufficient for one extent in any message format.
pub const STATUS_BUFFER_BYTES_MIN: usize = 32 + 8 + 16;

/// Encoder of a block status reply. Adjacent extents of the same status are merged; the last one is
/// truncated at the end of the range.
#[derive(Debug)]
pub struct BlockStatusEncoder<'a> {
    reply_to: ReplyEncoder,
    out: &'a mut [u8],
    /// Maximum number of extents that the buffer can contain.
    extents_max: usize,
    written: usize,
    /// Last extent, not yet encoded because the next one may extend it.
    pending: Option<StatusExtent>,
    /// Length in bytes of the rest of the requested range, which no extent covers yet.
    remaining_bytes: u64,
}

impl<'a> BlockStatusEncoder<'a> {
    pub(crate) fn new(
        reply_to: ReplyEncoder,
        range: ExportRange,
        first_only: bool,
        payload_max: u32,
        out: &'a mut [u8],
    ) -> Result<Self, BufferTooShort> {
        let (bytes, required) = (out.len(), STATUS_BUFFER_BYTES_MIN);
        let fixed = reply_to.head_bytes().saturating_add(id_bytes(reply_to));
        let space = bytes.checked_sub(fixed).filter(|_| bytes >= required);
        let space = space.ok_or(BufferTooShort { bytes, required })?.min(payload_max as usize);
        let capacity = space.checked_div(extent_bytes(reply_to)).unwrap_or_default();
        let extents_max = if first_only { 1 } else { capacity.min(EXTENTS_MAX) };
        Ok(Self {
            reply_to,
            out,
            extents_max,
            written: 0,
            pending: None,
            remaining_bytes: range.length,
        })
    }

    /// Appends the extent that follows the previous one. Returns true if another extent is
    /// accepted, and false if the range is covered or the buffer is full. Extents that do not fit
    /// are dropped; the client then requests the remainder.
    pub fn push(&mut self, extent: StatusExtent) -> bool {
        let length = extent.length.min(self.remaining_bytes);
        if length == 0 {
            return self.remaining_bytes > 0;
        }
        match &mut self.pending {
            Some(pending) if pending.state == extent.state => {
                pending.length = pending.length.saturating_add(length);
            }
            pending => {
                if self.written.saturating_add(usize::from(pending.is_some())) >= self.extents_max {
                    self.remaining_bytes = 0;
                    return false;
                }
                if let Some(before) = pending.replace(StatusExtent { length, ..extent }) {
                    self.write(before);
                }
            }
        }
        self.remaining_bytes = self.remaining_bytes.saturating_sub(length);
        self.remaining_bytes > 0
    }

    /// Completes the reply and returns its length in bytes. A range without any extent is reported
    /// as data, which the protocol always permits.
    pub fn finish(mut self) -> usize {
        let unknown = StatusExtent { length: self.remaining_bytes, state: ExtentState::DATA };
        let last = self.pending.take().unwrap_or(unknown);
        self.write(last);
        let extents = self.written.saturating_mul(extent_bytes(self.reply_to));
        let id_len = id_bytes(self.reply_to);
        let payload = extents.saturating_add(id_len);
        let extended = self.reply_to.framing.is_extended();
        let kind = if extended { kind::BLOCK_STATUS_EXT } else { kind::BLOCK_STATUS };
        if let Ok(mut writer) =
            self.reply_to.encode_chunk_head(kind, true, payload, id_len, self.out)
        {
            writer.put_u32(ALLOCATION_CONTEXT_ID);
            if extended {
                writer.put_u32(u32::try_from(self.written).unwrap_or(u32::MAX));
            }
        }
        self.reply_to.head_bytes().saturating_add(payload)
    }

    fn write(&mut self, extent: StatusExtent) {
        let bytes = extent_bytes(self.reply_to);
        let fixed = self.reply_to.head_bytes().saturating_add(id_bytes(self.reply_to));
        let offset = fixed.saturating_add(self.written.saturating_mul(bytes));
        let space = self.out.get_mut(offset..).unwrap_or_default();
        let Ok(mut writer) = FieldWriter::new(space, bytes) else { return };
        if self.reply_to.framing.is_extended() {
            writer.put_u64(extent.length);
            writer.put_u64(extent.state.bits().into());
        } else {
            // The value is bounded by the length of the request, which has 32 bits.
            writer.put_u32(u32::try_from(extent.length).unwrap_or(u32::MAX));
            writer.put_u32(extent.state.bits().into());
        }
        self.written += 1;
    }
}

/// Returns the length of the fields before the extents: context id and, if extended, count.
const fn id_bytes(reply_to: ReplyEncoder) -> usize {
    if reply_to.framing.is_extended() { 8 } else { 4 }
}

const fn extent_bytes(reply_to: ReplyEncoder) -> usize {
    if reply_to.framing.is_extended() { 16 } else { 8 }
}
