//! Replies on their way to the client.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use crate::pool::{CHUNK_BYTES, Memory};

/// Slices handed to the kernel at once.
const SLICES_MAX: usize = 256;

/// One reply: its head, and bytes that were read.
struct Reply {
    /// Where its head begins, in bytes of all heads.
    head: u64,
    head_bytes: usize,
    /// The payload, which goes back to the pool when it was sent.
    chunks: Vec<u32>,
    payload_bytes: usize,
    /// Bytes of head and payload that were sent.
    sent: usize,
}

/// Replies on their way to the client, in the order in which they were given.
#[derive(Default)]
pub(crate) struct Output {
    replies: VecDeque<Reply>,
    /// The heads of those replies, one behind the other.
    heads: Vec<u8>,
    /// Bytes of heads that were sent and are not there any more.
    gone: u64,
}

/// What became of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Everything was sent.
    Done,
    /// The client does not read fast enough.
    Blocked,
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.replies.len()
    }

    #[cfg(test)]
    pub(crate) fn head_capacity(&self) -> usize {
        self.heads.capacity()
    }

    /// Adds a reply; `encode` writes its head, of at most `head_bytes_max`.
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
        // Each head fits; what does not would be a client's whole connection out of step.
        if let Some(head_bytes) = head_bytes {
            let head = self.gone.saturating_add(start as u64);
            self.replies.push_back(Reply { head, head_bytes, chunks, payload_bytes, sent: 0 });
        }
    }

    /// Sends what the socket takes. `free` is given the chunks of what was sent.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn send(
        &mut self,
        socket: &OwnedFd,
        memory: &Memory,
        mut free: impl FnMut(Vec<u32>),
    ) -> Result<Sending, Errno> {
        while !self.replies.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.gather(memory, &mut slices);
            let mut sent = match hand_over(socket, slices.get(..count).unwrap_or_default()) {
                Ok(sent) => sent,
                Err(Errno::AGAIN) => {
                    self.drop_heads();
                    return Ok(Sending::Blocked);
                }
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            while let Some(first) = self.replies.front_mut() {
                let now = sent.min(first.left());
                first.sent += now;
                sent -= now;
                if first.left() > 0 {
                    break;
                }
                if let Some(reply) = self.replies.pop_front() {
                    free(reply.chunks);
                }
            }
        }
        self.drop_heads();
        Ok(Sending::Done)
    }

    /// Forgets the heads of what was sent.
    fn drop_heads(&mut self) {
        let end = self.gone.saturating_add(self.heads.len() as u64);
        let first = self.replies.front().map_or(end, |reply| reply.head);
        let sent = usize::try_from(first.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        self.heads.drain(..sent.min(self.heads.len()));
        self.gone = first;
    }

    /// What is to be sent, as far as there is room for slices; how many there are. Heads
    /// with no payload between them are one slice.
    #[allow(unsafe_code, reason = "reads chunks that the kernel has filled")]
    fn gather<'a>(&'a self, memory: &'a Memory, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        let mut heads = 0..0;
        for reply in &self.replies {
            let start = usize::try_from(reply.head.saturating_sub(self.gone)).unwrap_or(0);
            let rest = start + reply.sent.min(reply.head_bytes)..start + reply.head_bytes;
            heads = if heads.is_empty() { rest } else { heads.start..rest.end };
            if reply.payload_bytes == 0 {
                continue;
            }
            if !heads.is_empty() {
                let Some(slice) = slices.get_mut(count) else { return count };
                *slice = IoSlice::new(self.heads.get(heads).unwrap_or_default());
                count += 1;
                heads = 0..0;
            }
            let mut skip = reply.sent.saturating_sub(reply.head_bytes);
            let mut left = reply.payload_bytes;
            for &chunk in &reply.chunks {
                let here = left.min(CHUNK_BYTES);
                left -= here;
                if skip >= here {
                    skip -= here;
                    continue;
                }
                let Some(slice) = slices.get_mut(count) else { return count };
                // SAFETY: the request has ended, so nobody but this reply has its chunks,
                // and nothing writes to them until they are free again.
                *slice = IoSlice::new(unsafe { memory.part(chunk, skip, here - skip) });
                count += 1;
                skip = 0;
            }
        }
        if let (false, Some(slice)) = (heads.is_empty(), slices.get_mut(count)) {
            *slice = IoSlice::new(self.heads.get(heads).unwrap_or_default());
            count += 1;
        }
        count
    }
}

/// Bytes that the socket takes now.
fn hand_over(socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match slices {
        [slice] => send(socket, slice, flags),
        _ => sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags),
    }
}

impl Reply {
    fn left(&self) -> usize {
        self.head_bytes + self.payload_bytes - self.sent
    }
}
