//! Iterations of a worker's engine: polling of queues and completions. An iteration is one call of
//! [`StorageEngine::poll`].

use std::sync::Arc;

use suimon_ports::{
    ArmResult, DiskOutcome, DiskRequest, ExpectedInput, FileCompletion, ServedDevice,
    ServedDeviceCell,
};
use suimon_quantity::{DiskId, Time};
use suimon_storage_qos::RequestPhase;

use crate::engine::io_token::IoPurpose;
use crate::engine::notices::StorageNotice;
use crate::engine::{REQUESTS_MAX, REQUESTS_PER_POLL_MAX, StorageEngine};
use crate::request::{EngineRequest, RequestFullState};

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
        } else if self.polled_queues.is_empty() {
            ExpectedInput::None
        } else {
            ExpectedInput::Requests
        }
    }

    /// Returns true if queues wait for their descriptors, which a busy worker must check.
    #[must_use]
    pub fn has_waiting_queues(&self) -> bool {
        self.queues.len() > self.polled_queues.len() + self.poll_paused_queues.len()
    }

    /// Handles a readable descriptor of a queue: polls the queue again. Returns false if the
    /// queue's requests cannot be accepted now. The caller must then not watch the descriptor until
    /// [`StorageEngine::poll_queue_to_watch`] returns the queue.
    pub fn wake_queue(&mut self, queue: usize) -> bool {
        let Some(queue_state) = self.queues.get_mut(queue) else { return true };
        queue_state.is_unwatched = queue_state.is_paused;
        if !queue_state.waits_for_descriptor {
            return !queue_state.is_paused;
        }
        queue_state.waits_for_descriptor = false;
        queue_state.empty_polls = 0;
        queue_state.queue.disarm();
        self.polled_queues.add(queue);
        true
    }

    /// Returns a queue for which the caller must watch the descriptor again; `None` if there is
    /// none.
    pub fn poll_queue_to_watch(&mut self) -> Option<usize> {
        self.queues_to_watch.pop()
    }

    /// Sets whether the worker's last iteration did some work, including network frames. If not,
    /// queues are polled until [`StorageEngine::arm`]. True initially.
    pub fn set_worker_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// Performs one iteration without blocking. Returns true if it did any work.
    pub fn poll(&mut self, now: Time) -> bool {
        self.now = now;
        self.account_unscheduled_before_poll();
        let mut has_worked = self.process_completions();
        has_worked |= self.dispatch_ready();
        self.continue_parked();
        // Completions are published before queues are read.
        self.publish_completions();
        self.end_poll_pauses();
        has_worked |= self.poll_queues();
        self.account_unscheduled_after_poll();
        has_worked |= self.dispatch_ready();
        self.continue_parked();
        self.sample_stores();
        self.check_for_stalls();
        self.commit_idle_disks();
        self.release_unused_buffers();
        self.repeat_no_space_requests();
        self.remove_leaving_stores();
        self.submit_queued_parts();
        self.submit_queued_metadata_reads();
        self.run_waiting_commits();
        self.begin_deferred_zeroing();
        self.report_completions();
        self.publish_completions();
        if let Err(error) = self.io.submit_queued() {
            self.notices.push_io_fault(now, &error);
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
        let rounds = self.polled_queues.queues_per_iteration();
        self.has_room = self.has_room(rounds * REQUESTS_PER_POLL_MAX);
        for _ in 0..rounds {
            let Some(queue) = self.polled_queues.next() else { break };
            let has_brought = self.serve(queue);
            self.polled_queues.record_poll(has_brought);
            has_work |= has_brought;
            let may_stop_polling = if has_brought {
                self.enters_poll_pause(queue)
            } else {
                self.may_stop_polling(queue)
            };
            if may_stop_polling {
                self.polled_queues.remove_waiting(queue);
            }
        }
        has_work || self.polled_queues.may_have_more()
    }

    /// Requests wake-ups by all polled queues and the I/O. Returns true if the worker may sleep
    /// until a queue's descriptor or [`StorageEngine::io_fd`] is readable, the worker is woken, or
    /// [`StorageEngine::next_deadline`] has passed.
    pub fn arm(&mut self) -> bool {
        let queues = &mut self.queues;
        self.polled_queues.retain(|number| {
            let Some(queue_state) = queues.get_mut(number) else { return false };
            queue_state.waits_for_descriptor =
                queue_state.is_closing || queue_state.queue.arm() == ArmResult::Armed;
            queue_state.busy_poll.handle_poll_period_end();
            !queue_state.waits_for_descriptor
        });
        let is_quiet = self.polled_queues.is_empty() && self.parts_to_submit.is_empty();
        is_quiet && self.io.arm() == ArmResult::Armed
    }

    /// Processes the completions of the I/O. Returns true if there were any.
    pub(crate) fn process_completions(&mut self) -> bool {
        let mut completions = std::mem::take(&mut self.completion_buffer);
        self.io.poll_completions(&mut completions);
        let has_completions = !completions.is_empty();
        for FileCompletion { token, result: outcome } in completions.drain(..) {
            match IoPurpose::from_token(token) {
                IoPurpose::Part(request, page) => {
                    self.handle_part_completed(request, page, outcome.map(|_| ()));
                }
                IoPurpose::Metadata(disk) => self.handle_metadata_read(disk, outcome),
                IoPurpose::Commit(disk, step) => {
                    self.handle_commit_step_completed(disk, step, outcome.map(|_| ()));
                }
                IoPurpose::Zeroing(disk) => self.handle_zeroing(disk, outcome.map(|_| ())),
            }
        }
        self.completion_buffer = completions;
        has_completions
    }

    /// Takes requests from one queue and submits them. Returns true if there were any.
    fn serve(&mut self, number: usize) -> bool {
        let available = self.receivable_requests(number);
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
        let mut requests = std::mem::take(&mut self.receive_buffer);
        let available = available.min(REQUESTS_PER_POLL_MAX);
        note_serving(self.served_device.as_ref(), queue_state.disk_id);
        self.buffer_reclaim.handle_served(queue_state.kind, self.now);
        let received = queue_state.queue.receive(available, &mut requests);
        let has_found_full = !queue_state.no_space_requests.is_empty();
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
                charged_slot: None,
                phase: RequestPhase::Data,
                charged_bytes: 0,
                next_queued: 0,
                remaining_parts: 0,
                outcome: DiskOutcome::Done,
                full_state: RequestFullState::NotFull,
            });
            if has_found_full {
                self.record_previous_no_space(request);
            }
            if count == 1 {
                self.submit_to_scheduler(request);
            } else {
                self.requests_to_submit.push(request);
            }
        }
        self.receive_buffer = requests;
        self.submit_received_requests();
        if let Err(fault) = received {
            self.notices.push(StorageNotice::QueueFault { queue: number, fault });
            self.close_queue(number);
        }
        count > 0
    }

    /// Returns true if a queue that had requests is not polled again before the end of a pause.
    fn enters_poll_pause(&mut self, number: usize) -> bool {
        let queue_state = self.queues.get(number);
        let is_paused = queue_state.is_some_and(|queue_state| {
            queue_state.poll_pause_end.is_some() && !queue_state.is_closing
        });
        if is_paused {
            self.poll_paused_queues.push(number);
        }
        is_paused
    }

    /// Resumes polling of queues at the end of their pauses.
    fn end_poll_pauses(&mut self) {
        let Self { poll_paused_queues: paused, queues, polled_queues: active, now, .. } = self;
        paused.retain(|&number| {
            let Some(queue_state) = queues.get_mut(number) else { return false };
            let is_ended = queue_state.poll_pause_end.is_none_or(|until| until <= *now);
            if is_ended {
                queue_state.poll_pause_end = None;
                active.add(number);
            }
            !is_ended
        });
    }

    /// Returns the earliest end of a pause between two polls of a queue
    /// ([`PollPause`](crate::queue::poll_pause::PollPause)); `None` if no queue pauses.
    pub(crate) fn poll_pauses_deadline(&self) -> Option<Time> {
        self.poll_paused_queues
            .iter()
            .filter_map(|&number| self.queues.get(number)?.poll_pause_end)
            .min()
    }

    /// Returns true if an empty queue is no longer to be polled. Its descriptor then signals the
    /// next request.
    fn may_stop_polling(&mut self, number: usize) -> bool {
        let begun_requests = self.started_requests();
        let Some(queue_state) = self.queues.get_mut(number) else { return true };
        let is_due = if queue_state.queue.is_polled_by_fd() {
            let may_poll =
                queue_state.in_flight == 0 && self.polled_queues.len() <= QUEUES_POLLED_MAX;
            !(may_poll && queue_state.busy_poll.should_poll(self.now))
        } else {
            queue_state.empty_polls >= EMPTY_POLLS_MAX
        };
        // The queue was not read because the store has no room.
        let has_room = begun_requests < REQUESTS_MAX;
        if queue_state.is_paused {
            return true;
        }
        queue_state.waits_for_descriptor = queue_state.is_closing
            || (is_due && has_room && queue_state.queue.arm() == ArmResult::Armed);
        queue_state.waits_for_descriptor
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
        self.queues_to_publish.push(number);
    }

    fn publish_completions(&mut self) {
        while let Some(number) = self.queues_to_publish.pop() {
            let Some(queue_state) = self.queues.get_mut(number) else { continue };
            queue_state.has_unpublished_completions = false;
            note_serving(self.served_device.as_ref(), queue_state.disk_id);
            if let Err(fault) = queue_state.queue.flush() {
                if !queue_state.is_closing {
                    self.notices.push(StorageNotice::QueueFault { queue: number, fault });
                    self.close_queue(number);
                    continue;
                }
            }
            // The queue may have freed room for requests that it would otherwise not signal.
            if queue_state.waits_for_descriptor
                && !queue_state.is_closing
                && queue_state.queue.arm() == ArmResult::Pending
            {
                queue_state.waits_for_descriptor = false;
                queue_state.empty_polls = 0;
                self.polled_queues.add(number);
            }
            self.release_queue_if_done(number);
        }
    }
}
