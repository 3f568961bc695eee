//! Fuzz oracle of the server side of NBD (`suimon_nbd`): checks what the server makes of arbitrary
//! bytes of a client.
//!
//! The input is two bytes of configuration, followed by the bytes that a client sends. The
//! handshake parses them as a whole and byte by byte, and both must agree; its replies are parsed
//! as by a client. The remaining bytes are requests: each is checked again field by field, executed
//! on a disk with a known pattern, and its reply is parsed and compared.

use suimon_nbd::{
    BlockSizes, Export, ExportSpec, Features, Framing, GREETING, NbdError, NegotiatedParameters,
    ParsedHeader, REPLY_BYTES_MAX, RequestParser, ServerHandshake, ServerProgress, ServerStep,
    TlsMode,
};

use super::nbd_client::{
    ACK, Ask, BLOCK_STATUS, CACHE, DF, DISC, FAST_ZERO, FLUSH, FUA, Fields, INFO, META_CONTEXT,
    NO_HOLE, PAYLOAD_LEN, READ, REQ_ONE, SERVER, TRIM, WRITE, WRITE_ZEROES, answer, option_replies,
};
use super::nbd_disk::{DISK_BYTES, carry_out};

/// Maximum length in bytes of a read or write on the exports.
const PAYLOAD_MAX: u32 = 64 * 1024;
const PAYLOAD_BYTES_MAX: u64 = 32 << 20;
const OPTIONS_MAX: usize = 256;

/// Statistics of an input, with which tests verify that seeds reach the intended states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Options that the server acknowledged, and those that it rejected.
    pub answered: usize,
    pub refused: usize,
    /// Framing of the negotiated export; `None` if none was negotiated.
    pub framing: Option<Framing>,
    /// Requests that were executed, and those that were rejected.
    pub carried_out: usize,
    pub turned_down: usize,
    /// True if the client disconnected properly, in the handshake or later.
    pub has_left: bool,
    /// True if the server closed the connection because of a protocol error.
    pub was_cut: bool,
}

/// Feeds the input to a server and checks its replies.
///
/// # Panics
///
/// The server violates the protocol.
pub fn check(input: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let Some((config, bytes)) = input.split_first_chunk::<2>() else { return outcome };
    let exports = exports(config[0]);
    let complete = shake_hands(&exports, config[1], bytes, usize::MAX);
    let by_bytes = shake_hands(&exports, config[1], bytes, 1);
    assert_eq!(complete, by_bytes, "the result depends on how the bytes are split");
    let HandshakeResult { steps, output, end, consumed } = complete;
    outcome.answered =
        steps.iter().filter(|step| matches!(step, ServerStep::OptionAcknowledged)).count();
    outcome.refused = steps.len() - outcome.answered;
    judge_replies(&output, &end, &steps);
    match end {
        End::Negotiated(negotiated) => {
            outcome.framing = Some(negotiated.framing);
            serve(&negotiated, &bytes[consumed..], &mut outcome);
        }
        End::Left => outcome.has_left = true,
        End::Cut => outcome.was_cut = true,
        End::Open => {}
    }
    outcome
}

/// Returns two exports with the features that `config` selects, and one with 4 KiB blocks.
fn exports(config: u8) -> Vec<Export> {
    let bit = |bit: u8| config & 1 << bit != 0;
    let features = Features {
        read_only: bit(0),
        flush: !bit(1),
        fua: !bit(1),
        rotational: bit(1),
        trim: !bit(2),
        write_zeroes: !bit(2),
        fast_zero: !bit(2) && !bit(3),
        multi_conn: true,
        cache: !bit(3),
        allocation_status: !bit(4),
    };
    let min = if bit(5) { 512 } else { 1 };
    let sizes = BlockSizes { min, preferred: 4096, payload_max: PAYLOAD_MAX };
    let disk = |name: &str, block_sizes| {
        let description = format!("the disk {name}");
        let spec = ExportSpec {
            name: name.to_owned(),
            description,
            size: DISK_BYTES,
            block_sizes,
            features,
        };
        Export::new(spec).expect("the export is valid")
    };
    vec![disk("a", sizes), disk("", sizes), disk("large", BlockSizes { min: 4096, ..sizes })]
}

#[derive(Debug, PartialEq)]
enum End {
    /// More bytes are needed.
    Open,
    Left,
    Cut,
    Negotiated(Box<NegotiatedParameters>),
}

#[derive(Debug, PartialEq)]
struct HandshakeResult {
    steps: Vec<ServerStep>,
    output: Vec<u8>,
    end: End,
    consumed: usize,
}

/// Runs a handshake with these bytes, received in chunks of at most `piece` bytes.
fn shake_hands(exports: &[Export], config: u8, bytes: &[u8], piece: usize) -> HandshakeResult {
    let mode = [TlsMode::Off, TlsMode::Allowed, TlsMode::Required][usize::from(config % 3)];
    let mut handshake = ServerHandshake::new(mode);
    if config & 0x80 != 0 {
        handshake.handle_shutdown();
    }
    let mut shaken = HandshakeResult {
        steps: Vec::new(),
        output: GREETING.to_vec(),
        end: End::Open,
        consumed: 0,
    };
    loop {
        let rest = &bytes[shaken.consumed..];
        let chunk = &rest[..rest.len().min(piece)];
        let result = handshake.handle_bytes(exports, chunk, &mut shaken.output);
        let Ok(ServerProgress { consumed, step }) = result else {
            // The number of consumed bytes is not defined after an error.
            (shaken.end, shaken.consumed) = (End::Cut, 0);
            let before = shaken.output.len();
            assert!(handshake.handle_bytes(exports, &[0; 64], &mut shaken.output).is_err());
            assert_eq!(shaken.output.len(), before, "a reply after an error");
            return shaken;
        };
        assert!(consumed <= chunk.len());
        shaken.consumed += consumed;
        match step {
            ServerStep::NeedsBytes => {
                assert_eq!(consumed, chunk.len());
                if chunk.len() == rest.len() {
                    return shaken;
                }
            }
            ServerStep::StartTls => {
                handshake.handle_tls_started().expect("the client requested TLS");
                shaken.steps.push(ServerStep::OptionAcknowledged);
            }
            ServerStep::Aborted => {
                shaken.end = End::Left;
                return shaken;
            }
            ServerStep::Negotiated(negotiated) => {
                shaken.end = End::Negotiated(negotiated);
                return shaken;
            }
            step => shaken.steps.push(step),
        }
        assert!(shaken.steps.len() <= OPTIONS_MAX, "a handshake without end");
    }
}

/// Checks the handshake's output: exactly one final reply for each option, in order.
fn judge_replies(output: &[u8], end: &End, steps: &[ServerStep]) {
    let output = output.strip_prefix(&GREETING).expect("the greeting comes first");
    // The reply to `NBD_OPT_EXPORT_NAME` has no option reply header.
    let tail = match end {
        End::Negotiated(_) => [134, 10].into_iter().find(|bytes| {
            let index = output.len().checked_sub(*bytes);
            index.is_some_and(|offset| output[offset..].starts_with(&DISK_BYTES.to_be_bytes()))
        }),
        _ => None,
    };
    // Ten bytes before the end of the 134-byte form are zeroes, which cannot be mistaken for the
    // size.
    let replies = option_replies(&output[..output.len() - tail.unwrap_or(0)]);
    let mut finals = replies.iter().filter(|reply| reply.kind == ACK || reply.kind >> 31 == 1);
    for step in steps {
        let reply = finals.next().expect("a final reply for each option");
        match step {
            ServerStep::OptionRejected(error) => {
                assert_eq!(reply.kind, error.reply_type());
                assert!(!reply.message().is_empty());
            }
            _ => assert_eq!((reply.kind, reply.data.len()), (ACK, 0)),
        }
    }
    let has_last = matches!(end, End::Left) || matches!(end, End::Negotiated(_)) && tail.is_none();
    assert_eq!(finals.next().map(|reply| reply.kind), has_last.then_some(ACK));
    assert_eq!(finals.next(), None);
    for reply in &replies {
        let mut data = Fields(&reply.data);
        match reply.kind {
            SERVER => {
                assert_eq!(reply.option, 3);
                let length = data.number(4) as usize;
                let name = data.take(length);
                assert!(["a", "", "large"].iter().any(|recorded| recorded.as_bytes() == name));
            }
            INFO => {
                assert!([6, 7].contains(&reply.option));
                match data.number(2) {
                    0 => assert_eq!((data.0.len(), data.number(8)), (10, DISK_BYTES)),
                    3 => assert_eq!(data.0.len(), 12),
                    kind => assert!(kind == 1 || kind == 2),
                }
            }
            META_CONTEXT => {
                assert_eq!(data.number(4), if reply.option == 10 { 1 } else { 0 });
                assert_eq!(data.0, b"base:allocation");
            }
            kind => assert!(kind == ACK || kind >> 31 == 1, "reply {kind}"),
        }
    }
}

/// Expected treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    CarryOut,
    Fail(NbdError),
    Leave,
    Cut,
}

fn serve(negotiated: &NegotiatedParameters, mut bytes: &[u8], outcome: &mut Outcome) {
    let transmission = RequestParser::new(negotiated);
    let framing = negotiated.framing;
    let header = if framing == Framing::Extended { 32 } else { 28 };
    assert_eq!(transmission.header_bytes(), header);
    loop {
        let result = transmission.parse_header(bytes);
        if bytes.len() < header {
            assert!(matches!(result, Ok(ParsedHeader::Incomplete)) || result.is_err());
            return;
        }
        assert_eq!(transmission.parse_header(&bytes[..header]), result);
        let mut fields = Fields(bytes);
        let magic = fields.number(4);
        let ask = Ask {
            flags: fields.number(2) as u16,
            kind: fields.number(2) as u16,
            cookie: fields.number(8),
            offset: fields.number(8),
            length: fields.number(header - 24),
        };
        let payload = if brings_payload(framing, &ask) { ask.length } else { 0 };
        let expected = if framing == Framing::Extended { 0x21e4_1c71 } else { 0x2560_9513 };
        let verdict = if magic != expected { Verdict::Cut } else { verdict(negotiated, &ask) };
        bytes = fields.0;
        match result {
            Err(_) => {
                assert_eq!(verdict, Verdict::Cut);
                outcome.was_cut = true;
                return;
            }
            Ok(ParsedHeader::Incomplete) => panic!("the header is complete"),
            Ok(ParsedHeader::Disconnect) => {
                assert_eq!(verdict, Verdict::Leave);
                outcome.has_left = true;
                return;
            }
            Ok(ParsedHeader::Rejected(refused)) => {
                assert_eq!(verdict, Verdict::Fail(refused.error.code()), "{ask:?}");
                assert_eq!(u64::from(refused.payload_bytes), payload);
                let mut out = [0; REPLY_BYTES_MAX];
                let used = refused.encode(&mut out).expect("the buffer is large enough");
                judge_error(framing, &ask, &out[..used], refused.error.code());
                outcome.turned_down += 1;
            }
            Ok(ParsedHeader::Request(request)) => {
                assert_eq!(verdict, Verdict::CarryOut, "{ask:?}");
                assert_eq!(u64::from(request.payload_bytes), payload);
                let Some(payload) = bytes.get(..payload as usize) else { return };
                let request = match transmission.parse_contexts(request, payload) {
                    Ok(request) => request,
                    Err(refused) => {
                        assert!(!selects_context_and_range(&ask, payload));
                        assert_eq!(refused.error.code(), NbdError::Inval);
                        bytes = &bytes[payload.len()..];
                        continue;
                    }
                };
                carry_out(&transmission, framing, &ask, request);
                outcome.carried_out += 1;
            }
        }
        let Some(rest) = bytes.get(payload as usize..) else { return };
        bytes = rest;
    }
}

/// Returns true if the payload selects the only context and a valid range of the disk.
fn selects_context_and_range(ask: &Ask, payload: &[u8]) -> bool {
    let mut fields = Fields(payload);
    let length = fields.number(8);
    let ends = ask.offset.checked_add(length).is_some_and(|end| end <= DISK_BYTES);
    length > 0 && ends && fields.number(4) == 1 && ask.offset % 4096 == 0 && length % 4096 == 0
}

/// Returns true if a payload follows the header. A write always has one, with or without the flag.
fn brings_payload(framing: Framing, ask: &Ask) -> bool {
    ask.kind == WRITE || framing == Framing::Extended && ask.flags & PAYLOAD_LEN != 0
}

/// Returns the treatment that the specification requires, rule by rule.
fn verdict(negotiated: &NegotiatedParameters, ask: &Ask) -> Verdict {
    let features = negotiated.export.features();
    let sizes = negotiated.export.block_sizes();
    let extended = negotiated.framing == Framing::Extended;
    let brings = brings_payload(negotiated.framing, ask);
    let inval = Verdict::Fail(NbdError::Inval);
    if ask.kind == DISC {
        return Verdict::Leave;
    }
    if brings && ask.length > PAYLOAD_BYTES_MAX {
        return Verdict::Cut;
    }
    let writes = [WRITE, TRIM, WRITE_ZEROES].contains(&ask.kind);
    if writes && features.read_only {
        return Verdict::Fail(NbdError::Perm);
    }
    let selected = negotiated.base_allocation;
    let (is_offered, mut flags) = match ask.kind {
        READ => (true, if negotiated.framing == Framing::Simple { 0 } else { DF }),
        WRITE => (true, if extended { PAYLOAD_LEN } else { 0 }),
        FLUSH => (features.flush, 0),
        TRIM => (features.trim, 0),
        CACHE => (features.cache, 0),
        WRITE_ZEROES if features.fast_zero => (features.write_zeroes, NO_HOLE | FAST_ZERO),
        WRITE_ZEROES => (features.write_zeroes, NO_HOLE),
        BLOCK_STATUS if extended => (selected, REQ_ONE | PAYLOAD_LEN),
        BLOCK_STATUS => (selected, REQ_ONE),
        _ => (false, 0),
    };
    flags |= if features.fua { FUA } else { 0 };
    if !is_offered || ask.flags & !flags != 0 {
        return inval;
    }
    if ask.kind == FLUSH {
        return if (ask.offset, ask.length) == (0, 0) { Verdict::CarryOut } else { inval };
    }
    if ask.kind == BLOCK_STATUS && brings {
        return if ask.length == 12 { Verdict::CarryOut } else { inval };
    }
    let block = u64::from(sizes.min);
    if ask.length == 0 || ask.offset % block != 0 || ask.length % block != 0 {
        return inval;
    }
    if u128::from(ask.offset) + u128::from(ask.length) > u128::from(DISK_BYTES) {
        let fails = [WRITE, WRITE_ZEROES].contains(&ask.kind);
        return if fails { Verdict::Fail(NbdError::Nospc) } else { inval };
    }
    let is_long = ask.length > u64::from(sizes.payload_max);
    match ask.kind {
        READ if is_long && negotiated.framing == Framing::Simple => inval,
        READ if is_long => Verdict::Fail(NbdError::Overflow),
        WRITE if is_long => inval,
        _ => Verdict::CarryOut,
    }
}

fn judge_error(framing: Framing, ask: &Ask, mut bytes: &[u8], error: NbdError) {
    let answer = answer(framing, ask, &mut bytes);
    assert_eq!(answer.error, Some((error.code(), None)));
    assert_eq!(answer.message.is_empty(), framing == Framing::Simple);
    assert!(bytes.is_empty());
}
