//! Server side of the fixed newstyle handshake (NBD specification, section "Handshake").

mod error;
mod export_lookup;
mod info;
mod meta_context;
mod negotiated;
mod option_code;
mod option_data_reader;
mod option_error;
mod option_processing;
mod option_reply;

use core::mem;

use self::option_error::OptionError as Refusal;
use crate::export_list::ExportList;
use crate::framing::Framing;
use crate::handshake::negotiated::NegotiatedState;
use crate::handshake::option_data_reader::OPTION_HEADER_BYTES;

pub use self::error::HandshakeError;
pub(crate) use self::meta_context::ALLOCATION_CONTEXT_NAME as ALLOCATION_NAME;
pub use self::meta_context::QUERIES_MAX;
pub use self::negotiated::NegotiatedParameters;
pub use self::option_code::OptionCode;
pub use self::option_error::OptionError;

/// Greeting of a server: `NBDMAGIC`, `IHAVEOPT` and the handshake flags `NBD_FLAG_FIXED_NEWSTYLE`
/// and `NBD_FLAG_NO_ZEROES` (section "Newstyle negotiation").
pub const GREETING: [u8; 18] = *b"NBDMAGICIHAVEOPT\x00\x03";

/// Maximum number of options per connection, which bounds the length of a handshake.
pub const OPTIONS_MAX: u32 = 256;

/// Maximum length of an option's data in bytes: sufficient for an export name and several metadata
/// queries.
pub const OPTION_BYTES_MAX: u32 = 64 * 1024;

/// `IHAVEOPT`, the magic number of an option.
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const FLAGS_BYTES: usize = 4;
/// `NBD_FLAG_C_FIXED_NEWSTYLE`.
const CLIENT_FIXED_NEWSTYLE: u32 = 1;
/// `NBD_FLAG_C_NO_ZEROES`.
const CLIENT_NO_ZEROES: u32 = 1 << 1;

/// TLS policy of the server (section "TLS support").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// TLS is not available (NOTLS).
    Off,
    /// TLS is optional (SELECTIVETLS, without exports that require TLS).
    Allowed,
    /// TLS is required before any other option except `NBD_OPT_ABORT` (FORCEDTLS).
    Required,
}

/// Result of one call of [`ServerHandshake::handle_bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProgress {
    /// Number of bytes consumed from the start of the input. Pass the others again in the next
    /// call, unless `step` states otherwise.
    pub consumed: usize,
    /// Next step of the caller, to be taken after it has sent the output.
    pub step: ServerStep,
}

/// Next step of the caller in a server handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// More input is required; the input was consumed completely.
    NeedsBytes,
    /// An option was acknowledged; the next option follows.
    OptionAcknowledged,
    /// An option was rejected with an error reply; the next option follows.
    OptionRejected(OptionError),
    /// TLS must start after the output was sent; the remaining input belongs to TLS. Call
    /// [`ServerHandshake::handle_tls_started`] afterwards and pass decrypted input.
    StartTls,
    /// The client aborted the connection.
    Aborted,
    /// The handshake is complete; the remaining input consists of requests.
    Negotiated(Box<NegotiatedParameters>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ClientFlags,
    Header,
    Data { option: OptionCode, bytes: usize },
    AwaitsTls,
    Ended,
}

/// Server side of the handshake of one connection.
#[derive(Clone, Debug)]
pub struct ServerHandshake {
    tls_mode: TlsMode,
    framing_max: Framing,
    state: State,
    /// Received bytes of an incomplete protocol element (flags, option header or data).
    gathered: Vec<u8>,
    options: u32,
    is_fixed: bool,
    sends_zeroes: bool,
    tls: bool,
    shutting_down: bool,
    agreed: NegotiatedState,
}

impl ServerHandshake {
    /// Starts a handshake. The caller must send [`GREETING`] first.
    pub fn new(tls_mode: TlsMode) -> Self {
        Self {
            tls_mode,
            framing_max: Framing::Extended,
            state: State::ClientFlags,
            gathered: Vec::new(),
            options: 0,
            is_fixed: false,
            sends_zeroes: true,
            tls: false,
            shutting_down: false,
            agreed: NegotiatedState::default(),
        }
    }

    /// Limits the message formats that are offered to `framing_max`. Intended for clients that
    /// negotiate formats which they do not implement correctly.
    #[must_use]
    pub fn with_framing_max(self, framing_max: Framing) -> Self {
        Self { framing_max, ..self }
    }

    /// Processes input up to the end of one option and appends replies to `output`: at most one
    /// reply per export and two more for the option.
    ///
    /// # Errors
    ///
    /// The connection must be closed after `output` was sent.
    pub fn handle_bytes(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ServerProgress, HandshakeError> {
        let mut remaining = input;
        let result = self.advance(exports, &mut remaining, output);
        if result.is_err() {
            self.state = State::Ended;
        }
        let consumed = input.len().saturating_sub(remaining.len());
        result.map(|step| ServerProgress { consumed, step })
    }

    /// Records that TLS has started after [`ServerStep::StartTls`]. Discards all negotiated state
    /// (`NBD_OPT_STARTTLS`).
    ///
    /// # Errors
    ///
    /// The client did not request TLS.
    pub fn handle_tls_started(&mut self) -> Result<(), HandshakeError> {
        if self.state != State::AwaitsTls {
            return Err(HandshakeError::TlsNotRequested);
        }
        self.state = State::Header;
        self.tls = true;
        self.agreed = NegotiatedState::default();
        Ok(())
    }

    /// Rejects every further option except `NBD_OPT_ABORT` with `NBD_REP_ERR_SHUTDOWN`.
    pub fn handle_shutdown(&mut self) {
        self.shutting_down = true;
    }

    fn advance(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        remaining: &mut &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ServerStep, HandshakeError> {
        // The loop runs at most three times: client flags, option header, option data.
        loop {
            let required = match self.state {
                State::ClientFlags => FLAGS_BYTES,
                State::Header => OPTION_HEADER_BYTES,
                State::Data { bytes, .. } => bytes,
                State::AwaitsTls => return Err(HandshakeError::TlsNotStarted),
                State::Ended => return Err(HandshakeError::AlreadyEnded),
            };
            let missing = required.saturating_sub(self.gathered.len());
            let (part, rest) = remaining.split_at_checked(missing).unwrap_or((remaining, &[]));
            self.gathered.extend_from_slice(part);
            *remaining = rest;
            if part.len() < missing {
                return Ok(ServerStep::NeedsBytes);
            }
            let mut gathered = mem::take(&mut self.gathered);
            let step = match self.state {
                State::ClientFlags => self.handle_client_flags(&gathered).map(|()| None),
                State::Data { option, .. } => {
                    self.state = State::Header;
                    self.handle_option(exports, option, &gathered, output).map(Some)
                }
                _ => self.handle_header(&gathered).map(|()| None),
            };
            gathered.clear();
            self.gathered = gathered;
            if let Some(step) = step? {
                return Ok(step);
            }
        }
    }

    fn handle_client_flags(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        let flags = crate::field_codec::FieldReader::new(bytes).u32().unwrap_or_default();
        if flags & !(CLIENT_FIXED_NEWSTYLE | CLIENT_NO_ZEROES) != 0 {
            return Err(HandshakeError::InvalidClientFlags { found: flags });
        }
        self.is_fixed = flags & CLIENT_FIXED_NEWSTYLE != 0;
        self.sends_zeroes = flags & CLIENT_NO_ZEROES == 0;
        self.state = State::Header;
        Ok(())
    }

    fn handle_header(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        let mut fields = crate::field_codec::FieldReader::new(bytes);
        let magic = fields.u64().unwrap_or_default();
        if magic != OPTION_MAGIC {
            return Err(HandshakeError::OptionMagic { found: magic });
        }
        let option = OptionCode(fields.u32().unwrap_or_default());
        let bytes = fields.u32().unwrap_or_default();
        if bytes > OPTION_BYTES_MAX {
            return Err(HandshakeError::OptionTooLong { option, bytes, max: OPTION_BYTES_MAX });
        }
        if self.options == OPTIONS_MAX {
            return Err(HandshakeError::TooManyOptions { max: OPTIONS_MAX });
        }
        self.options += 1;
        self.state = State::Data { option, bytes: bytes as usize };
        Ok(())
    }

    fn handle_option(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        option: OptionCode,
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ServerStep, HandshakeError> {
        if option == OptionCode::EXPORT_NAME {
            let negotiated = self.process_export_name(exports, data, output)?;
            return Ok(ServerStep::Negotiated(Box::new(negotiated)));
        }
        if !self.is_fixed {
            return Err(HandshakeError::NotFixedNewstyle { option });
        }
        Ok(self.process_option(exports, option, data, output).unwrap_or_else(|refusal: Refusal| {
            option_reply::append_error_reply(output, option, &refusal);
            ServerStep::OptionRejected(refusal)
        }))
    }
}
