//! One operation from its beginning to its end, which may take several turns of the
//! kernel: what was done in part goes on, what the file system cannot do is done
//! otherwise.

use std::any::Any;
use std::io;
use std::sync::Arc;

use suimon_ports::{FileSlot, PayloadPart};

use crate::aligned::AlignedBytes;
use crate::payload::{PayloadTable, PayloadUse};

/// The most that one turn writes of zeros.
pub(crate) const ZEROS_BYTES: u64 = 1 << 20;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write {
        is_durable: bool,
    },
    Flush,
    /// Makes a hole, or zeros that keep their space.
    Zero {
        may_unmap: bool,
    },
    /// Writes zeros, because the file system cannot make them.
    WriteZeros,
    /// Allocates space behind the end of the file. What cannot be allocated becomes a hole.
    Extend {
        /// End of the part that is needed soon; space behind it is allocated ahead.
        needed: u64,
        /// The file's new length.
        len: u64,
    },
}

/// One operation.
pub(crate) struct Operation {
    pub(crate) file: FileSlot,
    pub(crate) token: u64,
    pub(crate) kind: Kind,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// What the file wants offsets and lengths to be multiples of.
    pub(crate) unit: u32,
    /// Bytes that are done.
    pub(crate) done: u64,
    /// The memory that the kernel works on; stays where it is while the operation lasts.
    pub(crate) pieces: Vec<libc::iovec>,
    /// Memory of our own, where the payload's cannot be used or there is none.
    pub(crate) own: Option<AlignedBytes>,
    /// The payload's pieces, if `own` stands in for them.
    pub(crate) stand_in: Vec<libc::iovec>,
    /// What the payload lies in.
    pub(crate) memory: Option<Arc<dyn Any + Send + Sync>>,
}

impl Operation {
    /// Works on part of a payload. Memory that is not aligned is stood in for.
    ///
    /// # Errors
    /// There is no such payload.
    pub(crate) fn on_payload(
        mut self,
        part: &PayloadPart<'_>,
        memory_alignment: u32,
    ) -> io::Result<Self> {
        let usage =
            if self.kind == Kind::Read { PayloadUse::Destination } else { PayloadUse::Source };
        let table = part.payloads.downcast_ref::<PayloadTable>();
        let table = table
            .filter(|table| table.part(part.tag, usage, part.from, part.len, &mut self.pieces));
        let Some(table) = table else {
            let why = "the request's payload is shorter than its range";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        self.memory = Some(Arc::clone(table.memory()));
        let unit = memory_alignment.max(1) as usize;
        let is_aligned =
            self.pieces.iter().all(|of| of.iov_base as usize % unit == 0 && of.iov_len % unit == 0);
        if !is_aligned || self.pieces.len() > libc::UIO_MAXIOV as usize {
            self.stand_in = std::mem::take(&mut self.pieces);
            let mut own = AlignedBytes::zeroed(usize::try_from(part.len).unwrap_or(0));
            if usage == PayloadUse::Source {
                crate::copy::gather(&self.stand_in, own.as_mut_slice());
            }
            self = self.on_own(own);
        }
        Ok(self)
    }

    /// Works on memory of our own.
    pub(crate) fn on_own(mut self, mut own: AlignedBytes) -> Self {
        let bytes = own.as_mut_slice();
        self.pieces.clear();
        self.pieces.push(libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
        self.own = Some(own);
        self
    }

    /// The memory, if it is in one piece: naming that costs the kernel less than a list of one.
    pub(crate) fn only_piece(&self) -> Option<(*mut u8, u32)> {
        let [piece] = self.pieces[..] else { return None };
        Some((piece.iov_base.cast(), u32::try_from(piece.iov_len).ok()?))
    }

    /// Where in the file it goes on.
    pub(crate) fn place(&self) -> u64 {
        self.offset.saturating_add(self.done)
    }

    /// The memory as a list, which is good as long as the operation is not changed.
    pub(crate) fn list(&self) -> (*const libc::iovec, u32) {
        (self.pieces.as_ptr(), self.pieces.len() as u32)
    }

    /// Some bytes were moved. Whether it is done.
    pub(crate) fn handle_moved(&mut self, bytes: u64) -> bool {
        self.done = self.done.saturating_add(bytes);
        if self.kind == Kind::WriteZeros {
            return self.done >= self.len;
        }
        let mut skip = usize::try_from(bytes).unwrap_or(usize::MAX);
        let whole = self.pieces.iter().take_while(|of| {
            let is_whole = of.iov_len <= skip;
            if is_whole {
                skip -= of.iov_len;
            }
            is_whole
        });
        let whole = whole.count();
        self.pieces.drain(..whole);
        if let Some(first) = self.pieces.first_mut() {
            first.iov_base = first.iov_base.wrapping_byte_add(skip);
            first.iov_len = first.iov_len.saturating_sub(skip);
        }
        self.done >= self.len
    }

    /// Whether the file ended, because a turn moved nothing or no whole unit: what was not
    /// read is zeros then.
    pub(crate) fn handle_end_of_file(&mut self, moved: u64) -> bool {
        let has_ended = moved == 0 || moved % u64::from(self.unit.max(1)) != 0;
        if has_ended {
            crate::copy::zero(&self.pieces);
        }
        has_ended
    }

    /// Goes on with a file that has to be longer: with the part that is needed soon if space ahead of it
    /// could not be allocated, else with a hole up to the new end. `is_allocated`: the last turn has
    /// succeeded. Returns whether the file is long enough.
    pub(crate) fn handle_extended(&mut self, is_allocated: bool) -> bool {
        let Kind::Extend { needed, len } = self.kind else { return true };
        let tried = self.offset.saturating_add(self.len);
        if is_allocated && tried >= len {
            return true;
        }
        if !is_allocated && needed < tried && needed > self.offset {
            self.len = needed - self.offset;
            return false;
        }
        // A file ends where it was last written, and has a hole before that.
        let unit = u64::from(self.unit.max(1)).min(len - self.offset);
        (self.offset, self.len) = (len - unit, unit);
        self.kind = Kind::WriteZeros;
        false
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_nothing(&self) -> bool {
        self.len == 0 && self.kind != Kind::Flush
    }

    /// The bytes that were read, if they go back with the completion; a payload that was
    /// stood in for gets its bytes.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        let Some(own) = self.own.take().filter(|_| self.kind == Kind::Read) else {
            return Vec::new();
        };
        if self.memory.is_none() {
            return own.as_slice().to_vec();
        }
        crate::copy::scatter(own.as_slice(), &self.stand_in);
        Vec::new()
    }
}
