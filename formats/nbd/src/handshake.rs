//! The handshake: fixed newstyle negotiation (section "Handshake"), step by step.

mod answer;
mod code;
mod error;
mod fields;
mod haggle;
mod info;
mod meta;
mod option_error;

use core::mem;

use self::haggle::Agreed;
use self::option_error::OptionError as Refusal;
use crate::export::Export;
use crate::export_list::ExportList;
use crate::flags::TransmissionFlags;
use crate::framing::Framing;

pub use self::code::OptionCode;
pub use self::error::HandshakeError;
pub(crate) use self::meta::ALLOCATION as ALLOCATION_NAME;
pub use self::meta::QUERIES_MAX;
pub use self::option_error::OptionError;

/// What a server sends first: `NBDMAGIC`, `IHAVEOPT`, and that it speaks fixed newstyle
/// and need not send zeroes (section "Newstyle negotiation").
pub const GREETING: [u8; 18] = *b"NBDMAGICIHAVEOPT\x00\x03";

/// Options that a client may send before it is taken to go round in circles.
pub const OPTIONS_MAX: u32 = 256;

/// Most bytes of an option's data: an export's name and some queries.
pub const OPTION_BYTES_MAX: u32 = 64 * 1024;

/// `IHAVEOPT`, before each option.
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const FLAGS_BYTES: usize = 4;
/// Bytes of an option before its data: magic, code, length.
const OPTION_HEADER_BYTES: usize = 16;
/// `NBD_FLAG_C_FIXED_NEWSTYLE`.
const CLIENT_FIXED_NEWSTYLE: u32 = 1;
/// `NBD_FLAG_C_NO_ZEROES`.
const CLIENT_NO_ZEROES: u32 = 1 << 1;

/// Whether connections are encrypted (section "TLS support").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// There is no TLS (NOTLS).
    Off,
    /// A client may start TLS (SELECTIVETLS, with no export that requires it).
    Allowed,
    /// Nothing is answered before TLS (FORCEDTLS).
    Required,
}

/// What came of the bytes that were handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many of them were taken, from the front. What is left comes again in the next
    /// call, unless the step says otherwise.
    pub consumed: usize,
    /// What to do next, after the output was sent.
    pub step: Step,
}

/// What comes next in a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes of the client. None are left.
    NeedsBytes,
    /// An option was answered; the next one follows.
    Answered,
    /// An option was refused, and the client told so; the next one follows.
    Refused(OptionError),
    /// TLS begins once the output is sent: the client's remaining bytes are TLS's. Then
    /// [`Handshake::handle_tls_started`], and what TLS decrypts.
    StartTls,
    /// The client ends the connection.
    Aborted,
    /// Requests follow, from the remaining bytes on.
    Negotiated(Box<Negotiated>),
}

/// What client and server have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// What the client uses, as it was then.
    pub export: Export,
    /// What the client was told of it.
    pub flags: TransmissionFlags,
    /// How requests and replies look.
    pub framing: Framing,
    /// Whether `base:allocation` was selected, so that the client may ask for extents.
    pub base_allocation: bool,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ClientFlags,
    Header,
    Data { option: OptionCode, bytes: usize },
    AwaitsTls,
    Ended,
}

/// The server's side of one connection's handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    tls_mode: TlsMode,
    framing_max: Framing,
    state: State,
    /// Of what comes next, as much as has come.
    gathered: Vec<u8>,
    options: u32,
    is_fixed: bool,
    sends_zeroes: bool,
    tls: bool,
    shutting_down: bool,
    agreed: Agreed,
}

impl Handshake {
    /// The handshake of a client to whom [`GREETING`] is sent.
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
            agreed: Agreed::default(),
        }
    }

    /// Does not know of anything beyond this framing, as an older server would not: to get
    /// along with a client that negotiates more than it masters.
    #[must_use]
    pub fn with_framing_max(self, framing_max: Framing) -> Self {
        Self { framing_max, ..self }
    }

    /// Takes bytes of the client, up to the end of one option, and appends what to answer
    /// to `output`: no more than one reply for each export, and one more.
    ///
    /// # Errors
    /// The connection has to be closed, once what `output` holds was sent.
    pub fn handle_bytes(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Progress, HandshakeError> {
        let mut rest = input;
        let result = self.advance(exports, &mut rest, output);
        if result.is_err() {
            self.state = State::Ended;
        }
        let consumed = input.len().saturating_sub(rest.len());
        result.map(|step| Progress { consumed, step })
    }

    /// TLS has started, as [`Step::StartTls`] had asked for. Whatever was agreed on before
    /// counts for nothing (`NBD_OPT_STARTTLS`).
    ///
    /// # Errors
    /// Nobody has asked for it.
    pub fn handle_tls_started(&mut self) -> Result<(), HandshakeError> {
        if self.state != State::AwaitsTls {
            return Err(HandshakeError::TlsNotAskedFor);
        }
        self.state = State::Header;
        self.tls = true;
        self.agreed = Agreed::default();
        Ok(())
    }

    /// From now on every option is refused but the one to leave (`NBD_REP_ERR_SHUTDOWN`).
    pub fn handle_shutdown(&mut self) {
        self.shutting_down = true;
    }

    fn advance(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        rest: &mut &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Step, HandshakeError> {
        // Client flags, an option's header and its data: three rounds at most.
        loop {
            let wanted = match self.state {
                State::ClientFlags => FLAGS_BYTES,
                State::Header => OPTION_HEADER_BYTES,
                State::Data { bytes, .. } => bytes,
                State::AwaitsTls => return Err(HandshakeError::TlsNotStarted),
                State::Ended => return Err(HandshakeError::Ended),
            };
            let missing = wanted.saturating_sub(self.gathered.len());
            let (taken, left) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
            self.gathered.extend_from_slice(taken);
            *rest = left;
            if taken.len() < missing {
                return Ok(Step::NeedsBytes);
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
        let flags = crate::octets::Reader::new(bytes).u32().unwrap_or_default();
        if flags & !(CLIENT_FIXED_NEWSTYLE | CLIENT_NO_ZEROES) != 0 {
            return Err(HandshakeError::ClientFlags { found: flags });
        }
        self.is_fixed = flags & CLIENT_FIXED_NEWSTYLE != 0;
        self.sends_zeroes = flags & CLIENT_NO_ZEROES == 0;
        self.state = State::Header;
        Ok(())
    }

    fn handle_header(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        let mut fields = crate::octets::Reader::new(bytes);
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
    ) -> Result<Step, HandshakeError> {
        if option == OptionCode::EXPORT_NAME {
            let negotiated = self.enter_by_name(exports, data, output)?;
            return Ok(Step::Negotiated(Box::new(negotiated)));
        }
        if !self.is_fixed {
            return Err(HandshakeError::NotFixedNewstyle { option });
        }
        Ok(self.haggle(exports, option, data, output).unwrap_or_else(|refusal: Refusal| {
            answer::refusal(output, option, &refusal);
            Step::Refused(refusal)
        }))
    }
}
