//! Frames for queues of other processors, gathered into parcels.
//!
//! A processor has a bounded number of frames under way to others. Their buffers
//! are exchanged, not copied: a frame leaves its batch in its own buffer, an empty
//! one takes its place, and the parcel brings the buffer back. Memory is taken
//! when it is first needed and kept.

use std::sync::Arc;

use suimon_frame::{BATCH_FRAMES_MAX, Frame};
use suimon_quantity::{ProcessorId, QueueId};

use crate::link::{Link, Mail, Outbox, PARCELS_MAX};
use crate::published::Published;

/// Frames a processor may have under way to others: what a large ring holds. If
/// the others are further behind, frames are dropped as if the egress were full.
const FRAMES_MAX: usize = 1024;

/// Frames on their way to one egress queue at another processor.
pub(crate) struct Parcel {
    home: Arc<Link>,
    pub queue: QueueId,
    pub frames: Vec<Frame>,
}

/// One processor's outgoing frames.
pub(crate) struct Post {
    home: Arc<Link>,
    /// Parcels being filled, in the order in which they were begun.
    open: Vec<(ProcessorId, Parcel)>,
    parcels: Vec<Parcel>,
    parcels_made: usize,
    frames: Vec<Frame>,
    frames_made: usize,
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
        }
    }

    /// A parcel for a queue with this frame in it; `None` if too much is under way.
    /// `is_only`: nobody else needs the frame, so its buffer may be taken.
    pub(crate) fn parcel(
        &mut self,
        queue: QueueId,
        frame: &mut Frame,
        is_only: bool,
    ) -> Option<Parcel> {
        let mut parcel = self.spare_parcel(queue)?;
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
        let open = self.open.iter().rposition(|(_, parcel)| {
            parcel.queue == queue && parcel.frames.len() < BATCH_FRAMES_MAX
        });
        match open {
            Some(at) => {
                let (owner, mut parcel) = self.open.swap_remove(at);
                let is_in = self.put(&mut parcel, frame, is_only);
                self.open.push((owner, parcel));
                is_in
            }
            None => {
                let parcel = self.parcel(queue, frame, is_only);
                self.open.extend(parcel.map(|parcel| (owner, parcel)));
                self.open.last().is_some_and(|(_, parcel)| parcel.queue == queue)
            }
        }
    }

    /// Sends all parcels. There is one per queue, or only the last of a queue has
    /// room, so the order among them matters to nobody.
    pub(crate) fn send_all(&mut self, published: &Published, outbox: &mut Outbox) {
        for (owner, parcel) in self.open.drain(..) {
            match published.link(owner) {
                Some(link) => outbox.send(link, Mail::Parcel(parcel)),
                None => return_home(parcel),
            }
        }
    }

    fn put(&mut self, parcel: &mut Parcel, frame: &mut Frame, is_only: bool) -> bool {
        let Some(mut buffer) = self.spare_frame() else { return false };
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

    fn spare_frame(&mut self) -> Option<Frame> {
        if self.frames.is_empty() {
            self.collect_returns();
        }
        if self.frames.is_empty() && self.frames_made < FRAMES_MAX {
            self.frames_made += 1;
            return Some(Frame::new(self.frames_made));
        }
        self.frames.pop()
    }

    fn spare_parcel(&mut self, queue: QueueId) -> Option<Parcel> {
        if self.parcels.is_empty() {
            self.collect_returns();
        }
        if let Some(mut parcel) = self.parcels.pop() {
            parcel.queue = queue;
            return Some(parcel);
        }
        if self.parcels_made == PARCELS_MAX {
            return None;
        }
        self.parcels_made += 1;
        let frames = Vec::with_capacity(BATCH_FRAMES_MAX);
        Some(Parcel { home: Arc::clone(&self.home), queue, frames })
    }

    fn collect_returns(&mut self) {
        while let Some(mut parcel) = self.home.returns.pop() {
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
