//! Client side of the handshake: structured replies, `base:allocation`, then the export (sections
//! "Fixed newstyle negotiation", "Option types" and "Option reply types").

use crate::export::BlockSizes;
use crate::field_codec::FieldReader;
use crate::flags::TransmissionFlags;
use crate::handshake::{ALLOCATION_NAME, OptionCode};

use crate::text::{STRING_BYTES_MAX, truncate};

use super::handshake_error::ClientHandshakeError;

/// Magic numbers at the start of a connection: `NBDMAGIC` and `IHAVEOPT`.
const GREETING_MAGIC: [u8; 16] = *b"NBDMAGICIHAVEOPT";
const GREETING_BYTES: usize = 18;
/// `NBD_FLAG_FIXED_NEWSTYLE`.
const FIXED_NEWSTYLE: u16 = 1;
/// `NBD_FLAG_NO_ZEROES`, equal to the client flag that confirms it.
const NO_ZEROES: u16 = 1 << 1;
/// Magic number of an option reply.
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REPLY_HEAD_BYTES: usize = 20;
/// Maximum length of an option reply in bytes: the longest string and some fields.
const REPLY_BYTES_MAX: u32 = 16 * 1024;
/// Maximum number of replies to one option.
const REPLIES_MAX: u32 = 64;

/// Option reply types (section "Option reply types").
const ACK: u32 = 1;
const INFO: u32 = 3;
const META_CONTEXT: u32 = 4;
const ERROR: u32 = 1 << 31;

/// Information types (section "Option types", `NBD_OPT_INFO`).
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// Properties of a server's export, as negotiated by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteExport {
    /// Size of the export in bytes.
    pub size: u64,
    /// Transmission flags of the export.
    pub flags: TransmissionFlags,
    /// Block sizes that requests must respect.
    pub block_sizes: BlockSizes,
    /// Context id of `base:allocation`; `None` if the server does not support it.
    pub allocation_context_id: Option<u32>,
}

/// Result of one call of [`ClientHandshake::handle_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientProgress {
    /// Number of bytes consumed from the start of the input. Pass the others again in the next
    /// call, unless `step` states otherwise.
    pub consumed: usize,
    /// Next step of the caller, to be taken after it has sent the output.
    pub step: ClientStep,
}

/// Next step of the caller in a client handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// More input from the server is required.
    NeedsBytes,
    /// A message was processed; the remaining input may contain another one.
    Continue,
    /// The handshake is complete; the remaining input consists of replies to requests.
    Negotiated(RemoteExport),
}

/// Message that the client expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    Structured,
    Context,
    Go,
    Over,
}

/// Client side of the handshake, without TLS.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    name: String,
    state: State,
    replies: u32,
    allocation: Option<u32>,
    export: Option<(u64, TransmissionFlags)>,
    block_sizes: BlockSizes,
}

impl ClientHandshake {
    /// Starts a handshake for the export with this name. The server sends the first message.
    ///
    /// # Errors
    ///
    /// The name exceeds the protocol's limit.
    pub fn new(name: &str) -> Result<Self, ClientHandshakeError> {
        let (bytes, max) = (name.len(), STRING_BYTES_MAX);
        if bytes > max {
            return Err(ClientHandshakeError::NameTooLong { bytes, max });
        }
        Ok(Self {
            name: name.to_owned(),
            state: State::Greeting,
            replies: 0,
            allocation: None,
            export: None,
            block_sizes: BlockSizes::default(),
        })
    }

    /// Processes one message of the server and appends the response to `output`. Repeat the call
    /// with the remaining input until more input is required or the export is negotiated.
    ///
    /// # Errors
    ///
    /// The server is incompatible or violated the protocol; close the connection.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ClientProgress, ClientHandshakeError> {
        let incomplete = ClientProgress { consumed: 0, step: ClientStep::NeedsBytes };
        match self.state {
            State::Greeting => self.greet(bytes, output),
            State::Over => Ok(incomplete),
            State::Structured | State::Context | State::Go => {
                let Some((kind, data)) = self.reply(bytes)? else { return Ok(incomplete) };
                let consumed = REPLY_HEAD_BYTES.saturating_add(data.len());
                let step = self.handle_reply(kind, data, output)?;
                Ok(ClientProgress { consumed, step })
            }
        }
    }

    fn greet(
        &mut self,
        bytes: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ClientProgress, ClientHandshakeError> {
        let differs =
            bytes.iter().zip(&GREETING_MAGIC).position(|(byte, expected)| byte != expected);
        if let Some(offset) = differs {
            return Err(ClientHandshakeError::Greeting { offset });
        }
        let mut fields = FieldReader::new(bytes);
        let flags = fields.bytes(GREETING_MAGIC.len()).and_then(|_| fields.u16());
        let Some(flags) = flags else {
            return Ok(ClientProgress { consumed: 0, step: ClientStep::NeedsBytes });
        };
        if flags & FIXED_NEWSTYLE == 0 {
            return Err(ClientHandshakeError::FixedNewstyleUnsupported { flags });
        }
        let reply_flags = u32::from(flags & (FIXED_NEWSTYLE | NO_ZEROES));
        output.extend_from_slice(&reply_flags.to_be_bytes());
        self.send_option(State::Structured, OptionCode::STRUCTURED_REPLY, &[], output);
        Ok(ClientProgress { consumed: GREETING_BYTES, step: ClientStep::Continue })
    }

    /// Appends an option with its data to `output`, and changes to the state that expects its
    /// reply.
    fn send_option(
        &mut self,
        state: State,
        option: OptionCode,
        data: &[&[u8]],
        output: &mut Vec<u8>,
    ) {
        self.state = state;
        self.replies = 0;
        let bytes: usize = data.iter().map(|part| part.len()).sum();
        output.extend_from_slice(b"IHAVEOPT");
        output.extend_from_slice(&option.0.to_be_bytes());
        output.extend_from_slice(&length(bytes));
        data.iter().for_each(|part| output.extend_from_slice(part));
    }

    const fn option(&self) -> OptionCode {
        match self.state {
            State::Context => OptionCode::SET_META_CONTEXT,
            State::Go | State::Over => OptionCode::GO,
            State::Structured | State::Greeting => OptionCode::STRUCTURED_REPLY,
        }
    }

    /// Returns type and data of the option reply at the start of `bytes`; `None` if it is
    /// incomplete.
    ///
    /// # Errors
    ///
    /// The server violated the protocol.
    fn reply<'a>(&self, bytes: &'a [u8]) -> Result<Option<(u32, &'a [u8])>, ClientHandshakeError> {
        let option = self.option();
        let mut fields = FieldReader::new(bytes);
        let Some(magic) = fields.u64() else { return Ok(None) };
        if magic != REPLY_MAGIC {
            return Err(ClientHandshakeError::Magic { option, found: magic });
        }
        let header = fields.u32().zip(fields.u32()).zip(fields.u32());
        let Some(((found, kind), bytes)) = header else { return Ok(None) };
        if found != option.0 {
            return Err(ClientHandshakeError::UnexpectedOption { option, found });
        }
        if bytes > REPLY_BYTES_MAX {
            let max = REPLY_BYTES_MAX;
            return Err(ClientHandshakeError::ReplyTooLong { option, bytes, max });
        }
        Ok(fields.bytes(bytes as usize).map(|data| (kind, data)))
    }

    fn handle_reply(
        &mut self,
        kind: u32,
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ClientStep, ClientHandshakeError> {
        let option = self.option();
        self.replies = self.replies.saturating_add(1);
        if self.replies > REPLIES_MAX {
            return Err(ClientHandshakeError::TooManyReplies { option, max: REPLIES_MAX });
        }
        let refused = || {
            let message = truncate(&String::from_utf8_lossy(data), STRING_BYTES_MAX).to_owned();
            ClientHandshakeError::OptionRejected { option, kind, message }
        };
        let senseless = || ClientHandshakeError::InvalidReply { option, kind, bytes: data.len() };
        match (self.state, kind) {
            (State::Structured, ACK) => {
                let name = self.name.clone();
                let parts: [&[u8]; 5] = [
                    &length(name.len()),
                    name.as_bytes(),
                    &length(1),
                    &length(ALLOCATION_NAME.len()),
                    ALLOCATION_NAME.as_bytes(),
                ];
                self.send_option(State::Context, OptionCode::SET_META_CONTEXT, &parts, output);
            }
            (State::Context, META_CONTEXT) => {
                let mut fields = FieldReader::new(data);
                let number = fields.u32().ok_or_else(senseless)?;
                if fields.bytes(fields.remaining()) == Some(ALLOCATION_NAME.as_bytes()) {
                    self.allocation = Some(number);
                }
            }
            // Without allocation status, all ranges are treated as data.
            (State::Context, kind) if kind == ACK || kind & ERROR != 0 => self.go(output),
            (State::Go, INFO) => self.handle_info(data).ok_or_else(senseless)?,
            (State::Go, ACK) => {
                let (size, flags) = self.export.ok_or(ClientHandshakeError::MissingExportInfo)?;
                self.state = State::Over;
                let Self { block_sizes, allocation, .. } = *self;
                return Ok(ClientStep::Negotiated(RemoteExport {
                    size,
                    flags,
                    block_sizes,
                    allocation_context_id: allocation,
                }));
            }
            (_, kind) if kind & ERROR != 0 => return Err(refused()),
            _ => return Err(senseless()),
        }
        Ok(ClientStep::Continue)
    }

    fn go(&mut self, output: &mut Vec<u8>) {
        let name = self.name.clone();
        let info_request = INFO_BLOCK_SIZE.to_be_bytes();
        let parts: [&[u8]; 4] =
            [&length(name.len()), name.as_bytes(), &1_u16.to_be_bytes(), &info_request];
        self.send_option(State::Go, OptionCode::GO, &parts, output);
    }

    /// Stores the information in an `NBD_REP_INFO` reply. Returns `None` if it is truncated or
    /// inconsistent.
    fn handle_info(&mut self, data: &[u8]) -> Option<()> {
        let mut fields = FieldReader::new(data);
        match fields.u16()? {
            INFO_EXPORT => {
                let size = fields.u64()?;
                self.export = Some((size, TransmissionFlags::from_bits(fields.u16()?)));
            }
            INFO_BLOCK_SIZE => {
                let (min, preferred, payload_max) = (fields.u32()?, fields.u32()?, fields.u32()?);
                let is_sound = min.is_power_of_two() && payload_max >= min;
                self.block_sizes =
                    is_sound.then_some(BlockSizes { min, preferred, payload_max })?;
            }
            // Servers may send information that was not requested.
            _ => {}
        }
        Some(())
    }
}

/// Encodes the value of a length field. Every length here fits into 32 bits.
fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}
