//! Server side of the handshake, option by option, compared with the NBD specification
//! (`doc/proto.md`).

use crate::nbd_client::{ACK, INFO, META_CONTEXT, OptionReply, SERVER, info, meta, option};
use crate::support;
use crate::support::{Connection, MIB, export, spec};
use suimon_nbd::{
    BlockSizes, ExportSpec, Features, Framing, GREETING, HandshakeError, OPTION_BYTES_MAX,
    OPTIONS_MAX, OptionCode, OptionError, QUERIES_MAX, STRING_BYTES_MAX, ServerStep, TlsMode,
};

const UNSUP: u32 = 1 << 31 | 1;
const POLICY: u32 = 1 << 31 | 2;
const INVALID: u32 = 1 << 31 | 3;
const TLS_REQD: u32 = 1 << 31 | 5;
const UNKNOWN: u32 = 1 << 31 | 6;
const SHUTDOWN: u32 = 1 << 31 | 7;
const BLOCK_SIZE_REQD: u32 = 1 << 31 | 8;
const TOO_BIG: u32 = 1 << 31 | 9;
const EXT_HEADER_REQD: u32 = 1 << 31 | 10;

const ALLOCATION: &str = "base:allocation";

/// Expected transmission flags, with simple replies, of an export with every feature.
const FLAGS_ALL: u16 = 0b1101_0110_1101;

fn large() -> ExportSpec {
    let block_sizes = BlockSizes { min: 4096, preferred: 8192, payload_max: 65536 };
    ExportSpec { block_sizes, ..spec("large") }
}

fn two() -> Connection {
    Connection::new(vec![export(spec("a")), export(large())], TlsMode::Off)
}

#[test]
fn the_greeting_is_that_of_fixed_newstyle() {
    assert_eq!(GREETING[..8], 0x4e42_444d_4147_4943_u64.to_be_bytes());
    assert_eq!(GREETING[8..16], 0x4948_4156_454f_5054_u64.to_be_bytes());
    assert_eq!(GREETING[16..], [0, 3]);
}

#[test]
fn flags_that_were_not_offered_end_the_connection() {
    for flags in [4, 1 << 31, u32::MAX] {
        let mut connection = Connection::plain();
        connection.handshake = suimon_nbd::ServerHandshake::new(TlsMode::Off);
        let outcome = connection.send(&flags.to_be_bytes());
        assert_eq!(outcome.result, Err(HandshakeError::InvalidClientFlags { found: flags }));
        assert_eq!(connection.send(&[0]).result, Err(HandshakeError::AlreadyEnded));
    }
}

#[test]
fn every_option_gets_a_reply() {
    let name_4097 = "n".repeat(STRING_BYTES_MAX + 1);
    let many = vec![ALLOCATION; QUERIES_MAX as usize + 1];
    let max = &many[1..];
    let table: &[(&str, Vec<u8>, &[u32])] = &[
        ("list", option(3, &[]), &[SERVER, SERVER, ACK]),
        ("list with data", option(3, b"x"), &[INVALID]),
        ("a withdrawn one", option(4, &[]), &[UNSUP]),
        ("TLS", option(5, &[]), &[POLICY]),
        ("info", info(6, "a", &[]), &[INFO, ACK]),
        ("all info", info(6, "a", &[0, 1, 2, 3]), &[INFO, INFO, INFO, INFO, ACK]),
        ("info twice", info(6, "a", &[1, 1, 99]), &[INFO, INFO, ACK]),
        ("info of large blocks", info(6, "large", &[]), &[INFO, INFO, ACK]),
        ("info of none", info(6, "b", &[]), &[UNKNOWN]),
        ("no default of two", info(6, "", &[]), &[UNKNOWN]),
        ("a long name", info(6, &name_4097, &[]), &[INVALID]),
        ("not valid text", info(6, "a\0", &[]), &[INVALID]),
        ("a name cut off", option(6, &[0, 0, 0, 9, b'a', 0, 0]), &[INVALID]),
        ("no number of requests", option(6, &[0, 0, 0, 1, b'a', 0]), &[INVALID]),
        ("requests cut off", option(6, &[0, 0, 0, 0, 0, 2, 0, 1]), &[INVALID]),
        ("more than requests", option(6, &[0, 0, 0, 1, b'a', 0, 0, 7]), &[INVALID]),
        ("go without blocks", info(7, "large", &[]), &[INFO, INFO, BLOCK_SIZE_REQD]),
        ("contexts before chunks", meta(9, "a", &[]), &[INVALID]),
        ("selected before chunks", meta(10, "a", &[]), &[INVALID]),
        ("structured with data", option(8, &[0]), &[INVALID]),
        ("structured", option(8, &[]), &[ACK]),
        ("structured again", option(8, &[]), &[ACK]),
        ("contexts of none", meta(9, "b", &[]), &[UNKNOWN]),
        ("too many queries", meta(9, "a", &many), &[TOO_BIG]),
        ("as many as there may be", meta(9, "a", max), &[META_CONTEXT, ACK]),
        ("a long query", meta(9, "a", &[&format!("base:{name_4097}")]), &[INVALID]),
        ("no namespace", meta(10, "a", &["allocation"]), &[INVALID]),
        ("queries cut off", option(9, &[0, 0, 0, 0, 0, 0, 0, 1]), &[INVALID]),
        ("extended with data", option(11, &[0]), &[INVALID]),
        ("extended", option(11, &[]), &[ACK]),
        ("structured after that", option(8, &[]), &[EXT_HEADER_REQD]),
        ("an unknown one", option(12, b"with data"), &[UNSUP]),
        ("the last one", option(u32::MAX, &[]), &[UNSUP]),
        ("abort with data", option(2, b"bye"), &[ACK]),
    ];
    let mut connection = two();
    for (name, bytes, expected) in table {
        let outcome = connection.send(bytes);
        assert_eq!(outcome.kinds(), *expected, "{name}: {:?}", outcome.result);
        let code = u32::from_be_bytes(*bytes[8..].first_chunk().unwrap());
        assert!(outcome.replies().iter().all(|reply| reply.option == code), "{name}");
        assert_eq!(outcome.left, 0);
        match (name.starts_with("abort"), outcome.result) {
            (true, result) => assert_eq!(result, Ok(ServerStep::Aborted)),
            (false, Ok(ServerStep::OptionRejected(error))) => {
                assert_eq!(Some(&error.reply_type()), expected.last());
            }
            (false, result) => assert_eq!(result, Ok(ServerStep::OptionAcknowledged), "{name}"),
        }
    }
    assert_eq!(connection.send(&option(3, &[])).result, Err(HandshakeError::AlreadyEnded));
}

#[test]
fn option_errors_name_the_field_and_its_offset() {
    let mut connection = two();
    let mut refused = |bytes: &[u8]| match connection.send(bytes).result {
        Ok(ServerStep::OptionRejected(error)) => error,
        other => panic!("{other:?}"),
    };
    let go = OptionCode::GO;
    assert_eq!(
        refused(&option(7, &[0, 0, 0, 9, b'a'])),
        OptionError::Truncated { option: go, field: "export name", offset: 20, end: 21 }
    );
    assert_eq!(
        refused(&option(7, &[0, 0, 0, 1, b'a', 0, 1])),
        OptionError::Truncated { option: go, field: "information request", offset: 23, end: 23 }
    );
    assert_eq!(
        refused(&option(7, &[0, 0, 0, 1, b'a', 0, 0, 1, 2])),
        OptionError::Surplus { option: go, offset: 23, bytes: 2 }
    );
    assert_eq!(
        refused(&option(7, &[0, 0, 0, 1, 0xff, 0, 0])),
        OptionError::NotText { option: go, field: "export name", offset: 20 }
    );
    let option_8 = OptionCode::STRUCTURED_REPLY;
    assert_eq!(
        refused(&option(8, &[1, 2])),
        OptionError::UnexpectedData { option: option_8, bytes: 2 }
    );
}

#[test]
fn export_information_matches_the_specification() {
    let mut connection = two();
    let outcome = connection.send(&info(6, "large", &[1, 2]));
    let flags = FLAGS_ALL.to_be_bytes();
    let expected: Vec<Vec<u8>> = vec![
        [&[0, 0][..], &MIB.to_be_bytes(), &flags].concat(),
        b"\x00\x01large".to_vec(),
        b"\x00\x02about large".to_vec(),
        vec![0, 3, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0, 1, 0, 0],
        Vec::new(),
    ];
    let actual: Vec<Vec<u8>> = outcome.replies().into_iter().map(|reply| reply.data).collect();
    assert_eq!(actual, expected);
    let listed = connection.send(&option(3, &[])).replies();
    assert_eq!(listed[0].data, b"\x00\x00\x00\x01aabout a");
    assert_eq!(listed[1].data, b"\x00\x00\x00\x05largeabout large");
}

#[test]
fn go_does_not_consume_following_bytes() {
    let bytes = [info(7, "a", &[3]), b"request".to_vec()].concat();
    let outcome = Connection::plain().send(&bytes);
    assert_eq!((outcome.kinds(), outcome.left), (vec![INFO, INFO, ACK], 7));
    let negotiated = outcome.negotiated();
    assert_eq!(negotiated.export, export(spec("a")));
    assert_eq!(negotiated.framing, Framing::Simple);
    assert_eq!((negotiated.base_allocation, negotiated.tls), (false, false));
    assert_eq!(negotiated.flags.bits(), FLAGS_ALL);
    // The empty name selects the only export; block sizes were requested.
    assert_eq!(Connection::plain().send(&info(7, "", &[])).negotiated().export.name(), "a");
    assert_eq!(two().send(&info(7, "large", &[3])).negotiated().export.name(), "large");
}

#[test]
fn export_name_option_selects_an_export_with_and_without_zeroes() {
    for (flags, zeroes) in [(0, 124), (1, 124), (2, 0), (3, 0)] {
        let exports = vec![export(spec("a"))];
        let mut connection = Connection::with_flags(exports, TlsMode::Allowed, flags);
        let outcome = connection.send(&option(1, b"a"));
        let (size, flag_bytes) = (MIB.to_be_bytes(), FLAGS_ALL.to_be_bytes());
        assert_eq!(outcome.output, [&size[..], &flag_bytes, &vec![0; zeroes]].concat());
        assert_eq!(outcome.negotiated().framing, Framing::Simple);
    }
    // Structured replies are permitted before `NBD_OPT_EXPORT_NAME`.
    let mut connection = Connection::plain();
    let outcome =
        connection.send(&[option(8, &[]), meta(10, "a", &[ALLOCATION]), option(1, b"")].concat());
    assert_eq!(outcome.negotiated().framing, Framing::Structured);
    assert!(outcome.negotiated().base_allocation);
}

#[test]
fn framing_can_be_limited() {
    for (framing_max, structured, extended) in [
        (Framing::Simple, UNSUP, UNSUP),
        (Framing::Structured, ACK, UNSUP),
        (Framing::Extended, ACK, ACK),
    ] {
        let mut connection = Connection::plain();
        connection.handshake = connection.handshake.with_framing_max(framing_max);
        assert_eq!(connection.send(&option(8, &[])).kinds(), [structured]);
        assert_eq!(connection.send(&option(11, &[])).kinds(), [extended]);
        let outcome = connection.send(&info(7, "a", &[]));
        assert_eq!(outcome.negotiated().framing, framing_max);
    }
}

#[test]
fn unusable_export_name_ends_the_connection() {
    let option_1 = OptionCode::EXPORT_NAME;
    let long = "n".repeat(STRING_BYTES_MAX + 1);
    for (name, expected) in [
        (&b"b"[..], OptionError::UnknownExport { option: option_1, name: "b".to_owned() }),
        (b"large", OptionError::BlockSizeRequired { option: option_1, min: 4096 }),
        (b"\xff", OptionError::NotText { option: option_1, field: "export name", offset: 16 }),
        (
            long.as_bytes(),
            OptionError::StringTooLong {
                option: option_1,
                field: "export name",
                offset: 16,
                bytes: 4097,
                max: 4096,
            },
        ),
    ] {
        let mut connection = two();
        let outcome = connection.send(&option(1, name));
        assert_eq!(outcome.result, Err(HandshakeError::ExportUnavailable(expected)));
        assert_eq!(outcome.output, b"");
    }
    let outcome = two().send(&[option(11, &[]), option(1, b"a")].concat());
    assert_eq!(outcome.result, Err(HandshakeError::NameWithExtendedHeaders));
}

#[test]
fn a_client_of_plain_newstyle_may_only_name_its_export() {
    for code in [2, 3, 5, 7, 8, 99] {
        let mut connection = Connection::with_flags(vec![export(spec("a"))], TlsMode::Off, 2);
        let outcome = connection.send(&option(code, &[]));
        let expected = HandshakeError::NotFixedNewstyle { option: OptionCode(code) };
        assert_eq!(outcome.result, Err(expected));
    }
}

#[test]
fn handshake_length_is_limited() {
    let mut connection = Connection::plain();
    let max = option(99, &vec![0; OPTION_BYTES_MAX as usize]);
    assert_eq!(connection.send(&max).kinds(), [UNSUP]);
    for _ in 1..OPTIONS_MAX {
        assert_eq!(connection.send(&option(3, &[])).kinds(), [SERVER, ACK]);
    }
    let outcome = connection.send(&option(3, &[]));
    assert_eq!(outcome.result, Err(HandshakeError::TooManyOptions { max: OPTIONS_MAX }));
    assert_eq!(outcome.output, b"");

    let mut long = option(3, &[]);
    long[12..].copy_from_slice(&(OPTION_BYTES_MAX + 1).to_be_bytes());
    let expected = HandshakeError::OptionTooLong {
        option: OptionCode::LIST,
        bytes: OPTION_BYTES_MAX + 1,
        max: OPTION_BYTES_MAX,
    };
    assert_eq!(Connection::plain().send(&long).result, Err(expected));

    let mut other = option(3, &[]);
    other[0] = b'J';
    let result = Connection::plain().send(&other).result;
    assert!(matches!(result, Err(HandshakeError::OptionMagic { .. })), "{result:?}");
}

#[test]
fn contexts_are_listed_and_selected_by_their_queries() {
    let unknowing = ExportSpec {
        features: Features { allocation_status: false, ..support::ALL },
        ..spec("unknowing")
    };
    let table: &[(u32, &str, &[&str], Option<u32>)] = &[
        (9, "a", &[], Some(0)),
        (9, "a", &["base:"], Some(0)),
        (9, "a", &["x-y:", ALLOCATION], Some(0)),
        (9, "a", &["base:alloc"], None),
        (9, "a", &["qemu:", "x-y:z"], None),
        (9, "unknowing", &[], None),
        (10, "a", &[ALLOCATION], Some(1)),
        (10, "a", &["base:", "x-y:", ALLOCATION, ALLOCATION], Some(1)),
        (10, "a", &["base:"], None),
        (10, "a", &["base:other"], None),
        (10, "a", &[], None),
        (10, "unknowing", &[ALLOCATION], None),
    ];
    for first in [8, 11] {
        let mut connection =
            Connection::new(vec![export(spec("a")), export(unknowing.clone())], TlsMode::Off);
        assert_eq!(connection.send(&option(first, &[])).kinds(), [ACK]);
        for (code, name, queries, expected) in table {
            let replies = connection.send(&meta(*code, name, queries)).replies();
            let reply = |id: &u32| OptionReply {
                option: *code,
                kind: META_CONTEXT,
                data: [&id.to_be_bytes()[..], ALLOCATION.as_bytes()].concat(),
            };
            let ack = OptionReply { option: *code, kind: ACK, data: Vec::new() };
            let expected: Vec<_> = expected.iter().map(reply).chain([ack]).collect();
            assert_eq!(replies, expected, "{code} {name} {queries:?}");
        }
    }
}

#[test]
fn a_context_is_selected_for_one_export_until_it_is_not() {
    let select = |name| meta(10, name, &[ALLOCATION]);
    for (name, options, expected) in [
        ("as it was", vec![select("a")], true),
        ("by the default name", vec![select("")], true),
        ("then another export", vec![select("a"), select("b")], false),
        ("another export before", vec![select("b"), select("a")], true),
        ("then none", vec![select("a"), meta(10, "a", &[])], false),
        ("then refused", vec![select("a"), meta(10, "a", &["x"])], false),
        ("then only listed", vec![select("a"), meta(9, "b", &[])], true),
        ("then TLS", vec![select("a"), option(5, &[])], false),
    ] {
        let exports = ["a", "b", ""].map(|name| export(spec(name)));
        let exports = if name == "by the default name" { &exports[..1] } else { &exports[..] };
        let mut connection = Connection::new(exports.to_vec(), TlsMode::Allowed);
        connection.send(&option(8, &[]));
        let outcome = connection.send(&options.concat());
        if outcome.result == Ok(ServerStep::StartTls) {
            connection.handshake.handle_tls_started().unwrap();
        }
        let outcome = connection.send(&info(7, "a", &[]));
        assert_eq!(outcome.negotiated().base_allocation, expected, "{name}");
    }
}

#[test]
fn context_applies_only_to_the_selected_export() {
    for (selected, entered) in [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")] {
        let exports = ["a", "b"].map(|name| export(spec(name)));
        let mut connection = Connection::new(exports.to_vec(), TlsMode::Off);
        let select = meta(10, selected, &[ALLOCATION]);
        let outcome = connection.send(&[option(8, &[]), select, info(7, entered, &[])].concat());
        assert_eq!(outcome.negotiated().base_allocation, selected == entered);
    }
}

#[test]
fn options_before_required_tls_are_rejected() {
    let mut connection = Connection::new(vec![export(spec("a"))], TlsMode::Required);
    for bytes in [
        option(3, &[]),
        info(6, "a", &[]),
        info(7, "a", &[]),
        option(8, &[]),
        meta(9, "a", &[]),
        meta(10, "a", &[]),
        option(11, &[]),
        option(99, b"data"),
    ] {
        assert_eq!(connection.send(&bytes).kinds(), [TLS_REQD]);
    }
    assert_eq!(connection.send(&option(5, b"data")).kinds(), [INVALID]);
    let outcome = connection.send(&[option(5, &[]), vec![0x16, 3, 1]].concat());
    assert_eq!((outcome.kinds(), outcome.left), (vec![ACK], 3));
    assert_eq!(outcome.result, Ok(ServerStep::StartTls));
    connection.handshake.handle_tls_started().unwrap();
    assert_eq!(connection.send(&option(5, &[])).kinds(), [INVALID]);
    assert!(connection.send(&info(7, "a", &[])).negotiated().tls);

    // Options without error reply end the connection; `NBD_OPT_ABORT` is always permitted.
    let fresh = || Connection::new(vec![export(spec("a"))], TlsMode::Required);
    let expected = OptionError::TlsRequired { option: OptionCode::EXPORT_NAME };
    let outcome = fresh().send(&option(1, b"a"));
    assert_eq!(outcome.result, Err(HandshakeError::ExportUnavailable(expected)));
    assert_eq!(fresh().send(&option(2, &[])).kinds(), [ACK]);
}

#[test]
fn starttls_discards_negotiated_state() {
    let mut connection = Connection::new(vec![export(spec("a"))], TlsMode::Allowed);
    let outcome = connection.send(&[option(11, &[]), option(5, &[])].concat());
    assert_eq!(outcome.result, Ok(ServerStep::StartTls));
    connection.handshake.handle_tls_started().unwrap();
    let outcome = connection.send(&info(7, "a", &[]));
    assert_eq!((outcome.negotiated().framing, outcome.negotiated().tls), (Framing::Simple, true));
}

#[test]
fn tls_starts_only_on_request() {
    let mut connection = Connection::new(vec![export(spec("a"))], TlsMode::Allowed);
    let not_asked = Err(HandshakeError::TlsNotRequested);
    assert_eq!(connection.handshake.handle_tls_started(), not_asked);
    assert_eq!(connection.send(&option(5, &[])).result, Ok(ServerStep::StartTls));
    let outcome = connection.send(&option(3, &[]));
    assert_eq!(outcome.result, Err(HandshakeError::TlsNotStarted));
    assert_eq!(connection.handshake.handle_tls_started(), not_asked);
}

#[test]
fn shutdown_permits_only_abort() {
    let mut connection = Connection::plain();
    connection.handshake.handle_shutdown();
    for bytes in [option(3, &[]), option(5, &[]), info(7, "a", &[]), option(99, &[])] {
        assert_eq!(connection.send(&bytes).kinds(), [SHUTDOWN]);
    }
    assert_eq!(connection.send(&option(2, &[])).result, Ok(ServerStep::Aborted));
    let mut connection = Connection::plain();
    connection.handshake.handle_shutdown();
    let expected = OptionError::ShuttingDown { option: OptionCode::EXPORT_NAME };
    let outcome = connection.send(&option(1, b"a"));
    assert_eq!(outcome.result, Err(HandshakeError::ExportUnavailable(expected)));
}

#[test]
fn error_messages_are_limited_to_the_length_of_strings() {
    // The name is longer in escaped form than a message may be.
    let name = "\u{1}".repeat(STRING_BYTES_MAX);
    let replies = two().send(&info(6, &name, &[])).replies();
    assert_eq!((replies[0].kind, replies[0].message().len()), (UNKNOWN, STRING_BYTES_MAX));
}
