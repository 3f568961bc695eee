//! Log of metadata changes ([MS-VHDX] 2.3): metadata is written to the log before it is written in
//! place.

mod entry;
mod replay;
mod writer;

pub(crate) use entry::{Entry, Page};
pub(crate) use replay::{Replay, find};
pub(crate) use writer::Writer;
