//! Recording (`--record`): inputs and decisions of policies, written to a file by a separate
//! thread.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use suimon_recording::{
    LossReason, RecordSink, RecordingSource, StreamId, encode_block, encode_ended_early,
    encode_origin, file_header,
};

/// Largest number of bytes queued for writing. Further records are lost, and the recording states
/// the loss.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Largest number of streams whose loss is not recorded yet. If more lose records, the recording of
/// all streams ends.
const OVERFLOWS_MAX: usize = 1024;
/// Stream of a loss mark that applies to all streams.
const ALL_STREAMS: StreamId = StreamId(0);
/// Longest time for which a record stays in the daemon's write buffer.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// File of a recording, opened before confinement prohibits opening files.
pub(crate) struct RecordingFile {
    path: PathBuf,
    file: File,
    bytes_max: u64,
}

impl RecordingFile {
    /// Creates the file, or truncates it.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn create(path: &Path, bytes_max: u64) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).with_context(|| format!("--record {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file, bytes_max })
    }

    /// Starts recording.
    ///
    /// # Errors
    /// The file cannot be written, or no thread can be started.
    pub(crate) fn begin(self, source: &RecordingSource) -> Result<Recorder> {
        let context = || format!("--record {}", self.path.display());
        let (file, bytes_max) = (BufWriter::new(self.file), self.bytes_max);
        let mut out = OutputFile { into: file, bytes: 0, bytes_max, is_complete: false };
        out.write(&file_header()).with_context(context)?;
        out.write(&encode_block(&encode_origin(source))).with_context(context)?;
        out.into.flush().with_context(context)?;
        let (sender, receiver) = channel();
        let inlet = Arc::new(RecordQueue {
            sender: Mutex::new(sender),
            streams: AtomicU32::new(1),
            waiting: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            behind: Mutex::default(),
        });
        let (writer_inlet, path) = (Arc::clone(&inlet), self.path.clone());
        let write = move || {
            let result = writer_inlet.write_all(&receiver, &mut out);
            writer_inlet.is_over.store(true, Relaxed);
            if let Err(error) = result.and_then(|()| out.into.flush()) {
                tracing::error!(path = %path.display(), %error, "the recording has ended");
            }
        };
        let thread = Builder::new().name("suimon-record".to_owned()).spawn(write);
        tracing::info!(path = %self.path.display(), "recording decisions of policies");
        Ok(Recorder { inlet, thread: thread.context("--record")? })
    }
}

/// Recording in progress with its thread.
pub(crate) struct Recorder {
    inlet: Arc<RecordQueue>,
    thread: JoinHandle<()>,
}

impl Recorder {
    /// Returns the sink for policies' records.
    pub(crate) fn sink(&self) -> Arc<dyn RecordSink> {
        self.inlet.clone()
    }

    /// Writes queued records and ends the recording.
    pub(crate) fn end(self) {
        self.inlet.send(Message::End);
        if self.thread.join().is_err() {
            tracing::error!("the thread of the recording panicked");
        }
    }
}

/// Message to the recording thread.
enum Message {
    Block(Vec<u8>),
    /// Streams of records exceeded [`WAITING_BYTES_MAX`] and lost records. At most one is queued.
    Overflow,
    End,
}

struct RecordQueue {
    sender: Mutex<Sender<Message>>,
    /// Number of the next stream, from 0.
    streams: AtomicU32,
    /// Number of bytes queued for writing.
    waiting: AtomicUsize,
    /// True if recording has ended, so that further records are ignored.
    is_over: AtomicBool,
    /// Streams that have lost records and have no loss mark in the recording yet, or
    /// [`ALL_STREAMS`] alone; at most [`OVERFLOWS_MAX`].
    behind: Mutex<BTreeSet<StreamId>>,
}

impl RecordQueue {
    fn send(&self, message: Message) -> bool {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(message).is_ok()
    }

    fn write_all(&self, receiver: &Receiver<Message>, out: &mut OutputFile) -> io::Result<()> {
        let mut flush_at = Instant::now() + FLUSH_EVERY;
        loop {
            // The buffer is flushed here, so that this also happens while records arrive without a
            // pause.
            if flush_at <= Instant::now() {
                out.into.flush()?;
                flush_at = Instant::now() + FLUSH_EVERY;
            }
            match receiver.recv_timeout(FLUSH_EVERY) {
                Ok(Message::Block(body)) => {
                    self.waiting.fetch_sub(body.len(), Relaxed);
                    out.write_or_complete(&encode_block(&body))?;
                }
                Ok(Message::Overflow) => self.write_overflows(out)?,
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if out.is_complete {
                self.is_over.store(true, Relaxed);
            }
        }
    }

    /// Adds a stream that has lost records. Returns true if a message to the writer is necessary.
    fn add_overflow(&self, stream: StreamId) -> bool {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if behind.contains(&ALL_STREAMS) {
            return false;
        }
        let is_first = behind.is_empty();
        if behind.len() >= OVERFLOWS_MAX && !behind.contains(&stream) {
            behind.clear();
            behind.insert(ALL_STREAMS);
            self.is_over.store(true, Relaxed);
        } else {
            behind.insert(stream);
        }
        is_first
    }

    /// Writes a loss mark for each stream that lost records, into the recording.
    fn write_overflows(&self, out: &mut OutputFile) -> io::Result<()> {
        let overflows =
            std::mem::take(&mut *self.behind.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in overflows {
            tracing::warn!(stream = stream.0, "the recording ended: the disk is too slow for it");
            out.write_or_complete(&encode_block(&encode_ended_early(
                stream,
                LossReason::Overload,
            )))?;
            out.is_complete |= stream == ALL_STREAMS;
        }
        Ok(())
    }
}

impl RecordSink for RecordQueue {
    fn allocate_stream_id(&self) -> StreamId {
        StreamId(self.streams.fetch_add(1, Relaxed))
    }

    fn accept_block(&self, stream: StreamId, body: Vec<u8>) -> bool {
        if self.is_over.load(Relaxed) {
            return false;
        }
        let waiting = self.waiting.fetch_add(body.len(), Relaxed) + body.len();
        if waiting > WAITING_BYTES_MAX {
            self.waiting.fetch_sub(body.len(), Relaxed);
            // Records without a policy, such as names, have no stream that could end.
            if stream != ALL_STREAMS && self.add_overflow(stream) {
                self.send(Message::Overflow);
            }
            return false;
        }
        self.send(Message::Block(body))
    }
}

/// Output file, with the number of bytes written and the limit.
struct OutputFile {
    into: BufWriter<File>,
    bytes: u64,
    bytes_max: u64,
    /// True if the file contains a loss mark of all streams. Nothing is written afterwards.
    is_complete: bool,
}

impl OutputFile {
    /// Writes a block. If the limit does not permit it, writes a loss mark of all streams instead.
    fn write_or_complete(&mut self, block: &[u8]) -> io::Result<()> {
        if self.is_complete {
            return Ok(());
        }
        if self.bytes + block.len() as u64 <= self.bytes_max {
            return self.write(block);
        }
        tracing::warn!(max = self.bytes_max, "the recording reached its size limit");
        self.is_complete = true;
        self.write(&encode_block(&encode_ended_early(ALL_STREAMS, LossReason::Full)))
    }

    fn write(&mut self, block: &[u8]) -> io::Result<()> {
        self.bytes += block.len() as u64;
        self.into.write_all(block)
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
