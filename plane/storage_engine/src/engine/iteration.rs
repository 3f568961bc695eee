//! Iterations of a worker's engine: polling of queues and completions. An iteration is one call of
//! [`StorageEngine::poll`].

use std::sync::Arc;

use suimon_ports::{
    ArmResult, DiskOutcome, DiskRequest, ExpectedInput, FileCompletion, ServedDevice,
    ServedDeviceCell,
};
use suimon_quantity::{DiskId, Time};
use suimon_storage_qos::RequestPhase;

use crate::engine::io_token::Purpose;
use crate::engine::notices::StorageNotice;
use crate::engine::{REQUESTS_MAX, REQUESTS_PER_TURN, StorageEngine};
use crate::request::{EngineRequest, Full};

/// Consecutive empty polls of a queue after which the worker waits for the queue's descriptor
/// instead. Only polls in iterations with other work count. A worker without work polls up to its
/// poll budget, and then waits for the descriptors of all queues.
const EMPTY_POLLS_MAX: u32 = 1024;

/// Maximum number of polled queues with which queues polled by system call (NBD sockets) are still
/// polled instead of waited for.
const QUEUES_POLLED_MAX: usize = 4;

/// Publishes that the worker serves a queue of this disk, if both are known.
fn note_serving(serving: Option<&Arc<ServedDeviceCell>>, disk: Option<DiskId>) {
    if let (Some(serving), Some(disk)) = (serving, disk) {
        serving.set(ServedDevice::Disk(disk));
    }
}

impl StorageEngine {
    /// Returns the events that polling may find soon: completions of files and devices, or requests
    /// of polled queues.
    #[must_use]
    pub fn expects(&self) -> ExpectedInput {
        if self.io.in_flight() > 0 {
            ExpectedInput::Completions
        } else if self.active.is_empty() {
            ExpectedInput::None
        } else {
            ExpectedInput::Requests
        }
    }

    /// Returns true if queues wait for their descriptors, which a busy worker must check.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.queues.len() > self.active.len() + self.paused.len()
    }

    /// Handles a readable descriptor of a queue: polls the queue again. Returns false if the
    /// queue's requests cannot be accepted now. The caller must then not watch the descriptor until
    /// [`StorageEngine::poll_watch`] returns the queue.
    pub fn wake_queue(&mut self, queue: usize) -> bool {
        let Some(queue_state) = self.queues.get_mut(queue) else { return true };
        queue_state.is_unwatched = queue_state.is_paused;
        if !queue_state.is_waiting {
            return !queue_state.is_paused;
        }
        queue_state.is_waiting = false;
        queue_state.empty_polls = 0;
        queue_state.queue.disarm();
        self.active.add(queue);
        true
    }

    /// Returns a queue for which the caller must watch the descriptor again; `None` if there is
    /// none.
    pub fn poll_watch(&mut self) -> Option<usize> {
        self.to_watch.pop()
    }

    /// Sets whether the worker's last iteration did some work, including network frames. If not,
    /// queues are polled until [`StorageEngine::arm`]. True initially.
    pub fn note_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// Performs one iteration without blocking. Returns true if it did any work.
    pub fn poll(&mut self, now: Time) -> bool {
        self.now = now;
        self.begin_unscheduled();
        let mut has_worked = self.process_completions();
        has_worked |= self.dispatch_ready();
        self.continue_parked();
        // Completions are published before queues are read.
        self.publish_completions();
        self.end_poll_pauses();
        has_worked |= self.poll_queues();
        self.end_unscheduled();
        has_worked |= self.dispatch_ready();
        self.continue_parked();
        self.observe();
        self.check_for_stalls();
        self.commit_idle();
        self.release_unused_buffers();
        self.repeat_full();
        self.end_stores();
        self.send_parts();
        self.read_waiting_metadata();
        self.run_waiting_commits();
        self.begin_waiting_zeroing();
        self.report_completions();
        self.publish_completions();
        if let Err(error) = self.io.submit_queued() {
            self.notices.push_io(now, &error);
        }
        has_worked
    }

    /// Returns true if I/O of this iteration has completed during its submission. The caller then
    /// calls [`StorageEngine::complete_immediate`].
    #[must_use]
    pub fn has_completed_io(&self) -> bool {
        self.io.has_immediate_completions()
    }

    /// Completes requests with I/O that completed during its submission, in the same iteration.
    /// `now` is later than the time of the iteration by the duration of that I/O.
    pub fn complete_immediate(&mut self, now: Time) {
        self.now = now;
        self.process_completions();
        self.continue_parked();
        self.report_completions();
        self.publish_completions();
    }

    /// Takes requests from the queues that are due in round-robin order. Returns true if there may
    /// be more: false only if each polled queue was read and was empty.
    fn poll_queues(&mut self) -> bool {
        let mut has_work = false;
        let rounds = self.active.per_round();
        self.has_room = self.has_room(rounds * REQUESTS_PER_TURN);
        for _ in 0..rounds {
            let Some(queue) = self.active.next() else { break };
            let has_brought = self.serve(queue);
            self.active.note(has_brought);
            has_work |= has_brought;
            let may_stop_polling = if has_brought {
                self.enters_poll_pause(queue)
            } else {
                self.may_stop_polling(queue)
            };
            if may_stop_polling {
                self.active.remove_waiting(queue);
            }
        }
        has_work || self.active.may_have_more()
    }

    /// Requests wake-ups by all polled queues and the I/O. Returns true if the worker may sleep
    /// until a queue's descriptor or [`StorageEngine::io_fd`] is readable, the worker is woken, or
    /// [`StorageEngine::next_deadline`] has passed.
    pub fn arm(&mut self) -> bool {
        let queues = &mut self.queues;
        self.active.retain(|number| {
            let Some(queue_state) = queues.get_mut(number) else { return false };
            queue_state.is_waiting =
                queue_state.is_closing || queue_state.queue.arm() == ArmResult::Armed;
            queue_state.busy_poll.handle_end();
            !queue_state.is_waiting
        });
        let is_quiet = self.active.is_empty() && self.outgoing.is_empty();
        is_quiet && self.io.arm() == ArmResult::Armed
    }

    /// Processes the completions of the I/O. Returns true if there were any.
    pub(crate) fn process_completions(&mut self) -> bool {
        let mut completions = std::mem::take(&mut self.done);
        self.io.poll_done(&mut completions);
        let has_completions = !completions.is_empty();
        for FileCompletion { token, result: outcome } in completions.drain(..) {
            match Purpose::from_token(token) {
                Purpose::Part(request, page) => {
                    self.handle_part(request, page, outcome.map(|_| ()));
                }
                Purpose::Metadata(disk) => self.handle_metadata(disk, outcome),
                Purpose::Commit(disk, step) => {
                    self.handle_step(disk, step, outcome.map(|_| ()));
                }
                Purpose::Zeroing(disk) => self.handle_zeroing(disk, outcome.map(|_| ())),
            }
        }
        self.done = completions;
        has_completions
    }

    /// Takes requests from one queue and submits them. Returns true if there were any.
    fn serve(&mut self, number: usize) -> bool {
        let available = self.remaining(number);
        if available == 0 {
            self.pause_queue(number);
            return false;
        }
        let Some(queue_state) =
            self.queues.get_mut(number).filter(|queue_state| !queue_state.is_closing)
        else {
            return false;
        };
        let (disk, is_mirror) = (queue_state.disk, queue_state.is_mirror());
        let mut requests = std::mem::take(&mut self.received);
        let available = available.min(REQUESTS_PER_TURN);
        note_serving(self.serving.as_ref(), queue_state.id);
        self.buffer_reclaim.handle_served(queue_state.kind, self.now);
        let received = queue_state.queue.receive(available, &mut requests);
        let has_found_full = !queue_state.found_full.is_empty();
        queue_state.handle_poll(
            self.now,
            (requests.len(), requests.len() < available),
            self.is_busy,
        );
        // The queue itself may have completed some requests.
        self.mark_completions_to_publish(number);
        let count = requests.len();
        for DiskRequest { tag, op, range } in requests.drain(..) {
            let request = self.requests.insert(EngineRequest {
                disk,
                queue: number,
                is_mirror,
                tag,
                op,
                range,
                received_at: self.now,
                submitted_at: self.now,
                transferred_at: self.now,
                charged: None,
                phase: RequestPhase::Data,
                bytes: 0,
                next_queued: 0,
                parts: 0,
                outcome: DiskOutcome::Done,
                full: Full::No,
            });
            if has_found_full {
                self.note_found_before(request);
            }
            if count == 1 {
                self.submit(request);
            } else {
                self.arrived.push(request);
            }
        }
        self.received = requests;
        self.admit_arrived();
        if let Err(fault) = received {
            self.notices.push(StorageNotice::QueueFault { queue: number, fault });
            self.close_queue(number);
        }
        count > 0
    }

    /// Returns true if a queue that had requests is not polled again before the end of a pause.
    fn enters_poll_pause(&mut self, number: usize) -> bool {
        let queue_state = self.queues.get(number);
        let is_paused = queue_state
            .is_some_and(|queue_state| queue_state.paused.is_some() && !queue_state.is_closing);
        if is_paused {
            self.paused.push(number);
        }
        is_paused
    }

    /// Resumes polling of queues at the end of their pauses.
    fn end_poll_pauses(&mut self) {
        let Self { paused, queues, active, now, .. } = self;
        paused.retain(|&number| {
            let Some(queue_state) = queues.get_mut(number) else { return false };
            let is_ended = queue_state.paused.is_none_or(|until| until <= *now);
            if is_ended {
                queue_state.paused = None;
                active.add(number);
            }
            !is_ended
        });
    }

    /// Returns the earliest end of a pause between two polls of a queue
    /// ([`PollPause`](crate::queue::poll_pause::PollPause)); `None` if no queue pauses.
    pub(crate) fn poll_pauses_deadline(&self) -> Option<Time> {
        self.paused.iter().filter_map(|&number| self.queues.get(number)?.paused).min()
    }

    /// Returns true if an empty queue is no longer to be polled. Its descriptor then signals the
    /// next request.
    fn may_stop_polling(&mut self, number: usize) -> bool {
        let begun_requests = self.started_requests();
        let Some(queue_state) = self.queues.get_mut(number) else { return true };
        let is_due = if queue_state.queue.is_polled_by_fd() {
            let may_poll = queue_state.in_flight == 0 && self.active.len() <= QUEUES_POLLED_MAX;
            !(may_poll && queue_state.busy_poll.should_poll(self.now))
        } else {
            queue_state.empty_polls >= EMPTY_POLLS_MAX
        };
        // The queue was not read because the store has no room.
        let has_room = begun_requests < REQUESTS_MAX;
        if queue_state.is_paused {
            return true;
        }
        queue_state.is_waiting = queue_state.is_closing
            || (is_due && has_room && queue_state.queue.arm() == ArmResult::Armed);
        queue_state.is_waiting
    }

    pub(crate) fn mark_completions_to_publish(&mut self, number: usize) {
        let Some(queue_state) = self
            .queues
            .get_mut(number)
            .filter(|queue_state| !queue_state.has_unpublished_completions)
        else {
            return;
        };
        queue_state.has_unpublished_completions = true;
        self.to_publish.push(number);
    }

    fn publish_completions(&mut self) {
        while let Some(number) = self.to_publish.pop() {
            let Some(queue_state) = self.queues.get_mut(number) else { continue };
            queue_state.has_unpublished_completions = false;
            note_serving(self.serving.as_ref(), queue_state.id);
            if let Err(fault) = queue_state.queue.flush() {
                if !queue_state.is_closing {
                    self.notices.push(StorageNotice::QueueFault { queue: number, fault });
                    self.close_queue(number);
                    continue;
                }
            }
            // The queue may have freed room for requests that it would otherwise not signal.
            if queue_state.is_waiting
                && !queue_state.is_closing
                && queue_state.queue.arm() == ArmResult::Pending
            {
                queue_state.is_waiting = false;
                queue_state.empty_polls = 0;
                self.active.add(number);
            }
            self.end_queue(number);
        }
    }
}
