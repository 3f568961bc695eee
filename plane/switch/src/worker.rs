//! Worker: one pinned thread with its queues, and its states between polling and sleeping.
//!
//! ```text
//! poll ──idle for the polling time──► arm notifications ──still idle──► sleep
//!   ▲                                    │ frames or requests arrived     │
//!   └────────────────────────────────────┴──────────────◄─────────────────┘
//! ```
//!
//! Each ingress queue has its own state. A busy queue is polled, a queue whose last polls were
//! empty waits for its notification, and a throttled queue is skipped until its port has bandwidth
//! again. Hundreds of idle queues therefore cost a busy worker nothing, and an idle worker sleeps.
//! While device requests are in flight, the worker polls longer before it sleeps if completions
//! were fast recently, and yields to other threads of its CPU meanwhile.

mod commands;
mod polling;
mod sleeping;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use suimon_frame::FrameBatch;
use suimon_ports::{ExpectedInput, TaskDescriptors, WaitSet, WorkerTask};
use suimon_quantity::Time;

use crate::engine::Engine;
use crate::notice::Notices;
use crate::owned::{OwnedSource, Readiness, watch_fault};
use crate::polling_time::{CompletionPolling, PollingTime};
use crate::published::PublishedTables;
use crate::sources::Sources;
use crate::stage::Stage;
use crate::stage_clock::StageClock;
use crate::worker_mailbox::{WorkerMailbox, WorkerMailboxes, WorkerMessage};

/// Interval at which a busy worker checks descriptors, so that queues waiting for notifications are
/// served while others are busy. A check is a system call; a round with large frames takes longer
/// than this.
const DESCRIPTOR_POLL_INTERVAL: Duration = Duration::from_micros(20);

/// Interval at which a busy worker publishes its CPU time and does rare work. The reported CPU time
/// of a busy worker may be this old: reading it is a system call, and a worker that sleeps after
/// each frame would make one per frame.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(1);

/// Interval at which a worker reads how long it was runnable without running; the read is a system
/// call.
const RUN_DELAY_PERIOD: Duration = Duration::from_millis(1);

/// Minimum run delay that is attributed to a lack of CPU time. Shorter delays are those of an
/// ordinary wake-up.
const RUN_DELAY_MIN: Duration = Duration::from_micros(50);

/// Consecutive empty polls, each after a round that moved frames of other queues, after which a
/// queue of a busy worker waits for its notification. A worker without work polls for its polling
/// time and then arms all queues.
const EMPTY_POLLS_MAX: u32 = 1024;

/// Maximum number of messages read in one round, so that no queue starves.
const MESSAGES_PER_ROUND: usize = 64;

/// Maximum duration of a sleep. Workers without a deadline wake up after this time.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Action of the worker after a command.
enum Next {
    GoOn,
    Stop,
}

/// State of one worker, used by its own thread.
pub(crate) struct WorkerLoop {
    link: Arc<WorkerMailbox>,
    wait: Box<dyn WaitSet>,
    engine: Engine,
    sources: Sources,
    /// Work of the thread other than forwarding, such as disk I/O.
    work: Box<dyn WorkerTask>,
    batch: FrameBatch,
    ready: Vec<u64>,
    notices: Arc<Notices>,
    now: Time,
    last_work: Time,
    /// True if the last round moved frames or requests.
    has_moved: bool,
    /// Time at which the CPU time was last read.
    cpu_time_taken: Time,
    /// Time at which `run_delay` was last read.
    run_delay_taken: Time,
    run_delay: Duration,
    stages: StageClock,
    /// Time at which descriptors were last checked.
    descriptors_checked_at: Time,
    polling_time: Arc<PollingTime>,
    polling: CompletionPolling,
    /// True if the worker has slept with requests in flight since its last work.
    has_slept_in_flight: bool,
}

impl WorkerLoop {
    pub(crate) fn new(
        link: Arc<WorkerMailbox>,
        wait: Box<dyn WaitSet>,
        (published, links): (Arc<PublishedTables>, Arc<WorkerMailboxes>),
        notices: Arc<Notices>,
        work: Box<dyn WorkerTask>,
        polling_time: Arc<PollingTime>,
    ) -> Self {
        let stages = StageClock::new(&*wait);
        let now = wait.now();
        Self {
            engine: Engine::new(Arc::clone(&link), published, links, Arc::clone(&notices)),
            link,
            wait,
            sources: Sources::default(),
            work,
            batch: FrameBatch::new(),
            ready: Vec::with_capacity(64),
            notices,
            now,
            last_work: now,
            has_moved: false,
            cpu_time_taken: now,
            run_delay_taken: now,
            run_delay: Duration::ZERO,
            stages,
            descriptors_checked_at: now,
            polling_time,
            polling: CompletionPolling::default(),
            has_slept_in_flight: false,
        }
    }

    /// Runs the worker until it receives
    /// [`WorkerCommand::Stop`](crate::worker_mailbox::WorkerCommand::Stop).
    pub(crate) fn run(mut self) {
        loop {
            self.now = self.wait.now();
            self.link.round_progress.begin_round(self.now);
            if self.has_moved {
                // At the end of the round, which may have taken longer than the polling time.
                self.last_work = self.now;
            }
            self.end_round();
            self.report_run_delay();
            while let Some(command) = self.link.poll_command() {
                self.last_work = self.now;
                if let Next::Stop = self.handle_command(command) {
                    self.link.round_progress.end_round();
                    return;
                }
            }
            let had_mail = self.read_messages();
            self.mark(Stage::Poll);
            let had_frames = self.poll_sources();
            let had_traffic = had_mail || had_frames;
            self.engine.flush();
            self.link.round_progress.served_device.clear();
            if had_traffic {
                self.mark(Stage::Notify);
                if let Some(sides) = self.stages.ingress_egress_times() {
                    self.engine.accounting().update_egress_estimates(sides.egress_ns);
                }
            }
            let had_work = self.poll_work();
            self.has_moved = had_traffic || had_work;
            // A wake-up may be a late effect of an earlier one: the latency is only known if a
            // completion arrived.
            if self.has_moved && std::mem::take(&mut self.has_slept_in_flight) && had_work {
                self.polling.handle_slept(self.now.since(self.last_work), self.polling_time.get());
            }
            let is_busy = self.has_moved || !self.engine.outbox().is_empty();
            if is_busy || self.may_spin() {
                if self.has_waiting()
                    && self.now.since(self.descriptors_checked_at) >= DESCRIPTOR_POLL_INTERVAL
                {
                    self.poll_descriptors();
                }
                if !is_busy {
                    self.relax();
                }
            } else if self.sources.arm_all() {
                if self.work.arm() {
                    self.sleep();
                } else {
                    self.poll_descriptors();
                }
            }
        }
    }

    /// Reports to the worker's task the time in which the worker was runnable but did not run.
    /// Called at the start of a round, when requests are still in the state of that time.
    fn report_run_delay(&mut self) {
        if self.now.since(self.run_delay_taken) < RUN_DELAY_PERIOD {
            return;
        }
        self.run_delay_taken = self.now;
        // Never decreases, although it reads as zero where it is unavailable.
        let run_delay = self.wait.run_delay().max(self.run_delay);
        let span = run_delay.saturating_sub(std::mem::replace(&mut self.run_delay, run_delay));
        if span >= RUN_DELAY_MIN {
            self.work.handle_unscheduled(span);
        }
    }

    /// Polls the worker's task. Returns true if the task did something.
    fn poll_work(&mut self) -> bool {
        let watches = &mut TaskDescriptors::new(&mut *self.wait);
        let had_work = self.work.poll(self.now, self.has_moved, watches);
        self.link.round_progress.served_device.clear();
        if had_work {
            self.mark(Stage::Storage);
        }
        had_work
    }

    /// Returns true if descriptors must be checked in addition to polling.
    fn has_waiting(&self) -> bool {
        self.sources.has_waiting() || self.work.needs_descriptor_check()
    }

    /// Ends a round and begins the next one.
    fn end_round(&mut self) {
        let ns = self.stages.end_round(self.now, self.has_moved);
        if self.has_moved {
            self.link.counters.working_ns.add(ns);
            self.engine.accounting().end_round(ns);
            // Called here, so that a queue's share of a round is never settled without the round's
            // time. Not called after a wake-up, when frames are pending.
            self.account();
        }
    }

    /// Attributes the time since the last mark of this round to a stage.
    fn mark(&mut self, stage: Stage) {
        self.stages.probe(&*self.wait).end_stage(stage);
    }

    /// Returns true if the worker should keep polling, because work may arrive soon.
    fn may_spin(&self) -> bool {
        let expects = self.work.expected_input();
        let idle = self.now.since(self.last_work);
        let polling_time = self.polling_time.get();
        let may_for_work = match expects {
            ExpectedInput::Completions => {
                idle < self.polling.completion_poll_budget(self.now, polling_time)
            }
            ExpectedInput::Requests => idle < polling_time,
            ExpectedInput::None => false,
        };
        may_for_work || (idle < polling_time && self.has_polled_ring())
    }

    /// Pauses between two rounds without work: yields the CPU if completions are expected and a
    /// yield is due, and otherwise executes a spin-loop hint.
    fn relax(&mut self) {
        if self.work.expected_input() == ExpectedInput::Completions
            && self.polling.should_yield(self.now)
        {
            let yielded_at = self.wait.now();
            self.wait.yield_now();
            if let Some(backoff_end) = self.polling.handle_yield_end(yielded_at, self.wait.now()) {
                self.link.counters.set_polling_pause_end(backoff_end);
            }
        } else {
            std::hint::spin_loop();
        }
    }

    /// Returns true if a ring is still in the polling state.
    fn has_polled_ring(&self) -> bool {
        let mut rings = self.sources.iter_active();
        rings.any(|owned| owned.readiness == Readiness::Polling && !owned.source.is_polled_by_fd())
    }

    fn read_messages(&mut self) -> bool {
        for read in 0..MESSAGES_PER_ROUND {
            let mut probe = self.stages.probe(&*self.wait);
            let Some(message) = self.link.poll_message() else { return read > 0 };
            probe.end_stage(Stage::Poll);
            match message {
                WorkerMessage::FrameMessage(frame_message) => {
                    self.engine.handle_frame_message(frame_message, &mut probe);
                    probe.end_stage(Stage::CopyOut);
                }
                WorkerMessage::Fence(queue) => self.engine.handle_fence(queue),
                WorkerMessage::MovedSink(queue, sink) => {
                    self.engine.handle_queue_arrival(queue, sink, &mut probe);
                }
                WorkerMessage::AddressSighting(learned) => {
                    self.engine.handle_address_sighting(self.now, learned);
                }
                WorkerMessage::MovedSource(source, latch) => {
                    source.counters.moves.add(1);
                    self.attach_source(source);
                    latch.count_down();
                }
            }
            self.count_queues();
        }
        true
    }

    /// Publishes times and ages addresses, unless this was done within [`ACCOUNT_PERIOD`].
    fn account(&mut self) {
        if self.now.since(self.cpu_time_taken) < ACCOUNT_PERIOD {
            return;
        }
        self.cpu_time_taken = self.now;
        self.link.counters.cpu_time_ns.store(duration_ns(self.wait.cpu_time()), Relaxed);
        self.stages.publish(&self.link.counters.stages, false);
        self.engine.accounting().divide_pending_time();
        self.engine.forwarder().sweep_expired(self.now);
    }

    fn abandon(&mut self, token: usize, fault: suimon_ports::QueueFault) {
        if let Some(source) = self.take_source(token) {
            self.notices.report_fault(source.id, &source.drop_reporter, fault);
        }
    }

    fn take_source(&mut self, token: usize) -> Option<Box<OwnedSource>> {
        let mut source = self.sources.remove(token)?;
        source.source.disarm();
        self.wait.unwatch(source.source.wake_fd());
        source.readiness = Readiness::Polling;
        self.engine.accounting().remove_queue(&mut source.cost);
        self.count_queues();
        Some(source)
    }

    /// Takes ownership of a queue, and drops it if its detachment was requested meanwhile.
    fn attach_source(&mut self, mut owned: Box<OwnedSource>) {
        if owned.drop_reporter.is_revoked() {
            return;
        }
        owned.ingress = self.engine.published().ingress(owned.id.port);
        self.engine.accounting().add_queue(&mut owned.cost, &owned.counters);
        let token = self.sources.insert(owned);
        let Some(source) = self.sources.get_mut(token) else { return };
        let watched = self.wait.watch(source.source.source.wake_fd(), token as u64);
        if let Err(error) = watched {
            self.abandon(token, watch_fault(&error));
        }
        self.count_queues();
    }

    fn count_queues(&self) {
        let queues = self.sources.len() + self.engine.sink_count();
        self.link.counters.queues.store(queues as u64, Relaxed);
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
