//! Driver that keeps a virtqueue filled with requests, as a guest under load does.

use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::packed::PackedRing;
use crate::requests::{Requests, SlotRequest};
use crate::split::SplitRing;

/// Virtqueue in split or packed format.
pub(crate) enum Ring<'a> {
    Split(SplitRing<'a>),
    Packed(PackedRing<'a>),
}

impl Ring<'_> {
    pub(crate) fn slot_count(&self) -> usize {
        match self {
            Self::Split(ring) => ring.slot_count(),
            Self::Packed(ring) => ring.slot_count(),
        }
    }

    fn add(&mut self, slot: u16, request: SlotRequest) {
        match self {
            Self::Split(ring) => ring.add(slot, request),
            Self::Packed(ring) => ring.add(slot, request),
        }
    }

    fn publish(&mut self) -> bool {
        match self {
            Self::Split(ring) => ring.publish(),
            Self::Packed(ring) => ring.publish(),
        }
    }

    fn take(&mut self) -> Option<u16> {
        match self {
            Self::Split(ring) => ring.take(),
            Self::Packed(ring) => ring.take(),
        }
    }

    fn set_interrupt(&mut self, is_wanted: bool) {
        match self {
            Self::Split(ring) => ring.set_interrupt(is_wanted),
            Self::Packed(ring) => ring.set_interrupt(is_wanted),
        }
    }

    fn has_completion(&self) -> bool {
        match self {
            Self::Split(ring) => ring.has_completion(),
            Self::Packed(ring) => ring.has_completion(),
        }
    }
}

/// Driver of one virtqueue: makes requests, submits them and checks their completions.
pub(crate) struct Driver<'a> {
    pub(crate) requests: Requests<'a>,
    pub(crate) ring: Ring<'a>,
    pub(crate) kick: OwnedFd,
    pub(crate) call: OwnedFd,
    /// Number of requests to keep in flight.
    pub(crate) depth: u16,
    pub(crate) kicks: u64,
}

impl Driver<'_> {
    /// Submits `depth` requests.
    pub(crate) fn fill(&mut self) -> Result<()> {
        for slot in 0..self.depth {
            self.submit(slot);
        }
        self.publish()
    }

    fn submit(&mut self, slot: u16) {
        let request = self.requests.generate(slot);
        self.ring.add(slot, request);
    }

    fn publish(&mut self) -> Result<()> {
        if self.ring.publish() {
            self.kicks += 1;
            rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).context("no kick")?;
        }
        Ok(())
    }

    /// Reaps completions and submits a new request for each. Returns the number of completions, at
    /// most `depth`.
    pub(crate) fn poll(&mut self) -> Result<u64> {
        let mut count = 0;
        while count < u64::from(self.depth) {
            let Some(slot) = self.ring.take() else { break };
            ensure!(slot < self.depth, "the back-end answers request {slot}, which was not made");
            self.requests.check(slot)?;
            self.submit(slot);
            count += 1;
        }
        self.ring.set_interrupt(false);
        self.publish()?;
        Ok(count)
    }

    /// Enables interrupts and blocks until a request completes, at most 5 s.
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.ring.set_interrupt(true);
        fence(Ordering::SeqCst);
        if self.ring.has_completion() {
            return Ok(());
        }
        let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.call, PollFlags::IN)];
        if poll(&mut fds, Some(&limit)).context("no interrupt can be waited for")? > 0 {
            rustix::io::read(&self.call, &mut [0; 8]).context("no interrupt")?;
        }
        Ok(())
    }
}
