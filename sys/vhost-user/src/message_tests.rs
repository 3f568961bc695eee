use std::os::fd::OwnedFd;

use proptest::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

use super::*;

fn fds(count: usize) -> Vec<OwnedFd> {
    (0..count).map(|_| eventfd(0, EventfdFlags::CLOEXEC).unwrap()).collect()
}

fn header(request: u32, flags: u32, size: u32) -> Result<Header, MessageError> {
    let words = [request, flags, size].map(u32::to_ne_bytes).concat();
    Header::decode(&words.try_into().unwrap())
}

fn parse(request: Request, payload: &[u8], count: usize) -> Result<FrontEndMessage, MessageError> {
    let header = header(request as u32, 1, payload.len() as u32)?;
    FrontEndMessage::parse(&header, payload, fds(count))
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn headers_that_are_none_are_refused_by_name() {
    for code in [0, 22, 23, 33, 35, 41, u32::MAX] {
        assert_eq!(header(code, 1, 0), Err(MessageError::UnknownRequest { code }));
    }
    for request in Request::ALL {
        assert_eq!(Request::from_code(*request as u32), Some(*request));
    }
    let text = |result: Result<Header, MessageError>| result.unwrap_err().to_string();
    assert!(text(header(1, 0, 0)).contains("GET_FEATURES: version 0"));
    assert!(text(header(1, 5, 0)).contains("mark a reply"));
    assert_eq!(text(header(2, 1, 9999)), "SET_FEATURES: `size` 9999, 8 expected");
    assert!(header(2, 9, 8).unwrap().requires_ack);
    assert!(!header(2, 1, 8).unwrap().requires_ack);
}

#[test]
fn encoded_fields_decode_to_the_same_values() {
    let addr = words(&[3 | 1 << 32, 0x1000, 0x3000, 0x2000, 0x9999]);
    assert!(matches!(
        parse(Request::SetVringAddr, &addr, 0).unwrap(),
        FrontEndMessage::SetVringAddr {
            index: 3,
            descriptors: 0x1000,
            used: 0x3000,
            available: 0x2000,
            log_addr: Some(0x9999)
        }
    ));
    let base = words(&[5 | 0x8001_8001 << 32]);
    assert!(matches!(
        parse(Request::SetVringBase, &base, 0).unwrap(),
        FrontEndMessage::SetVringBase { index: 5, base: 0x8001_8001 }
    ));
    let rarp = [0x52, 0x54, 0, 1, 2, 3, 0, 0];
    match parse(Request::SendRarp, &rarp, 0).unwrap() {
        FrontEndMessage::SendRarp(mac) => assert_eq!(mac.to_string(), "52:54:00:01:02:03"),
        other => panic!("{other:?}"),
    }
    let table = words(&[2, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80]);
    match parse(Request::SetMemTable, &table, 2).unwrap() {
        FrontEndMessage::SetMemTable(regions) => {
            let second =
                RegionInfo { guest_addr: 0x50, size: 0x60, user_addr: 0x70, mmap_offset: 0x80 };
            assert_eq!(regions[1].0, second);
        }
        other => panic!("{other:?}"),
    }
    let mut full_table = table.clone();
    full_table.resize(8 + 8 * 32, 0);
    assert!(
        parse(Request::SetMemTable, &full_table, 2).is_ok(),
        "some front-ends send the whole array"
    );
    let removal = words(&[0, 1, 2, 3, 4]);
    assert!(parse(Request::RemMemReg, &removal, 0).is_ok());
    assert!(parse(Request::RemMemReg, &removal, 1).is_ok(), "older front-ends send a descriptor");
    let config = [words(&[1 | 4 << 32]), vec![0; 4], vec![0; 4]].concat();
    assert!(matches!(
        parse(Request::GetConfig, &config, 0).unwrap(),
        FrontEndMessage::GetConfig { offset: 1, size: 4, flags: 0 }
    ));
}

#[test]
fn encoded_records_and_channels_decode_to_the_same_values() {
    assert!(matches!(
        parse(Request::SetLogBase, &words(&[0x8000, 0x1000]), 1).unwrap(),
        FrontEndMessage::SetLogBase(LogInfo { size: 0x8000, mmap_offset: 0x1000 }, _)
    ));
    for (payload, count) in [(0, 0), (0, 1), (8, 0), (8, 1)] {
        match parse(Request::SetLogFd, &vec![0; payload], count).unwrap() {
            FrontEndMessage::SetLogFd(fd) => assert_eq!(fd.is_some(), count == 1),
            other => panic!("{other:?}"),
        }
    }
    for (wire_bytes, request) in [(20, Request::GetInflightFd), (24, Request::SetInflightFd)] {
        let payload = words(&[0x2000, 0x3000, 4 | 256 << 16]);
        let count = usize::from(request == Request::SetInflightFd);
        let info = InflightInfo {
            size: 0x2000,
            mmap_offset: 0x3000,
            queues: 4,
            queue_size: 256,
            wire_bytes,
        };
        match parse(request, &payload[..wire_bytes], count).unwrap() {
            FrontEndMessage::GetInflightFd(actual) | FrontEndMessage::SetInflightFd(actual, _) => {
                assert_eq!(actual, info);
            }
            other => panic!("{other:?}"),
        }
        let fd = std::sync::Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let reply = crate::VhostUserReply::Inflight(info, fd);
        let bytes = reply.encode(request);
        assert_eq!(bytes[HEADER_BYTES..], payload[..wire_bytes]);
        assert!(reply.fd().is_some());
    }
    match parse(Request::SetBackendReqFd, &[], 1).unwrap() {
        FrontEndMessage::SetBackendReqFd(_) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_sizes_descriptors_and_fields_are_named() {
    let text = |result: Result<FrontEndMessage, MessageError>| result.unwrap_err().to_string();
    let cases = [
        (text(parse(Request::SetFeatures, &[0; 7], 0)), "SET_FEATURES: `size` 7, 8 expected"),
        (text(parse(Request::GetFeatures, &[], 1)), "GET_FEATURES: 1 descriptors, 0 expected"),
        (text(parse(Request::SetVringKick, &words(&[0]), 0)), "SET_VRING_KICK: 0 descriptors"),
        (text(parse(Request::SetVringKick, &words(&[0]), 2)), "SET_VRING_KICK: 2 descriptors"),
        (text(parse(Request::SetVringCall, &words(&[1 << 8]), 1)), "SET_VRING_CALL: 1 descriptors"),
        (text(parse(Request::SetVringErr, &words(&[1 << 9]), 1)), "`u64` 0x200 is out of range"),
        (text(parse(Request::SetLogBase, &words(&[1]), 1)), "SET_LOG_BASE: `size` 8, 16 expected"),
        (text(parse(Request::SetLogBase, &words(&[1, 0]), 0)), "SET_LOG_BASE: 0 descriptors"),
        (text(parse(Request::SetLogFd, &[0; 4], 1)), "SET_LOG_FD: `size` 4, 0 expected"),
        (text(parse(Request::SetLogFd, &[], 2)), "SET_LOG_FD: 2 descriptors, 1 expected"),
        (text(parse(Request::GetInflightFd, &[1; 24], 1)), "`num queues` 0x101"),
        (
            text(parse(Request::GetInflightFd, &words(&[0, 0, 1 | 256 << 16]), 1)),
            "1 descriptors, 0",
        ),
        (
            text(parse(Request::SetInflightFd, &words(&[0, 0, 1 | 256 << 16]), 0)),
            "0 descriptors, 1",
        ),
        (text(parse(Request::SetInflightFd, &words(&[0, 0]), 1)), "`size` 16, 20 expected"),
        (text(parse(Request::GetInflightFd, &words(&[0, 0, 0]), 0)), "`num queues` 0x0"),
        (text(parse(Request::GetInflightFd, &words(&[0, 0, 1]), 0)), "`queue size` 0x0"),
        (text(parse(Request::SetBackendReqFd, &[], 0)), "SET_BACKEND_REQ_FD: 0 descriptors"),
        (text(parse(Request::SetVringEnable, &words(&[2 << 32]), 0)), "`num` 0x2"),
        (text(parse(Request::SendRarp, &[0xff; 8], 0)), "`mac` 0xffffffffffff"),
        (text(parse(Request::SetStatus, &words(&[256]), 0)), "`status` 0x100"),
        (text(parse(Request::SetMemTable, &words(&[0]), 0)), "`num regions` 0x0"),
        (text(parse(Request::SetMemTable, &words(&[9]), 0)), "`num regions` 0x9"),
        (text(parse(Request::SetMemTable, &words(&[2, 0, 0, 0, 0]), 2)), "40, 72 expected"),
        (text(parse(Request::SetMemTable, &[0; 4], 0)), "SET_MEM_TABLE: `size` 4, 8 expected"),
        (text(parse(Request::SetMemTable, &words(&[1, 0, 0, 0, 0]), 2)), "2 descriptors, 1"),
        (text(parse(Request::AddMemReg, &words(&[0; 5]), 0)), "ADD_MEM_REG: 0 descriptors"),
        (text(parse(Request::RemMemReg, &words(&[0; 5]), 2)), "REM_MEM_REG: 2 descriptors"),
        (text(parse(Request::GetConfig, &words(&[9 << 32, 0]), 0)), "`size` 16, 21 expected"),
        (text(parse(Request::SetConfig, &words(&[300 << 32, 0]), 0)), "`size` 0x12c"),
    ];
    for (text, expected) in cases {
        assert!(text.contains(expected), "{text} | {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_message_or_an_error(
        request in 0..45_u32,
        flags in prop_oneof![Just(1_u32), Just(9), any::<u32>()],
        payload in prop::collection::vec(any::<u8>(), 0..PAYLOAD_BYTES_MAX),
        count in 0..=FDS_MAX,
    ) {
        if let Ok(header) = header(request, flags, payload.len() as u32) {
            prop_assert!(header.size <= PAYLOAD_BYTES_MAX);
            let _ = FrontEndMessage::parse(&header, &payload, fds(count));
        }
    }

    #[test]
    fn numbers_survive(value in any::<u64>()) {
        match parse(Request::SetFeatures, &words(&[value]), 0) {
            Ok(FrontEndMessage::SetFeatures(bits)) => prop_assert_eq!(bits, value),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
