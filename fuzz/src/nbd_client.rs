//! A straightforward NBD client: encodes requests, and parses the server's replies (`doc/proto.md`
//! of the NBD project, and its extension `EXTENDED_HEADERS`). The functions panic if the server's
//! bytes violate the protocol.

use suimon_nbd::Framing;

/// Option reply types `NBD_REP_…`.
pub const ACK: u32 = 1;
pub const SERVER: u32 = 2;
pub const INFO: u32 = 3;
pub const META_CONTEXT: u32 = 4;

/// Command types `NBD_CMD_…`.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

/// Command flags `NBD_CMD_FLAG_…`.
pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const DF: u16 = 4;
pub const REQ_ONE: u16 = 8;
pub const FAST_ZERO: u16 = 16;
pub const PAYLOAD_LEN: u16 = 32;

/// Encodes an option request with its data.
pub fn option(code: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(code.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Encodes a string: its length in four bytes, then its bytes.
pub fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// Encodes `NBD_OPT_INFO` (`code` 6) or `NBD_OPT_GO` (7).
pub fn info(code: u32, name: &str, requests: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((requests.len() as u16).to_be_bytes());
    data.extend(requests.iter().flat_map(|request| request.to_be_bytes()));
    option(code, &data)
}

/// Encodes `NBD_OPT_LIST_META_CONTEXT` (`code` 9) or `NBD_OPT_SET_META_CONTEXT` (10).
pub fn meta(code: u32, name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    data.extend(queries.iter().flat_map(|query| string(query)));
    option(code, &data)
}

/// Header of a request in the transmission phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub flags: u16,
    pub kind: u16,
    pub cookie: u64,
    pub offset: u64,
    pub length: u64,
}

impl Ask {
    /// Encodes the header. A compact header contains the lower 32 bits of the length.
    pub fn bytes(&self, framing: Framing) -> Vec<u8> {
        let extended = framing == Framing::Extended;
        let magic: u32 = if extended { 0x21e4_1c71 } else { 0x2560_9513 };
        let mut bytes = magic.to_be_bytes().to_vec();
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend(self.kind.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(self.offset.to_be_bytes());
        if extended {
            bytes.extend(self.length.to_be_bytes());
        } else {
            bytes.extend((self.length as u32).to_be_bytes());
        }
        bytes
    }
}

/// Reader of big-endian fields; each field is removed from the start of the slice.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (field, rest) = self.0.split_at(count);
        self.0 = rest;
        field
    }

    /// Removes a number of `bytes` bytes.
    ///
    /// # Panics
    ///
    /// Fewer bytes remain.
    pub fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Reply to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionReply {
    pub option: u32,
    pub kind: u32,
    pub data: Vec<u8>,
}

impl OptionReply {
    /// Returns the text of an error reply.
    ///
    /// # Panics
    ///
    /// The reply is no error, or its text is too long or not UTF-8.
    pub fn message(&self) -> &str {
        assert!(self.kind >> 31 == 1 && self.data.len() <= 4096);
        std::str::from_utf8(&self.data).expect("an error message is UTF-8")
    }
}

/// Parses bytes that consist of complete option replies.
pub fn option_replies(bytes: &[u8]) -> Vec<OptionReply> {
    let mut fields = Fields(bytes);
    let mut replies = Vec::new();
    while !fields.0.is_empty() {
        assert_eq!(fields.number(8), 0x3_e889_0455_65a9, "magic of a reply");
        let (option, kind) = (fields.number(4) as u32, fields.number(4) as u32);
        let length = fields.number(4) as usize;
        replies.push(OptionReply { option, kind, data: fields.take(length).to_vec() });
    }
    replies
}

/// Complete reply to a request, collected from all its chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub cookie: u64,
    /// Error code, and the offset of the error if the reply contains one; `None` without error.
    pub error: Option<(u32, Option<u64>)>,
    pub message: String,
    /// Data that was read, with the offset on the disk.
    pub data: Vec<(u64, Vec<u8>)>,
    /// Holes that were read: offset and length in bytes.
    pub holes: Vec<(u64, u64)>,
    /// Block status extents: length in bytes and status flags.
    pub extents: Vec<(u64, u64)>,
}

/// Parses a complete reply to `ask` and removes it from the start of `bytes`.
///
/// # Panics
///
/// The bytes are incomplete or violate the protocol.
pub fn answer(framing: Framing, ask: &Ask, bytes: &mut &[u8]) -> Answer {
    let mut fields = Fields(bytes);
    let mut answer = Answer { cookie: ask.cookie, ..Answer::default() };
    let magic = fields.number(4);
    if magic == 0x6744_6698 {
        assert_ne!(framing, Framing::Extended, "a simple reply among extended ones");
        let error = fields.number(4) as u32;
        assert_eq!(fields.number(8), ask.cookie);
        if error != 0 {
            answer.error = Some((error, None));
        }
        if ask.kind == READ {
            assert_eq!(framing, Framing::Simple, "a simple reply to a read");
            if error == 0 {
                answer.data.push((ask.offset, fields.take(ask.length as usize).to_vec()));
            }
        }
    } else {
        fields = Fields(bytes);
        while !chunk(framing, ask, &mut fields, &mut answer) {}
    }
    *bytes = fields.0;
    answer
}

/// Parses one chunk into `answer`. Returns true if it is the last chunk of the reply.
fn chunk(framing: Framing, ask: &Ask, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
    let extended = framing == Framing::Extended;
    let magic = if extended { 0x6e8a_278c } else { 0x668e_33ef };
    assert_ne!(framing, Framing::Simple, "structured replies were not negotiated");
    assert_eq!(fields.number(4), magic, "magic of a chunk");
    let (flags, kind) = (fields.number(2), fields.number(2));
    assert!(flags <= 1);
    assert_eq!(fields.number(8), ask.cookie);
    if extended {
        assert_eq!(fields.number(8), ask.offset);
    }
    let length = fields.number(if extended { 8 } else { 4 }) as usize;
    let mut payload = Fields(fields.take(length));
    match kind {
        0 => assert_eq!((flags, length), (1, 0)),
        1 => {
            assert!(length >= 9);
            let offset = payload.number(8);
            answer.data.push((offset, payload.take(length - 8).to_vec()));
        }
        2 => {
            assert_eq!(length, 12);
            let hole = (payload.number(8), payload.number(4));
            assert!(hole.1 > 0);
            answer.holes.push(hole);
        }
        5 | 6 => {
            assert_eq!(kind == 6, extended);
            assert!(answer.extents.is_empty(), "more than one block status chunk for a context");
            assert_eq!(payload.number(4), 1, "the context that was selected");
            let width = if extended { 8 } else { 4 };
            let count = extended.then(|| payload.number(4));
            while !payload.0.is_empty() {
                answer.extents.push((payload.number(width), payload.number(width)));
            }
            assert!(!answer.extents.is_empty() && answer.extents.iter().all(|(len, _)| *len > 0));
            assert!(count.is_none_or(|count| count == answer.extents.len() as u64));
        }
        0x8001 | 0x8002 => {
            let error = payload.number(4) as u32;
            assert_ne!(error, 0);
            let bytes = payload.number(2) as usize;
            let message =
                std::str::from_utf8(payload.take(bytes)).expect("an error message is UTF-8");
            message.clone_into(&mut answer.message);
            answer.error = Some((error, (kind == 0x8002).then(|| payload.number(8))));
        }
        _ => panic!("a chunk of type {kind}"),
    }
    assert!(kind == 1 || payload.0.is_empty(), "bytes left over");
    flags == 1
}
