//! Simple NBD server of disks in memory: one thread per connection, one request at a time.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use suimon_nbd::{
    Chunk, ChunkKind, Export, ExportRange, ExtentState, Framing, GREETING, NbdCommand, NbdError,
    NegotiatedParameters, ParsedHeader, REPLY_BYTES_MAX, Request, RequestParser, ServerHandshake,
    ServerStep, StatusExtent, TlsMode,
};
use tempfile::TempDir;

/// Allocation unit of the disk in bytes.
pub(crate) const UNIT_BYTES: u64 = 4096;

/// Disk in memory with an allocation map. Unallocated units read as zeroes.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) allocated: Vec<bool>,
}

impl Disk {
    pub(crate) fn new(size: u64) -> Self {
        let units = size.div_ceil(UNIT_BYTES);
        Self { bytes: vec![0; size as usize], allocated: vec![false; units as usize] }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        self.bytes[offset as usize..][..data.len()].copy_from_slice(data);
        let last = (offset + data.len() as u64 - 1) / UNIT_BYTES;
        self.allocated[(offset / UNIT_BYTES) as usize..=last as usize].fill(true);
    }

    fn zero(&mut self, range: ExportRange, allocate: bool) {
        let end = range.offset + range.length;
        self.bytes[range.offset as usize..end as usize].fill(0);
        let full_units = range.offset.div_ceil(UNIT_BYTES)..end / UNIT_BYTES;
        for unit in full_units {
            self.allocated[unit as usize] = allocate;
        }
    }

    /// Returns the extents of the disk from `offset` on.
    pub(crate) fn extents(&self, offset: u64) -> impl Iterator<Item = StatusExtent> {
        let size = self.bytes.len() as u64;
        let mut index = offset;
        std::iter::from_fn(move || {
            let allocated = self.allocated.get((index / UNIT_BYTES) as usize)?;
            let end = (index / UNIT_BYTES + 1) * UNIT_BYTES;
            let length = end.min(size).checked_sub(index).filter(|length| *length > 0)?;
            index += length;
            let hole = ExtentState::HOLE | ExtentState::ZERO;
            Some(StatusExtent { length, state: if *allocated { ExtentState::DATA } else { hole } })
        })
    }
}

/// Statistics of what clients did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) framings: Vec<Framing>,
    pub(crate) refused_options: Vec<String>,
    pub(crate) refused_requests: Vec<String>,
    pub(crate) commands: Vec<NbdCommand>,
    pub(crate) holes_sent: usize,
    pub(crate) with_allocation: usize,
    /// Errors that ended connections.
    pub(crate) cut: Vec<String>,
}

struct Shared {
    framing_max: Framing,
    exports: Vec<Export>,
    disks: Mutex<Vec<Disk>>,
    seen: Mutex<Seen>,
    ends: AtomicBool,
}

/// NBD server that runs until it is dropped.
pub(crate) struct Server {
    folder: TempDir,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(framing_max: Framing, exports: Vec<(Export, Disk)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("nbd")).unwrap();
        let (exports, disks) = exports.into_iter().unzip();
        let shared = Arc::new(Shared {
            framing_max,
            exports,
            disks: Mutex::new(disks),
            seen: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let serving = shared.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.ends.load(Ordering::Relaxed) {
                    return;
                }
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream.unwrap()));
            }
        });
        Self { folder, shared, thread: Some(thread) }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("nbd")
    }

    /// Returns the NBD URI of an export.
    pub(crate) fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket().display())
    }

    /// Returns true if each client negotiated at least structured replies where the server permits
    /// them, and at most the server's limit.
    pub(crate) fn framings_are_the_most(&self) -> bool {
        let max = self.shared.framing_max;
        let min = max.min(Framing::Structured);
        self.seen().framings.iter().all(|framing| (min..=max).contains(framing))
    }

    /// Returns a folder for temporary files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn disk(&self, index: usize) -> Disk {
        self.shared.disks.lock().unwrap()[index].clone()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        // Wakes the accept loop.
        drop(UnixStream::connect(self.socket()));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Shared {
    fn serve(&self, mut stream: UnixStream) {
        let mut unread = Vec::new();
        let result = self.shake_hands(&mut stream, &mut unread).and_then(|negotiated| {
            negotiated.map_or(Ok(()), |negotiated| self.transmit(&mut stream, unread, &negotiated))
        });
        match result {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.seen.lock().unwrap().cut.push(error.to_string());
            }
            // Clients close the connection when finished.
            _ => {}
        }
    }

    fn shake_hands(
        &self,
        stream: &mut UnixStream,
        unread: &mut Vec<u8>,
    ) -> io::Result<Option<NegotiatedParameters>> {
        let mut handshake = ServerHandshake::new(TlsMode::Off).with_framing_max(self.framing_max);
        let mut output = GREETING.to_vec();
        loop {
            stream.write_all(&output)?;
            output.clear();
            let result = handshake.handle_bytes(&self.exports[..], unread, &mut output);
            let progress = result.map_err(|error| invalid(&error))?;
            unread.drain(..progress.consumed);
            match progress.step {
                ServerStep::NeedsBytes => {
                    let mut buffer = [0; 4096];
                    match stream.read(&mut buffer)? {
                        0 => return Ok(None),
                        bytes => unread.extend_from_slice(&buffer[..bytes]),
                    }
                }
                ServerStep::OptionAcknowledged => {}
                ServerStep::OptionRejected(error) => {
                    self.seen.lock().unwrap().refused_options.push(error.to_string());
                }
                ServerStep::StartTls => return Err(invalid(&"TLS is not configured")),
                ServerStep::Aborted => {
                    stream.write_all(&output)?;
                    return Ok(None);
                }
                ServerStep::Negotiated(negotiated) => {
                    stream.write_all(&output)?;
                    let mut observed = self.seen.lock().unwrap();
                    observed.framings.push(negotiated.framing);
                    observed.with_allocation += usize::from(negotiated.base_allocation);
                    return Ok(Some(*negotiated));
                }
            }
        }
    }

    fn transmit(
        &self,
        stream: &mut UnixStream,
        unread: Vec<u8>,
        negotiated: &NegotiatedParameters,
    ) -> io::Result<()> {
        let transmission = RequestParser::new(negotiated);
        let index = self.exports.iter().position(|export| *export == negotiated.export).unwrap();
        let mut input = io::Cursor::new(unread).chain(stream.try_clone()?);
        let mut header = vec![0; transmission.header_bytes()];
        loop {
            input.read_exact(&mut header)?;
            let incoming = transmission.parse_header(&header).map_err(|error| invalid(&error))?;
            let mut head = [0; REPLY_BYTES_MAX];
            match incoming {
                ParsedHeader::Incomplete => unreachable!("the header is all there"),
                ParsedHeader::Disconnect => return Ok(()),
                ParsedHeader::Rejected(refused) => {
                    io::copy(
                        &mut (&mut input).take(refused.payload_bytes.into()),
                        &mut io::sink(),
                    )?;
                    let used = refused.encode(&mut head).unwrap();
                    self.seen.lock().unwrap().refused_requests.push(refused.error.to_string());
                    stream.write_all(&head[..used])?;
                }
                ParsedHeader::Request(request) => {
                    let mut payload = vec![0; request.payload_bytes as usize];
                    input.read_exact(&mut payload)?;
                    match transmission.parse_contexts(request, &payload) {
                        Ok(request) => {
                            let mut disks = self.disks.lock().unwrap();
                            let reply =
                                self.carry_out(&transmission, &mut disks[index], request, &payload);
                            drop(disks);
                            stream.write_all(&reply)?;
                        }
                        Err(refused) => {
                            let used = refused.encode(&mut head).unwrap();
                            stream.write_all(&head[..used])?;
                        }
                    }
                }
            }
        }
    }

    fn carry_out(
        &self,
        transmission: &RequestParser,
        disk: &mut Disk,
        request: Request,
        payload: &[u8],
    ) -> Vec<u8> {
        let mut observed = self.seen.lock().unwrap();
        observed.commands.push(request.command);
        let reply_to = request.reply_to;
        match request.command {
            NbdCommand::Read { range, dont_fragment } => {
                let mut reply = Vec::new();
                let extents = disk.extents(range.offset);
                for chunk in transmission.split_read_reply(reply_to, range, dont_fragment, extents)
                {
                    observed.holes_sent += usize::from(chunk.kind() == ChunkKind::Hole);
                    put_chunk(&mut reply, &chunk, &disk.bytes);
                }
                return reply;
            }
            NbdCommand::BlockStatus { range, first_only } => {
                let mut out = vec![0; 64 * 1024];
                let mut reply = transmission
                    .begin_block_status_reply(reply_to, range, first_only, &mut out)
                    .unwrap();
                for extent in disk.extents(range.offset) {
                    if !reply.push(extent) {
                        break;
                    }
                }
                let used = reply.finish();
                out.truncate(used);
                return out;
            }
            NbdCommand::Write { range, .. } => disk.write(range.offset, payload),
            NbdCommand::Trim { range, .. } => disk.zero(range, false),
            NbdCommand::WriteZeroes { fails_if_slow: true, no_hole: true, .. } => {
                let mut out = vec![0; REPLY_BYTES_MAX];
                let used = reply_to.encode_error(
                    NbdError::Notsup,
                    "zeroes take as long as data",
                    &mut out,
                );
                out.truncate(used.unwrap());
                return out;
            }
            NbdCommand::WriteZeroes { range, no_hole, .. } => disk.zero(range, no_hole),
            NbdCommand::Flush | NbdCommand::Cache { .. } => {}
            NbdCommand::BlockStatusWithPayload { .. } => unreachable!("its contexts were read"),
        }
        let mut out = vec![0; REPLY_BYTES_MAX];
        let used = reply_to.encode_success(&mut out).unwrap();
        out.truncate(used);
        out
    }
}

fn put_chunk(reply: &mut Vec<u8>, chunk: &Chunk, disk: &[u8]) {
    let mut header = [0; REPLY_BYTES_MAX];
    let used = chunk.encode_head(&mut header).unwrap();
    reply.extend_from_slice(&header[..used]);
    if chunk.kind() == ChunkKind::Data {
        reply.extend_from_slice(&disk[chunk.offset() as usize..][..chunk.length() as usize]);
    }
}

fn invalid(error: &impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
