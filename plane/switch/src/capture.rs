//! Live capture of one port, with bounded memory and without effect on traffic.
//!
//! A capture owns a fixed number of buffers. A worker takes a free buffer, copies the beginning of
//! the frame into it and queues it for the reader. If no buffer is free, the frame is not captured,
//! and counted as dropped. Workers never wait for the reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use suimon_frame::Frame;
use suimon_quantity::{Direction, Time};

use crate::counters::SharedCounter;

/// Memory limits of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureBufferLimits {
    /// Bytes captured of each frame, 64 to 65 600.
    pub snaplen: u32,
    /// Memory in bytes for frames that were not read yet; at least 16 frames always fit.
    pub ring_bytes: usize,
}

impl Default for CaptureBufferLimits {
    fn default() -> Self {
        Self { snaplen: 65_600, ring_bytes: 16 << 20 }
    }
}

/// Captured frame.
#[derive(Debug)]
pub struct CapturedFrame {
    /// Time of the capture on the workers' clock.
    pub time: Time,
    /// Direction, seen from the switch.
    pub direction: Direction,
    /// Length on the wire in bytes, including the VLAN tag. A frame to be segmented counts with its
    /// own length.
    pub original_len: u32,
    bytes: Vec<u8>,
}

impl CapturedFrame {
    /// Returns the captured beginning of the frame, including the VLAN tag.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Worker side of a capture.
pub(crate) struct CaptureWriter {
    snaplen: usize,
    free: ArrayQueue<Box<CapturedFrame>>,
    filled: ArrayQueue<Box<CapturedFrame>>,
    dropped: SharedCounter,
    closed: AtomicBool,
}

impl CaptureWriter {
    fn new(options: CaptureBufferLimits) -> Self {
        let snaplen = options.snaplen.clamp(64, 65_600) as usize;
        let slots = (options.ring_bytes / snaplen).clamp(16, 65_536);
        let free = ArrayQueue::new(slots);
        for _ in 0..slots {
            let frame = CapturedFrame {
                time: Time::ZERO,
                direction: Direction::Ingress,
                original_len: 0,
                bytes: Vec::with_capacity(snaplen),
            };
            let _ = free.push(Box::new(frame));
        }
        Self {
            snaplen,
            free,
            filled: ArrayQueue::new(slots),
            dropped: SharedCounter::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Captures the beginning of the frame, or counts the frame as dropped. The frame must have no
    /// tail: only gathered bytes are captured.
    pub(crate) fn capture_frame(&self, now: Time, direction: Direction, frame: &Frame) {
        let Some(mut slot) = self.free.pop() else {
            self.dropped.add(1);
            return;
        };
        let wire = frame.wire_format();
        slot.time = now;
        slot.direction = direction;
        slot.original_len = u32::try_from(wire.wire_len()).unwrap_or(u32::MAX);
        slot.bytes.clear();
        for part in
            [wire.before_tag, wire.tag.as_ref().map_or(&[][..], |tag| &tag[..]), wire.after_tag]
        {
            let remaining = self.snaplen - slot.bytes.len();
            slot.bytes.extend_from_slice(&part[..part.len().min(remaining)]);
        }
        // The queue has room for all buffers.
        let _ = self.filled.push(slot);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// Reader side of a capture. Dropping it ends the capture.
pub struct CaptureReader {
    tap: Arc<CaptureWriter>,
    on_drop: Option<Box<dyn FnOnce() + Send>>,
}

/// Interval at which a reader polls for frames; captures are read by people.
const READ_POLL_INTERVAL: Duration = Duration::from_millis(5);

impl CaptureReader {
    pub(crate) fn new(options: CaptureBufferLimits) -> (Self, Arc<CaptureWriter>) {
        let tap = Arc::new(CaptureWriter::new(options));
        (Self { tap: Arc::clone(&tap), on_drop: None }, tap)
    }

    pub(crate) fn set_drop_action(&mut self, action: Box<dyn FnOnce() + Send>) {
        self.on_drop = Some(action);
    }

    /// Passes up to `frames_max` captured frames to `handle_frame`, oldest first. Blocks up to
    /// `timeout` for the first one. Returns the number of frames.
    pub fn read(
        &self,
        timeout: Duration,
        frames_max: usize,
        mut handle_frame: impl FnMut(&CapturedFrame),
    ) -> usize {
        let mut remaining = timeout;
        while self.tap.filled.is_empty() && !remaining.is_zero() {
            let nap = remaining.min(READ_POLL_INTERVAL);
            std::thread::sleep(nap);
            remaining -= nap;
        }
        let mut count = 0;
        while count < frames_max {
            let Some(frame) = self.tap.filled.pop() else { break };
            handle_frame(&frame);
            let _ = self.tap.free.push(frame);
            count += 1;
        }
        count
    }

    /// Returns the number of frames that passed while no buffer was free.
    pub fn dropped_frames(&self) -> u64 {
        self.tap.dropped.value()
    }
}

impl Drop for CaptureReader {
    fn drop(&mut self) {
        self.tap.closed.store(true, Ordering::Relaxed);
        if let Some(action) = self.on_drop.take() {
            action();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_capture_counts_lost_frames() {
        let options = CaptureBufferLimits { snaplen: 64, ring_bytes: 64 * 16 };
        let (reader, tap) = CaptureReader::new(options);
        let mut frame = Frame::new(0);
        for number in 0..20_u8 {
            frame.set_bytes(&[number; 100]);
            tap.capture_frame(Time::from_ns(u64::from(number)), Direction::Egress, &frame);
        }
        let mut numbers = Vec::new();
        let count = reader.read(Duration::ZERO, 100, |captured| {
            assert_eq!(captured.original_len, 100);
            assert_eq!(captured.bytes().len(), 64);
            numbers.push(captured.bytes()[0]);
        });
        assert_eq!(count, 16);
        assert_eq!(numbers, (0..16).collect::<Vec<u8>>());
        assert_eq!(reader.dropped_frames(), 4);
        tap.capture_frame(Time::ZERO, Direction::Egress, &frame);
        assert_eq!(reader.read(Duration::ZERO, 100, |_| ()), 1);
        drop(reader);
        assert!(tap.is_closed());
    }
}
