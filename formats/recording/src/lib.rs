//! Recordings: what policies were told, when, and what they decided; and the same policies
//! driven by that again.
//!
//! - [`Recorded`] is a policy as a plane has it. Where nothing is recorded it is the policy and one
//!   look at an [`Option`]; else each call goes to a [`Tape`], which hands what it has to a [`Sink`].
//! - [`open`], [`block_header`], [`block_body`] and [`records`] read a file that others may have
//!   written.
//! - [`Machine`] is a policy of a recording that is driven again: each [`Machine::step`] gives the
//!   decision that the policy makes now, to be compared with the one that was recorded.
//!
//! # The file
//!
//! Numbers are little-endian; *varint* is LEB128 of up to ten bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `SUIMONRC` |
//! | 4 | version, [`VERSION`] |
//! | | blocks up to the end of the file |
//!
//! A block is the length of its body (4, at most [`BLOCK_BYTES_MAX`]), the body's CRC-32C (4), and the body:
//! records. A record is its kind (1), its stream (varint), by how many nanoseconds it is later than
//! the record before it in the block (zigzag varint; the first counts from 0), and:
//!
//! | kind | name | then |
//! |---|---|---|
//! | 0 | about | text of JSON ([`About`]): who recorded |
//! | 1 | begin | the policy's [`Kind`] (1), its name and what it begins with: a stream begins |
//! | 2 | step | what it was told, what it decided |
//! | 3 | lost | why ([`Loss`], 1): nothing of the stream follows |
//! | 4 | names | text of JSON ([`Names`]): what numbers are called from now on |
//!
//! Names, texts and bodies have their length before them (varint). Bodies are JSON, but for those of
//! storage QoS, which `scheduler.rs` tells. Times are those of the processors' clock.
//!
//! Streams are independent of each other: their records are in order, those of two streams need not be.
//! A file that ends within a block is that of a daemon that was killed; what is before it holds.
//!
//! What it does not do: it opens no file and has no thread. Which frame goes where is not recorded: the
//! distribution decides it, which is.
//!
//! Invariants
//! - Any bytes give records or a typed error with its offset, never a panic, and take no more memory
//!   than their block and what the policies take that they begin.
//! - The same recording gives the same decisions.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod bytes;
mod cluster;
mod differ;
mod error;
mod file;
mod kind;
mod lacp;
mod machine;
mod policy;
mod record;
mod recorded;
mod scheduler;
mod scheduler_code;
mod scheduler_machine;
mod tape;
mod team;
mod vmq;

pub use cluster::{AllocatorInput, MemberBirth, MemberInput};
pub use differ::Difference;
pub use error::{Fault, RecordingError};
pub use file::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, FILE_HEADER_BYTES, MAGIC, VERSION,
    block_body, block_header, encode_block, file_header, open, records,
};
pub use kind::{Kind, Loss, StreamId};
pub use lacp::{LacpDecision, LacpInput};
pub use machine::{Machine, begin};
pub use policy::{Policy, decode};
pub use record::{About, Names, Record, encode_about, encode_lost, encode_names};
pub use recorded::Recorded;
pub use scheduler_code::{StoreInput, decode_store_input};
pub use scheduler_machine::decode_store_birth;
pub use tape::{Sink, Tape};
pub use team::{TeamDecision, TeamInput};
pub use vmq::{VmqBirth, VmqDecision, VmqInput};
