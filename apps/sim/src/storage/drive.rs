//! A hard disk drive: one head, a queue, and what it takes to serve what comes next.
//!
//! Equations
//! - service = seek(d) + rotation + bytes / media rate, each time longer or shorter by noise.
//!   What follows directly on what was served last needs neither seek nor rotation.
//! - seek(d) = t₁ + a √d + b d for a distance d > 0, as a fraction of the whole stroke: arms
//!   are accelerated over short distances and coast over long ones (Ruemmler and Wilkes, "An
//!   introduction to disk drive modeling", IEEE Computer 27(3), 1994). Data sheets give the
//!   times of a single track t₁, of the whole stroke t₁ + a + b, and of the average seek. Between
//!   two places that are equally likely everywhere, E[√d] = 8/15 and E[d] = 1/3, so that
//!   a = 5 (average − t₁ − (full − t₁) / 3) and b = full − t₁ − a.
//! - rotation is evenly distributed from 0 to one turn, 60 s / rpm.
//! - Of the first `reorder` requests in the queue the nearest is served first; reads go before
//!   writes, because somebody waits for them.
//!
//! Parameters: rpm, the three times of a seek, the media rate and the capacity are those of a
//! product manual. `reorder` and noise are the scenario's.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::kernel::Dice;

/// What a product manual says of a drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriveSpec {
    /// Turns a minute.
    pub(crate) rpm: u32,
    /// Time to the next track, in µs.
    pub(crate) seek_track_us: u32,
    /// Time of the average seek, in µs.
    pub(crate) seek_average_us: u32,
    /// Time of a seek over all tracks, in µs.
    pub(crate) seek_full_us: u32,
    /// Rate at which the media is read and written, in 10⁶ bytes a second.
    pub(crate) media_mb_s: u32,
    /// In 10⁹ bytes.
    pub(crate) capacity_gb: u32,
    /// So many of the oldest requests are looked at for the nearest.
    pub(crate) reorder: u32,
}

/// A request of the array's, or a part of one, for this drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The array's number for it.
    pub(crate) job: u32,
    /// Where it begins, in bytes from the first track.
    pub(crate) at: u64,
    pub(crate) bytes: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Drive {
    /// Where the head is.
    head: u64,
    reads: VecDeque<Part>,
    writes: VecDeque<Part>,
    pub(crate) serves: Option<Part>,
}

impl Drive {
    pub(crate) fn add(&mut self, part: Part, is_write: bool) {
        if is_write { self.writes.push_back(part) } else { self.reads.push_back(part) }
    }

    /// Parts that wait or are served.
    pub(crate) fn length(&self) -> usize {
        self.reads.len() + self.writes.len() + usize::from(self.serves.is_some())
    }

    /// Begins what comes next, if it is free: what that takes, in ns, without noise.
    pub(crate) fn begin(&mut self, spec: &DriveSpec, dice: &mut Dice) -> Option<u64> {
        if self.serves.is_some() {
            return None;
        }
        let head = self.head;
        let queue = if self.reads.is_empty() { &mut self.writes } else { &mut self.reads };
        let looked_at = queue.iter().take(spec.reorder as usize).enumerate();
        let (nearest, _) = looked_at.min_by_key(|(_, part)| part.at.abs_diff(head))?;
        let part = queue.remove(nearest)?;
        self.serves = Some(part);
        self.head = part.at + u64::from(part.bytes);
        let transfer = u64::from(part.bytes) * 1000 / u64::from(spec.media_mb_s);
        if part.at == head {
            return Some(transfer);
        }
        let turn = 60_000_000_000 / u64::from(spec.rpm);
        Some(spec.seek_ns(part.at.abs_diff(head)) + dice.below(turn) + transfer)
    }
}

impl DriveSpec {
    /// Time of a seek over so many bytes.
    pub(crate) fn seek_ns(&self, bytes: u64) -> u64 {
        let stroke = f64::from(self.capacity_gb) * 1e9;
        let distance = (bytes as f64 / stroke).min(1.0);
        let track = f64::from(self.seek_track_us);
        let full = f64::from(self.seek_full_us) - track;
        let rooted = 5.0 * (f64::from(self.seek_average_us) - track - full / 3.0);
        let us = track + rooted * distance.sqrt() + (full - rooted) * distance;
        (us * 1000.0) as u64
    }
}
