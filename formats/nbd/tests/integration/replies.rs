//! Encoding of replies, byte by byte, compared with `doc/proto.md`.

use crate::nbd_client;
use crate::nbd_client::{Ask, BLOCK_STATUS, READ};
use crate::support;
use crate::support::{ALL, export, negotiated, spec};
use suimon_nbd::{
    BlockSizes, BufferTooShort, Chunk, ChunkKind, EXTENTS_MAX, ExportRange, ExtentState, Framing,
    NbdError, ParsedHeader, REPLY_BYTES_MAX, ReplyEncoder, RequestParser, STATUS_BUFFER_BYTES_MIN,
    StatusExtent,
};

const COOKIE: u64 = 0x0123_4567_89ab_cdef;
const OFFSET: u64 = 0x10_0000;
const DATA: ExtentState = ExtentState::DATA;
const ZERO: ExtentState = ExtentState::ZERO;

/// Returns a parser for a disk of 8 TiB, to exercise 64-bit lengths.
fn transmission(framing: Framing) -> RequestParser {
    let spec = suimon_nbd::ExportSpec { size: 8 << 40, ..spec("a") };
    RequestParser::new(&negotiated(export(spec), framing))
}

fn reply_to(framing: Framing) -> ReplyEncoder {
    let ask = Ask { flags: 0, kind: READ, cookie: COOKIE, offset: OFFSET, length: 4096 };
    match transmission(framing).parse_header(&ask.bytes(framing)) {
        Ok(ParsedHeader::Request(request)) => request.reply_to,
        other => panic!("{other:?}"),
    }
}

fn encoded(encode: impl FnOnce(&mut [u8]) -> Result<usize, BufferTooShort>) -> Vec<u8> {
    let mut out = vec![0xee; REPLY_BYTES_MAX];
    let used = encode(&mut out).unwrap();
    assert!(out[used..].iter().all(|byte| *byte == 0xee), "more was written than is said");
    out.truncate(used);
    out
}

fn simple(error: u32) -> Vec<u8> {
    [&[0x67, 0x44, 0x66, 0x98][..], &error.to_be_bytes(), &COOKIE.to_be_bytes()].concat()
}

fn structured(flags: u8, kind: u16, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x66, 0x8e, 0x33, 0xef, 0, flags];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(COOKIE.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn extended(flags: u8, kind: u16, length: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x6e, 0x8a, 0x27, 0x8c, 0, flags];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(COOKIE.to_be_bytes());
    bytes.extend(OFFSET.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[test]
fn success_without_data() {
    for (framing, expected) in [
        (Framing::Simple, simple(0)),
        (Framing::Structured, simple(0)),
        (Framing::Extended, extended(1, 0, 0, &[])),
    ] {
        let reply_to = reply_to(framing);
        assert_eq!(encoded(|out| reply_to.encode_success(out)), expected, "{framing:?}");
        let bytes = expected.len() - 1;
        let required = expected.len();
        assert_eq!(
            reply_to.encode_success(&mut vec![0; bytes]),
            Err(BufferTooShort { bytes, required })
        );
    }
}

#[test]
fn errors_with_their_messages() {
    for error in NbdError::ALL {
        let code = error.code().to_be_bytes();
        let plain = [&code[..], &[0, 3], b"why"].concat();
        let with_offset = [&plain[..], &(OFFSET + 512).to_be_bytes()].concat();
        for (framing, without_offset, with_position) in [
            (Framing::Simple, simple(error.code()), simple(error.code())),
            (
                Framing::Structured,
                structured(1, 0x8001, 9, &plain),
                structured(1, 0x8002, 17, &with_offset),
            ),
            (
                Framing::Extended,
                extended(1, 0x8001, 9, &plain),
                extended(1, 0x8002, 17, &with_offset),
            ),
        ] {
            let reply_to = reply_to(framing);
            assert_eq!(encoded(|out| reply_to.encode_error(error, "why", out)), without_offset);
            assert_eq!(
                encoded(|out| reply_to.encode_error_at(error, "why", OFFSET + 512, out)),
                with_position
            );
        }
    }
    // The longest reply: an error with an overlong message and an offset.
    let reply_to = reply_to(Framing::Extended);
    let long = "水".repeat(1000);
    let longest = encoded(|out| reply_to.encode_error_at(NbdError::Io, &long, OFFSET, out));
    // 85 characters of 3 bytes have 255 bytes; one byte stays unused.
    assert_eq!(longest.len(), REPLY_BYTES_MAX - 1);
    let longest =
        encoded(|out| reply_to.encode_error_at(NbdError::Io, &"a".repeat(1000), OFFSET, out));
    assert_eq!(longest.len(), REPLY_BYTES_MAX);
}

fn chunks(framing: Framing, length: u64, df: bool, extents: &[(u64, ExtentState)]) -> Vec<Chunk> {
    let range = ExportRange { offset: OFFSET, length };
    let extents =
        extents.iter().map(|(length, state)| StatusExtent { length: *length, state: *state });
    transmission(framing).split_read_reply(reply_to(framing), range, df, extents).collect()
}

#[test]
fn chunk_heads_have_the_bytes_of_the_specification() {
    let extents = [(512, DATA), (1024, ZERO | ExtentState::HOLE), (512, DATA)];
    let offset = |distance: u64| (OFFSET + distance).to_be_bytes();
    let hole = [&offset(512)[..], &[0, 0, 4, 0]].concat();
    let encode = |framing, df| {
        let chunks = chunks(framing, 2048, df, &extents);
        chunks.iter().map(|chunk| encoded(|out| chunk.encode_head(out))).collect::<Vec<_>>()
    };
    assert_eq!(encode(Framing::Simple, false), [simple(0)]);
    assert_eq!(
        encode(Framing::Structured, false),
        [
            structured(0, 1, 520, &offset(0)),
            structured(0, 2, 12, &hole),
            structured(1, 1, 520, &offset(1536)),
        ]
    );
    assert_eq!(
        encode(Framing::Extended, false),
        [
            extended(0, 1, 520, &offset(0)),
            extended(0, 2, 12, &hole),
            extended(1, 1, 520, &offset(1536)),
        ]
    );
    assert_eq!(encode(Framing::Structured, true), [structured(1, 1, 2056, &offset(0))]);
    let chunk = chunks(Framing::Structured, 2048, false, &extents)[1];
    assert_eq!(chunk.encode_head(&mut [0; 31]), Err(BufferTooShort { bytes: 31, required: 32 }));
}

#[test]
fn reads_are_split_into_data_and_holes() {
    use ChunkKind::{Data, Hole};
    let hole = ZERO | ExtentState::HOLE;
    type Row<'a> = (&'a str, u64, &'a [(u64, ExtentState)], &'a [(ChunkKind, u64)]);
    let table: &[Row<'_>] = &[
        ("nothing is known", 1024, &[], &[(Data, 1024)]),
        ("one extent", 1024, &[(1024, DATA)], &[(Data, 1024)]),
        ("one that goes on", 1024, &[(u64::MAX, hole)], &[(Hole, 1024)]),
        ("neighbours", 1024, &[(256, DATA), (256, DATA), (512, DATA)], &[(Data, 1024)]),
        ("zeroes of two kinds", 1024, &[(512, ZERO), (512, hole)], &[(Hole, 1024)]),
        ("a hole of any content", 1024, &[(512, ExtentState::HOLE)], &[(Data, 1024)]),
        ("too few", 1024, &[(256, hole)], &[(Hole, 256), (Data, 768)]),
        ("too few of data", 1024, &[(256, DATA)], &[(Data, 1024)]),
        ("too many", 512, &[(256, DATA), (512, hole), (9, DATA)], &[(Data, 256), (Hole, 256)]),
        ("empty ones", 512, &[(0, hole), (256, DATA), (0, hole), (256, DATA)], &[(Data, 512)]),
        (
            "back and forth",
            1024,
            &[(1, hole), (2, DATA), (3, hole), (4096, DATA)],
            &[(Hole, 1), (Data, 2), (Hole, 3), (Data, 1018)],
        ),
        ("lengths that overflow", 8, &[(4, hole), (u64::MAX, hole), (1, DATA)], &[(Hole, 8)]),
    ];
    for (name, length, extents, expected) in table {
        for framing in [Framing::Structured, Framing::Extended] {
            let chunks = chunks(framing, *length, false, extents);
            let actual = chunks.iter().map(|chunk| (chunk.kind(), u64::from(chunk.length())));
            assert_eq!(actual.collect::<Vec<_>>(), *expected, "{name}");
            let last = chunks.iter().position(Chunk::is_last);
            assert_eq!(last, Some(chunks.len() - 1), "{name}");
        }
        let complete = chunks(Framing::Simple, *length, false, extents);
        assert_eq!((complete.len(), complete[0].kind()), (1, Data));
        assert_eq!(chunks(Framing::Extended, *length, true, extents).len(), 1);
    }
}

fn status(
    framing: Framing,
    length: u64,
    first_only: bool,
    capacity: usize,
    extents: &[StatusExtent],
) -> Vec<u8> {
    let mut out = vec![0xee; capacity];
    let range = ExportRange { offset: OFFSET, length };
    let reply_to = reply_to(framing);
    let mut reply = transmission(framing)
        .begin_block_status_reply(reply_to, range, first_only, &mut out)
        .unwrap();
    for extent in extents {
        if !reply.push(*extent) {
            break;
        }
    }
    let used = reply.finish();
    out.truncate(used);
    out
}

fn decoded_extents(framing: Framing, bytes: &[u8], length: u64) -> Vec<(u64, u64)> {
    let ask = Ask { flags: 0, kind: BLOCK_STATUS, cookie: COOKIE, offset: OFFSET, length };
    let mut bytes = bytes;
    let answer = nbd_client::answer(framing, &ask, &mut bytes);
    assert!(bytes.is_empty());
    answer.extents
}

#[test]
fn extents_have_the_bytes_of_the_specification() {
    let extents = [
        StatusExtent { length: 512, state: DATA },
        StatusExtent { length: 1024, state: ZERO | ExtentState::HOLE },
        StatusExtent { length: 1 << 20, state: ZERO },
    ];
    let payload = [
        &[0, 0, 0, 1][..],
        &[0, 0, 2, 0, 0, 0, 0, 0],
        &[0, 0, 4, 0, 0, 0, 0, 3],
        &[0, 0, 0x10, 0, 0, 0, 0, 2],
    ];
    let bytes = status(Framing::Structured, 5632, false, 4096, &extents);
    assert_eq!(bytes, structured(1, 5, 28, &payload.concat()));
    let number = |number: u64| number.to_be_bytes();
    let payload = [
        [0, 0, 0, 1, 0, 0, 0, 3],
        number(512),
        number(0),
        number(1024),
        number(3),
        number(4096),
        number(2),
    ];
    let bytes = status(Framing::Extended, 5632, false, 4096, &extents);
    assert_eq!(bytes, extended(1, 6, 56, &payload.concat()));
}

#[test]
fn extents_are_merged_truncated_and_limited() {
    let extent = |length, state| StatusExtent { length, state };
    let hole = ZERO | ExtentState::HOLE;
    let mixed: Vec<_> = (0..9).map(|n| extent(512, if n % 2 == 0 { DATA } else { hole })).collect();
    for framing in [Framing::Structured, Framing::Extended] {
        let states = |length, first_only, capacity, extents: &[StatusExtent]| {
            decoded_extents(
                framing,
                &status(framing, length, first_only, capacity, extents),
                length,
            )
        };
        assert_eq!(states(4096, false, 4096, &[]), [(4096, 0)]);
        let merged = [extent(512, hole), extent(0, DATA), extent(512, hole), extent(9999, DATA)];
        assert_eq!(states(4096, false, 4096, &merged), [(1024, 3), (3072, 0)]);
        assert_eq!(states(4096, true, 4096, &merged), [(1024, 3)]);
        assert_eq!(states(512, true, 4096, &merged), [(512, 3)]);
        assert_eq!(states(4096, false, 4096, &merged[..1]), [(512, 3)]);
        // Buffers for one, two and three extents.
        let (fixed, extent_bytes) = if framing.is_extended() { (40, 16) } else { (24, 8) };
        for count in 4..6 {
            let fitting = states(4096, false, fixed + extent_bytes * count, &mixed);
            assert_eq!(fitting.len(), count);
            assert_eq!(
                states(4096, false, fixed + extent_bytes * count + extent_bytes - 1, &mixed).len(),
                count
            );
        }
        let min = states(4096, false, STATUS_BUFFER_BYTES_MIN, &mixed);
        assert_eq!(min[0], (512, 0));
    }
    // Dropping an extent leaves no gap: later extents are dropped, too.
    let mut out = [0; STATUS_BUFFER_BYTES_MIN];
    let range = ExportRange { offset: OFFSET, length: 4096 };
    let reply_to = reply_to(Framing::Extended);
    let extended = transmission(Framing::Extended);
    let mut reply = extended.begin_block_status_reply(reply_to, range, false, &mut out).unwrap();
    let accepted: Vec<bool> = mixed.iter().map(|extent| reply.push(*extent)).collect();
    assert_eq!(accepted, [&[true][..], &[false; 8]].concat());
    let used = reply.finish();
    assert_eq!(decoded_extents(Framing::Extended, &out[..used], 4096), [(512, 0)]);
    let single = [extent(1 << 42, hole)];
    let bytes = status(Framing::Extended, 1 << 42, false, 64, &single);
    assert_eq!(decoded_extents(Framing::Extended, &bytes, 1 << 42), [(1 << 42, 3)]);
}

#[test]
fn status_replies_require_space_and_end_with_the_range() {
    let range = ExportRange { offset: OFFSET, length: u64::from(u32::MAX) };
    let reply_to = reply_to(Framing::Structured);
    let structured = transmission(Framing::Structured);
    let short = structured
        .begin_block_status_reply(reply_to, range, false, &mut [0; STATUS_BUFFER_BYTES_MIN - 1])
        .map(drop);
    assert_eq!(
        short,
        Err(BufferTooShort {
            bytes: STATUS_BUFFER_BYTES_MIN - 1,
            required: STATUS_BUFFER_BYTES_MIN
        })
    );

    let mut out = vec![0; 16 << 20];
    let mut reply = structured.begin_block_status_reply(reply_to, range, false, &mut out).unwrap();
    let states = [DATA, ZERO];
    let accepted =
        (0..).take_while(|n| reply.push(StatusExtent { length: 1, state: states[n % 2] })).count();
    assert_eq!(accepted, EXTENTS_MAX);
    assert!(!reply.push(StatusExtent { length: 1, state: DATA }));
    assert_eq!(reply.finish(), 24 + 8 * EXTENTS_MAX);

    // The maximum payload limits the reply as well.
    let block_sizes = BlockSizes { payload_max: 4096, ..BlockSizes::default() };
    let small = support::transmission(ALL, block_sizes, Framing::Structured);
    let mut reply = small.begin_block_status_reply(reply_to, range, false, &mut out).unwrap();
    while reply.push(StatusExtent { length: 1, state: DATA })
        && reply.push(StatusExtent { length: 1, state: ZERO })
    {}
    assert_eq!(reply.finish(), 24 + 4096);
}
