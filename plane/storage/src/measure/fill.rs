//! Filling of a measurement's file. Filling is necessary because a device may not read ranges that
//! were never written.

use core::time::Duration;
use suimon_ports::{FileCompletion, FileRequest};
use suimon_quantity::Time;

use crate::measure::device::MeasuredDevice;
use crate::measure::error::MeasureError;
use crate::measure::sizes::{FILE_BYTES_MIN, MIB};

/// Number of writes in flight.
const DEPTH: usize = 8;
/// Time limit for filling the file on a slow device. After it, the file is used with the size
/// written so far.
const PATIENCE: Duration = Duration::from_secs(30);
/// Distance of unique stamps in bytes. A stamp in each sector prevents that a device deduplicates
/// the data.
const STAMP_EVERY: usize = 512;
const FLUSH: u64 = u64::MAX;

/// Progress of filling the measurement's file.
pub(super) struct FileFiller {
    bytes: u64,
    /// Offset in bytes up to which writes were submitted.
    offset: u64,
    started: Option<Time>,
    is_flushing: bool,
    noise: Vec<u8>,
}

impl FileFiller {
    pub(super) const fn new(bytes: u64) -> Self {
        Self { bytes, offset: 0, started: None, is_flushing: false, noise: Vec::new() }
    }

    /// Processes completions and submits further writes. Returns true if the file is filled and
    /// durable.
    pub(super) fn step(
        &mut self,
        now: Time,
        device: &mut MeasuredDevice,
        completions: &mut Vec<FileCompletion>,
    ) -> Result<bool, MeasureError> {
        let started = *self.started.get_or_insert(now);
        for FileCompletion { token, result: outcome } in completions.drain(..) {
            let action = if token == FLUSH { "flushing" } else { "filling" };
            let offset = if token == FLUSH { 0 } else { token };
            outcome.map_err(|error| MeasureError::Io { operation: action, offset, error })?;
            if token == FLUSH {
                device.bytes = self.bytes;
                return Ok(true);
            }
        }
        if self.offset >= FILE_BYTES_MIN && now.since(started) >= PATIENCE {
            self.bytes = self.offset;
        }
        while self.offset < self.bytes && device.io.in_flight() < DEPTH {
            let bytes = self.bytes_of(device);
            let op = FileRequest::WriteBytes { offset: self.offset, bytes };
            if !device.io.submit(device.slot, op, self.offset) {
                break;
            }
            self.offset += MIB;
        }
        if self.offset >= self.bytes && device.io.in_flight() == 0 && !self.is_flushing {
            self.is_flushing = device.io.submit(device.slot, FileRequest::Flush, FLUSH);
        }
        Ok(false)
    }

    pub(super) fn progress_text(&self) -> String {
        format!("fill the test file: {} of {} MiB", self.offset / MIB, self.bytes / MIB)
    }

    /// Returns 1 MiB of data that can be neither compressed nor deduplicated.
    fn bytes_of(&mut self, device: &mut MeasuredDevice) -> Vec<u8> {
        if self.noise.is_empty() {
            let noise = (0..MIB / 8).map(|_| device.next_random().to_le_bytes());
            self.noise = noise.flatten().collect();
        }
        let mut bytes = self.noise.clone();
        let salt = device.next_random();
        for (number, sector) in (0u64..).zip(bytes.chunks_exact_mut(STAMP_EVERY)) {
            if let Some(stamp) = sector.first_chunk_mut() {
                *stamp = salt.wrapping_add(number).to_le_bytes();
            }
        }
        bytes
    }
}
