//! Requests, command by command and error by error, compared with `doc/proto.md`.

use crate::nbd_client::{
    Ask, BLOCK_STATUS, CACHE, DF, DISC, FAST_ZERO, FLUSH, FUA, NO_HOLE, PAYLOAD_LEN, READ, REQ_ONE,
    TRIM, WRITE, WRITE_ZEROES,
};
use crate::support::{ALL, MIB, export, negotiated, spec, transmission};
use suimon_nbd::{
    BlockSizes, DesynchronizedError, ExportError, ExportRange, ExportSpec, Features, Framing,
    NbdCommand, NbdError, PAYLOAD_BYTES_MAX, ParsedHeader, Request, RequestError, RequestParser,
    TransmissionFlags,
};

const FRAMINGS: [Framing; 3] = [Framing::Simple, Framing::Structured, Framing::Extended];
const COOKIE: u64 = 0x0123_4567_89ab_cdef;

fn ask(kind: u16, flags: u16, offset: u64, length: u64) -> Ask {
    Ask { flags, kind, cookie: COOKIE, offset, length }
}

fn incoming(transmission: &RequestParser, framing: Framing, ask: Ask) -> ParsedHeader {
    transmission.parse_header(&ask.bytes(framing)).unwrap()
}

fn everything(framing: Framing) -> RequestParser {
    transmission(ALL, BlockSizes::default(), framing)
}

fn request(framing: Framing, ask: Ask) -> Request {
    match incoming(&everything(framing), framing, ask) {
        ParsedHeader::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn commands_are_parsed_with_their_flags() {
    let range = ExportRange { offset: 4096, length: 512 };
    let zeroes =
        |fua, no_hole, fast| NbdCommand::WriteZeroes { range, fua, no_hole, fails_if_slow: fast };
    let read = |dont_fragment| NbdCommand::Read { range, dont_fragment };
    let table = [
        (READ, 0, read(false)),
        (READ, FUA, read(false)),
        (WRITE, 0, NbdCommand::Write { range, fua: false }),
        (WRITE, FUA, NbdCommand::Write { range, fua: true }),
        (TRIM, 0, NbdCommand::Trim { range, fua: false }),
        (TRIM, FUA, NbdCommand::Trim { range, fua: true }),
        (CACHE, 0, NbdCommand::Cache { range }),
        (WRITE_ZEROES, 0, zeroes(false, false, false)),
        (WRITE_ZEROES, FUA, zeroes(true, false, false)),
        (WRITE_ZEROES, NO_HOLE, zeroes(false, true, false)),
        (WRITE_ZEROES, FAST_ZERO, zeroes(false, false, true)),
        (WRITE_ZEROES, FUA | NO_HOLE | FAST_ZERO, zeroes(true, true, true)),
    ];
    let with_chunks = [
        (READ, DF, read(true)),
        (BLOCK_STATUS, 0, NbdCommand::BlockStatus { range, first_only: false }),
        (BLOCK_STATUS, REQ_ONE, NbdCommand::BlockStatus { range, first_only: true }),
    ];
    for framing in FRAMINGS {
        let with_chunks = with_chunks.iter().filter(|_| framing.has_chunks());
        for (kind, flags, expected) in table.iter().chain(with_chunks) {
            let request = request(framing, ask(*kind, *flags, 4096, 512));
            assert_eq!(request.command, *expected, "{framing:?} {kind} {flags}");
            assert_eq!(request.reply_to.cookie(), COOKIE);
            assert_eq!(request.payload_bytes, if *kind == WRITE { 512 } else { 0 });
        }
        assert_eq!(request(framing, ask(FLUSH, FUA, 0, 0)).command, NbdCommand::Flush);
        let disconnect = incoming(&everything(framing), framing, ask(DISC, 0, 0, 0));
        assert_eq!(disconnect, ParsedHeader::Disconnect);
    }
    // With extended headers, `NBD_CMD_FLAG_PAYLOAD_LEN` announces the payload.
    let flagged = request(Framing::Extended, ask(WRITE, PAYLOAD_LEN | FUA, 4096, 512));
    assert_eq!(
        (flagged.command, flagged.payload_bytes),
        (NbdCommand::Write { range, fua: true }, 512)
    );
}

#[test]
fn a_header_has_the_bytes_of_the_specification() {
    let mut compact = [0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1].to_vec();
    compact.extend(COOKIE.to_be_bytes());
    compact.extend([0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 2, 0]);
    let mut extended = [0x21, 0xe4, 0x1c, 0x71, 0, 0x21, 0, 1].to_vec();
    extended.extend(COOKIE.to_be_bytes());
    extended.extend([0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
    let range = ExportRange { offset: 4096, length: 512 };
    for (framing, bytes) in [(Framing::Structured, compact), (Framing::Extended, extended)] {
        let transmission = everything(framing);
        assert_eq!(transmission.header_bytes(), bytes.len());
        let Ok(ParsedHeader::Request(request)) = transmission.parse_header(&bytes) else {
            panic!()
        };
        assert_eq!(request.command, NbdCommand::Write { range, fua: true });
        for end in 0..bytes.len() {
            assert_eq!(transmission.parse_header(&bytes[..end]), Ok(ParsedHeader::Incomplete));
        }
    }
}

#[test]
fn invalid_requests_have_specific_errors() {
    let block = BlockSizes { min: 512, preferred: 4096, payload_max: 65536 };
    let parser = |features| transmission(features, block, Framing::Structured);
    let read_only = parser(Features { read_only: true, ..ALL });
    let bare = parser(Features::default());
    let full = parser(ALL);
    use NbdError::{Inval, Nospc, Overflow, Perm};
    let table = [
        ("read off its blocks", full, ask(READ, 0, 1, 512), Inval),
        ("a length off its blocks", full, ask(READ, 0, 512, 513), Inval),
        ("write off its blocks", full, ask(WRITE, 0, 511, 512), Inval),
        ("read beyond the end", full, ask(READ, 0, MIB, 512), Inval),
        ("read across the end", full, ask(READ, 0, MIB - 512, 1024), Inval),
        ("trim beyond the end", full, ask(TRIM, 0, MIB, 512), Inval),
        ("cache beyond the end", full, ask(CACHE, 0, MIB, 512), Inval),
        ("status beyond the end", full, ask(BLOCK_STATUS, 0, MIB, 512), Inval),
        ("write beyond the end", full, ask(WRITE, 0, MIB, 512), Nospc),
        ("zeroes across the end", full, ask(WRITE_ZEROES, 0, MIB - 512, 1024), Nospc),
        ("an end that overflows", full, ask(WRITE, 0, u64::MAX - 511, 1024), Nospc),
        ("an end that overflows", full, ask(READ, 0, u64::MAX - 511, 512), Inval),
        ("an empty read", full, ask(READ, 0, 0, 0), Inval),
        ("an empty write", full, ask(WRITE, 0, 0, 0), Inval),
        ("a long read", full, ask(READ, 0, 0, 65536 + 512), Overflow),
        ("a long write", full, ask(WRITE, 0, 0, 65536 + 512), Inval),
        ("a flush of something", full, ask(FLUSH, 0, 0, 512), Inval),
        ("a flush from somewhere", full, ask(FLUSH, 0, 512, 0), Inval),
        ("an unknown command", full, ask(8, 0, 0, 512), Inval),
        ("the last command", full, ask(u16::MAX, 0, 0, 512), Inval),
        ("an unknown flag", full, ask(READ, 64, 0, 512), Inval),
        ("no hole of a read", full, ask(READ, NO_HOLE, 0, 512), Inval),
        ("one of a write", full, ask(WRITE, REQ_ONE, 0, 512), Inval),
        ("df of a status", full, ask(BLOCK_STATUS, DF, 0, 512), Inval),
        ("payload in compact headers", full, ask(WRITE, PAYLOAD_LEN, 0, 512), Inval),
        ("named contexts there", full, ask(BLOCK_STATUS, PAYLOAD_LEN, 0, 12), Inval),
        ("write to what is read-only", read_only, ask(WRITE, 0, 0, 512), Perm),
        ("trim of what is read-only", read_only, ask(TRIM, 0, 0, 512), Perm),
        ("zeroes to what is read-only", read_only, ask(WRITE_ZEROES, 0, 0, 512), Perm),
        ("a flush that is not offered", bare, ask(FLUSH, 0, 0, 0), Inval),
        ("a trim that is not offered", bare, ask(TRIM, 0, 0, 512), Inval),
        ("a cache that is not offered", bare, ask(CACHE, 0, 0, 512), Inval),
        ("zeroes that are not offered", bare, ask(WRITE_ZEROES, 0, 0, 512), Inval),
        ("status without a context", bare, ask(BLOCK_STATUS, 0, 0, 512), Inval),
        ("fua that is not offered", bare, ask(WRITE, FUA, 0, 512), Inval),
    ];
    for (name, transmission, ask, expected) in table {
        let ParsedHeader::Rejected(refused) = incoming(&transmission, Framing::Structured, ask)
        else {
            panic!("{name} is taken");
        };
        assert_eq!(refused.error.code(), expected, "{name}: {}", refused.error);
        assert_eq!(refused.reply_to.cookie(), COOKIE);
        let payload = if ask.kind == WRITE { ask.length } else { 0 };
        assert_eq!(u64::from(refused.payload_bytes), payload, "{name}");
    }
}

#[test]
fn boundary_values_are_accepted() {
    let sizes = BlockSizes { min: 512, preferred: 4096, payload_max: 65536 };
    let last = MIB - 512;
    for framing in FRAMINGS {
        let transmission = transmission(ALL, sizes, framing);
        for ask in [
            ask(READ, 0, 0, 65536),
            ask(WRITE, 0, 0, 65536),
            ask(READ, 0, last, 512),
            ask(WRITE, 0, last, 512),
            ask(TRIM, 0, 0, MIB),
            ask(CACHE, 0, 0, MIB),
            ask(WRITE_ZEROES, 0, 0, MIB),
        ] {
            let incoming = incoming(&transmission, framing, ask);
            assert!(matches!(incoming, ParsedHeader::Request(_)), "{incoming:?}");
        }
    }
}

#[test]
fn simple_replies_reject_df_and_report_inval() {
    let simple = transmission(ALL, BlockSizes::default(), Framing::Simple);
    let error = |ask| match incoming(&simple, Framing::Simple, ask) {
        ParsedHeader::Rejected(refused) => refused.error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error(ask(READ, DF, 0, 512)), RequestError::InvalidFlags { kind: READ, flags: DF });
    assert_eq!(error(ask(BLOCK_STATUS, 0, 0, 512)), RequestError::NoContext);
    let sizes = BlockSizes { payload_max: 4096, ..BlockSizes::default() };
    let small = transmission(ALL, sizes, Framing::Simple);
    let ParsedHeader::Rejected(refused) = incoming(&small, Framing::Simple, ask(READ, 0, 0, 8192))
    else {
        panic!();
    };
    assert_eq!(refused.error.code(), NbdError::Inval);
}

#[test]
fn connection_continues_while_synchronized() {
    let max = u64::from(PAYLOAD_BYTES_MAX);
    for framing in FRAMINGS {
        let transmission = everything(framing);
        // The payload is skipped, although no disk of this server accepts it.
        let ParsedHeader::Rejected(refused) =
            incoming(&transmission, framing, ask(WRITE, 0, 0, max))
        else {
            panic!();
        };
        assert_eq!(refused.payload_bytes, PAYLOAD_BYTES_MAX);
        let long = transmission.parse_header(&ask(WRITE, 0, 0, max + 1).bytes(framing));
        let expected = DesynchronizedError::PayloadTooLong {
            kind: WRITE,
            bytes: max + 1,
            max: PAYLOAD_BYTES_MAX,
        };
        assert_eq!(long, Err(expected));
        let mut bytes = ask(READ, 0, 0, 512).bytes(framing);
        bytes[3] ^= 1;
        let lost = transmission.parse_header(&bytes[..4]);
        assert!(matches!(lost, Err(DesynchronizedError::Magic { .. })), "{lost:?}");
    }
    // Unexpected payloads are skipped as well.
    for kind in [READ, FLUSH, 9] {
        let ask = ask(kind, PAYLOAD_LEN, 0, 700);
        let ParsedHeader::Rejected(refused) =
            incoming(&everything(Framing::Extended), Framing::Extended, ask)
        else {
            panic!();
        };
        assert_eq!(refused.payload_bytes, 700);
    }
    let huge = ask(9, PAYLOAD_LEN, 0, u64::MAX).bytes(Framing::Extended);
    assert!(everything(Framing::Extended).parse_header(&huge).is_err());
}

#[test]
fn extended_headers_address_a_whole_large_disk() {
    let size = 1 << 40;
    let disk = export(ExportSpec { size, ..spec("a") });
    let transmission = RequestParser::new(&negotiated(disk, Framing::Extended));
    let range = ExportRange { offset: 0, length: size };
    for (kind, expected) in [
        (TRIM, NbdCommand::Trim { range, fua: false }),
        (CACHE, NbdCommand::Cache { range }),
        (BLOCK_STATUS, NbdCommand::BlockStatus { range, first_only: false }),
    ] {
        let ParsedHeader::Request(request) =
            incoming(&transmission, Framing::Extended, ask(kind, 0, 0, size))
        else {
            panic!();
        };
        assert_eq!((request.command, request.payload_bytes), (expected, 0));
    }
}

#[test]
fn a_payload_may_select_contexts() {
    let transmission = everything(Framing::Extended);
    let request = request(Framing::Extended, ask(BLOCK_STATUS, PAYLOAD_LEN | REQ_ONE, 4096, 12));
    assert_eq!(
        request.command,
        NbdCommand::BlockStatusWithPayload { offset: 4096, first_only: true }
    );
    assert_eq!(request.payload_bytes, 12);
    let payload = |length: u64, id: u32| [&length.to_be_bytes()[..], &id.to_be_bytes()].concat();
    let full = transmission.parse_contexts(request, &payload(8192, 1)).unwrap();
    let range = ExportRange { offset: 4096, length: 8192 };
    assert_eq!(full.command, NbdCommand::BlockStatus { range, first_only: true });
    for invalid in [
        payload(8192, 2),
        payload(0, 1),
        payload(MIB, 1),
        payload(u64::MAX, 1),
        payload(8192, 1)[..11].to_vec(),
        [payload(8192, 1), vec![0, 0, 0, 1]].concat(),
        Vec::new(),
    ] {
        let refused = transmission.parse_contexts(request, &invalid).unwrap_err();
        assert_eq!((refused.error.code(), refused.payload_bytes), (NbdError::Inval, 0));
    }
    // No context, the same context twice, and more contexts than exist.
    for bytes in [8, 16, 20] {
        let ask = ask(BLOCK_STATUS, PAYLOAD_LEN, 0, bytes);
        let ParsedHeader::Rejected(refused) = incoming(&transmission, Framing::Extended, ask)
        else {
            panic!();
        };
        assert_eq!(refused.error, RequestError::Contexts { bytes });
        assert_eq!(u64::from(refused.payload_bytes), bytes);
    }
    // Other requests are returned unchanged.
    let read = self::request(Framing::Extended, ask(READ, 0, 0, 512));
    assert_eq!(transmission.parse_contexts(read, &[]), Ok(read));
}

#[test]
fn transmission_flags_match_features() {
    let none = Features::default();
    let full = Features { read_only: false, rotational: true, ..ALL };
    let bits = |features, framing, contexts| {
        export(ExportSpec { features, ..spec("a") }).flags(framing, contexts).bits()
    };
    let flag = |bit: u32| 1 | 1 << bit;
    let zeroes = Features { write_zeroes: true, ..none };
    for (features, expected) in [
        (none, 1),
        (Features { read_only: true, ..none }, flag(1)),
        (Features { flush: true, ..none }, flag(2)),
        (Features { fua: true, ..none }, flag(3)),
        (Features { rotational: true, ..none }, flag(4)),
        (Features { trim: true, ..none }, flag(5)),
        (zeroes, flag(6)),
        (Features { multi_conn: true, ..none }, flag(8)),
        (Features { cache: true, ..none }, flag(10)),
        (Features { fast_zero: true, ..zeroes }, flag(6) | flag(11)),
        (Features { allocation_status: true, ..none }, 1),
        (Features { read_only: true, ..full }, 0b0101_0001_1111),
    ] {
        assert_eq!(bits(features, Framing::Simple, false), expected, "{features:?}");
        assert_eq!(bits(features, Framing::Structured, true), expected | 1 << 7);
        assert_eq!(bits(features, Framing::Extended, false), expected | 1 << 7);
        assert_eq!(bits(features, Framing::Extended, true), expected | 1 << 7 | 1 << 12);
    }
    let displayed = format!("{:?}", export(spec("a")).flags(Framing::Structured, false));
    assert!(
        displayed.starts_with("{\"HAS_FLAGS\", \"SEND_FLUSH\"") && displayed.contains("SEND_DF")
    );
    assert_eq!(TransmissionFlags::BLOCK_STATUS_PAYLOAD.bits(), 1 << 12);
}

#[test]
fn invalid_exports_are_rejected() {
    let sizes = |min, preferred, payload_max| ExportSpec {
        block_sizes: BlockSizes { min, preferred, payload_max },
        size: 1 << 20,
        ..spec("a")
    };
    let error = |spec| suimon_nbd::Export::new(spec).unwrap_err();
    let long = "n".repeat(4097);
    for spec in [
        sizes(1, 512, 512),
        sizes(65536, 65536, 65536),
        sizes(512, 1 << 20, 32 << 20),
        ExportSpec { size: i64::MAX as u64, ..spec("large") },
        ExportSpec { size: 0, name: String::new(), ..spec("") },
    ] {
        assert!(suimon_nbd::Export::new(spec.clone()).is_ok(), "{spec:?}");
    }
    for (min, preferred, payload_max) in [
        (0, 4096, 1 << 20),
        (3, 4096, 1 << 20),
        (1 << 17, 1 << 17, 1 << 20),
        (1, 256, 1 << 20),
        (4096, 512, 1 << 20),
        (1, 5000, 1 << 20),
        (1, 4096, 512),
        (512, 512, 1000),
        (1, 4096, (32 << 20) + 1),
    ] {
        let message = error(sizes(min, preferred, payload_max)).to_string();
        assert!(message.contains("bytes is invalid; set"), "{message}");
    }
    let too_long = |field| ExportError::StringTooLong { field, bytes: 4097, max: 4096 };
    assert_eq!(error(ExportSpec { name: long.clone(), ..spec("") }), too_long("name"));
    assert_eq!(error(ExportSpec { description: long, ..spec("a") }), too_long("description"));
    assert_eq!(error(spec("a\0")), ExportError::Nul { field: "name", offset: 1 });
    let max = i64::MAX as u64;
    let large = ExportSpec { size: max + 1, ..spec("a") };
    assert_eq!(error(large), ExportError::SizeTooLarge { found: max + 1, max });
    let odd = ExportSpec { size: 513, ..sizes(512, 512, 512) };
    assert_eq!(error(odd), ExportError::SizeUnaligned { found: 513, block_min: 512 });
    let features = Features { fast_zero: true, ..Features::default() };
    assert_eq!(error(ExportSpec { features, ..spec("a") }), ExportError::FastZeroWithoutZero);
}
