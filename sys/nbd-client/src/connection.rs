//! Connection to an NBD server, usable by many threads.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use suimon_image::ByteRange;
use suimon_nbd::{
    ClientCommand, ClientRequest, ExportRange as NbdRange, ExtentState, RemoteExport,
};
use suimon_ports::{
    Allocation, AllocationExtent, DISK_CLIENT_REQUEST_BYTES_MAX, DiskClient, DiskClientError,
    ThreadInit,
};

use crate::handshake::negotiate_export;
use crate::in_flight::{InFlight, Request};
use crate::replies::NbdReplyReader;

/// Connection to one export of a server. Dropping it closes the connection.
pub struct NbdConnection {
    export: RemoteExport,
    socket: Arc<OwnedFd>,
    /// Locked while a request is sent.
    sending: Mutex<()>,
    in_flight: Arc<InFlight>,
    thread: Option<JoinHandle<()>>,
}

impl NbdConnection {
    /// Opens the export `name` on a connected stream socket; for reading and writing if `writes` is
    /// true, otherwise for reading. The thread that reads replies calls `on_start` first. Blocks
    /// for at most 10 s.
    ///
    /// # Errors
    /// The server lacks a required feature, has no such export, or does not reply in time.
    pub fn connect(
        socket: OwnedFd,
        name: &str,
        writes: bool,
        on_start: &ThreadInit,
    ) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, false)?;
        let (export, unparsed) = negotiate_export(&socket, name, writes)?;
        let (socket, in_flight) = (Arc::new(socket), Arc::new(InFlight::default()));
        let allocation = export.allocation_context_id;
        let replies = NbdReplyReader {
            socket: Arc::clone(&socket),
            in_flight: Arc::clone(&in_flight),
            allocation_context_id: allocation,
            unparsed,
        };
        let (ready, is_ready) = sync_channel(1);
        let (on_start, reader_in_flight) = (Arc::clone(on_start), Arc::clone(&in_flight));
        let thread =
            std::thread::Builder::new().name("nbd-replies".to_owned()).spawn(move || {
                let started = on_start();
                let may_go_on = started.is_ok();
                let _ = ready.send(started);
                if may_go_on {
                    let reason = replies.run();
                    tracing::debug!(reason, "a connection to an NBD server ended");
                    reader_in_flight.end(&reason);
                }
            })?;
        let connection =
            Self { export, socket, sending: Mutex::default(), in_flight, thread: Some(thread) };
        is_ready.recv().map_err(io::Error::other)??;
        Ok(connection)
    }

    fn send_request(
        &self,
        command: ClientCommand,
        request: Request,
        payload: &[u8],
    ) -> Result<Request, DiskClientError> {
        let cookie = self.in_flight.register(request)?;
        let header = ClientRequest { cookie, command }.encode();
        let result = match header {
            Some(header) => {
                let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
                self.send(&header).and_then(|()| self.send(payload))
            }
            None => Err(Errno::INVAL),
        };
        if let Err(errno) = result {
            // A part may have been sent, so nothing can be sent after it.
            self.in_flight.end(&format!("the connection failed: {errno}"));
            self.disconnect();
        }
        self.in_flight.wait(cookie)
    }

    fn send(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

impl DiskClient for NbdConnection {
    fn size_bytes(&self) -> u64 {
        self.export.size
    }

    fn sector_bytes(&self) -> u32 {
        self.export.block_sizes.min
    }

    fn read(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), DiskClientError> {
        let mut buffer = std::mem::take(bytes);
        buffer.resize(length(range.len())?, 0);
        let request = Request { offset: range.offset(), bytes: buffer, ..Request::default() };
        *bytes = self.send_request(ClientCommand::Read(nbd(range)?), request, &[])?.bytes;
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskClientError> {
        let length = bytes.len() as u64;
        self::length(length)?;
        let command = ClientCommand::Write(NbdRange { offset, length });
        self.send_request(command, Request::default(), bytes).map(drop)
    }

    fn write_zeroes(&self, range: ByteRange) -> Result<(), DiskClientError> {
        self.send_request(ClientCommand::WriteZeroes(nbd(range)?), Request::default(), &[])
            .map(drop)
    }

    fn allocation(&self, range: ByteRange) -> Result<Vec<AllocationExtent>, DiskClientError> {
        if self.export.allocation_context_id.is_none() {
            return Ok(vec![AllocationExtent { allocation: Allocation::Data, len: range.len() }]);
        }
        let request = Request { offset: range.offset(), ..Request::default() };
        let reported =
            self.send_request(ClientCommand::BlockStatus(nbd(range)?), request, &[])?.extents;
        if reported.is_empty() {
            let text = "the server returned no allocation status of a range";
            return Err(DiskClientError::RequestFailed(text.to_owned()));
        }
        let mut remaining = range.len();
        let mut extents = Vec::with_capacity(reported.len());
        for extent in reported {
            let len = extent.length.min(remaining);
            remaining = remaining.saturating_sub(len);
            // A hole that does not read as zeros must be read.
            let is_hole = extent.state.has(ExtentState::ZERO);
            let allocation = if is_hole { Allocation::Hole } else { Allocation::Data };
            if len > 0 {
                extents.push(AllocationExtent { allocation, len });
            }
        }
        Ok(extents)
    }

    fn flush(&self) -> Result<(), DiskClientError> {
        self.send_request(ClientCommand::Flush, Request::default(), &[]).map(drop)
    }

    fn disconnect(&self) {
        self.in_flight.end("the connection was closed locally");
        // A socket that is no longer connected has ended already.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

impl Drop for NbdConnection {
    fn drop(&mut self) {
        let goodbye = ClientRequest { cookie: 0, command: ClientCommand::Disconnect };
        // Non-blocking: the server may not be reading.
        if let Some(header) = goodbye.encode() {
            let _ = send(&self.socket, &header, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        self.disconnect();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Converts the length of a request in bytes.
///
/// # Errors
/// The length exceeds [`DISK_CLIENT_REQUEST_BYTES_MAX`].
fn length(bytes: u64) -> Result<usize, DiskClientError> {
    let len =
        (bytes <= DISK_CLIENT_REQUEST_BYTES_MAX).then(|| usize::try_from(bytes).ok()).flatten();
    let text = || format!("a request of {bytes} bytes exceeds the limit of one request");
    len.ok_or_else(|| DiskClientError::RequestFailed(text()))
}

/// Converts a range to the protocol's type.
fn nbd(range: ByteRange) -> Result<NbdRange, DiskClientError> {
    let (offset, length) = (range.offset(), range.len());
    match u32::try_from(length) {
        Ok(_) => Ok(NbdRange { offset, length }),
        Err(_) => Err(DiskClientError::RequestFailed(format!(
            "a length of {length} bytes is 4 GiB or more"
        ))),
    }
}
