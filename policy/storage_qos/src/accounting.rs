//! Accounting of request time in the scheduler: phases of requests, time in which workers were not
//! scheduled by the kernel, and time that workers report which borrow from the store's budget. Of
//! these, only the busy time of flows affects scheduling.

use suimon_quantity::Time;

use crate::worker_in_flight::{WorkerInFlight, at_least_zero};
use crate::{DiskSlot, DiskUnscheduledTime, RequestPhase, StoreScheduler, WorkerTime};

fn signed(requests: u32) -> i32 {
    i32::try_from(requests).unwrap_or(i32::MAX)
}

impl StoreScheduler {
    /// Moves one request in flight of a disk from phase `from` to phase `to`.
    pub fn handle_phase_change(
        &mut self,
        now: Time,
        slot: DiskSlot,
        from: RequestPhase,
        to: RequestPhase,
    ) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let held_by = self.flows.get(disk.flow_index as usize).and_then(|flow| flow.throttled_by);
        disk.account(now, held_by.unwrap_or(self.contention));
        disk.change_phase(from, to);
    }

    /// Adds time in which the disk's worker was runnable but the kernel did not run it.
    pub fn handle_unscheduled_time(&mut self, unscheduled: DiskUnscheduledTime) {
        if let Some(disk) = self.disks.get_mut(unscheduled.disk.0 as usize) {
            disk.totals.time.add_unscheduled_time(unscheduled);
        }
    }

    /// Switches to accounting by workers. From `now` on, workers report the time of requests in
    /// flight.
    pub(crate) fn begin_worker_accounting(&mut self, now: Time) {
        for flow in &mut self.flows {
            flow.set_accounted_by_workers(now, true);
        }
        let mut in_flight = 0;
        for disk in &mut self.disks {
            let held_by =
                self.flows.get(disk.flow_index as usize).and_then(|flow| flow.throttled_by);
            disk.account(now, held_by.unwrap_or(self.contention));
            (disk.is_accounted_by_workers, disk.in_flight_at_workers) =
                (true, signed(disk.in_flight));
            in_flight += disk.in_flight;
        }
        self.worker_in_flight =
            Some(WorkerInFlight { in_flight: signed(in_flight), depth: in_flight });
    }

    /// Switches back to accounting by the scheduler, for all requests from `now` on.
    pub(crate) fn end_worker_accounting(&mut self, now: Time) {
        self.worker_in_flight = None;
        for flow in &mut self.flows {
            flow.set_accounted_by_workers(now, false);
        }
        for disk in &mut self.disks {
            let held_by =
                self.flows.get(disk.flow_index as usize).and_then(|flow| flow.throttled_by);
            disk.account(now, held_by.unwrap_or(self.contention));
            (disk.is_accounted_by_workers, disk.in_flight_at_workers) = (false, 0);
        }
    }

    /// Adds the busy time that [`Flow::reported_busy_ns`](crate::flow::Flow::reported_busy_ns)
    /// collected for these disks to their flows. Disks of a policy are busy concurrently, so the
    /// limit is applied once to their sum.
    fn add_reported(&mut self, now: Time, disks: impl Iterator<Item = DiskSlot>) {
        for slot in disks {
            let flow_index = self.disks.get(slot.0 as usize).map(|disk| disk.flow_index);
            if let Some(flow) =
                flow_index.and_then(|flow_index| self.flows.get_mut(flow_index as usize))
            {
                let busy_ns = core::mem::take(&mut flow.reported_busy_ns);
                if busy_ns > 0 {
                    flow.add_busy_time(now, busy_ns);
                }
            }
        }
    }

    /// Subtracts requests in flight of a disk that a worker had reported before it ended.
    pub(crate) fn subtract_worker_requests(&mut self, slot: DiskSlot, requests: i32) {
        let (Some(at_workers), Some(disk)) =
            (&mut self.worker_in_flight, self.disks.get_mut(slot.0 as usize))
        else {
            return;
        };
        at_workers.in_flight = at_workers.in_flight.saturating_sub(requests);
        disk.in_flight_at_workers = disk.in_flight_at_workers.saturating_sub(requests);
    }

    /// Adds the request times of a worker's report. `ended_requests` is the number of requests in
    /// the same report that have completed.
    pub(crate) fn handle_worker_times(
        &mut self,
        now: Time,
        times: &[WorkerTime],
        ended_requests: usize,
    ) {
        let Some(at_workers) = &mut self.worker_in_flight else { return };
        for WorkerTime { disk, time, in_flight_change } in times {
            let Some(disk) = self.disks.get_mut(disk.0 as usize) else { continue };
            at_workers.in_flight = at_workers.in_flight.saturating_add(*in_flight_change);
            disk.in_flight_at_workers = disk.in_flight_at_workers.saturating_add(*in_flight_change);
            disk.totals.time.merge(time);
            if let Some(flow) = self.flows.get_mut(disk.flow_index as usize) {
                flow.reported_busy_ns = flow.reported_busy_ns.saturating_add(time.busy_ns);
            }
        }
        let ended_requests = u32::try_from(ended_requests).unwrap_or(u32::MAX);
        at_workers.depth = at_least_zero(at_workers.in_flight).saturating_add(ended_requests);
        self.add_reported(now, times.iter().map(|worker_time| worker_time.disk));
    }
}
