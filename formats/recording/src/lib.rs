//! Recordings of policies: their inputs, times and decisions; and replay of recordings with the
//! current policies.
//!
//! - [`Recorded`] wraps a policy for use in a plane. Without recording its overhead is one check of
//!   an [`Option`]; with recording each call is written to a [`RecordBuffer`], which passes blocks
//!   to a [`RecordSink`].
//! - [`check_file_header`], [`decode_block_header`], [`verify_block_body`] and [`decode_records`]
//!   read an untrusted file.
//! - [`PolicyReplay`] replays a recorded policy: each [`PolicyReplay::step`] returns the policy's
//!   current decision for comparison with the recorded one.
//!
//! # File format
//!
//! Integers are little-endian; *varint* is LEB128 of up to ten bytes.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `SUIMONRC` |
//! | 4 | version, [`VERSION`] |
//! | | blocks up to the end of the file |
//!
//! A block consists of the length of its body (4 bytes, at most [`BLOCK_BYTES_MAX`]), the CRC-32C
//! of the body (4 bytes), and the body: a sequence of records. A record consists of its type (1
//! byte), its stream (varint), the time since the previous record of the block in nanoseconds
//! (zigzag varint; for the first record, the absolute time), and:
//!
//! | type | name | content |
//! |---|---|---|
//! | 0 | about | JSON ([`RecordingSource`]): origin of the recording |
//! | 1 | begin | [`PolicyKind`] of the policy (1 byte), name, initial state: start of a stream |
//! | 2 | step | input, decision |
//! | 3 | lost | reason ([`LossReason`], 1 byte): the stream ends early; stream 0: all streams |
//! | 4 | names | JSON ([`ObjectNames`]): names of numeric identifiers from here on |
//!
//! Names, texts and bodies are preceded by their length (varint). Bodies are JSON, except those of
//! storage QoS, which `scheduler.rs` specifies. Times are those of the workers' clock.
//!
//! Records of one stream are in order; records of different streams need not be. A file that ends
//! within a block results from a killed daemon; earlier blocks are valid.
//!
//! This crate opens no files and has no threads. Forwarding decisions for single frames are not
//! recorded: they follow from the distribution, which is recorded.
//!
//! Invariants
//! - Arbitrary bytes yield records or a typed error with its offset, never a panic. Memory use is
//!   bounded by the block and the policies it creates.
//! - Replaying the same recording yields the same decisions.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod begin_replay;
mod byte_codec;
mod cluster;
mod difference;
mod error;
mod file;
mod kind;
mod lacp;
mod layout;
mod policy;
mod record;
mod record_buffer;
mod recorded;
mod replay;
mod scheduler;
mod scheduler_encoding;
mod scheduler_replay;
mod team;
mod vmq;

pub use begin_replay::begin_replay;
pub use cluster::{AllocatorInput, MemberInitialState, MemberInput};
pub use difference::Difference;
pub use error::{RecordError, RecordingError};
pub use file::{
    BlockHeader, check_file_header, decode_block_header, decode_records, encode_block, file_header,
    verify_block_body,
};
pub use kind::{LossReason, PolicyKind, StreamId};
pub use lacp::{LacpDecision, LacpInput};
pub use layout::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, FILE_HEADER_BYTES, MAGIC, VERSION};
pub use policy::{Policy, decode_json};
pub use record::{
    ObjectNames, Record, RecordingSource, encode_ended_early, encode_names, encode_origin,
};
pub use record_buffer::{RecordBuffer, RecordSink};
pub use recorded::Recorded;
pub use replay::PolicyReplay;
pub use scheduler_encoding::{StoreInput, decode_store_input};
pub use scheduler_replay::decode_store_initial_state;
pub use team::{TeamDecision, TeamInput};
pub use vmq::{VmqDecision, VmqInitialState, VmqInput};
