//! State of one file operation, which may take several steps in the kernel. A partly completed
//! transfer is continued. An operation that the file does not support is replaced by another.

use std::any::Any;
use std::io;
use std::sync::Arc;

use suimon_ports::{FileSlot, PayloadRange};

use crate::aligned::AlignedBytes;
use crate::buffers::BufferPool;
use crate::payload::{PayloadTable, PayloadUse};

/// Maximum number of zero bytes that one step writes.
pub(crate) const ZEROS_BYTES: u64 = 1 << 20;

/// Kind of an operation, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Read,
    Write {
        is_durable: bool,
    },
    Flush,
    /// Punch of a hole. The former contents need not be zeroed. No effect if the file system or
    /// device cannot punch holes.
    Discard,
    /// Punch of a hole, or zeroing of a range that keeps its space.
    Zero {
        may_unmap: bool,
        /// True if the operation fails where zeros would have to be written.
        only_if_fast: bool,
    },
    /// Write of zeros, because the file system cannot zero the range.
    WriteZeros,
    /// Allocation of space beyond the end of the file. A part that cannot be allocated becomes a
    /// hole.
    Extend {
        /// Offset up to which the caller will write soon. Space beyond it is allocated in advance.
        required_len: u64,
        /// New length of the file.
        len: u64,
    },
    /// Allocation of only the last unit of the new length, so that the part before it is a hole.
    ExtendByHole,
    /// Appending of zeros up to the new length, because the file system cannot allocate space.
    /// Zeros written at fixed offsets would overwrite data that other operations have written there
    /// meanwhile.
    Append {
        /// New length of the file.
        len: u64,
    },
}

/// Operation on a file, with its progress and memory.
pub(crate) struct Operation {
    pub(crate) file: FileSlot,
    pub(crate) token: u64,
    pub(crate) kind: OperationKind,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Required alignment of offsets and lengths in bytes.
    pub(crate) unit: u32,
    /// Number of bytes transferred so far.
    pub(crate) done_bytes: u64,
    /// Memory that the kernel accesses; its address does not change while the operation lasts.
    pub(crate) iovecs: Vec<libc::iovec>,
    /// Buffer in place of the payload's memory, if that is misaligned or there is no payload.
    pub(crate) buffer: Option<AlignedBytes>,
    /// Segments of the payload for which `buffer` is a bounce buffer; empty otherwise.
    pub(crate) bounce_iovecs: Vec<libc::iovec>,
    /// Memory that contains the payload, held while the operation lasts.
    pub(crate) memory: Option<Arc<dyn Any + Send + Sync>>,
}

impl Operation {
    /// Sets the memory of the operation to part of a payload, or to a bounce buffer of `buffers` if
    /// the payload's memory is misaligned. `lists` contains unused lists of segments.
    ///
    /// # Errors
    /// The payload does not exist.
    pub(crate) fn with_payload(
        mut self,
        part: &PayloadRange<'_>,
        memory_alignment: u32,
        buffers: &mut BufferPool,
        lists: &mut Vec<Vec<libc::iovec>>,
    ) -> io::Result<Self> {
        let usage = if self.kind == OperationKind::Read {
            PayloadUse::Destination
        } else {
            PayloadUse::Source
        };
        let table = part.payloads.downcast_ref::<PayloadTable>();
        let table = table.filter(|table| {
            table.append_iovecs(part.tag, usage, part.offset, part.len, &mut self.iovecs)
        });
        let Some(table) = table else {
            let reason = "the request's payload is shorter than its range";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        self.memory = Some(Arc::clone(table.memory_owner()));
        let unit = memory_alignment.max(1) as usize;
        let is_aligned = self
            .iovecs
            .iter()
            .all(|iovec| iovec.iov_base as usize % unit == 0 && iovec.iov_len % unit == 0);
        if !is_aligned || self.iovecs.len() > libc::UIO_MAXIOV as usize {
            let empty = lists.pop().unwrap_or_default();
            self.bounce_iovecs = std::mem::replace(&mut self.iovecs, empty);
            // The payload has `part.len` bytes, so it overwrites all former bytes of the buffer.
            let mut buffer = buffers.take(usize::try_from(part.len).unwrap_or(0));
            if usage == PayloadUse::Source {
                crate::copy::gather(&self.bounce_iovecs, buffer.as_mut_slice());
            }
            self = self.with_buffer(buffer);
        }
        Ok(self)
    }

    /// Sets the memory of the operation to a separate buffer.
    pub(crate) fn with_buffer(mut self, mut buffer: AlignedBytes) -> Self {
        let bytes = buffer.as_mut_slice();
        self.iovecs.clear();
        self.iovecs.push(libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
        self.buffer = Some(buffer);
        self
    }

    /// Returns address and length of the memory if it is contiguous, otherwise `None`. The kernel
    /// processes one buffer faster than a list.
    pub(crate) fn single_buffer(&self) -> Option<(*mut u8, u32)> {
        let [iovec] = self.iovecs[..] else { return None };
        Some((iovec.iov_base.cast(), u32::try_from(iovec.iov_len).ok()?))
    }

    /// Returns the offset in the file at which the operation continues.
    pub(crate) fn next_offset(&self) -> u64 {
        self.offset.saturating_add(self.done_bytes)
    }

    /// Returns address and number of elements of the list of segments, valid until the operation
    /// changes.
    pub(crate) fn iovec_list(&self) -> (*const libc::iovec, u32) {
        (self.iovecs.as_ptr(), self.iovecs.len() as u32)
    }

    /// Records that a step has transferred `bytes` bytes. Returns true if the operation is
    /// complete.
    pub(crate) fn handle_transferred(&mut self, bytes: u64) -> bool {
        self.done_bytes = self.done_bytes.saturating_add(bytes);
        if self.kind == OperationKind::WriteZeros {
            return self.done_bytes >= self.len;
        }
        let mut skip = usize::try_from(bytes).unwrap_or(usize::MAX);
        let completed = self.iovecs.iter().take_while(|iovec| {
            let is_whole = iovec.iov_len <= skip;
            if is_whole {
                skip -= iovec.iov_len;
            }
            is_whole
        });
        let completed = completed.count();
        self.iovecs.drain(..completed);
        if let Some(first) = self.iovecs.first_mut() {
            first.iov_base = first.iov_base.wrapping_byte_add(skip);
            first.iov_len = first.iov_len.saturating_sub(skip);
        }
        self.done_bytes >= self.len
    }

    /// Returns true if a step, which transferred `moved` bytes, reached the end of the file: it
    /// transferred nothing, or no whole unit. Fills the remaining memory with zeros in this case.
    pub(crate) fn handle_end_of_file(&mut self, moved: u64) -> bool {
        let has_ended = moved == 0 || moved % u64::from(self.unit.max(1)) != 0;
        if has_ended {
            crate::copy::zero(&self.iovecs);
        }
        has_ended
    }

    /// Determines the next step of an extension. If space ahead could not be allocated, the next
    /// step allocates the part that is needed soon; after that, a hole up to the new end.
    /// `is_allocated` is true if the last step succeeded. Returns true if the file is long enough.
    pub(crate) fn handle_extended(&mut self, is_allocated: bool) -> bool {
        let OperationKind::Extend { required_len: required, len } = self.kind else { return true };
        let attempted = self.offset.saturating_add(self.len);
        if is_allocated && attempted >= len {
            return true;
        }
        if !is_allocated && required < attempted && required > self.offset {
            self.len = required - self.offset;
            return false;
        }
        // The allocation sets the length and changes no contents.
        let unit = u64::from(self.unit.max(1)).min(len - self.offset);
        (self.offset, self.len) = (len - unit, unit);
        self.kind = OperationKind::ExtendByHole;
        false
    }

    /// Continues an extension by appending zeros.
    pub(crate) fn continue_by_appending(&mut self) {
        let len = match self.kind {
            OperationKind::Extend { len, .. } => len,
            _ => self.offset.saturating_add(self.len),
        };
        self.kind = OperationKind::Append { len };
    }

    /// Records that the file ends at `end`, for an operation that appends zeros. Returns true if
    /// the file has the new length.
    pub(crate) fn handle_end(&mut self, end: u64) -> bool {
        let OperationKind::Append { len } = self.kind else { return true };
        (self.offset, self.len, self.done_bytes) = (end, len.saturating_sub(end), 0);
        end >= len
    }

    /// Returns true if the operation can be completed without a step, because it has no effect.
    pub(crate) fn has_no_effect(&self) -> bool {
        self.len == 0 && self.kind != OperationKind::Flush
    }

    /// Returns the bytes read, if the completion contains them; otherwise an empty vector. Copies
    /// the contents of a bounce buffer to the payload.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        let Some(buffer) = self.buffer.as_ref().filter(|_| self.kind == OperationKind::Read) else {
            return Vec::new();
        };
        if self.memory.is_none() {
            return buffer.as_slice().to_vec();
        }
        crate::copy::scatter(buffer.as_slice(), &self.bounce_iovecs);
        Vec::new()
    }
}
