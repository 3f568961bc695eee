//! Model of a hard disk drive: one head, a queue, and service times.
//!
//! Equations
//! - service = seek(d) + rotation + bytes / media rate, varied by noise. A part adjacent to the
//!   previous one needs neither seek nor rotation.
//! - seek(d) = t₁ + a √d + b d for a distance d > 0, as a fraction of the full stroke: arms
//!   accelerate over short distances and coast over long ones (Ruemmler and Wilkes, "An
//!   introduction to disk drive modeling", IEEE Computer 27(3), 1994). Data sheets contain the
//!   times of a single track t₁, of the full stroke t₁ + a + b, and of the average seek. For two
//!   uniformly distributed positions, E[√d] = 8/15 and E[d] = 1/3, so that a = 5 (average − t₁ −
//!   (full − t₁) / 3) and b = full − t₁ − a.
//! - rotation is uniformly distributed from 0 to one turn, 60 s / rpm.
//! - Of the first `reorder` requests in the queue the nearest is served first. Reads precede
//!   writes, since clients wait for them.
//!
//! Parameters: rpm, the three seek times, the media rate and the capacity are those of a product
//! manual. `reorder` and noise are defined by the scenario.

use std::collections::VecDeque;

use serde::Deserialize;
use suimon_sim_kernel::RandomStream;

/// Parameters of a drive from a product manual.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriveSpec {
    /// Rotational speed in rotations per minute.
    pub(crate) rpm: u32,
    /// Seek time to the adjacent track in µs.
    pub(crate) seek_track_us: u32,
    /// Average seek time in µs.
    pub(crate) seek_average_us: u32,
    /// Seek time over the full stroke in µs.
    pub(crate) seek_full_us: u32,
    /// Rate of the media in 10⁶ bytes per second.
    pub(crate) media_mb_s: u32,
    /// Capacity in 10⁹ bytes.
    pub(crate) capacity_gb: u32,
    /// Number of the oldest requests in the queue of which the drive selects the nearest one.
    #[serde(rename = "reorder")]
    pub(crate) reorder_window: u32,
}

/// Request of the array, or part of one, that this drive serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriveRequest {
    /// Number that the array has assigned to the part.
    pub(crate) job: u32,
    /// Offset in bytes from the first track.
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Drive {
    /// Position of the head in bytes from the first track.
    head: u64,
    reads: VecDeque<DriveRequest>,
    writes: VecDeque<DriveRequest>,
    pub(crate) in_service: Option<DriveRequest>,
}

impl Drive {
    pub(crate) fn add(&mut self, part: DriveRequest, is_write: bool) {
        if is_write { self.writes.push_back(part) } else { self.reads.push_back(part) }
    }

    /// Returns the number of parts that are queued or being served.
    pub(crate) fn length(&self) -> usize {
        self.reads.len() + self.writes.len() + usize::from(self.in_service.is_some())
    }

    /// Starts serving the next part if the drive is idle. Returns the service time in ns without
    /// noise; `None` if the drive is busy or has no parts.
    pub(crate) fn begin(&mut self, spec: &DriveSpec, random: &mut RandomStream) -> Option<u64> {
        if self.in_service.is_some() {
            return None;
        }
        let head = self.head;
        let queue = if self.reads.is_empty() { &mut self.writes } else { &mut self.reads };
        let looked_at = queue.iter().take(spec.reorder_window as usize).enumerate();
        let (nearest, _) = looked_at.min_by_key(|(_, part)| part.offset.abs_diff(head))?;
        let part = queue.remove(nearest)?;
        self.in_service = Some(part);
        self.head = part.offset + u64::from(part.bytes);
        let transfer = u64::from(part.bytes) * 1000 / u64::from(spec.media_mb_s);
        if part.offset == head {
            return Some(transfer);
        }
        let rotation_ns = 60_000_000_000 / u64::from(spec.rpm);
        Some(spec.seek_ns(part.offset.abs_diff(head)) + random.draw_below(rotation_ns) + transfer)
    }
}

impl DriveSpec {
    /// Returns the seek time over a distance in bytes.
    pub(crate) fn seek_ns(&self, bytes: u64) -> u64 {
        let stroke = f64::from(self.capacity_gb) * 1e9;
        let distance = (bytes as f64 / stroke).min(1.0);
        let track = f64::from(self.seek_track_us);
        let full = f64::from(self.seek_full_us) - track;
        let rooted = 5.0 * (f64::from(self.seek_average_us) - track - full / 3.0);
        let seek_us = track + rooted * distance.sqrt() + (full - rooted) * distance;
        (seek_us * 1000.0) as u64
    }
}
