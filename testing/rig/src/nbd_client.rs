//! NBD client with one request at a time and without retries. It distinguishes a server that has
//! ended from one that replied with an error.
//!
//! Protocol: <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, fixed newstyle
//! handshake, simple replies.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Time limit of a request, generous because the machine may be loaded.
const PATIENCE: Duration = Duration::from_secs(120);

const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Fixed newstyle, and no zeros after `NBD_OPT_EXPORT_NAME`.
const CLIENT_FLAGS: u32 = 3;
const OPTION_GO: u32 = 7;
const INFO_BLOCK_SIZE: u16 = 3;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
/// Maximum length of a reply to an option in bytes.
const OPTION_REPLY_MAX: u32 = 4096;

const COMMAND_READ: u16 = 0;
const COMMAND_WRITE: u16 = 1;
const COMMAND_FLUSH: u16 = 3;
const COMMAND_TRIM: u16 = 4;
const COMMAND_WRITE_ZEROES: u16 = 6;
/// The write is durable when it completes.
const FLAG_FUA: u16 = 1;

/// Reason why a request failed.
#[derive(Debug)]
pub enum NbdFailure {
    /// The connection ended; the outcome of the request is unknown.
    Gone(io::Error),
    /// The server replied with this error number.
    Refused(u32),
}

impl std::fmt::Display for NbdFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone(error) => write!(f, "the server has ended: {error}"),
            Self::Refused(code) => write!(f, "the server answered with error {code}"),
        }
    }
}

impl std::error::Error for NbdFailure {}

impl From<io::Error> for NbdFailure {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// Connection to one disk.
#[derive(Debug)]
pub struct NbdClient {
    stream: UnixStream,
    requests: u64,
}

impl NbdClient {
    /// Connects to the disk `name` at a socket.
    ///
    /// # Errors
    /// No server listens there, or the disk is not offered.
    pub fn connect(socket: &str, name: &str) -> Result<Self> {
        let mut stream = UnixStream::connect(socket).with_context(|| socket.to_owned())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        ensure!(greeting[..8] == *b"NBDMAGIC" && greeting[8..16] == *OPTION_MAGIC, "no NBD server");
        let mut request = CLIENT_FLAGS.to_be_bytes().to_vec();
        request.extend(OPTION_MAGIC);
        request.extend(OPTION_GO.to_be_bytes());
        let length = u32::try_from(name.len())?;
        // The name, and one information request: disks with 4 KiB sectors require it.
        request.extend((length + 8).to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(name.as_bytes());
        request.extend([0, 1]);
        request.extend(INFO_BLOCK_SIZE.to_be_bytes());
        stream.write_all(&request)?;
        loop {
            let mut head = [0; 20];
            stream.read_exact(&mut head)?;
            let number = |offset: usize| {
                u32::from_be_bytes(head[offset..offset + 4].try_into().unwrap_or([0; 4]))
            };
            ensure!(head[..8] == OPTION_REPLY_MAGIC.to_be_bytes(), "no reply to an option");
            let (kind, length) = (number(12), number(16));
            ensure!(length <= OPTION_REPLY_MAX, "a reply of {length} bytes to an option");
            let mut body = vec![0; length as usize];
            stream.read_exact(&mut body)?;
            match kind {
                REPLY_ACK => return Ok(Self { stream, requests: 0 }),
                REPLY_INFO => {}
                _ => {
                    bail!("disk {name} is refused ({kind:#x}): {}", String::from_utf8_lossy(&body))
                }
            }
        }
    }

    /// Returns the same client without a time limit for replies.
    #[must_use]
    pub fn patient(self) -> Self {
        // Removing the timeout cannot fail.
        let _ = self.stream.set_read_timeout(None);
        self
    }

    /// Reads `to.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// See [`NbdFailure`].
    pub fn read(&mut self, offset: u64, target: &mut [u8]) -> Result<(), NbdFailure> {
        self.send_request(COMMAND_READ, 0, offset, target.len() as u64, &[])?;
        Ok(self.stream.read_exact(target)?)
    }

    /// Writes `payload`; durably if `is_durable`.
    ///
    /// # Errors
    /// See [`NbdFailure`].
    pub fn write(
        &mut self,
        offset: u64,
        payload: &[u8],
        is_durable: bool,
    ) -> Result<(), NbdFailure> {
        let flags = if is_durable { FLAG_FUA } else { 0 };
        self.send_request(COMMAND_WRITE, flags, offset, payload.len() as u64, payload)
    }

    /// Zeros a range, which may be deallocated.
    ///
    /// # Errors
    /// See [`NbdFailure`].
    pub fn write_zeroes(&mut self, offset: u64, length: u64) -> Result<(), NbdFailure> {
        self.send_request(COMMAND_WRITE_ZEROES, 0, offset, length, &[])
    }

    /// Discards a range, whose contents are undefined afterwards.
    ///
    /// # Errors
    /// See [`NbdFailure`].
    pub fn discard(&mut self, offset: u64, length: u64) -> Result<(), NbdFailure> {
        self.send_request(COMMAND_TRIM, 0, offset, length, &[])
    }

    /// Makes all completed writes durable.
    ///
    /// # Errors
    /// See [`NbdFailure`].
    pub fn flush(&mut self) -> Result<(), NbdFailure> {
        self.send_request(COMMAND_FLUSH, 0, 0, 0, &[])
    }

    fn send_request(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u64,
        payload: &[u8],
    ) -> Result<(), NbdFailure> {
        self.requests += 1;
        let mut request = REQUEST_MAGIC.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(self.requests.to_be_bytes());
        request.extend(offset.to_be_bytes());
        let length = u32::try_from(length).map_err(io::Error::other)?;
        request.extend(length.to_be_bytes());
        request.extend(payload);
        self.stream.write_all(&request)?;
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        if head[..4] != SIMPLE_REPLY_MAGIC.to_be_bytes() || head[8..] != self.requests.to_be_bytes()
        {
            return Err(io::Error::other("no reply to the request").into());
        }
        match u32::from_be_bytes([head[4], head[5], head[6], head[7]]) {
            0 => Ok(()),
            code => Err(NbdFailure::Refused(code)),
        }
    }
}
