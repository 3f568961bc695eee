//! The log: what is written to metadata is written there first ([MS-VHDX] 2.2.3, 2.3).

mod entry;
mod replay;
mod writer;

pub(crate) use entry::Entry;
pub(crate) use replay::{Replay, find};
pub(crate) use writer::{Page, Writer};
