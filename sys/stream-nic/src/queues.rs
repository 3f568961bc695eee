//! Receive and transmit queue of a connection, which the switch services.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use suimon_frame::{BATCH_FRAMES_MAX, Frame, FrameBatch, Offloads};
use suimon_ports::{ArmResult, FrameSink, FrameSource, QueueFault, TransmitResult};

use crate::framing::{FrameReader, LENGTH_BYTES};
use crate::session::{Session, SessionEnd};

/// Number of bytes that are collected before they are sent, even if more frames follow: about 40
/// usual frames, and at least the longest one.
const COLLECTED_BYTES_MAX: usize = 128 * 1024;

/// Minimum length of a frame in bytes without its checksum (IEEE 802.3, 4A.2.3.2.4). Emulated NICs
/// expect it; shorter frames are padded as on a wire.
const WIRE_BYTES_MIN: usize = 60;

/// Queue of frames that the guest sent.
pub(crate) struct StreamSource {
    session: Arc<Session>,
    reader: FrameReader,
    malformed: u64,
}

/// Queue of frames for the guest.
pub(crate) struct StreamSink {
    session: Arc<Session>,
    collected: Vec<u8>,
}

/// Maximum number of reads from the socket per batch: a frame may arrive in small parts.
const READS_MAX: usize = 8;

/// Result of a read from the socket.
enum Read {
    Data,
    Empty,
}

impl StreamSource {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session, reader: FrameReader::new(), malformed: 0 }
    }

    /// Moves received frames to the batch; each moved or dropped frame uses one of `attempts`.
    /// Returns true if the batch is full or no attempt is left; false if the buffer has no complete
    /// frame.
    fn take(&mut self, batch: &mut FrameBatch, attempts: &mut usize) -> Result<bool, QueueFault> {
        while *attempts > 0 {
            let Some(frame) = batch.next_free_frame() else { return Ok(true) };
            let bytes = match self.reader.next_frame() {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(false),
                Err(error) => return Err(self.session.finish(SessionEnd::Framing(error))),
            };
            *attempts -= 1;
            let target = frame.space_mut().get_mut(..bytes.len());
            if let Some(target) = target {
                target.copy_from_slice(bytes);
                frame.set_len(bytes.len());
                if frame.validate_ingress_plain().is_ok() {
                    batch.commit();
                    continue;
                }
            }
            self.malformed += 1;
        }
        Ok(true)
    }

    fn read(&mut self) -> Result<Read, QueueFault> {
        let Self { session, reader, .. } = self;
        let buffer = reader.space_mut();
        let received = match &session.guard {
            None => recv(&session.socket, buffer, RecvFlags::DONTWAIT).map(|(_, bytes)| bytes),
            Some(guard) => {
                let result = guard.receive(session.socket.as_fd(), &mut [IoSliceMut::new(buffer)]);
                match result.map_err(|error| Errno::from_io_error(&error)) {
                    Ok(bytes) => Ok(bytes),
                    Err(Some(errno)) => Err(errno),
                    Err(None) => return Err(session.finish(SessionEnd::DescriptorAttached)),
                }
            }
        };
        match received {
            Ok(0) => Err(session.finish(SessionEnd::PeerClosed)),
            Ok(bytes) => {
                reader.advance(bytes);
                Ok(Read::Data)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Read::Empty),
            Err(errno) => Err(session.finish(SessionEnd::from_call_error("read", errno))),
        }
    }
}

impl FrameSource for StreamSource {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let before = batch.len();
        // Bounds the work as well: frames that are dropped leave room in the batch.
        let mut attempts = BATCH_FRAMES_MAX;
        for _ in 0..READS_MAX {
            if self.take(batch, &mut attempts)? {
                break;
            }
            if let Read::Empty = self.read()? {
                break;
            }
        }
        Ok(batch.len() - before)
    }

    fn arm(&mut self) -> ArmResult {
        // The descriptor signals data in the socket, not data that was already read.
        if self.reader.is_ready() { ArmResult::Pending } else { ArmResult::Armed }
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.session.socket.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        true
    }

    fn malformed_frames(&self) -> u64 {
        self.malformed
    }
}

impl StreamSink {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session, collected: Vec::with_capacity(COLLECTED_BYTES_MAX) }
    }

    fn send(&mut self) -> Result<(), QueueFault> {
        if self.collected.is_empty() {
            return Ok(());
        }
        self.session.send(&mut self.collected)
    }

    /// Returns true if all bytes passed to the session were sent. Tries to send pending ones first.
    fn is_clear(&self) -> Result<bool, QueueFault> {
        if !self.session.has_pending_data() {
            return Ok(true);
        }
        self.session.send_pending()?;
        Ok(!self.session.has_pending_data())
    }
}

impl FrameSink for StreamSink {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        if !self.is_clear()? {
            return Ok(TransmitResult::Full);
        }
        let wire = frame.wire_format();
        let bytes = wire.wire_len();
        let padded = bytes.max(WIRE_BYTES_MIN);
        if self.collected.len() + LENGTH_BYTES + padded > COLLECTED_BYTES_MAX {
            self.send()?;
            if self.session.has_pending_data() {
                return Ok(TransmitResult::Full);
            }
        }
        // Frames of the switch are smaller than 4 GiB.
        let length = u32::try_from(padded).unwrap_or(u32::MAX).to_be_bytes();
        self.collected.extend_from_slice(&length);
        self.collected.extend_from_slice(wire.before_tag);
        if let Some(tag) = &wire.tag {
            self.collected.extend_from_slice(tag);
        }
        self.collected.extend_from_slice(wire.after_tag);
        self.collected.resize(self.collected.len() + padded - bytes, 0);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.send()
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}

#[cfg(test)]
#[path = "queues_tests.rs"]
mod tests;
