//! Binary encoding of scheduler inputs and decisions, specified in `scheduler.rs`.

use core::time::Duration;

use suimon_quantity::{Time, WorkerId};
use suimon_storage_qos::{
    BatchSubmitOutcome, CompletedRequests, Completion, ConfigStep, DiskSlot, GrantKind, IoKind,
    NextAction, RequestTime, RequestedGrant, ReturnedGrant, StoreEvent, SubmitError, SubmitOutcome,
    WorkerGrant, WorkerReport, WorkerTime,
};

use crate::RecordError;
use crate::byte_codec::{ByteDecoder, put_signed, put_unsigned};
use crate::policy::put_json;

const SUBMIT: u8 = 0;
const TOGETHER: u8 = 1;
pub(crate) const POLL: u8 = 2;
const COMPLETED: u8 = 3;
const CHANGE: u8 = 4;
pub(crate) const OBSERVE: u8 = 5;
const SHARE: u8 = 6;
const REPORT: u8 = 7;
pub(crate) const POLL_GRANT: u8 = 8;
const UNSHARE: u8 = 9;
const UNDONE: u8 = 10;
const ABSENT: u8 = 11;
const ENDED: u8 = 12;

/// Maximum number of requests in one submission or report.
const REQUESTS_MAX: u64 = 1 << 20;

/// Recorded input of a store's scheduler or shared budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreInput {
    /// Submission of one request of a disk.
    Submit {
        /// Slot of the disk in the scheduler.
        slot: DiskSlot,
        /// Length of the request in bytes.
        bytes: u32,
        /// Tag assigned by the storage engine.
        tag: u32,
    },
    /// Submission of several requests of one disk.
    SubmitBatch {
        /// Slot of the disk in the scheduler.
        slot: DiskSlot,
        /// Tag assigned by the storage engine, common to all requests.
        tag: u32,
        /// Length of each request in bytes.
        sizes: Vec<u32>,
    },
    /// Poll for the next request to dispatch.
    Poll,
    /// Completion of requests of one disk.
    Completed {
        /// Slot of the disk in the scheduler.
        slot: DiskSlot,
        /// Size, number and latency of the completed requests.
        requests: CompletedRequests,
    },
    /// A dispatched request of a disk ended without being executed.
    NotExecuted {
        /// Slot of the disk in the scheduler.
        slot: DiskSlot,
        /// Length of the request in bytes.
        bytes: u32,
    },
    /// Change of configuration, such as limits or disks.
    Change(ConfigStep),
    /// Periodic sampling of the delivered operations.
    Observe,
    /// Start of sharing the store with other workers. Contains the worker that used the scheduler
    /// alone.
    Share(WorkerId),
    /// Report of a worker to the shared budget.
    Report {
        /// Worker that sent the report.
        worker: WorkerId,
        /// Requested grants, completions and returned grants.
        report: WorkerReport,
    },
    /// A worker with grants has stopped reporting.
    WorkerAbsent(WorkerId),
    /// A worker has stopped using the store.
    WorkerEnded(WorkerId),
    /// Poll for the next grant to a worker.
    PollGrant,
    /// End of sharing. Contains slots and tags of the requests queued at the remaining worker.
    Unshare(Vec<(DiskSlot, u32)>),
}

fn put_numbers(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    numbers.into_iter().for_each(|number| put_unsigned(out, number.into()));
}

pub(crate) fn put_submit(out: &mut Vec<u8>, slot: DiskSlot, bytes: u32, tag: u32) {
    out.push(SUBMIT);
    put_numbers(out, [slot.0, bytes, tag]);
}

pub(crate) fn put_submitted(out: &mut Vec<u8>, result: Result<SubmitOutcome, SubmitError>) {
    out.push(match result {
        Ok(SubmitOutcome::Dispatch) => 0,
        Ok(SubmitOutcome::Queued) => 1,
        Err(error) => refusal(error),
    });
}

const fn refusal(error: SubmitError) -> u8 {
    match error {
        SubmitError::NoDisk(_) => 2,
        _ => 3,
    }
}

pub(crate) fn put_submit_batch(out: &mut Vec<u8>, slot: DiskSlot, tag: u32, sizes: &[u32]) {
    out.push(TOGETHER);
    put_numbers(out, [slot.0, tag]);
    for run in sizes.chunk_by(|a, b| a == b) {
        put_unsigned(out, run.first().copied().unwrap_or_default().into());
        put_unsigned(out, run.len() as u64);
    }
}

pub(crate) fn put_batch_submitted(
    out: &mut Vec<u8>,
    result: Result<BatchSubmitOutcome, SubmitError>,
) {
    match result {
        Ok(BatchSubmitOutcome { dispatched, queued_count: waiting }) => {
            out.push(0);
            put_unsigned(out, dispatched as u64);
            put_unsigned(out, waiting as u64);
        }
        Err(error) => out.push(refusal(error)),
    }
}

pub(crate) fn put_next(out: &mut Vec<u8>, now: Time, next: NextAction) {
    match next {
        NextAction::Idle => out.push(0),
        NextAction::WaitUntil(deadline) => {
            out.push(1);
            put_signed(out, deadline.as_ns().wrapping_sub(now.as_ns()) as i64);
        }
        NextAction::Dispatch { disk, tag } => {
            out.push(2);
            put_numbers(out, [disk.0, tag]);
        }
    }
}

pub(crate) fn put_completed(out: &mut Vec<u8>, slot: DiskSlot, completed: CompletedRequests) {
    out.push(COMPLETED);
    put_numbers(out, [slot.0, completed.operation as u32, completed.bytes, completed.requests]);
    put_unsigned(out, completed.latency_sum_ns.map_or(0, |ns| ns.saturating_add(1)));
}

pub(crate) fn put_not_executed(out: &mut Vec<u8>, slot: DiskSlot, bytes: u32) {
    out.push(UNDONE);
    put_numbers(out, [slot.0, bytes]);
}

pub(crate) fn put_change(out: &mut Vec<u8>, change: ConfigStep) {
    out.push(CHANGE);
    put_json(out, &change);
}

pub(crate) fn put_tags(out: &mut Vec<u8>, tags: &[u32]) {
    put_numbers(out, tags.iter().copied());
}

pub(crate) fn put_events(out: &mut Vec<u8>, events: &[StoreEvent]) {
    if !events.is_empty() {
        put_json(out, &events);
    }
}

pub(crate) fn put_share(out: &mut Vec<u8>, worker: WorkerId) {
    out.push(SHARE);
    put_unsigned(out, worker.0.into());
}

pub(crate) fn put_worker_absent(out: &mut Vec<u8>, worker: WorkerId) {
    out.push(ABSENT);
    put_unsigned(out, worker.0.into());
}

pub(crate) fn put_worker_ended(out: &mut Vec<u8>, worker: WorkerId) {
    out.push(ENDED);
    put_unsigned(out, worker.0.into());
}

pub(crate) fn put_report(out: &mut Vec<u8>, from: WorkerId, report: &WorkerReport) {
    out.push(REPORT);
    put_unsigned(out, from.0.into());
    for requested in [&report.queued_requests, &report.loan_requests] {
        put_unsigned(out, requested.len() as u64);
        requested.iter().for_each(|grant| put_numbers(out, [grant.disk.0, grant.bytes]));
    }
    put_unsigned(out, report.completions.len() as u64);
    for Completion { disk, operation, bytes, latency } in &report.completions {
        put_numbers(out, [disk.0, *operation as u32, *bytes]);
        let ns = |latency: Duration| u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        put_unsigned(out, latency.map_or(0, |latency| ns(latency).saturating_add(1)));
    }
    put_unsigned(out, report.returned_grants.len() as u64);
    for ReturnedGrant { disk, requests, cost, bytes } in &report.returned_grants {
        put_numbers(out, [disk.0, *requests, *cost, *bytes]);
    }
    put_unsigned(out, report.times.len() as u64);
    for WorkerTime { disk, time, in_flight_change } in &report.times {
        put_unsigned(out, disk.0.into());
        put_unsigned(out, time.busy_ns);
        put_signed(out, i64::from(*in_flight_change));
    }
}

pub(crate) fn put_grant(out: &mut Vec<u8>, grant: Option<WorkerGrant>) {
    let Some(WorkerGrant { worker: processor, disk, kind: amount }) = grant else {
        return out.push(0);
    };
    put_numbers(out, [u32::from(processor.0) + 1, disk.0]);
    let (kind, number) = match amount {
        GrantKind::QueuedRequests(requests) => (0, requests),
        GrantKind::Loan(bytes) => (1, bytes),
        GrantKind::LoanRefused => (2, 0),
        GrantKind::QueuedRequestRefused(bytes) => (3, bytes),
    };
    put_numbers(out, [kind, number]);
}

pub(crate) fn put_unshare(out: &mut Vec<u8>, waiting: impl Iterator<Item = (DiskSlot, u32)>) {
    out.push(UNSHARE);
    waiting.for_each(|(slot, tag)| put_numbers(out, [slot.0, tag]));
}

/// Decodes a recorded input of a scheduler.
///
/// # Errors
///
/// `body` is not a valid input.
pub fn decode_store_input(body: &[u8]) -> Result<StoreInput, RecordError> {
    let mut bytes = ByteDecoder::new(body);
    let input = match bytes.take_byte()? {
        SUBMIT => {
            let slot = DiskSlot(bytes.take_u32()?);
            StoreInput::Submit { slot, bytes: bytes.take_u32()?, tag: bytes.take_u32()? }
        }
        TOGETHER => together(&mut bytes)?,
        POLL => StoreInput::Poll,
        COMPLETED => {
            let slot = DiskSlot(bytes.take_u32()?);
            let operation = operation(&mut bytes)?;
            let (size, requests) = (bytes.take_u32()?, bytes.take_u32()?);
            let latency_ns = bytes.take_unsigned()?.checked_sub(1);
            let completed =
                CompletedRequests { operation, bytes: size, requests, latency_sum_ns: latency_ns };
            StoreInput::Completed { slot, requests: completed }
        }
        UNDONE => {
            let slot = DiskSlot(bytes.take_u32()?);
            StoreInput::NotExecuted { slot, bytes: bytes.take_u32()? }
        }
        CHANGE => StoreInput::Change(serde_json::from_slice(bytes.take_remaining())?),
        OBSERVE => StoreInput::Observe,
        SHARE => StoreInput::Share(worker(&mut bytes)?),
        REPORT => StoreInput::Report { worker: worker(&mut bytes)?, report: report(&mut bytes)? },
        ABSENT => StoreInput::WorkerAbsent(worker(&mut bytes)?),
        ENDED => StoreInput::WorkerEnded(worker(&mut bytes)?),
        POLL_GRANT => StoreInput::PollGrant,
        UNSHARE => {
            let mut waiting = Vec::new();
            while !bytes.is_empty() {
                waiting.push((DiskSlot(bytes.take_u32()?), bytes.take_u32()?));
            }
            StoreInput::Unshare(waiting)
        }
        other => return Err(RecordError::InvalidBody(format!("the first record is {other}"))),
    };
    if bytes.is_empty() {
        return Ok(input);
    }
    Err(RecordError::InvalidBody("the record extends beyond its end".to_owned()))
}

fn together(bytes: &mut ByteDecoder<'_>) -> Result<StoreInput, RecordError> {
    let (slot, tag) = (DiskSlot(bytes.take_u32()?), bytes.take_u32()?);
    let mut sizes = Vec::new();
    while !bytes.is_empty() {
        let (size, count) = (bytes.take_u32()?, bytes.take_unsigned()?);
        if count > REQUESTS_MAX.saturating_sub(sizes.len() as u64) {
            return Err(RecordError::NumberTooLarge);
        }
        sizes.extend((0..count).map(|_| size));
    }
    Ok(StoreInput::SubmitBatch { slot, tag, sizes })
}

fn worker(bytes: &mut ByteDecoder<'_>) -> Result<WorkerId, RecordError> {
    u16::try_from(bytes.take_unsigned()?).map(WorkerId).map_err(|_| RecordError::NumberTooLarge)
}

fn operation(bytes: &mut ByteDecoder<'_>) -> Result<IoKind, RecordError> {
    let number = bytes.take_unsigned()?;
    let kind = usize::try_from(number).ok().and_then(|index| IoKind::ALL.get(index));
    kind.copied().ok_or_else(|| RecordError::InvalidBody(format!("unknown operation {number}")))
}

fn report(bytes: &mut ByteDecoder<'_>) -> Result<WorkerReport, RecordError> {
    let mut report = WorkerReport::default();
    for requested in [&mut report.queued_requests, &mut report.loan_requests] {
        // Each entry consumes input, which bounds the number of entries.
        for _ in 0..bytes.take_unsigned()? {
            requested.push(RequestedGrant {
                disk: DiskSlot(bytes.take_u32()?),
                bytes: bytes.take_u32()?,
            });
        }
    }
    for _ in 0..bytes.take_unsigned()? {
        let (disk, operation) = (DiskSlot(bytes.take_u32()?), operation(bytes)?);
        let size = bytes.take_u32()?;
        let latency = bytes.take_unsigned()?.checked_sub(1).map(Duration::from_nanos);
        report.completions.push(Completion { disk, operation, bytes: size, latency });
    }
    for _ in 0..bytes.take_unsigned()? {
        let (disk, requests) = (DiskSlot(bytes.take_u32()?), bytes.take_u32()?);
        let (cost, size) = (bytes.take_u32()?, bytes.take_u32()?);
        report.returned_grants.push(ReturnedGrant { disk, requests, cost, bytes: size });
    }
    for _ in 0..bytes.take_unsigned()? {
        let disk = DiskSlot(bytes.take_u32()?);
        let time = RequestTime { busy_ns: bytes.take_unsigned()?, ..RequestTime::default() };
        let in_flight_change =
            i32::try_from(bytes.take_signed()?).map_err(|_| RecordError::NumberTooLarge)?;
        report.times.push(WorkerTime { disk, time, in_flight_change });
    }
    Ok(report)
}
