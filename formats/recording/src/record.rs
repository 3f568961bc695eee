//! Records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use crate::bytes::{Bytes, put, put_piece, put_signed};
use crate::{Fault, Kind, Loss, StreamId};

const ABOUT: u8 = 0;
const BEGIN: u8 = 1;
const STEP: u8 = 2;
const LOST: u8 = 3;
const NAMES: u8 = 4;

/// Who recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Version of the daemon.
    pub version: String,
    /// The host's name.
    pub host: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub began_unix_ms: u64,
}

/// What numbers are called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Of disks.
    pub disks: BTreeMap<u32, String>,
    /// Of NICs, uplinks and teams, by port.
    pub ports: BTreeMap<u32, String>,
    /// Of stores.
    pub stores: BTreeMap<u32, String>,
}

/// A record, as it is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Text of an [`About`].
    About(&'a [u8]),
    /// A policy begins.
    Begin {
        /// Its stream from now on.
        stream: StreamId,
        /// When.
        at: Time,
        /// Which policy.
        kind: Kind,
        /// What it is called: `wan`.
        name: &'a str,
        /// What it begins with.
        birth: &'a [u8],
    },
    /// It was told something.
    Step {
        /// Whose.
        stream: StreamId,
        /// When.
        at: Time,
        /// What it was told.
        input: &'a [u8],
        /// What it decided.
        decision: &'a [u8],
    },
    /// Nothing more of a stream is recorded.
    Lost {
        /// Whose.
        stream: StreamId,
        /// Why.
        loss: Loss,
    },
    /// Text of [`Names`].
    Names(&'a [u8]),
}

/// Reads a record; `at` is when the one before it was.
pub(crate) fn decode_record<'a>(bytes: &mut Bytes<'a>, at: &mut u64) -> Result<Record<'a>, Fault> {
    let kind = bytes.byte()?;
    let stream = StreamId(bytes.number_u32()?);
    *at = at.wrapping_add_signed(bytes.signed()?);
    let time = Time::from_ns(*at);
    Ok(match kind {
        ABOUT => Record::About(bytes.piece()?),
        BEGIN => {
            let kind = Kind::of(bytes.byte()?)?;
            let name = core::str::from_utf8(bytes.piece()?).map_err(|_| Fault::NotText)?;
            Record::Begin { stream, at: time, kind, name, birth: bytes.piece()? }
        }
        STEP => Record::Step { stream, at: time, input: bytes.piece()?, decision: bytes.piece()? },
        LOST => Record::Lost { stream, loss: Loss::of(bytes.byte()?)? },
        NAMES => Record::Names(bytes.piece()?),
        other => return Err(Fault::UnknownRecord(other)),
    })
}

/// Adds what every record begins with; `last` is when the one before it was.
fn put_head(out: &mut Vec<u8>, kind: u8, stream: StreamId, at: Time, last: &mut Time) {
    out.push(kind);
    put(out, u64::from(stream.0));
    put_signed(out, at.as_ns().wrapping_sub(last.as_ns()) as i64);
    *last = at;
}

pub(crate) fn put_begin(
    out: &mut Vec<u8>,
    (stream, at, last): (StreamId, Time, &mut Time),
    kind: Kind,
    name: &str,
    birth: &[u8],
) {
    put_head(out, BEGIN, stream, at, last);
    out.push(kind as u8);
    put_piece(out, name.as_bytes());
    put_piece(out, birth);
}

pub(crate) fn put_step(
    out: &mut Vec<u8>,
    (stream, at, last): (StreamId, Time, &mut Time),
    input: &[u8],
    decision: &[u8],
) {
    put_head(out, STEP, stream, at, last);
    put_piece(out, input);
    put_piece(out, decision);
}

pub(crate) fn put_lost(
    out: &mut Vec<u8>,
    (stream, at, last): (StreamId, Time, &mut Time),
    loss: Loss,
) {
    put_head(out, LOST, stream, at, last);
    out.push(loss as u8);
}

/// A block's body that says who recorded.
pub fn encode_about(about: &About) -> Vec<u8> {
    encode_text(ABOUT, about)
}

/// A block's body that says what numbers are called.
pub fn encode_names(names: &Names) -> Vec<u8> {
    encode_text(NAMES, names)
}

/// A block's body that says that nothing more of a stream is recorded.
pub fn encode_lost(stream: StreamId, loss: Loss) -> Vec<u8> {
    let (mut body, mut last) = (Vec::new(), Time::ZERO);
    put_lost(&mut body, (stream, Time::ZERO, &mut last), loss);
    body
}

fn encode_text(kind: u8, of: &impl Serialize) -> Vec<u8> {
    let (mut body, mut last) = (Vec::new(), Time::ZERO);
    put_head(&mut body, kind, StreamId(0), Time::ZERO, &mut last);
    put_piece(&mut body, &crate::policy::text(of));
    body
}
