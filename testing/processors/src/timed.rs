//! Queues with a defined cost, on a virtual clock that advances only by these costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use suimon_frame::{Frame, FrameBatch, Offloads};
use suimon_ports::{FrameSink, QueueFault, TransmitResult};
use suimon_quantity::Time;

use crate::{EndlessSource, Supply, TestClockRuntime};

/// Virtual clock that advances on request.
#[derive(Clone, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// Advances the clock by `ns` nanoseconds.
    pub fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::SeqCst);
    }

    /// Returns the time since the start in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns a runtime whose threads use this clock.
    pub fn runtime(&self) -> TestClockRuntime {
        let clock = self.clone();
        TestClockRuntime::new(move || Time::from_ns(clock.ns()))
    }
}

/// Prevents sources from delivering batches until all sources are attached, so that the batches of
/// a round do not depend on the time at which the test attaches each source.
#[derive(Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Returns a gate that is open already.
    pub fn opened() -> Self {
        Self(Arc::new(true.into()))
    }

    /// Opens the gate: sources deliver from now on.
    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Source with a fixed number of batches and a defined cost of each poll.
pub struct TimedSource {
    /// Generator of the batches.
    pub frames: EndlessSource,
    /// While the gate is closed, polls return no frame.
    pub gate: Gate,
    /// Number of batches that remain to be delivered.
    pub left: u64,
    /// Clock that each poll advances.
    pub clock: Clock,
    /// Cost of a poll that returns a batch, in ns.
    pub receive_ns: u64,
    /// Cost of a poll that returns no frame, in ns.
    pub empty_ns: u64,
}

impl Supply for TimedSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
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

/// Sink that accepts every frame, with a defined cost.
pub struct TimedSink {
    /// Clock that each call advances.
    pub clock: Clock,
    /// Cost of a frame, in ns.
    pub transmit_ns: u64,
    /// Cost of a flush, in ns.
    pub flush_ns: u64,
}

impl FrameSink for TimedSink {
    fn transmit(&mut self, _: &Frame) -> Result<TransmitResult, QueueFault> {
        self.clock.pass(self.transmit_ns);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.clock.pass(self.flush_ns);
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}
