//! Interoperability of this crate's client and server for every split of the byte stream, and
//! robustness against invalid input.

use proptest::prelude::*;
use suimon_nbd::{
    BlockSizes, ClientCommand, ClientHandshake, ClientHandshakeError, ClientRequest, ClientStep,
    Export, ExportRange, ExportSpec, ExtentState, Features, GREETING, NbdCommand, NbdError,
    NegotiatedParameters, ParsedHeader, ParsedReply, REPLY_BYTES_MAX, RemoteExport, ReplyContent,
    ReplyReader, RequestParser, ServerHandshake, ServerStep, StatusExtent, TlsMode,
    TransmissionFlags,
};

const MIB: u64 = 1 << 20;

fn export(features: Features) -> Export {
    let spec = ExportSpec {
        name: "disk".to_owned(),
        description: String::new(),
        size: 64 * MIB,
        block_sizes: BlockSizes { min: 512, ..BlockSizes::default() },
        features,
    };
    Export::new(spec).unwrap()
}

/// Runs a handshake between client and server, passing the server's output to the client `piece`
/// bytes at a time. Returns both results.
fn agree(export: &Export, piece: usize) -> (RemoteExport, NegotiatedParameters) {
    let mut client = ClientHandshake::new(export.name()).unwrap();
    let mut server = ServerHandshake::new(TlsMode::Off);
    let (mut to_client, mut to_server) = (GREETING.to_vec(), Vec::new());
    let (mut buffered, mut negotiated) = (Vec::new(), None);
    for _ in 0..10_000 {
        let count = piece.min(to_client.len());
        buffered.extend(to_client.drain(..count));
        let progress = client.handle_bytes(&buffered, &mut to_server).unwrap();
        buffered.drain(..progress.consumed);
        if let ClientStep::Negotiated(remote) = progress.step {
            assert!(buffered.is_empty() && to_client.is_empty());
            return (remote, negotiated.unwrap());
        }
        if negotiated.is_some() {
            continue;
        }
        let exports = [export.clone()];
        let progress = server.handle_bytes(&exports[..], &to_server, &mut to_client).unwrap();
        to_server.drain(..progress.consumed);
        if let ServerStep::Negotiated(agreed) = progress.step {
            negotiated = Some(*agreed);
        }
    }
    panic!("it never ends");
}

fn features() -> impl Strategy<Value = Features> {
    any::<[bool; 8]>().prop_map(|enabled| Features {
        read_only: enabled[0],
        flush: enabled[1],
        fua: enabled[2],
        rotational: enabled[3],
        trim: enabled[4],
        write_zeroes: enabled[5],
        fast_zero: enabled[5] && enabled[6],
        multi_conn: enabled[7],
        cache: false,
        allocation_status: enabled[6],
    })
}

fn commands() -> impl Strategy<Value = ClientCommand> {
    let range = (0..1000_u64, 1..100_u64);
    let range =
        range.prop_map(|(start, len)| ExportRange { offset: start * 512, length: len * 512 });
    (0..6, range).prop_map(|(kind, range)| match kind {
        0 => ClientCommand::Read(range),
        1 => ClientCommand::Write(range),
        2 => ClientCommand::WriteZeroes(range),
        3 => ClientCommand::BlockStatus(range),
        4 => ClientCommand::Flush,
        _ => ClientCommand::Disconnect,
    })
}

const ALL: Features = Features {
    read_only: false,
    flush: true,
    fua: true,
    rotational: false,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    multi_conn: true,
    cache: false,
    allocation_status: true,
};

proptest! {
    #[test]
    fn client_and_server_negotiate_equal_properties(features in features(), piece in 1_usize..40) {
        let export = export(features);
        let (client_export, negotiated) = agree(&export, piece);
        prop_assert_eq!(client_export.size, export.size());
        prop_assert_eq!(client_export.block_sizes, export.block_sizes());
        prop_assert_eq!(client_export.flags, negotiated.flags);
        prop_assert_eq!(client_export.allocation_context_id.is_some(), negotiated.base_allocation);
        prop_assert!(negotiated.framing.has_chunks() && !negotiated.framing.is_extended());
    }

    #[test]
    fn server_decodes_client_requests(command in commands(), cookie in any::<u64>()) {
        let transmission = RequestParser::new(&agree(&export(ALL), 4096).1);
        let bytes = ClientRequest { cookie, command }.encode().unwrap();
        let incoming = transmission.parse_header(&bytes).unwrap();
        let ParsedHeader::Request(request) = incoming else {
            prop_assert_eq!(command, ClientCommand::Disconnect);
            prop_assert_eq!(incoming, ParsedHeader::Disconnect);
            return Ok(());
        };
        prop_assert_eq!(request.reply_to.cookie(), cookie);
        let (expected, payload) = match command {
            ClientCommand::Read(range) => (NbdCommand::Read { range, dont_fragment: false }, 0),
            ClientCommand::Write(range) => (NbdCommand::Write { range, fua: false }, range.length),
            ClientCommand::WriteZeroes(range) => {
                (NbdCommand::WriteZeroes { range, fua: false, no_hole: false, fails_if_slow: false }, 0)
            }
            ClientCommand::BlockStatus(range) => (NbdCommand::BlockStatus { range, first_only: false }, 0),
            ClientCommand::Flush | ClientCommand::Disconnect => (NbdCommand::Flush, 0),
        };
        prop_assert_eq!((request.command, u64::from(request.payload_bytes)), (expected, payload));
    }

    /// Parses replies of every kind, also when only a prefix of each was received.
    #[test]
    fn client_decodes_server_replies(
        cookie in any::<u64>(),
        sector in 0..1000_u64,
        states in prop::collection::vec((1..50_u64, any::<bool>()), 1..20),
        error in prop::sample::select(NbdError::ALL.to_vec()),
        kind in 0..4,
    ) {
        let transmission = RequestParser::new(&agree(&export(ALL), 4096).1);
        let length = states.iter().map(|(len, _)| len * 512).sum();
        let range = ExportRange { offset: sector * 512, length };
        let command =
            if kind == 3 { ClientCommand::BlockStatus(range) } else { ClientCommand::Read(range) };
        let header = ClientRequest { cookie, command }.encode().unwrap();
        let ParsedHeader::Request(request) = transmission.parse_header(&header).unwrap() else {
            panic!("it is a request");
        };
        let extents: Vec<StatusExtent> = states.iter().map(|(len, is_hole)| {
            let hole = ExtentState::HOLE | ExtentState::ZERO;
            StatusExtent { length: len * 512, state: if *is_hole { hole } else { ExtentState::DATA } }
        }).collect();
        let mut out = vec![0; REPLY_BYTES_MAX + 64 * 20];
        let read = |bytes: &[u8]| -> Vec<(u64, u32, bool)> {
            let (mut rest, mut entries) = (bytes.to_vec(), Vec::new());
            while !rest.is_empty() {
                // An incomplete reply requests more bytes, never more than the reply has.
                for count in 0..rest.len().min(60) {
                    match ReplyReader.read(&rest[..count]).unwrap() {
                        ParsedReply::Incomplete { required } => assert!(required > count && required <= rest.len()),
                        ParsedReply::Chunk { consumed, .. } => assert!(consumed <= count),
                    }
                }
                let ParsedReply::Chunk { consumed, cookie: reply_cookie, content, .. } =
                    ReplyReader.read(&rest).unwrap() else { panic!("it is all there") };
                assert_eq!(reply_cookie, cookie);
                match content {
                    ReplyContent::Data { offset, length } => {
                        entries.push((offset, length, false));
                        // The test does not send the data itself.
                    }
                    ReplyContent::Hole { offset, length } => entries.push((offset, length, true)),
                    other => panic!("{other:?}"),
                }
                rest.drain(..consumed);
            }
            entries
        };
        match kind {
            0 => {
                let n = request.reply_to.encode_error(error, "out of 水", &mut out).unwrap();
                let ParsedReply::Chunk { consumed, content: ReplyContent::Error(failure), is_last, .. } =
                    ReplyReader.read(&out[..n]).unwrap() else { panic!("it has failed") };
                prop_assert_eq!((consumed, is_last), (n, true));
                prop_assert_eq!((failure.error, failure.message.as_str()), (error, "out of 水"));
            }
            1 => {
                let n = request.reply_to.encode_success(&mut out).unwrap();
                let part = ReplyReader.read(&out[..n]).unwrap();
                let expected =
                    ParsedReply::Chunk { consumed: n, cookie, is_last: true, content: ReplyContent::Empty };
                prop_assert_eq!(part, expected);
            }
            2 => {
                let (mut heads, mut sum) = (Vec::new(), 0);
                for chunk in transmission.split_read_reply(request.reply_to, range, false, extents) {
                    let n = chunk.encode_head(&mut out).unwrap();
                    heads.extend_from_slice(&out[..n]);
                }
                for (offset, length, _) in read(&heads) {
                    prop_assert_eq!(offset, range.offset + sum);
                    sum += u64::from(length);
                }
                prop_assert_eq!(sum, range.length);
            }
            _ => {
                let mut reply =
                    transmission.begin_block_status_reply(request.reply_to, range, false, &mut out).unwrap();
                extents.iter().for_each(|extent| { reply.push(*extent); });
                let n = reply.finish();
                let ParsedReply::Chunk { content: ReplyContent::Extents { extents: status_extents, .. }, .. } =
                    ReplyReader.read(&out[..n]).unwrap() else { panic!("it tells extents") };
                let is_hole = |extents: &mut dyn Iterator<Item = StatusExtent>| -> Vec<bool> {
                    extents.flat_map(|extent| {
                        let is_hole = extent.state.has(ExtentState::ZERO);
                        std::iter::repeat_n(is_hole, (extent.length / 512) as usize)
                    }).collect()
                };
                prop_assert_eq!(is_hole(&mut status_extents.into_iter()), is_hole(&mut extents.into_iter()));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), magic in 0..3) {
        let mut front = match magic {
            0 => 0x6744_6698_u32.to_be_bytes().to_vec(),
            1 => 0x668e_33ef_u32.to_be_bytes().to_vec(),
            _ => Vec::new(),
        };
        front.extend(&bytes);
        if let Ok(ParsedReply::Chunk { consumed, content, .. }) = ReplyReader.read(&front) {
            prop_assert!(consumed > 0 && consumed <= front.len());
            if let ReplyContent::Extents { extents, .. } = content {
                prop_assert!(extents.count() > 0);
            }
        }
        let mut client = ClientHandshake::new("disk").unwrap();
        let mut input = GREETING.to_vec();
        input.extend(&bytes);
        for _ in 0..50 {
            let Ok(progress) = client.handle_bytes(&input, &mut Vec::new()) else { break };
            prop_assert!(progress.consumed <= input.len());
            input.drain(..progress.consumed);
            if progress.step == ClientStep::NeedsBytes {
                break;
            }
        }
    }
}

#[test]
fn unusable_servers_return_specific_errors() {
    let start = |bytes: &[u8]| {
        let mut client = ClientHandshake::new("disk").unwrap();
        client.handle_bytes(bytes, &mut Vec::new())
    };
    assert_eq!(start(b"NBDX").unwrap_err(), ClientHandshakeError::Greeting { offset: 3 });
    let old = start(b"NBDMAGICIHAVEOPT\x00\x00").unwrap_err();
    assert_eq!(old, ClientHandshakeError::FixedNewstyleUnsupported { flags: 0 });
    assert!(ClientHandshake::new(&"x".repeat(5000)).is_err());
    // Unknown export.
    let mut client = ClientHandshake::new("other").unwrap();
    let mut server = ServerHandshake::new(TlsMode::Off);
    let (mut to_client, mut to_server) = (GREETING.to_vec(), Vec::new());
    let exports = [export(ALL)];
    let refused = loop {
        match client.handle_bytes(&to_client, &mut to_server) {
            Ok(progress) => drop(to_client.drain(..progress.consumed)),
            Err(error) => break error,
        }
        let progress = server.handle_bytes(&exports[..], &to_server, &mut to_client).unwrap();
        to_server.drain(..progress.consumed);
    };
    assert!(refused.to_string().contains("NBD_OPT_GO"), "{refused}");
    assert_eq!(TransmissionFlags::from_bits(3), {
        let flags = [TransmissionFlags::HAS_FLAGS, TransmissionFlags::READ_ONLY];
        TransmissionFlags::from_bits(flags[0].bits() | flags[1].bits())
    });
    let long = ExportRange { offset: 0, length: 1 << 32 };
    assert_eq!(ClientRequest { cookie: 1, command: ClientCommand::Read(long) }.encode(), None);
}
