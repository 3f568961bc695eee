//! Properties for arbitrary input, arbitrary splits of it, and arbitrary requests and extents.

use crate::nbd_client::{Ask, BLOCK_STATUS, Fields, READ, answer, info, meta, option};
use crate::support::{ALL, Connection, HandshakeResult, MIB, export, spec, transmission};
use proptest::prelude::*;
use suimon_nbd::{
    BlockSizes, ChunkKind, ExportRange, ExtentState, Framing, NbdCommand, ParsedHeader,
    REPLY_BYTES_MAX, RequestParser, ServerStep, StatusExtent, TlsMode,
};

fn any_framing() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::Simple), Just(Framing::Structured), Just(Framing::Extended)]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just(String::new()), "[a-z\0水]{0,5}"]
}

/// Generates a typical or arbitrary option.
fn any_option() -> impl Strategy<Value = Vec<u8>> {
    let query = prop_oneof![Just("base:allocation"), Just("base:"), Just("x-y:z"), Just("none")];
    prop_oneof![
        (any_name(), prop::collection::vec(0u16..5, 0..5), 6u32..8)
            .prop_map(|(name, requests, code)| info(code, &name, &requests)),
        (any_name(), prop::collection::vec(query, 0..4), 9u32..11)
            .prop_map(|(name, queries, code)| meta(code, &name, &queries)),
        (any_name(), 1u32..2).prop_map(|(name, code)| option(code, name.as_bytes())),
        prop::sample::select(vec![3, 5, 8, 11]).prop_map(|code| option(code, &[])),
        (0u32..14, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(code, data)| option(code, &data)),
    ]
}

/// Generates the bytes that a client sends, with random modifications.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let flags = prop_oneof![8 => Just(3u32), 1 => 0u32..5];
    let options = prop::collection::vec(any_option(), 0..12);
    let change = prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    (flags, options, change).prop_map(|(flags, options, change)| {
        let mut bytes = [flags.to_be_bytes().to_vec(), options.concat()].concat();
        if let Some((position, byte)) = change {
            let index = position.index(bytes.len());
            bytes[index] = byte;
        }
        bytes
    })
}

fn fresh(mode: TlsMode) -> Connection {
    let mut connection = Connection::new(vec![export(spec("a"))], mode);
    connection.handshake = suimon_nbd::ServerHandshake::new(mode);
    connection
}

/// Passes the bytes to a handshake, split into pieces of these sizes in turn, until the handshake
/// ends or fails.
fn feed(mode: TlsMode, bytes: &[u8], sizes: &[usize]) -> HandshakeResult {
    let mut connection = fresh(mode);
    let mut total = HandshakeResult {
        result: Ok(ServerStep::NeedsBytes),
        output: Vec::new(),
        left: bytes.len(),
    };
    let mut sizes = sizes.iter().cycle();
    while total.left > 0 {
        let rest = &bytes[bytes.len() - total.left..];
        let size = rest.len().min(*sizes.next().unwrap());
        let outcome = connection.send(&rest[..size]);
        total.output.extend(outcome.output);
        total.left -= size - outcome.left;
        total.result = outcome.result;
        match &total.result {
            Ok(ServerStep::StartTls) => connection.handshake.handle_tls_started().unwrap(),
            Ok(ServerStep::Aborted | ServerStep::Negotiated(_)) => break,
            Ok(_) => {}
            Err(_) => {
                total.left = 0;
            }
        }
    }
    total
}

fn any_state() -> impl Strategy<Value = ExtentState> {
    prop::sample::select(vec![
        ExtentState::DATA,
        ExtentState::HOLE,
        ExtentState::ZERO,
        ExtentState::HOLE | ExtentState::ZERO,
    ])
}

fn any_extents() -> impl Strategy<Value = Vec<StatusExtent>> {
    let length = prop_oneof![6 => 0u64..3000, 1 => any::<u64>()];
    let extent = (length, any_state()).prop_map(|(length, state)| StatusExtent { length, state });
    prop::collection::vec(extent, 0..40)
}

/// Reference implementation: returns the state of each byte of a range of `length` bytes; `None`
/// for bytes without an extent.
fn states(extents: &[StatusExtent], length: u64) -> Vec<Option<ExtentState>> {
    let actual = extents.iter().flat_map(|extent| {
        let count = extent.length.min(length) as usize;
        std::iter::repeat_n(Some(extent.state), count)
    });
    actual.chain(std::iter::repeat(None)).take(length as usize).collect()
}

fn accepted(transmission: &RequestParser, framing: Framing, ask: &Ask) -> suimon_nbd::Request {
    match transmission.parse_header(&ask.bytes(framing)) {
        Ok(ParsedHeader::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn handshake_is_independent_of_input_splits(
        bytes in any_stream(),
        mode in prop::sample::select(vec![TlsMode::Off, TlsMode::Allowed, TlsMode::Required]),
        sizes in prop::collection::vec(1usize..50, 1..5),
    ) {
        let complete = feed(mode, &bytes, &[usize::MAX]);
        prop_assert_eq!(&feed(mode, &bytes, &sizes), &complete);
        prop_assert_eq!(&feed(mode, &bytes, &[1]), &complete);
        // Each option yields at most one reply per export, its information replies, and one more.
        prop_assert!(complete.output.len() <= 12 * 8 * 300, "{}", complete.output.len());
    }

    #[test]
    fn encoded_requests_decode_to_the_same_request(
        framing in any_framing(),
        kind in 0u16..9,
        flags in prop_oneof![Just(0u16), 0u16..64],
        cookie in any::<u64>(),
        offset in prop_oneof![0..2 * MIB, any::<u64>()],
        length in prop_oneof![0u64..MIB, 0u64..1 << 33, any::<u64>()],
    ) {
        let length = if framing.is_extended() { length } else { length & 0xffff_ffff };
        let ask = Ask { flags, kind, cookie, offset, length };
        let transmission = transmission(ALL, BlockSizes::default(), framing);
        match transmission.parse_header(&ask.bytes(framing)) {
            Ok(ParsedHeader::Request(request)) => {
                prop_assert_eq!(request.reply_to.cookie(), cookie);
                let range = match request.command {
                    NbdCommand::Read { range, .. } | NbdCommand::Write { range, .. }
                    | NbdCommand::Trim { range, .. } | NbdCommand::Cache { range }
                    | NbdCommand::WriteZeroes { range, .. }
                    | NbdCommand::BlockStatus { range, .. } => range,
                    NbdCommand::Flush => ExportRange { offset: 0, length: 0 },
                    NbdCommand::BlockStatusWithPayload { offset, .. } => ExportRange { offset, length },
                };
                prop_assert_eq!(range, ExportRange { offset, length });
                let in_range = offset.checked_add(length).is_some_and(|end| end <= MIB);
                prop_assert!(in_range || kind == BLOCK_STATUS && length == 12);
            }
            Ok(ParsedHeader::Rejected(refused)) => {
                let mut out = [0; REPLY_BYTES_MAX];
                let used = refused.encode(&mut out).unwrap();
                let mut bytes = &out[..used];
                let answer = answer(framing, &ask, &mut bytes);
                prop_assert!(bytes.is_empty());
                prop_assert_eq!(answer.error, Some((refused.error.code().code(), None)));
                let message = if framing.has_chunks() { refused.error.to_string() } else { String::new() };
                prop_assert_eq!(answer.message, message);
            }
            Ok(ParsedHeader::Disconnect) => prop_assert_eq!(kind, 2),
            Ok(ParsedHeader::Incomplete) => prop_assert!(false, "the header is all there"),
            Err(_) => prop_assert!(length > 32 << 20),
        }
    }

    #[test]
    fn any_bytes_are_a_request_or_an_error(
        framing in any_framing(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        with_magic in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if with_magic {
            let ask = Ask { flags: 0, kind: 0, cookie: 0, offset: 0, length: 0 };
            bytes.splice(0..0, ask.bytes(framing)[..4].to_vec());
        }
        let transmission = transmission(ALL, BlockSizes::default(), framing);
        if let Ok(ParsedHeader::Request(request)) = transmission.parse_header(&bytes) {
            let _ = transmission.parse_contexts(request, &bytes);
        }
    }

    #[test]
    fn chunks_cover_a_read_once_and_zeroes_are_holes(
        framing in any_framing(),
        offset in 0u64..MIB / 2,
        length in 1u64..20_000,
        dont_fragment in any::<bool>(),
        extents in any_extents(),
    ) {
        let transmission = transmission(ALL, BlockSizes::default(), framing);
        let ask = Ask { flags: 0, kind: READ, cookie: 7, offset, length };
        let to = accepted(&transmission, framing, &ask).reply_to;
        let range = ExportRange { offset, length };
        let states = states(&extents, length);
        let mut sent = Vec::new();
        for chunk in transmission.split_read_reply(to, range, dont_fragment, extents) {
            let mut head = [0; REPLY_BYTES_MAX];
            let used = chunk.encode_head(&mut head).unwrap();
            sent.extend_from_slice(&head[..used]);
            if chunk.kind() == ChunkKind::Data {
                sent.extend((chunk.offset()..).take(chunk.length() as usize).map(|position| position as u8));
            }
        }
        let mut bytes = &sent[..];
        let answer = answer(framing, &ask, &mut bytes);
        prop_assert!(bytes.is_empty() && answer.error.is_none());
        let in_one = dont_fragment || framing == Framing::Simple;
        let mut read = vec![None; length as usize];
        for (start, data) in answer.data {
            for (position, byte) in (start..).zip(data) {
                prop_assert_eq!(byte, position as u8);
                prop_assert_eq!(read[(position - offset) as usize].replace(false), None);
            }
        }
        for (start, count) in answer.holes {
            for position in start..start + count {
                prop_assert_eq!(read[(position - offset) as usize].replace(true), None);
            }
        }
        for (is_hole, state) in read.into_iter().zip(states) {
            let is_zero = state.is_some_and(|state| state.has(ExtentState::ZERO));
            prop_assert_eq!(is_hole, Some(is_zero && !in_one));
        }
    }

    #[test]
    fn status_extents_are_ordered_merged_and_in_range(
        framing in prop::sample::select(vec![Framing::Structured, Framing::Extended]),
        length in 1u64..30_000,
        first_only in any::<bool>(),
        capacity in 56usize..400,
        extents in any_extents(),
    ) {
        let transmission = transmission(ALL, BlockSizes::default(), framing);
        let ask = Ask { flags: 0, kind: BLOCK_STATUS, cookie: 7, offset: 0, length };
        let to = accepted(&transmission, framing, &ask).reply_to;
        let range = ExportRange { offset: 0, length };
        let mut out = vec![0; capacity];
        let mut reply = transmission.begin_block_status_reply(to, range, first_only, &mut out).unwrap();
        for extent in &extents {
            if !reply.push(*extent) {
                break;
            }
        }
        let used = reply.finish();
        let mut bytes = &out[..used];
        let answer = answer(framing, &ask, &mut bytes);
        prop_assert!(bytes.is_empty());
        let states = states(&extents, length);
        let mut position = 0;
        let mut before = None;
        for (count, state) in answer.extents.iter().copied() {
            for state_before in &states[position as usize..(position + count) as usize] {
                let bits = state_before.unwrap_or_default();
                prop_assert_eq!(u64::from(bits.bits()), state);
            }
            prop_assert_ne!(before.replace(state), Some(state));
            position += count;
        }
        prop_assert!(!first_only || answer.extents.len() == 1);
        // The reply ends early only if the buffer is full or no further extent is known.
        let each = if framing.is_extended() { 16 } else { 8 };
        let known_count = states.iter().take_while(|state| state.is_some()).count() as u64;
        prop_assert!(first_only || position >= known_count || used + each > capacity);
    }

    #[test]
    fn lists_and_infos_are_read_back(name in "[a-z水]{0,40}", description in "[ -~]{0,80}") {
        let disk = export(suimon_nbd::ExportSpec { description, ..spec(&name) });
        let mut connection = Connection::new(vec![disk.clone()], TlsMode::Off);
        let listed = connection.send(&option(3, &[])).replies();
        let mut fields = Fields(&listed[0].data);
        let bytes = fields.number(4) as usize;
        prop_assert_eq!(fields.take(bytes), disk.name().as_bytes());
        prop_assert_eq!(fields.0, disk.description().as_bytes());
        let connected = connection.send(&info(7, &name, &[1]));
        prop_assert_eq!(&connected.negotiated().export, &disk);
        prop_assert_eq!(&connected.replies()[1].data[2..], disk.name().as_bytes());
    }
}
