//! Encoding and decoding of records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use crate::byte_codec::{ByteDecoder, put_byte_string, put_signed, put_unsigned};
use crate::{LossReason, PolicyKind, RecordError, StreamId};

const ABOUT: u8 = 0;
const BEGIN: u8 = 1;
const STEP: u8 = 2;
const LOST: u8 = 3;
const NAMES: u8 = 4;

/// Origin of a recording: daemon, host and time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingSource {
    /// Version of the recording daemon.
    pub version: String,
    /// Name of the daemon's host.
    pub host: String,
    /// Start of the recording in milliseconds since 1970-01-01 UTC.
    #[serde(rename = "began_unix_ms")]
    pub started_unix_ms: u64,
}

/// Names of objects that records identify by numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectNames {
    /// Names of disks by disk number.
    pub disks: BTreeMap<u32, String>,
    /// Names of NICs, uplinks and teams by port number.
    pub ports: BTreeMap<u32, String>,
    /// Names of stores by store number.
    pub stores: BTreeMap<u32, String>,
}

/// Decoded record. It borrows from the body of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Origin of the recording: JSON of [`RecordingSource`].
    Origin(&'a [u8]),
    /// Start of the stream of a new policy.
    Begin {
        /// Identifier of the new stream.
        stream: StreamId,
        /// Time at which the policy was created.
        at: Time,
        /// Kind of the new policy.
        kind: PolicyKind,
        /// Name of the policy instance, such as `wan`.
        name: &'a str,
        /// Encoded initial state of the policy.
        initial_state: &'a [u8],
    },
    /// Input of a policy and the resulting decision.
    Step {
        /// Stream that the step belongs to.
        stream: StreamId,
        /// Time passed to the policy.
        at: Time,
        /// Encoded input of the policy.
        input: &'a [u8],
        /// Encoded decision of the policy.
        decision: &'a [u8],
    },
    /// Early end of a stream.
    EndedEarly {
        /// Stream that has no further records; 0: no stream has further records.
        stream: StreamId,
        /// Reason for the early end.
        reason: LossReason,
    },
    /// Names of identifiers: JSON of [`ObjectNames`].
    Names(&'a [u8]),
}

/// Decodes the next record. `time_ns` is the time of the previous record in nanoseconds and is set
/// to that of this record.
///
/// # Errors
///
/// The record is invalid.
pub(crate) fn decode_record<'a>(
    bytes: &mut ByteDecoder<'a>,
    time_ns: &mut u64,
) -> Result<Record<'a>, RecordError> {
    let kind = bytes.take_byte()?;
    let stream = StreamId(bytes.take_u32()?);
    *time_ns = time_ns.wrapping_add_signed(bytes.take_signed()?);
    let time = Time::from_ns(*time_ns);
    Ok(match kind {
        ABOUT => Record::Origin(bytes.take_byte_string()?),
        BEGIN => {
            let kind = PolicyKind::from_number(bytes.take_byte()?)?;
            let name = core::str::from_utf8(bytes.take_byte_string()?)
                .map_err(|_| RecordError::NotText)?;
            Record::Begin { stream, at: time, kind, name, initial_state: bytes.take_byte_string()? }
        }
        STEP => Record::Step {
            stream,
            at: time,
            input: bytes.take_byte_string()?,
            decision: bytes.take_byte_string()?,
        },
        LOST => Record::EndedEarly { stream, reason: LossReason::from_number(bytes.take_byte()?)? },
        NAMES => Record::Names(bytes.take_byte_string()?),
        other => return Err(RecordError::UnknownRecord(other)),
    })
}

/// Appends type, stream and time, with which every record begins. `last` is the time of the
/// previous record and is set to `now`.
fn put_head(out: &mut Vec<u8>, kind: u8, stream: StreamId, now: Time, last: &mut Time) {
    out.push(kind);
    put_unsigned(out, u64::from(stream.0));
    put_signed(out, now.as_ns().wrapping_sub(last.as_ns()) as i64);
    *last = now;
}

pub(crate) fn put_begin(
    out: &mut Vec<u8>,
    (stream, now, last): (StreamId, Time, &mut Time),
    kind: PolicyKind,
    name: &str,
    birth: &[u8],
) {
    put_head(out, BEGIN, stream, now, last);
    out.push(kind as u8);
    put_byte_string(out, name.as_bytes());
    put_byte_string(out, birth);
}

pub(crate) fn put_step(
    out: &mut Vec<u8>,
    (stream, now, last): (StreamId, Time, &mut Time),
    input: &[u8],
    decision: &[u8],
) {
    put_head(out, STEP, stream, now, last);
    put_byte_string(out, input);
    put_byte_string(out, decision);
}

pub(crate) fn put_ended_early(
    out: &mut Vec<u8>,
    (stream, now, last): (StreamId, Time, &mut Time),
    loss: LossReason,
) {
    put_head(out, LOST, stream, now, last);
    out.push(loss as u8);
}

/// Returns a block body that contains the origin of the recording.
pub fn encode_origin(source: &RecordingSource) -> Vec<u8> {
    encode_text(ABOUT, source)
}

/// Returns a block body that contains names of identifiers.
pub fn encode_names(names: &ObjectNames) -> Vec<u8> {
    encode_text(NAMES, names)
}

/// Returns a block body that contains the early end of a stream, or of all streams (0).
pub fn encode_ended_early(stream: StreamId, loss: LossReason) -> Vec<u8> {
    let (mut body, mut last) = (Vec::new(), Time::ZERO);
    put_ended_early(&mut body, (stream, Time::ZERO, &mut last), loss);
    body
}

fn encode_text(kind: u8, value: &impl Serialize) -> Vec<u8> {
    let (mut body, mut last) = (Vec::new(), Time::ZERO);
    put_head(&mut body, kind, StreamId(0), Time::ZERO, &mut last);
    put_byte_string(&mut body, &crate::policy::encode_json(value));
    body
}
