//! Accounting of request time in the scheduler: phases of requests, time in which workers were not
//! scheduled by the kernel, and time that workers report which borrow from the store's budget. Of
//! these, only the busy time of flows affects scheduling.

use suimon_quantity::Time;

use crate::at_workers::{AtWorkers, at_least_zero};
use crate::{DiskSlot, RequestPhase, StoreScheduler, Unscheduled, WorkerTime};

fn signed(requests: u32) -> i32 {
    i32::try_from(requests).unwrap_or(i32::MAX)
}

impl StoreScheduler {
    /// Moves one request in flight of a disk from phase `from` to phase `to`.
    pub fn handle_phase(
        &mut self,
        now: Time,
        slot: DiskSlot,
        from: RequestPhase,
        to: RequestPhase,
    ) {
        let Some(disk) = self.disks.get_mut(slot.0 as usize) else { return };
        let held_by = self.flows.get(disk.flow as usize).and_then(|flow| flow.throttled_by);
        disk.account(now, held_by.unwrap_or(self.contention));
        disk.change_phase(from, to);
    }

    /// Adds time in which the disk's worker was runnable but the kernel did not run it.
    pub fn handle_unscheduled(&mut self, unscheduled: Unscheduled) {
        if let Some(disk) = self.disks.get_mut(unscheduled.disk.0 as usize) {
            disk.totals.time.add_unscheduled(unscheduled);
        }
    }

    /// Switches to accounting by workers. From `now` on, workers report the time of requests in
    /// flight.
    pub(crate) fn begin_lending(&mut self, now: Time) {
        for flow in &mut self.flows {
            flow.set_lent(now, true);
        }
        let mut in_flight = 0;
        for disk in &mut self.disks {
            let held_by = self.flows.get(disk.flow as usize).and_then(|flow| flow.throttled_by);
            disk.account(now, held_by.unwrap_or(self.contention));
            (disk.is_lent, disk.at_workers) = (true, signed(disk.in_flight));
            in_flight += disk.in_flight;
        }
        self.at_workers = Some(AtWorkers { in_flight: signed(in_flight), depth: in_flight });
    }

    /// Switches back to accounting by the scheduler, for all requests from `now` on.
    pub(crate) fn end_lending(&mut self, now: Time) {
        self.at_workers = None;
        for flow in &mut self.flows {
            flow.set_lent(now, false);
        }
        for disk in &mut self.disks {
            let held_by = self.flows.get(disk.flow as usize).and_then(|flow| flow.throttled_by);
            disk.account(now, held_by.unwrap_or(self.contention));
            (disk.is_lent, disk.at_workers) = (false, 0);
        }
    }

    /// Adds the busy time that [`Flow::reporting_ns`](crate::flow::Flow::reporting_ns) collected
    /// for these disks to their flows. Disks of a policy are busy concurrently, so the limit is
    /// applied once to their sum.
    fn add_reported(&mut self, now: Time, disks: impl Iterator<Item = DiskSlot>) {
        for slot in disks {
            let flow_index = self.disks.get(slot.0 as usize).map(|disk| disk.flow);
            if let Some(flow) =
                flow_index.and_then(|flow_index| self.flows.get_mut(flow_index as usize))
            {
                let busy_ns = core::mem::take(&mut flow.reporting_ns);
                if busy_ns > 0 {
                    flow.add_busy(now, busy_ns);
                }
            }
        }
    }

    /// Subtracts requests in flight of a disk that a worker had reported before it ended.
    pub(crate) fn forget_worker(&mut self, slot: DiskSlot, requests: i32) {
        let (Some(at_workers), Some(disk)) =
            (&mut self.at_workers, self.disks.get_mut(slot.0 as usize))
        else {
            return;
        };
        at_workers.in_flight = at_workers.in_flight.saturating_sub(requests);
        disk.at_workers = disk.at_workers.saturating_sub(requests);
    }

    /// Adds the request times of a worker's report. `ended_requests` is the number of requests in
    /// the same report that have completed.
    pub(crate) fn handle_worker_times(
        &mut self,
        now: Time,
        times: &[WorkerTime],
        ended_requests: usize,
    ) {
        let Some(at_workers) = &mut self.at_workers else { return };
        for WorkerTime { disk, time, in_flight_change } in times {
            let Some(disk) = self.disks.get_mut(disk.0 as usize) else { continue };
            at_workers.in_flight = at_workers.in_flight.saturating_add(*in_flight_change);
            disk.at_workers = disk.at_workers.saturating_add(*in_flight_change);
            disk.totals.time.merge(time);
            if let Some(flow) = self.flows.get_mut(disk.flow as usize) {
                flow.reporting_ns = flow.reporting_ns.saturating_add(time.busy_ns);
            }
        }
        let ended_requests = u32::try_from(ended_requests).unwrap_or(u32::MAX);
        at_workers.depth = at_least_zero(at_workers.in_flight).saturating_add(ended_requests);
        self.add_reported(now, times.iter().map(|worker_time| worker_time.disk));
    }
}
