//! Log of metadata changes ([MS-VHDX] 2.3): metadata is written to the log before it is written in
//! place.

mod entry;
mod replay;
mod writer;

pub(crate) use entry::{LogEntry, Page};
pub(crate) use replay::{Replay, read_log};
pub(crate) use writer::LogWriter;
