//! Thread that reads a server's replies.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use suimon_nbd::{EXTENTS_MAX, ExtentsReply, ParsedReply, ReplyContent, ReplyReader};

use crate::in_flight::{InFlight, Request};

/// Maximum number of bytes read from the socket at once while the length of the next message is
/// unknown.
const AHEAD_BYTES: usize = 4096;

/// Maximum number of chunks of a reply. A server that sends a chunk for each sector of a request of
/// the maximum size needs fewer.
const PARTS_MAX: u32 = 65_536;

/// Reader of a server's replies, which wakes the callers.
pub(crate) struct NbdReplyReader {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) in_flight: Arc<InFlight>,
    /// Id of the metadata context `base:allocation`; `None` if the server does not offer it.
    pub(crate) allocation_context_id: Option<u32>,
    /// Bytes received and not yet parsed.
    pub(crate) unparsed: Vec<u8>,
}

impl NbdReplyReader {
    /// Reads replies until the connection ends. Returns the reason.
    pub(crate) fn run(mut self) -> String {
        loop {
            if let Err(reason) = self.take_one() {
                return reason;
            }
        }
    }

    fn take_one(&mut self) -> Result<(), String> {
        let (consumed, data) =
            match ReplyReader.read(&self.unparsed).map_err(|lost| lost.to_string())? {
                ParsedReply::Incomplete { required } => return self.receive(required),
                ParsedReply::Chunk {
                    consumed,
                    cookie,
                    is_last,
                    content: ReplyContent::Data { offset, length },
                } => (consumed, Some((cookie, is_last, offset, length as usize))),
                ParsedReply::Chunk { consumed, cookie, is_last, content: replied } => {
                    self.hand_over(cookie, is_last, replied)?;
                    (consumed, None)
                }
            };
        self.unparsed.drain(..consumed.min(self.unparsed.len()));
        match data {
            Some((cookie, is_last, offset, length)) => {
                self.take_data(cookie, is_last, offset, length)
            }
            None => Ok(()),
        }
    }

    /// Processes a chunk without data of a read, and wakes the caller if it is the last one.
    fn hand_over(
        &self,
        cookie: u64,
        is_last: bool,
        content: ReplyContent<'_>,
    ) -> Result<(), String> {
        let mut entries = self.in_flight.lock();
        let request = entries.requests.get_mut(&cookie).ok_or_else(|| unexpected_reply(cookie))?;
        match content {
            ReplyContent::Empty | ReplyContent::Data { .. } => {}
            ReplyContent::Error(failure) => request.failure = Some(failure.to_string()),
            ReplyContent::Hole { offset, length } => {
                let range = receive_range(request, offset, length as usize)?;
                request.bytes.get_mut(range).ok_or_else(|| outside(offset))?.fill(0);
            }
            ReplyContent::Extents { context_id: context, extents } => {
                self.take_extents(request, context, extents)?;
            }
        }
        self.end_part(request, is_last)
    }

    fn take_extents(
        &self,
        request: &mut Request,
        context: u32,
        extents: ExtentsReply<'_>,
    ) -> Result<(), String> {
        if Some(context) != self.allocation_context_id {
            return Err(format!("the server reported context {context}, which was not requested"));
        }
        request.extents.extend(extents.filter(|extent| extent.length > 0));
        if request.extents.len() > EXTENTS_MAX {
            return Err(format!(
                "the server reported more than {EXTENTS_MAX} extents of one range"
            ));
        }
        Ok(())
    }

    /// Counts a chunk of a reply. If it is the last one, checks the reply and marks it as complete.
    fn end_part(&self, request: &mut Request, is_last: bool) -> Result<(), String> {
        if !is_last {
            request.received_chunks = request.received_chunks.saturating_add(1);
            if request.received_chunks < PARTS_MAX {
                return Ok(());
            }
            return Err(format!("the server returned more than {PARTS_MAX} parts of a reply"));
        }
        let (received_bytes, requested_bytes) = (request.received.bytes(), request.bytes.len());
        if request.failure.is_none() && received_bytes != requested_bytes {
            return Err(format!(
                "the server returned {received_bytes} of {requested_bytes} bytes of a read"
            ));
        }
        request.is_complete = true;
        self.in_flight.wake_callers();
        Ok(())
    }

    /// Receives the data of a chunk into the buffer of the request `cookie`.
    fn take_data(
        &mut self,
        cookie: u64,
        is_last: bool,
        offset: u64,
        length: usize,
    ) -> Result<(), String> {
        // Other requests continue meanwhile: the buffer is taken out of the book while it is
        // filled.
        let (mut bytes, range) = {
            let mut entries = self.in_flight.lock();
            let request =
                entries.requests.get_mut(&cookie).ok_or_else(|| unexpected_reply(cookie))?;
            let range = receive_range(request, offset, length)?;
            (std::mem::take(&mut request.bytes), range)
        };
        let filled = self.fill(bytes.get_mut(range).ok_or_else(|| outside(offset))?);
        let mut entries = self.in_flight.lock();
        let request = entries.requests.get_mut(&cookie).ok_or_else(|| unexpected_reply(cookie))?;
        request.bytes = bytes;
        filled?;
        self.end_part(request, is_last)
    }

    /// Fills `buffer` with bytes that were received before, then from the socket.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        let unparsed_len = self.unparsed.len().min(buffer.len());
        let (first, mut rest) = buffer.split_at_mut(unparsed_len);
        first.copy_from_slice(self.unparsed.get(..unparsed_len).unwrap_or_default());
        self.unparsed.drain(..unparsed_len);
        while !rest.is_empty() {
            let count = self.read(rest)?;
            rest = rest.get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Receives from the socket until at least `required` unparsed bytes are available.
    fn receive(&mut self, required: usize) -> Result<(), String> {
        while self.unparsed.len() < required {
            let before = self.unparsed.len();
            self.unparsed.resize(required.max(before.saturating_add(AHEAD_BYTES)), 0);
            let mut unparsed = std::mem::take(&mut self.unparsed);
            let count = self.read(unparsed.get_mut(before..).unwrap_or_default());
            unparsed.truncate(before.saturating_add(*count.as_ref().unwrap_or(&0)));
            self.unparsed = unparsed;
            count?;
        }
        Ok(())
    }

    fn read(&self, buffer: &mut [u8]) -> Result<usize, String> {
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err("the server closed the connection".to_owned()),
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(format!("the connection failed: {errno}")),
            }
        }
    }
}

/// Records that `length` bytes at `offset` of the disk are received. Returns their range in the
/// request's buffer.
///
/// # Errors
/// The bytes were not requested, or some of them were received before.
fn receive_range(
    request: &mut Request,
    offset: u64,
    length: usize,
) -> Result<Range<usize>, String> {
    let start = offset.checked_sub(request.offset).and_then(|index| usize::try_from(index).ok());
    let range = start.and_then(|start| Some(start..start.checked_add(length)?));
    let range =
        range.filter(|range| range.end <= request.bytes.len()).ok_or_else(|| outside(offset))?;
    if request.received.insert(&range) {
        return Ok(range);
    }
    let end = offset.saturating_add(length as u64);
    Err(format!("the server returned bytes between offsets {offset} and {end} more than once"))
}

fn unexpected_reply(cookie: u64) -> String {
    format!("the server completed request {cookie}, which is not in flight")
}

fn outside(offset: u64) -> String {
    format!("the server returned bytes at offset {offset}, which were not requested")
}
