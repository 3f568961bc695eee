//! A driver that keeps a ring full of requests, as a guest has it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::packed::PackedRing;
use crate::requests::{Asked, Requests};
use crate::split::SplitRing;

/// A ring of either form.
pub(crate) enum Ring<'a> {
    Split(SplitRing<'a>),
    Packed(PackedRing<'a>),
}

impl Ring<'_> {
    pub(crate) fn slots(&self) -> usize {
        match self {
            Self::Split(ring) => ring.slots(),
            Self::Packed(ring) => ring.slots(),
        }
    }

    fn add(&mut self, slot: u16, asked: Asked) {
        match self {
            Self::Split(ring) => ring.add(slot, asked),
            Self::Packed(ring) => ring.add(slot, asked),
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

    fn want_interrupt(&mut self, is_wanted: bool) {
        match self {
            Self::Split(ring) => ring.want_interrupt(is_wanted),
            Self::Packed(ring) => ring.want_interrupt(is_wanted),
        }
    }

    fn has_answer(&self) -> bool {
        match self {
            Self::Split(ring) => ring.has_answer(),
            Self::Packed(ring) => ring.has_answer(),
        }
    }
}

/// See the module.
pub(crate) struct Driver<'a> {
    pub(crate) requests: Requests<'a>,
    pub(crate) ring: Ring<'a>,
    pub(crate) kick: OwnedFd,
    pub(crate) call: OwnedFd,
    /// How many requests there are at a time.
    pub(crate) depth: u16,
    pub(crate) kicks: u64,
}

impl Driver<'_> {
    /// Asks for as many requests as there are to be.
    pub(crate) fn fill(&mut self) -> Result<()> {
        for slot in 0..self.depth {
            self.ask(slot);
        }
        self.publish()
    }

    fn ask(&mut self, slot: u16) {
        let asked = self.requests.make(slot);
        self.ring.add(slot, asked);
    }

    fn publish(&mut self) -> Result<()> {
        if self.ring.publish() {
            self.kicks += 1;
            rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).context("no kick")?;
        }
        Ok(())
    }

    /// Takes in what was answered, and asks again; how many that were.
    pub(crate) fn turn(&mut self) -> Result<u64> {
        let mut count = 0;
        while count < u64::from(self.depth) {
            let Some(slot) = self.ring.take() else { break };
            ensure!(slot < self.depth, "the back-end answers request {slot}, which was not made");
            self.requests.check(slot)?;
            self.ask(slot);
            count += 1;
        }
        self.ring.want_interrupt(false);
        self.publish()?;
        Ok(count)
    }

    /// Sleeps until something is answered, as a driver does that is interrupted, or for 5 s.
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.ring.want_interrupt(true);
        fence(Ordering::SeqCst);
        if self.ring.has_answer() {
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
