//! What processors and a store's budget tell each other.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::ProcessorId;

use crate::{DiskSlot, Operation, WorkerTime};

/// A request that waits on a processor, or may come soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// Whose.
    pub disk: DiskSlot,
    /// How large.
    pub bytes: u32,
}

/// A request that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Whose.
    pub disk: DiskSlot,
    /// The operation of the request.
    pub operation: Operation,
    /// How large.
    pub bytes: u32,
    /// How long it was in the device; `None` if that says nothing about how busy the
    /// device is.
    pub latency: Option<Duration>,
}

/// What was granted and is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    /// Whose.
    pub disk: DiskSlot,
    /// Requests that may be dispatched by others instead.
    pub requests: u32,
    /// Operations that were charged and not done.
    pub cost: u32,
    /// Bytes that were charged and not moved.
    pub bytes: u32,
}

/// Time in which a disk's worker was runnable and not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unscheduled {
    /// The disk.
    pub disk: DiskSlot,
    /// Nanoseconds summed over the disk's requests in flight.
    pub in_flight_ns: u64,
    /// Nanoseconds in which the disk had no requests in flight and its queue had some.
    pub untaken_ns: u64,
}

/// What a processor tells the budget. Its lists are kept when it is sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Requests that wait since the last report, in order.
    pub wants: Vec<Want>,
    /// Requests that it would like to be able to dispatch as soon as they come.
    pub ahead: Vec<Want>,
    /// What came back from the device.
    pub completions: Vec<Completion>,
    /// What it does not need.
    pub returns: Vec<Return>,
    /// Time of its requests since its previous report.
    #[serde(default)]
    pub times: Vec<WorkerTime>,
}

impl Report {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.wants.is_empty()
            && self.ahead.is_empty()
            && self.completions.is_empty()
            && self.returns.is_empty()
            && self.times.is_empty()
    }

    /// Adds a later report of the same processor, which is empty then.
    pub fn append(&mut self, later: &mut Self) {
        self.wants.append(&mut later.wants);
        self.ahead.append(&mut later.ahead);
        self.completions.append(&mut later.completions);
        self.returns.append(&mut later.returns);
        self.times.append(&mut later.times);
    }

    /// Empties its lists and keeps their memory.
    pub fn clear(&mut self) {
        self.wants.clear();
        self.ahead.clear();
        self.completions.clear();
        self.returns.clear();
        self.times.clear();
    }
}

/// What the budget lends a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// To whom.
    pub processor: ProcessorId,
    /// For whom.
    pub disk: DiskSlot,
    /// What for.
    pub of: Lent,
}

/// What a grant is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lent {
    /// So many of the requests that wait, the oldest first.
    Waiting(u32),
    /// A request of up to so many bytes that may come soon.
    Ahead(u32),
    /// There is nothing to spare for a request that may come soon.
    Nothing,
    /// A request of so many bytes that waits was not taken, because the budget's queue is
    /// full or it does not know the disk. It is to be reported again.
    Refused(u32),
}
