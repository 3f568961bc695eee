//! Frames for queues of other processors, gathered into parcels.
//!
//! A processor has a bounded number of frames under way to others. Their buffers
//! are exchanged, not copied: a frame leaves its batch in its own buffer, an empty
//! one takes its place, and the parcel brings the buffer back. Memory is taken
//! when it is first needed and kept.
//!
//! A receiver that reads no mail does not keep frames from the others: each may always have
//! a batch under way, and of what is shared beyond that never more than [`SHARE`] times as
//! much as is still free, so that the first such one gets three quarters of it at last.

use std::sync::Arc;

use suimon_frame::{BATCH_FRAMES_MAX, Frame};
use suimon_quantity::{ProcessorId, QueueId};

use crate::link::{Link, Mail, Outbox, PARCELS_MAX};
use crate::published::Published;

/// Frames a processor may have under way to others: what a large ring holds, and
/// [`OWN_FRAMES`] to each. If the others are further behind, frames are dropped as if the
/// egress were full.
const FRAMES_MAX: usize = 1024;
/// Frames that may always be under way to a receiver.
const OWN_FRAMES: usize = BATCH_FRAMES_MAX;
/// See the module.
const SHARE: usize = 3;

/// Frames on their way to one egress queue at another processor.
pub(crate) struct Parcel {
    home: Arc<Link>,
    /// Whose mailbox it was made for.
    to: ProcessorId,
    pub queue: QueueId,
    pub frames: Vec<Frame>,
}

/// One processor's outgoing frames.
pub(crate) struct Post {
    home: Arc<Link>,
    /// Parcels being filled, in the order in which they were begun.
    open: Vec<Parcel>,
    parcels: Vec<Parcel>,
    parcels_made: usize,
    frames: Vec<Frame>,
    frames_made: usize,
    /// Frames in parcels that have not come home, by receiver.
    under_way: Vec<usize>,
    /// Those of them beyond [`OWN_FRAMES`] of each.
    shared: usize,
}

impl Post {
    pub(crate) fn new(home: Arc<Link>) -> Self {
        Self {
            home,
            open: Vec::with_capacity(BATCH_FRAMES_MAX),
            parcels: Vec::new(),
            parcels_made: 0,
            frames: Vec::new(),
            frames_made: 0,
            under_way: Vec::new(),
            shared: 0,
        }
    }

    /// A parcel for a queue at a processor with this frame in it; `None` if too much is under
    /// way there. `is_only`: nobody else needs the frame, so its buffer may be taken.
    pub(crate) fn parcel(
        &mut self,
        to: ProcessorId,
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

    /// Adds a frame to the parcel for its queue. `false` if too much is under way:
    /// the owner is behind.
    pub(crate) fn add(
        &mut self,
        owner: ProcessorId,
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

    /// Sends all parcels. There is one per queue, or only the last of a queue has
    /// room, so the order among them matters to nobody.
    pub(crate) fn send_all(&mut self, published: &Published, outbox: &mut Outbox) {
        for parcel in self.open.drain(..) {
            match published.link(parcel.to) {
                Some(link) => outbox.send(link, Mail::Parcel(parcel)),
                None => return_home(parcel),
            }
        }
    }

    fn put(&mut self, parcel: &mut Parcel, frame: &mut Frame, is_only: bool) -> bool {
        if !self.has_room(parcel.to) {
            return false;
        }
        let under_way = &mut self.under_way[usize::from(parcel.to.0)];
        self.shared += usize::from(*under_way >= OWN_FRAMES);
        *under_way += 1;
        let mut buffer = self.spare_frame();
        if is_only {
            // Its source does not wait for the other processor.
            frame.gather();
            std::mem::swap(&mut buffer, frame);
        } else {
            buffer.copy_from(frame);
        }
        parcel.frames.push(buffer);
        true
    }

    /// Whether this receiver may have one frame more.
    fn has_room(&mut self, to: ProcessorId) -> bool {
        let at = usize::from(to.0);
        if at >= self.under_way.len() {
            self.under_way.resize(at + 1, 0);
        }
        let is_room = |of: &Self| {
            let shared = of.under_way[at].checked_sub(OWN_FRAMES);
            shared.is_none_or(|shared| shared < (FRAMES_MAX - of.shared) * SHARE)
        };
        if is_room(self) {
            return true;
        }
        self.collect_returns();
        is_room(self)
    }

    /// A buffer for a frame that there is room for.
    fn spare_frame(&mut self) -> Frame {
        if self.frames.is_empty() {
            self.collect_returns();
        }
        self.frames.pop().unwrap_or_else(|| {
            self.frames_made += 1;
            Frame::new(self.frames_made)
        })
    }

    fn spare_parcel(&mut self, to: ProcessorId, queue: QueueId) -> Option<Parcel> {
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
            let under_way = &mut self.under_way[usize::from(parcel.to.0)];
            self.shared -= parcel.frames.len().min(under_way.saturating_sub(OWN_FRAMES));
            *under_way -= parcel.frames.len();
            self.frames.append(&mut parcel.frames);
            self.parcels.push(parcel);
        }
    }
}

/// Gives a parcel, with its buffers, back to the processor that made it.
pub(crate) fn return_home(parcel: Parcel) {
    let home = Arc::clone(&parcel.home);
    // There is a place for every parcel made.
    let _ = home.returns.push(parcel);
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;
