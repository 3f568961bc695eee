//! Frames for queues of other workers, collected in parcels.
//!
//! A worker has a bounded number of frames in flight to others. Buffers are exchanged, not copied:
//! a frame leaves its batch in its own buffer, an empty buffer replaces it, and the parcel returns
//! the buffer. Buffers are allocated on first use and kept.
//!
//! A receiver that reads no mail does not block frames to the others. Each receiver may always have
//! one batch in flight. Of the shared buffers beyond that, it may use at most [`SHARE`] times the
//! number that is still free, so a single blocked receiver ends up with three quarters of them.

use std::sync::Arc;

use suimon_frame::{BATCH_FRAMES_MAX, Frame};
use suimon_quantity::{QueueId, WorkerId};

use crate::link::{Link, LinkMessage, Links, PARCELS_MAX, Parcel, return_home};
use crate::outbox::LinkOutbox;

/// Maximum number of shared frames in flight to other workers, in addition to [`OWN_FRAMES`] for
/// each: the capacity of a large ring. Frames beyond it are dropped as if the egress queue were
/// full.
const FRAMES_MAX: usize = 1024;
/// Frames that may always be in flight to a receiver.
const OWN_FRAMES: usize = BATCH_FRAMES_MAX;
/// Limit of a receiver's shared frames, as a multiple of the free ones.
const SHARE: usize = 3;

/// Outgoing frames of one worker.
pub(crate) struct ParcelSender {
    home: Arc<Link>,
    /// Parcels being filled, in order of creation.
    open: Vec<Parcel>,
    parcels: Vec<Parcel>,
    parcels_made: usize,
    frames: Vec<Frame>,
    frames_made: usize,
    /// Frames in parcels that were not returned yet, by receiver.
    in_flight: Vec<usize>,
    /// Frames in flight beyond [`OWN_FRAMES`] of each receiver.
    shared: usize,
}

impl ParcelSender {
    pub(crate) fn new(home: Arc<Link>) -> Self {
        Self {
            home,
            open: Vec::with_capacity(BATCH_FRAMES_MAX),
            parcels: Vec::new(),
            parcels_made: 0,
            frames: Vec::new(),
            frames_made: 0,
            in_flight: Vec::new(),
            shared: 0,
        }
    }

    /// Creates a parcel with this frame for a queue of another worker. Returns `None` if too many
    /// frames are in flight to it. With `is_only`, the frame has no other destination, so its
    /// buffer may be taken.
    pub(crate) fn parcel(
        &mut self,
        to: WorkerId,
        queue: QueueId,
        frame: &mut Frame,
        is_only: bool,
    ) -> Option<Parcel> {
        let mut parcel = self.spare_parcel(to, queue)?;
        if self.put(&mut parcel, frame, is_only) {
            return Some(parcel);
        }
        self.parcels.push(parcel);
        None
    }

    /// Adds a frame to the parcel for its queue. Returns false if too many frames are in flight,
    /// because the owner lags behind.
    pub(crate) fn add(
        &mut self,
        owner: WorkerId,
        queue: QueueId,
        frame: &mut Frame,
        is_only: bool,
    ) -> bool {
        let open = self
            .open
            .iter()
            .rposition(|parcel| parcel.queue == queue && parcel.frames.len() < BATCH_FRAMES_MAX);
        let Some(at) = open else {
            let Some(parcel) = self.parcel(owner, queue, frame, is_only) else { return false };
            self.open.push(parcel);
            return true;
        };
        let mut parcel = self.open.swap_remove(at);
        let is_in = self.put(&mut parcel, frame, is_only);
        self.open.push(parcel);
        is_in
    }

    /// Sends all parcels. There is one per queue, or only the last one of a queue has room, so
    /// their order is irrelevant.
    pub(crate) fn send_all(&mut self, links: &Links, outbox: &mut LinkOutbox) {
        for parcel in self.open.drain(..) {
            match links.of(parcel.to) {
                Some(link) => outbox.send(link, LinkMessage::Parcel(parcel)),
                None => return_home(parcel),
            }
        }
    }

    fn put(&mut self, parcel: &mut Parcel, frame: &mut Frame, is_only: bool) -> bool {
        if !self.has_room(parcel.to) {
            return false;
        }
        let under_way = &mut self.in_flight[usize::from(parcel.to.0)];
        self.shared += usize::from(*under_way >= OWN_FRAMES);
        *under_way += 1;
        let mut buffer = self.spare_frame();
        if is_only {
            // The source does not wait for the other worker, so the tail is copied.
            frame.linearize();
            std::mem::swap(&mut buffer, frame);
        } else {
            buffer.copy_from(frame);
        }
        parcel.frames.push(buffer);
        true
    }

    /// Returns true if one more frame may be in flight to this receiver.
    fn has_room(&mut self, to: WorkerId) -> bool {
        let at = usize::from(to.0);
        if at >= self.in_flight.len() {
            self.in_flight.resize(at + 1, 0);
        }
        let is_room = |of: &Self| {
            let shared = of.in_flight[at].checked_sub(OWN_FRAMES);
            shared.is_none_or(|shared| shared < (FRAMES_MAX - of.shared) * SHARE)
        };
        if is_room(self) {
            return true;
        }
        self.collect_returns();
        is_room(self)
    }

    /// Returns a free buffer, or allocates one.
    fn spare_frame(&mut self) -> Frame {
        if self.frames.is_empty() {
            self.collect_returns();
        }
        self.frames.pop().unwrap_or_else(|| {
            self.frames_made += 1;
            Frame::new(self.frames_made)
        })
    }

    fn spare_parcel(&mut self, to: WorkerId, queue: QueueId) -> Option<Parcel> {
        if self.parcels.is_empty() {
            self.collect_returns();
        }
        if let Some(mut parcel) = self.parcels.pop() {
            (parcel.to, parcel.queue) = (to, queue);
            return Some(parcel);
        }
        if self.parcels_made == PARCELS_MAX {
            return None;
        }
        self.parcels_made += 1;
        let frames = Vec::with_capacity(BATCH_FRAMES_MAX);
        Some(Parcel { home: Arc::clone(&self.home), to, queue, frames })
    }

    fn collect_returns(&mut self) {
        while let Some(mut parcel) = self.home.returns.pop() {
            let under_way = &mut self.in_flight[usize::from(parcel.to.0)];
            self.shared -= parcel.frames.len().min(under_way.saturating_sub(OWN_FRAMES));
            *under_way -= parcel.frames.len();
            self.frames.append(&mut parcel.frames);
            self.parcels.push(parcel);
        }
    }
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;
