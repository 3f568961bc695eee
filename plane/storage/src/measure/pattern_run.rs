//! Measurement of one read/write mix, with as many requests in flight as the store's scheduler
//! dispatches.

use core::time::Duration;
use suimon_image::ByteRange;
use suimon_ports::{FileCompletion, FileRequest};
use suimon_quantity::{DiskId, Time};
use suimon_storage_engine::LatencyHistogram;
use suimon_storage_qos::{
    Capacity, DiskSlot, IoKind, Limits, LimitsSource, NextAction, Proposal, Store, StoreScheduler,
    StoreSpec, SubmitOutcome,
};

use crate::measure::device::MeasuredDevice;
use crate::measure::error::MeasureError;
use crate::measure::pattern::{Pattern, PatternResult};
use crate::measure::plan::MeasurePlan;
use crate::measure::sizes::MIB;

/// Number of requests that are always queued in the scheduler, so that the device is never idle.
const WAITING: u32 = 32;
/// Maximum extension of the counting time while no request has completed. Other users of a shared
/// device may delay it for seconds. The measured rate is then low but valid.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The single disk in the scheduler of the measurement.
const DISK: DiskId = DiskId(0);

/// Request that the scheduler has dispatched or queued.
#[derive(Clone, Copy, Default)]
struct SentRequest {
    time: Time,
    offset: u64,
    is_write: bool,
}

/// Measurement of one pattern that is in progress.
pub(super) struct PatternRun {
    pattern: Pattern,
    each: Duration,
    request_bytes: u32,
    scheduler: StoreScheduler,
    slot: DiskSlot,
    /// Dispatched and queued requests, indexed by tag.
    sent: Vec<SentRequest>,
    free: Vec<u32>,
    started: Option<Time>,
    counted_from: Option<Time>,
    counted_until: Option<Time>,
    requests: u64,
    latencies: LatencyHistogram,
    /// Random data; each write uses a random part of it.
    noise: Vec<u8>,
}

impl PatternRun {
    pub(super) fn new(pattern: Pattern, plan: &MeasurePlan, device: &mut MeasuredDevice) -> Self {
        let capacity = u32::try_from(device.io.capacity()).unwrap_or(u32::MAX);
        let depth_max = plan.spec.depth_max.min(capacity);
        let total = depth_max.saturating_add(WAITING);
        // The measured capacity is that of a store with several users, so the scheduler treats no
        // disk as the only one.
        let alone_latency = Duration::ZERO;
        let spec = StoreSpec {
            depth_max,
            waiting_max: total,
            single_disk_latency_max: alone_latency,
            ..plan.spec.clone()
        };
        let request_bytes = spec.normalization.bytes();
        let mut scheduler = StoreScheduler::new(spec);
        let mut store = Store::new(Capacity::Unknown);
        let disk = Proposal::SetDisk(DISK, LimitsSource::Own(Limits::default()));
        // The scheduler accepts a single disk without limits always.
        for change in store.apply(&[disk], true).unwrap_or_default() {
            scheduler.apply(Time::ZERO, change);
        }
        let noise = match pattern {
            Pattern::Read => Vec::new(),
            _ => (0..MIB / 4).flat_map(|_| device.next_random().to_le_bytes()).collect(),
        };
        Self {
            pattern,
            each: plan.pattern_duration,
            request_bytes,
            scheduler,
            slot: store.slot(DISK).unwrap_or(DiskSlot(0)),
            sent: vec![SentRequest::default(); total as usize],
            free: (0..total).collect(),
            started: None,
            counted_from: None,
            counted_until: None,
            requests: 0,
            latencies: LatencyHistogram::default(),
            noise,
        }
    }

    /// Processes completions and submits requests. Returns the result when the counting time has
    /// ended and no request is in flight; `None` before.
    pub(super) fn step(
        &mut self,
        now: Time,
        device: &mut MeasuredDevice,
        completions: &mut Vec<FileCompletion>,
    ) -> Result<Option<PatternResult>, MeasureError> {
        let started = *self.started.get_or_insert(now);
        let warm = started + self.each / 3;
        for completion in completions.drain(..) {
            self.handle_done(now, completion)?;
        }
        if self.counted_from.is_none() && now >= warm {
            self.counted_from = Some(now);
        }
        let is_silent = self.requests == 0 && now < warm + self.each + SILENCE_MAX;
        if self.counted_until.is_none() && now >= warm + self.each && !is_silent {
            self.counted_until = Some(now);
        }
        if let (Some(counted_from), Some(until)) = (self.counted_from, self.counted_until) {
            if device.io.in_flight() > 0 {
                return Ok(None);
            }
            return self.figure(until.since(counted_from)).map(Some);
        }
        self.submit_requests(now, device);
        Ok(None)
    }

    pub(super) fn progress_text(&self, now: Time) -> String {
        let total = self.each + self.each / 3;
        let elapsed = self.started.map_or(Duration::ZERO, |started| now.since(started)).min(total);
        format!("{}: {} of {} s", self.pattern.name(), elapsed.as_secs(), total.as_secs())
    }

    fn handle_done(&mut self, now: Time, completion: FileCompletion) -> Result<(), MeasureError> {
        let tag = u32::try_from(completion.token).unwrap_or(u32::MAX);
        let Some(request) = self.sent.get(tag as usize).copied() else { return Ok(()) };
        let action = if request.is_write { "writing" } else { "reading" };
        let offset = request.offset;
        completion.result.map_err(|error| MeasureError::Io { operation: action, offset, error })?;
        let latency = now.since(request.time);
        let operation = if request.is_write { IoKind::Write } else { IoKind::Read };
        self.scheduler.handle_completion(now, self.slot, (operation, self.request_bytes), latency);
        self.free.push(tag);
        if self.counted_from.is_some() && self.counted_until.is_none() {
            self.requests += 1;
            self.latencies.record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    /// Dispatches requests as the scheduler permits, and keeps the scheduler's queue filled.
    fn submit_requests(&mut self, now: Time, device: &mut MeasuredDevice) {
        while let NextAction::Dispatch { tag, .. } = self.scheduler.poll(now) {
            self.send(now, tag, device);
        }
        while let Some(tag) = self.free.pop() {
            match self.scheduler.submit(now, self.slot, self.request_bytes, tag) {
                Ok(SubmitOutcome::Dispatch) => self.send(now, tag, device),
                Ok(SubmitOutcome::Queued) => {}
                Err(_) => {
                    self.free.push(tag);
                    break;
                }
            }
        }
        while let NextAction::Dispatch { tag, .. } = self.scheduler.poll(now) {
            self.send(now, tag, device);
        }
    }

    fn send(&mut self, now: Time, tag: u32, device: &mut MeasuredDevice) {
        let bytes = u64::from(self.request_bytes);
        let random = device.next_random();
        let offset = random % (device.bytes / bytes).max(1) * bytes;
        let is_write = match self.pattern {
            Pattern::Read => false,
            Pattern::Write => true,
            Pattern::Mixed => device.next_random() % 2 == 0,
        };
        let Some(range) = ByteRange::new(offset, bytes) else { return };
        let op = if is_write {
            FileRequest::WriteBytes { offset, bytes: self.payload(random) }
        } else {
            FileRequest::ReadBytes(range)
        };
        if let Some(request) = self.sent.get_mut(tag as usize) {
            *request = SentRequest { time: now, offset, is_write };
        }
        // The I/O has room: the scheduler's depth does not exceed its capacity.
        let _ = device.io.submit(device.slot, op, u64::from(tag));
    }

    fn payload(&self, random: u64) -> Vec<u8> {
        let len = self.request_bytes as usize;
        let start = usize::try_from(random % MIB).unwrap_or(0) & !7;
        self.noise.get(start..start + len).map(<[u8]>::to_vec).unwrap_or_else(|| vec![0xa5; len])
    }

    fn figure(&self, counted: Duration) -> Result<PatternResult, MeasureError> {
        if self.requests == 0 {
            return Err(MeasureError::NoCompletions(counted.as_secs()));
        }
        let ns = counted.as_nanos().max(1);
        let iops = u128::from(self.requests) * 1_000_000_000 / ns;
        Ok(PatternResult {
            pattern: self.pattern,
            // At least one request completed, so the capacity must not be 0.
            iops: u64::try_from(iops).unwrap_or(u64::MAX).max(1),
            depth: self.scheduler.queue_depth_limit(),
            latencies: self.latencies.percentiles(),
        })
    }
}
