//! A processor: one pinned thread, its queues, and when it sleeps.
//!
//! ```text
//! poll ──nothing for a while─► arm notifications ──still nothing──► sleep
//!   ▲                              │ something came                  │
//!   └──────────────────────────────┴────────────◄────────────────────┘
//! ```
//!
//! Each ingress queue has its own rung: a busy one is polled, one whose last
//! polls brought nothing waits for its notification, and one whose bandwidth is
//! used up is left alone until it has some again. So hundreds of idle queues cost
//! a busy processor nothing, and an idle processor sleeps. While devices have requests it
//! sleeps later, if their answers have come soon before, and gives way to others that want its CPU
//! meanwhile.

mod commands;
mod polling;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use suimon_frame::FrameBatch;
use suimon_ports::{Expects, ProcessorWork, Wait, Watches};
use suimon_quantity::Time;

use crate::engine::Engine;
use crate::link::{Link, Mail};
use crate::notice::{Notices, PlaneNotice};
use crate::owned::{OwnedSource, Readiness, unwatchable};
use crate::patience::{Patience, Polling};
use crate::published::Published;
use crate::sources::Sources;
use crate::stages::{Stage, StageClock};

use self::commands::Next;

/// How long a busy processor goes on before it looks at descriptors, so that waiting
/// queues are served while others are busy. A look is a system call; a round with
/// large frames takes longer than this.
const LOOK_PERIOD: Duration = Duration::from_micros(20);

/// How often a busy processor writes down what it used and does what is due rarely.
/// So old may the CPU time be that it tells while it works: asking for it is a system
/// call, and a processor that sleeps after each frame would make one for each.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(1);

/// How often a processor asks for how long it was runnable and did not run: a system call.
const RUN_DELAY_PERIOD: Duration = Duration::from_millis(1);

/// Shorter delays are those of any wake-up.
const RUN_DELAY_MIN: Duration = Duration::from_micros(50);

/// Empty polls in a row, each behind a round that moved something for others, after
/// which a ring of a busy processor goes back to waiting. A processor without work polls
/// for as long as its patience lasts, and then lets all of its rings wait.
const EMPTY_POLLS_MAX: u32 = 1024;

/// Mail read in one round, so that nobody's queues starve.
const MAIL_PER_ROUND: usize = 64;

/// The longest sleep; a bound for deadlines, not a tick that anything needs.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// One processor, as its own thread sees it.
pub(crate) struct Processor {
    link: Arc<Link>,
    wait: Box<dyn Wait>,
    engine: Engine,
    sources: Sources,
    /// What it does beside frames.
    work: Box<dyn ProcessorWork>,
    batch: FrameBatch,
    ready: Vec<u64>,
    notices: Arc<Notices>,
    now: Time,
    last_work: Time,
    /// Whether the last round moved something.
    has_moved: bool,
    /// When the CPU time was last asked for.
    cpu_time_taken: Time,
    /// When the run delay was last asked for, and what it was.
    run_delay_taken: Time,
    run_delay: Duration,
    stages: StageClock,
    /// When descriptors were last looked at.
    looked: Time,
    patience: Arc<Patience>,
    polling: Polling,
    /// Whether it has slept for answers since its last work.
    has_slept_for_answers: bool,
}

impl Processor {
    pub(crate) fn new(
        link: Arc<Link>,
        wait: Box<dyn Wait>,
        published: Arc<Published>,
        notices: Arc<Notices>,
        work: Box<dyn ProcessorWork>,
        patience: Arc<Patience>,
    ) -> Self {
        let stages = StageClock::new(&*wait);
        let now = wait.now();
        Self {
            engine: Engine::new(Arc::clone(&link), published, Arc::clone(&notices)),
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
            looked: now,
            patience,
            polling: Polling::default(),
            has_slept_for_answers: false,
        }
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) {
        loop {
            self.now = self.wait.now();
            if self.has_moved {
                // At the round's end: it may have taken longer than is polled for.
                self.last_work = self.now;
            }
            self.end_round();
            self.look_at_run_delay();
            while let Some(command) = self.link.poll_command() {
                self.last_work = self.now;
                if let Next::Stop = self.handle_command(command) {
                    return;
                }
            }
            let had_mail = self.read_mail();
            self.mark(Stage::Poll);
            let had_frames = self.poll_sources();
            let had_traffic = had_mail || had_frames;
            self.engine.flush();
            if had_traffic {
                self.mark(Stage::Notify);
                if let Some(sides) = self.stages.sides() {
                    self.engine.ledger().learn_egress(sides.egress_ns);
                }
            }
            let had_work = self.poll_work();
            self.has_moved = had_traffic || had_work;
            // A wake-up may be an echo of one before: how long answers take is known only where
            // there is one.
            if self.has_moved && std::mem::take(&mut self.has_slept_for_answers) && had_work {
                self.polling.handle_slept(self.now.since(self.last_work), self.patience.get());
            }
            let is_busy = self.has_moved || !self.engine.outbox().is_empty();
            if is_busy || self.may_spin() {
                if self.has_waiting() && self.now.since(self.looked) >= LOOK_PERIOD {
                    self.look();
                }
                if !is_busy {
                    self.relax();
                }
            } else if self.sources.arm_all() {
                if self.work.arm() {
                    self.sleep();
                } else {
                    self.look();
                }
            }
        }
    }

    /// Tells its other work of time in which others had its CPU. Before anything is done in a round:
    /// requests are as they were meanwhile.
    fn look_at_run_delay(&mut self) {
        if self.now.since(self.run_delay_taken) < RUN_DELAY_PERIOD {
            return;
        }
        self.run_delay_taken = self.now;
        // Never less than before: it is zero where it cannot be read.
        let all = self.wait.run_delay().max(self.run_delay);
        let span = all.saturating_sub(std::mem::replace(&mut self.run_delay, all));
        if span >= RUN_DELAY_MIN {
            self.work.handle_unscheduled(span);
        }
    }

    /// Gives its other work a turn; whether there was any.
    fn poll_work(&mut self) -> bool {
        let watches = &mut Watches::new(&mut *self.wait);
        let had_work = self.work.poll(self.now, self.has_moved, watches);
        if had_work {
            self.mark(Stage::Storage);
        }
        had_work
    }

    /// Whether something has to be looked for that polling does not find.
    fn has_waiting(&self) -> bool {
        self.sources.has_waiting() || self.work.is_waiting()
    }

    /// A round ends and the next one begins.
    fn end_round(&mut self) {
        let ns = self.stages.end_round(self.now, self.has_moved);
        if self.has_moved {
            self.link.tally.working_ns.add(ns);
            self.engine.ledger().end_round(ns);
            // Only now, so that no queue's part in a round is split without the round's
            // time; and not when it was woken, because frames wait then.
            self.account();
        }
    }

    /// What was done last in this round was this.
    fn mark(&mut self, stage: Stage) {
        self.stages.probe(&*self.wait).mark(stage);
    }

    /// Whether something may come in a moment that only polling finds at once.
    fn may_spin(&self) -> bool {
        let expects = self.work.expects();
        let idle = self.now.since(self.last_work);
        let patience = self.patience.get();
        let may_for_work = match expects {
            Expects::Answers => idle < self.polling.for_answers(self.now, patience),
            Expects::More => idle < patience,
            Expects::Nothing => false,
        };
        may_for_work || (idle < patience && self.has_polled_ring())
    }

    /// There was nothing to do in this round, and another one follows at once.
    fn relax(&mut self) {
        if self.work.expects() == Expects::Answers && self.polling.is_to_give_way(self.now) {
            let gone = self.wait.now();
            self.wait.give_way();
            if let Some(until) = self.polling.handle_back(gone, self.wait.now()) {
                self.link.tally.note_rest(until);
            }
        } else {
            std::hint::spin_loop();
        }
    }

    /// Whether a ring is polled that had something a moment ago.
    fn has_polled_ring(&self) -> bool {
        let mut rings = self.sources.iter_active();
        rings.any(|owned| owned.readiness == Readiness::Polling && !owned.source.is_polled_by_fd())
    }

    fn read_mail(&mut self) -> bool {
        for read in 0..MAIL_PER_ROUND {
            let mut probe = self.stages.probe(&*self.wait);
            let Some(mail) = self.link.poll_mail() else { return read > 0 };
            probe.mark(Stage::Poll);
            match mail {
                Mail::Parcel(parcel) => {
                    self.engine.handle_parcel(parcel, &mut probe);
                    probe.mark(Stage::CopyOut);
                }
                Mail::Fence(queue) => self.engine.handle_fence(queue),
                Mail::Sink(queue, sink) => self.engine.handle_arrival(queue, sink, &mut probe),
                Mail::Learned(learned) => self.engine.handle_learned(self.now, learned),
                Mail::Source(source, latch) => {
                    source.tally.moves.add(1);
                    self.attach_source(source);
                    latch.count_down();
                }
            }
            self.count_queues();
        }
        true
    }

    fn sleep(&mut self) {
        self.account();
        self.engine.forwarder().handle_age(self.now);
        self.link.tally.sleeps.add(1);
        let until = self.next_deadline();
        self.now = self.wait.now();
        // A round that moved frames is followed by another.
        self.stages.end_round(self.now, false);
        self.engine.ledger().settle();
        self.stages.publish(&self.link.tally.stages, true);
        let expects = self.work.expects();
        self.wait_until(Some(until));
        self.now = self.wait.now();
        self.has_slept_for_answers |= expects == Expects::Answers;
        self.stages.end_sleep(self.now);
        self.stages.publish(&self.link.tally.stages, false);
        self.wake_ready();
    }

    fn next_deadline(&self) -> Time {
        let throttled = self.sources.iter_active().filter_map(|owned| match owned.readiness {
            Readiness::Throttled(until) => Some(until),
            _ => None,
        });
        let ageing = self.engine.next_deadline();
        throttled
            .chain(ageing)
            .chain(self.work.next_deadline())
            .min()
            .unwrap_or(Time::NEVER)
            .min(self.now + SLEEP_MAX)
    }

    /// Serves the queues whose descriptors are readable now.
    fn look(&mut self) {
        self.wait_until(None);
        self.wake_ready();
    }

    /// Finds the queues whose descriptors are readable; sleeps until one is, if
    /// `until` is given.
    fn wait_until(&mut self, until: Option<Time>) {
        self.ready.clear();
        if let Err(error) = self.wait.wait(until, &mut self.ready) {
            tracing::error!(processor = %self.link.id, %error, "cannot wait for queues");
        }
    }

    fn wake_ready(&mut self) {
        self.looked = self.now;
        for token in &self.ready {
            match Watches::token(*token) {
                Some(token) => self.work.wake(token),
                None => self.sources.wake(usize::try_from(*token).unwrap_or(usize::MAX)),
            }
        }
    }

    /// Writes down what it used, if that was not done for a while.
    fn account(&mut self) {
        if self.now.since(self.cpu_time_taken) < ACCOUNT_PERIOD {
            return;
        }
        self.cpu_time_taken = self.now;
        self.link.tally.cpu_time_ns.store(duration_ns(self.wait.cpu_time()), Relaxed);
        self.stages.publish(&self.link.tally.stages, false);
        self.engine.ledger().settle();
        self.engine.forwarder().handle_age(self.now);
    }

    fn give_up(&mut self, token: usize, fault: suimon_ports::PortFault) {
        if let Some(source) = self.take_source(token) {
            self.notices.tell(PlaneNotice::QueueFault { queue: source.id, fault });
        }
    }

    fn take_source(&mut self, token: usize) -> Option<Box<OwnedSource>> {
        let mut source = self.sources.remove(token)?;
        source.source.disarm();
        self.wait.unwatch(source.source.wake_fd());
        source.readiness = Readiness::Polling;
        self.engine.ledger().close(&mut source.cost);
        self.count_queues();
        Some(source)
    }

    fn attach_source(&mut self, mut owned: Box<OwnedSource>) {
        owned.ingress = self.engine.published().ingress(owned.id.port);
        self.engine.ledger().open(&mut owned.cost, &owned.tally);
        let token = self.sources.insert(owned);
        let Some(source) = self.sources.get_mut(token) else { return };
        let watched = self.wait.watch(source.owned.source.wake_fd(), token as u64);
        if let Err(error) = watched {
            self.give_up(token, unwatchable(&error));
        }
        self.count_queues();
    }

    fn count_queues(&self) {
        let queues = self.sources.len() + self.engine.sinks();
        self.link.tally.queues.store(queues as u64, Relaxed);
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
