//! Thread that reads a server's replies.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use suimon_nbd::{EXTENTS_MAX, ExtentsReply, ParsedReply, ReplyContent, ReplyReader};

use crate::book::{InFlight, Request};

/// Bytes read from the socket at once if the length of the next message is unknown.
const AHEAD_BYTES: usize = 4096;

/// Maximum number of parts of a reply. A server that sends a part for each sector of a request needs
/// 2048.
const PARTS_MAX: u32 = 65_536;

/// Reader of a server's replies, which wakes the callers.
pub(crate) struct Replies {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) in_flight: Arc<InFlight>,
    /// Id of the metadata context for allocation.
    pub(crate) allocation: Option<u32>,
    /// Bytes received and not yet parsed.
    pub(crate) unparsed: Vec<u8>,
}

impl Replies {
    /// Reads replies until the connection ends. Returns the reason.
    pub(crate) fn run(mut self) -> String {
        loop {
            if let Err(why) = self.take_one() {
                return why;
            }
        }
    }

    fn take_one(&mut self) -> Result<(), String> {
        let (consumed, data) =
            match ReplyReader.read(&self.unparsed).map_err(|lost| lost.to_string())? {
                ParsedReply::Incomplete { required: needed } => return self.receive(needed),
                ParsedReply::Chunk {
                    consumed,
                    cookie,
                    is_last,
                    replied: ReplyContent::Data { offset, length },
                } => (consumed, Some((cookie, is_last, offset, length as usize))),
                ParsedReply::Chunk { consumed, cookie, is_last, replied } => {
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

    /// Handles a reply without payload.
    fn hand_over(
        &self,
        cookie: u64,
        is_last: bool,
        replied: ReplyContent<'_>,
    ) -> Result<(), String> {
        let mut entries = self.in_flight.lock();
        let asked = entries.requests.get_mut(&cookie).ok_or_else(|| unexpected_reply(cookie))?;
        match replied {
            ReplyContent::Empty | ReplyContent::Data { .. } => {}
            ReplyContent::Error(failure) => asked.failure = Some(failure.to_string()),
            ReplyContent::Hole { offset, length } => {
                let (from, length) = (file_offset(asked, offset)?, length as usize);
                let to = from.checked_add(length).and_then(|end| asked.bytes.get_mut(from..end));
                to.ok_or_else(|| outside(offset))?.fill(0);
                asked.received_bytes = asked.received_bytes.saturating_add(length);
            }
            ReplyContent::Extents { context, extents } => {
                self.take_extents(asked, context, extents)?;
            }
        }
        self.end_part(asked, is_last)
    }

    fn take_extents(
        &self,
        asked: &mut Request,
        context: u32,
        extents: ExtentsReply<'_>,
    ) -> Result<(), String> {
        if Some(context) != self.allocation {
            return Err(format!("the server reported context {context}, which was not requested"));
        }
        asked.extents.extend(extents.filter(|extent| extent.length > 0));
        if asked.extents.len() > EXTENTS_MAX {
            return Err(format!(
                "the server reported more than {EXTENTS_MAX} extents of one range"
            ));
        }
        Ok(())
    }

    /// Handles the end of a part of a reply; wakes the caller after the last one.
    fn end_part(&self, asked: &mut Request, is_last: bool) -> Result<(), String> {
        if asked.received_bytes > asked.bytes.len() {
            let (received_bytes, of) = (asked.received_bytes, asked.bytes.len());
            return Err(format!("the server returned {received_bytes} bytes for a read of {of}"));
        }
        if !is_last {
            asked.parts = asked.parts.saturating_add(1);
            if asked.parts < PARTS_MAX {
                return Ok(());
            }
            return Err(format!("the server returned more than {PARTS_MAX} parts of a reply"));
        }
        if asked.failure.is_none() && asked.received_bytes != asked.bytes.len() {
            let (received_bytes, of) = (asked.received_bytes, asked.bytes.len());
            return Err(format!("the server returned {received_bytes} of {of} bytes of a read"));
        }
        asked.is_complete = true;
        self.in_flight.complete();
        Ok(())
    }

    /// Receives bytes of a read into the caller's buffer.
    fn take_data(
        &mut self,
        cookie: u64,
        is_last: bool,
        offset: u64,
        length: usize,
    ) -> Result<(), String> {
        // Other requests continue meanwhile: the buffer is taken out of the book while it is
        // filled.
        let (mut bytes, from) = {
            let mut entries = self.in_flight.lock();
            let asked =
                entries.requests.get_mut(&cookie).ok_or_else(|| unexpected_reply(cookie))?;
            let from = file_offset(asked, offset)?;
            (std::mem::take(&mut asked.bytes), from)
        };
        let to = from.checked_add(length).and_then(|end| bytes.get_mut(from..end));
        let filled = self.fill(to.ok_or_else(|| outside(offset))?);
        let mut entries = self.in_flight.lock();
        let asked = entries.requests.get_mut(&cookie).ok_or_else(|| unexpected_reply(cookie))?;
        asked.bytes = bytes;
        filled?;
        asked.received_bytes = asked.received_bytes.saturating_add(length);
        self.end_part(asked, is_last)
    }

    /// Fills a buffer with bytes received before, then from the socket.
    fn fill(&mut self, to: &mut [u8]) -> Result<(), String> {
        let ahead = self.unparsed.len().min(to.len());
        let (first, mut left) = to.split_at_mut(ahead);
        first.copy_from_slice(self.unparsed.get(..ahead).unwrap_or_default());
        self.unparsed.drain(..ahead);
        while !left.is_empty() {
            let got = self.read(left)?;
            left = left.get_mut(got..).unwrap_or_default();
        }
        Ok(())
    }

    /// Receives until `required` bytes are available.
    fn receive(&mut self, needed: usize) -> Result<(), String> {
        while self.unparsed.len() < needed {
            let before = self.unparsed.len();
            self.unparsed.resize(needed.max(before.saturating_add(AHEAD_BYTES)), 0);
            let mut rest = std::mem::take(&mut self.unparsed);
            let got = self.read(rest.get_mut(before..).unwrap_or_default());
            rest.truncate(before.saturating_add(*got.as_ref().unwrap_or(&0)));
            self.unparsed = rest;
            got?;
        }
        Ok(())
    }

    fn read(&self, to: &mut [u8]) -> Result<usize, String> {
        loop {
            match recv(&self.socket, &mut *to, RecvFlags::empty()) {
                Ok((0, _)) => return Err("the server closed the connection".to_owned()),
                Ok((got, _)) => return Ok(got),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(format!("the connection failed: {errno}")),
            }
        }
    }
}

/// Converts an offset of the disk to an index of the request's buffer.
fn file_offset(asked: &Request, offset: u64) -> Result<usize, String> {
    let place = offset.checked_sub(asked.offset).and_then(|place| usize::try_from(place).ok());
    place.ok_or_else(|| outside(offset))
}

fn unexpected_reply(cookie: u64) -> String {
    format!("the server completed request {cookie}, which is not in flight")
}

fn outside(offset: u64) -> String {
    format!("the server returned bytes at offset {offset}, which were not requested")
}
