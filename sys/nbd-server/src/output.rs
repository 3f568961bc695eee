//! Queue of the replies of a connection that were not sent completely.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use crate::memory::{CHUNK_BYTES, Memory};

/// Maximum number of memory segments per system call.
const SLICES_MAX: usize = 256;

/// Reply in the queue: encoded head, followed by the payload.
struct Reply {
    /// Position of the reply's head in the stream of all heads since the connection began, in
    /// bytes.
    head: u64,
    head_bytes: usize,
    /// Memory chunks of the payload, returned to the pool after they were sent.
    chunks: Vec<u32>,
    payload_bytes: usize,
    /// Number of bytes of head and payload that were sent.
    sent: usize,
}

/// Replies to send, oldest first.
#[derive(Default)]
pub(crate) struct Output {
    replies: VecDeque<Reply>,
    /// Encoded heads of the queued replies, concatenated.
    heads: Vec<u8>,
    /// Number of bytes removed from the beginning of `heads` since the connection began, after they
    /// were sent.
    removed_head_bytes: u64,
}

/// Result of sending queued replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    /// Every queued reply was sent completely.
    Done,
    /// The socket's send buffer is full, because the client does not read fast enough.
    Blocked,
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.replies.len()
    }

    /// Returns the size of the heads of queued replies in bytes.
    pub(crate) fn head_bytes(&self) -> usize {
        self.heads.len()
    }

    /// Frees the buffer of the heads if no reply is queued.
    pub(crate) fn release_unused(&mut self) {
        if self.replies.is_empty() {
            self.heads = Vec::new();
        }
    }

    #[cfg(test)]
    pub(crate) fn head_capacity(&self) -> usize {
        self.heads.capacity()
    }

    /// Queues a reply. `encode` writes its head, of at most `head_bytes_max` bytes, and returns the
    /// length. `chunks` contain the payload of `payload_bytes` bytes.
    pub(crate) fn push(
        &mut self,
        head_bytes_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Option<usize>,
        chunks: Vec<u32>,
        payload_bytes: usize,
    ) {
        let start = self.heads.len();
        self.heads.resize(start.saturating_add(head_bytes_max), 0);
        let head_bytes = encode(self.heads.get_mut(start..).unwrap_or_default());
        self.heads.truncate(start.saturating_add(head_bytes.unwrap_or(0)));
        // Each head fits into `head_bytes_max`. Sending an incomplete one would desynchronise the
        // connection.
        if let Some(head_bytes) = head_bytes {
            let head = self.removed_head_bytes.saturating_add(start as u64);
            self.replies.push_back(Reply { head, head_bytes, chunks, payload_bytes, sent: 0 });
        }
    }

    /// Sends as many bytes as the socket accepts without blocking. Calls `free` with the chunks of
    /// each reply that was sent completely.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn send(
        &mut self,
        socket: &OwnedFd,
        memory: &Memory,
        mut free: impl FnMut(Vec<u32>),
    ) -> Result<SendResult, Errno> {
        while !self.replies.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.gather(memory, &mut slices);
            let mut sent = match hand_over(socket, slices.get(..count).unwrap_or_default()) {
                Ok(sent) => sent,
                Err(Errno::AGAIN) => {
                    self.drop_heads();
                    return Ok(SendResult::Blocked);
                }
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            while let Some(first) = self.replies.front_mut() {
                let now = sent.min(first.remaining());
                first.sent += now;
                sent -= now;
                if first.remaining() > 0 {
                    break;
                }
                if let Some(reply) = self.replies.pop_front() {
                    free(reply.chunks);
                }
            }
        }
        self.drop_heads();
        Ok(SendResult::Done)
    }

    /// Removes the heads of replies that were sent completely.
    fn drop_heads(&mut self) {
        let end = self.removed_head_bytes.saturating_add(self.heads.len() as u64);
        let first = self.replies.front().map_or(end, |reply| reply.head);
        let sent_bytes =
            usize::try_from(first.saturating_sub(self.removed_head_bytes)).unwrap_or(usize::MAX);
        self.heads.drain(..sent_bytes.min(self.heads.len()));
        self.removed_head_bytes = first;
    }

    /// Fills `slices` with the data to send, in order, and returns their number. Consecutive heads
    /// without a payload between them form one slice.
    #[allow(unsafe_code, reason = "reads chunks that the kernel has filled")]
    fn gather<'a>(&'a self, memory: &'a Memory, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut head_range = 0..0;
        for reply in &self.replies {
            let start =
                usize::try_from(reply.head.saturating_sub(self.removed_head_bytes)).unwrap_or(0);
            let reply_head = start + reply.sent.min(reply.head_bytes)..start + reply.head_bytes;
            head_range =
                if head_range.is_empty() { reply_head } else { head_range.start..reply_head.end };
            if reply.payload_bytes == 0 {
                continue;
            }
            if !head_range.is_empty() {
                let Some(slice) = slices.get_mut(count) else { return count };
                *slice = IoSlice::new(self.heads.get(head_range).unwrap_or_default());
                count += 1;
                head_range = 0..0;
            }
            let mut skip = reply.sent.saturating_sub(reply.head_bytes);
            let mut remaining = reply.payload_bytes;
            for &chunk in &reply.chunks {
                let len = remaining.min(CHUNK_BYTES);
                remaining -= len;
                if skip >= len {
                    skip -= len;
                    continue;
                }
                let Some(slice) = slices.get_mut(count) else { return count };
                // SAFETY: the request has ended, so only this reply accesses its chunks, and
                // nothing writes to them until they are free again.
                *slice = IoSlice::new(unsafe { memory.chunk_slice(chunk, skip, len - skip) });
                count += 1;
                skip = 0;
            }
        }
        if let (false, Some(slice)) = (head_range.is_empty(), slices.get_mut(count)) {
            *slice = IoSlice::new(self.heads.get(head_range).unwrap_or_default());
            count += 1;
        }
        count
    }
}

/// Sends bytes without blocking. Returns the number of bytes that the socket accepted.
fn hand_over(socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match slices {
        [slice] => send(socket, slice, flags),
        _ => sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags),
    }
}

impl Reply {
    fn remaining(&self) -> usize {
        self.head_bytes + self.payload_bytes - self.sent
    }
}
