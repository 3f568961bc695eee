//! Queues that take their time, on a clock that goes on only then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::{FrameSink, PortFault, Sent};
use suimon_quantity::Time;

use crate::{Endless, OnClock, Supply};

/// Time that passes when somebody says so.
#[derive(Clone, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// So many ns pass.
    pub fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::SeqCst);
    }

    /// How many ns have passed.
    pub fn ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Threads on this clock.
    pub fn runtime(&self) -> OnClock {
        let clock = self.clone();
        OnClock::new(move || Time::from_ns(clock.ns()))
    }
}

/// Keeps sources from delivering batches until all of them are attached, so that what they
/// deliver in one round does not depend on when the test attached them.
#[derive(Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Returns a gate that is open already.
    pub fn opened() -> Self {
        Self(Arc::new(true.into()))
    }

    /// Lets sources deliver from now on.
    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Has so many batches, each of which takes its time.
pub struct Timed {
    /// What the batches are of.
    pub frames: Endless,
    /// Until it is open, the source is polled in vain.
    pub gate: Gate,
    /// Batches left.
    pub left: u64,
    /// What goes on.
    pub clock: Clock,
    /// What it takes to receive a batch.
    pub receive_ns: u64,
    /// What it takes to look for one in vain.
    pub empty_ns: u64,
}

impl Supply for Timed {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault> {
        if self.left == 0 || !self.gate.is_open() {
            self.clock.pass(self.empty_ns);
            return Ok(0);
        }
        self.left -= 1;
        self.clock.pass(self.receive_ns);
        self.frames.fill(batch)
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// Takes everything, in its time.
pub struct Slow {
    /// What goes on.
    pub clock: Clock,
    /// What a frame takes.
    pub transmit_ns: u64,
    /// What it takes to make frames visible.
    pub flush_ns: u64,
}

impl FrameSink for Slow {
    fn transmit(&mut self, _: &Frame) -> Result<Sent, PortFault> {
        self.clock.pass(self.transmit_ns);
        Ok(Sent::Accepted)
    }

    fn flush(&mut self) -> Result<(), PortFault> {
        self.clock.pass(self.flush_ns);
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}
