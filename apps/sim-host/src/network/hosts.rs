//! Workers of a host: queues that they own, and duration of their work.
//!
//! Equations
//! - A worker serves one train at a time, from the queues that it owns in turn.
//! - A train of f frames and b bytes takes Σ over stages (f · frame + b · byte), and longer while
//!   other workers are busy ([`CpuSharingModel`]).
//!
//! Parameters: the number of CPUs is that of the published host. The sum of the stages is
//! calibrated by 10 Gbit/s on four CPUs, κ by 15 Gbit/s on eight: two published figures determine
//! two parameters. The division of the sum into stages is unpublished, and no figure depends on it.

use std::collections::VecDeque;

use crate::network::spec::HostSpec;
use crate::processors::CpuSharingModel;

/// Data that a sender transmits at once in a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    pub(crate) session: u32,
    pub(crate) number: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

/// Queue of a VM, with its trains in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) owner: u16,
    trains: VecDeque<Train>,
    is_served: bool,
    is_ready: bool,
    /// Worker that becomes the owner when the current train has been served.
    pub(crate) next_owner: Option<u16>,
    pub(crate) busy_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    /// Queues with trains that wait for the worker, in the order in which they are served.
    ready: VecDeque<u32>,
    serves: Option<(u32, Train, u64)>,
    busy_ns: u64,
}

pub(crate) struct Host {
    spec: HostSpec,
    pub(crate) sharing: CpuSharingModel,
    workers: Vec<Worker>,
    pub(crate) queues: Vec<Queue>,
    working: u64,
}

impl Host {
    pub(crate) fn new(spec: &HostSpec, queues: u32) -> Self {
        Self {
            workers: vec![Worker::default(); usize::from(spec.logical_cpus)],
            queues: vec![Queue::default(); queues as usize],
            spec: spec.clone(),
            sharing: spec.sharing(),
            working: 0,
        }
    }

    /// Adds a train to the queue of a VM.
    pub(crate) fn add(&mut self, vm: u32, train: Train) {
        self.queues[vm as usize].trains.push_back(train);
        self.make_ready(vm);
    }

    fn make_ready(&mut self, vm: u32) {
        let queue = &mut self.queues[vm as usize];
        if !queue.is_ready && !queue.is_served && !queue.trains.is_empty() {
            queue.is_ready = true;
            self.workers[usize::from(queue.owner)].ready.push_back(vm);
        }
    }

    /// Starts serving the next train if the worker is idle. Returns the duration in ns; `None` if
    /// the worker is busy or has no trains.
    pub(crate) fn begin(&mut self, worker_number: u16) -> Option<u64> {
        let worker = &mut self.workers[usize::from(worker_number)];
        if worker.serves.is_some() {
            return None;
        }
        let vm = worker.ready.pop_front()?;
        let queue = &mut self.queues[vm as usize];
        queue.is_ready = false;
        let train = queue.trains.pop_front()?;
        queue.is_served = true;
        let ns = self.takes_ns(worker_number, &train);
        self.workers[usize::from(worker_number)].serves = Some((vm, train, ns));
        self.working += 1;
        Some(ns)
    }

    fn takes_ns(&self, worker: u16, train: &Train) -> u64 {
        let stage_ns = |stage: &crate::network::spec::StageSpec| {
            train.frames * stage.frame_ns + train.bytes * stage.byte_ps / 1000
        };
        let solo_ns: u64 = self.spec.stage.iter().map(stage_ns).sum();
        let is_serving = |other: u16| self.workers[usize::from(other)].serves.is_some();
        let has_sibling = self.sharing.siblings(worker).any(is_serving);
        let kappa_n = self.spec.contention_permille * self.working;
        self.sharing.duration_ns(solo_ns, kappa_n, has_sibling)
    }

    /// Ends serving the current train of a worker. Returns the VM and the train; `None` if the
    /// worker is idle.
    pub(crate) fn end(&mut self, worker: u16) -> Option<(u32, Train)> {
        let worker = &mut self.workers[usize::from(worker)];
        let (vm, train, ns) = worker.serves.take()?;
        worker.busy_ns += ns;
        self.working -= 1;
        let queue = &mut self.queues[vm as usize];
        queue.is_served = false;
        queue.busy_ns += ns;
        self.make_ready(vm);
        Some((vm, train))
    }

    /// Moves the queue of a VM to another worker. Returns false if a train of the queue is being
    /// served; the queue is then marked, and the caller must call this function again when the
    /// train has been served.
    pub(crate) fn hand_over(&mut self, vm: u32, to: u16) -> bool {
        let queue = &mut self.queues[vm as usize];
        if queue.is_served {
            queue.next_owner = Some(to);
            return false;
        }
        queue.next_owner = None;
        if std::mem::take(&mut queue.is_ready) {
            let from = usize::from(queue.owner);
            self.workers[from].ready.retain(|other| *other != vm);
        }
        self.queues[vm as usize].owner = to;
        self.make_ready(vm);
        true
    }

    /// Returns the busy time of each worker since the last call, in ns.
    pub(crate) fn take_busy_ns(&mut self) -> Vec<u64> {
        self.workers.iter_mut().map(|worker| std::mem::take(&mut worker.busy_ns)).collect()
    }
}
