//! Tests of large requests of a connection whose buffer memory is exhausted.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use suimon_image::ByteRange;
use suimon_nbd::Framing;
use suimon_ports::{ArmResult, DiskOp, DiskOutcome, DiskQueue, DiskRequest, FaultKind, NbdLimits};
use suimon_uring::PayloadTable;

use crate::queue_tests::{READ, WRITE, connection_of, header, is_readable, received, reply};
use crate::split_request::PART_BYTES;
use crate::{NbdAccounting, NbdQueue, RESERVED_BYTES};

/// Length of a request in bytes: not a multiple of a part.
const LEN: u32 = (32 << 20) - 4096;
const OFFSET: u64 = 8192;
const FUA: u16 = 1;
const DF: u16 = 1 << 2;

/// Returns accounts with buffer memory for the reservations of `connections` connections and
/// `surplus` further bytes. No memory is set aside for more connections.
fn budgets(connections: u64, surplus: u64) -> NbdAccounting {
    let budgets = NbdAccounting::default();
    let bytes = connections * RESERVED_BYTES + surplus;
    let limits = NbdLimits { connections_max: 0, buffer_bytes_max: bytes };
    budgets.set_limits(limits, limits);
    budgets
}

/// Returns the contents that the simulated disk has in a range.
fn contents(range: ByteRange) -> Vec<u8> {
    (range.offset()..range.end()).map(|position| (position / 512 % 251) as u8).collect()
}

/// Executes requests with `execute`, which returns their outcomes, until the queue needs data from
/// its client or its connection has ended.
fn serve(queue: &mut NbdQueue, execute: &mut impl FnMut(&NbdQueue, DiskRequest) -> DiskOutcome) {
    loop {
        let requests = received(queue);
        for request in requests {
            let outcome = execute(queue, request);
            queue.complete(request.tag, outcome);
        }
        if queue.flush().is_err() || queue.arm() == ArmResult::Armed {
            return;
        }
    }
}

fn table(queue: &NbdQueue) -> &PayloadTable {
    queue.payloads().downcast_ref().unwrap()
}

/// Executes a read of the simulated disk.
fn read(queue: &NbdQueue, request: DiskRequest) -> DiskOutcome {
    assert_eq!(request.op, DiskOp::Read);
    assert!(request.range.len() <= PART_BYTES);
    assert!(table(queue).copy_in(request.tag, 0, &contents(request.range)));
    DiskOutcome::Done
}

/// Serves the queue with `execute` until the client's thread has ended. The thread returns its
/// socket, which keeps the connection open, and the test's result.
fn serve_until<T>(
    queue: &mut NbdQueue,
    client: JoinHandle<(UnixStream, T)>,
    mut execute: impl FnMut(&NbdQueue, DiskRequest) -> DiskOutcome,
) -> T {
    while !client.is_finished() {
        serve(queue, &mut execute);
        std::thread::yield_now();
    }
    client.join().unwrap().1
}

/// Receives a structured chunk of a read. Returns its flags, type and payload.
fn chunk(client: &mut UnixStream) -> (u16, u16, Vec<u8>) {
    let mut header = [0; 20];
    client.read_exact(&mut header).unwrap();
    assert_eq!(header[..4], 0x668e_33ef_u32.to_be_bytes());
    let field = |offset: usize| u16::from_be_bytes([header[offset], header[offset + 1]]);
    let mut payload = vec![0; u32::from_be_bytes(header[16..].try_into().unwrap()) as usize];
    client.read_exact(&mut payload).unwrap();
    (field(4), field(6), payload)
}

fn whole_range() -> ByteRange {
    ByteRange::new(OFFSET, LEN.into()).unwrap()
}

#[test]
fn a_large_read_is_one_simple_reply_and_several_chunks_unless_they_are_forbidden() {
    for (framing, flags) in
        [(Framing::Simple, 0), (Framing::Structured, 0), (Framing::Structured, DF)]
    {
        let (mut queue, mut client) = connection_of(framing, &budgets(1, 0));
        let reader = std::thread::spawn(move || {
            client.write_all(&header(flags, READ, 7, OFFSET, LEN)).unwrap();
            client.write_all(&header(0, READ, 8, 0, 512)).unwrap();
            let mut data = Vec::new();
            let mut chunks = 0;
            if framing == Framing::Simple {
                assert_eq!(reply(&mut client), (0, 7));
                data.resize(LEN as usize, 0);
                client.read_exact(&mut data).unwrap();
                assert_eq!(reply(&mut client), (0, 8));
                return (client, (data, 1));
            }
            loop {
                let (flags, kind, payload) = chunk(&mut client);
                assert_eq!(kind, 1);
                let hole_offset = u64::from_be_bytes(payload[..8].try_into().unwrap());
                assert_eq!(hole_offset, OFFSET + data.len() as u64);
                data.extend_from_slice(&payload[8..]);
                chunks += 1;
                if flags == 1 {
                    chunk(&mut client);
                    return (client, (data, chunks));
                }
            }
        });
        let (data, chunks) = serve_until(&mut queue, reader, read);
        assert!(data == contents(whole_range()), "{framing:?} {flags}");
        let in_parts = u64::from(LEN).div_ceil(PART_BYTES);
        let is_one = framing == Framing::Simple || flags == DF;
        assert_eq!(chunks, if is_one { 1 } else { in_parts });
    }
}

#[test]
fn a_large_write_is_written_in_parts_and_has_one_reply() {
    let (mut queue, mut client) = connection_of(Framing::Simple, &budgets(1, 0));
    let writer = std::thread::spawn(move || {
        client.write_all(&header(FUA, WRITE, 7, OFFSET, LEN)).unwrap();
        client.write_all(&contents(whole_range())).unwrap();
        client.write_all(&header(0, READ, 8, OFFSET, 512)).unwrap();
        assert_eq!([reply(&mut client), reply(&mut client)], [(0, 7), (0, 8)]);
        (client, ())
    });
    let mut written = 0;
    serve_until(&mut queue, writer, |queue, request| {
        if request.op == DiskOp::Read {
            return read(queue, request);
        }
        assert_eq!(request.op, DiskOp::Write { is_durable: true });
        assert_eq!(request.range.offset(), OFFSET + written);
        let mut bytes = vec![0; request.range.len() as usize];
        assert!(table(queue).copy_out(request.tag, 0, &mut bytes));
        assert!(bytes == contents(request.range));
        written += request.range.len();
        DiskOutcome::Done
    });
    assert_eq!(written, LEN.into());
}

#[test]
fn a_write_that_fails_in_a_part_fails_and_the_next_request_is_served() {
    let (mut queue, mut client) = connection_of(Framing::Simple, &budgets(1, 0));
    let writer = std::thread::spawn(move || {
        client.write_all(&header(0, WRITE, 7, OFFSET, LEN)).unwrap();
        client.write_all(&contents(whole_range())).unwrap();
        client.write_all(&header(0, READ, 8, OFFSET, 512)).unwrap();
        assert_eq!([reply(&mut client), reply(&mut client)], [(28, 7), (0, 8)]);
        (client, ())
    });
    let mut parts = 0;
    serve_until(&mut queue, writer, |queue, request| {
        if request.op == DiskOp::Read {
            return read(queue, request);
        }
        parts += 1;
        if parts == 3 { DiskOutcome::NoSpace } else { DiskOutcome::Done }
    });
    assert_eq!(parts, 3);
}

#[test]
fn a_read_that_fails_in_a_part_is_reported_or_ends_the_connection() {
    let fails = |parts: &mut u32, queue: &NbdQueue, request| {
        *parts += 1;
        if *parts == 3 { DiskOutcome::Failed } else { read(queue, request) }
    };
    let (mut queue, mut client) = connection_of(Framing::Structured, &budgets(1, 0));
    let reader = std::thread::spawn(move || {
        client.write_all(&header(0, READ, 7, OFFSET, LEN)).unwrap();
        let kinds = [(); 3].map(|()| chunk(&mut client).1);
        assert_eq!(kinds, [1, 1, 0x8001]);
        client.write_all(&header(0, READ, 8, OFFSET, 512)).unwrap();
        assert_eq!(chunk(&mut client).1, 1);
        (client, ())
    });
    let mut parts = 0;
    serve_until(&mut queue, reader, |queue, request| fails(&mut parts, queue, request));
    assert_eq!(parts, 4);
    // A simple reply cannot report an error after its head.
    let (mut queue, mut client) = connection_of(Framing::Simple, &budgets(1, 0));
    client.write_all(&header(0, READ, 7, OFFSET, LEN)).unwrap();
    let reader = std::thread::spawn(move || client.read_to_end(&mut Vec::new()).unwrap());
    let mut parts = 0;
    while parts < 3 {
        serve(&mut queue, &mut |queue, request| fails(&mut parts, queue, request));
    }
    assert_eq!(queue.arm(), ArmResult::Pending);
    let fault = queue.receive(32, &mut Vec::new()).unwrap_err();
    assert!(
        fault.kind == FaultKind::Disconnected && fault.detail.contains("head was sent"),
        "{fault}"
    );
    drop(queue);
    assert_eq!(reader.join().unwrap() as u64, 16 + 2 * PART_BYTES);
}

#[test]
fn a_client_that_collects_nothing_does_not_stop_another_one() {
    let budgets = budgets(2, 24 << 20);
    let (mut greedy, mut uncollected) = connection_of(Framing::Simple, &budgets);
    for cookie in 0..64 {
        uncollected.write_all(&header(0, READ, cookie, 0, 1 << 20)).unwrap();
    }
    let any = |queue: &NbdQueue, request: DiskRequest| {
        assert!(table(queue).copy_in(request.tag, 0, &contents(request.range)));
        DiskOutcome::Done
    };
    serve(&mut greedy, &mut any.clone());
    let host = budgets.usage().host;
    assert!(host.limits.buffer_bytes_max - host.buffer_bytes < 1 << 20, "{host:?}");
    assert!(budgets.usage().delayed_requests > 0);
    // Sends small requests at any queue depth, and one of maximum length.
    let (mut queue, mut client) = connection_of(Framing::Simple, &budgets);
    let reader = std::thread::spawn(move || {
        for cookie in 0..100 {
            client.write_all(&header(0, READ, cookie, 0, 64 << 10)).unwrap();
        }
        client.write_all(&header(0, READ, 100, OFFSET, LEN)).unwrap();
        for cookie in 0..=100 {
            assert_eq!(reply(&mut client), (0, cookie));
            let len = if cookie == 100 { LEN as usize } else { 64 << 10 };
            client.read_exact(&mut vec![0; len]).unwrap();
        }
        (client, ())
    });
    serve_until(&mut queue, reader, any);
    // The memory of the greedy client is available after the client has disconnected.
    drop(greedy);
    assert!(budgets.usage().host.buffer_bytes <= RESERVED_BYTES + (1 << 20));
}

#[test]
fn the_end_of_a_connection_that_waits_for_its_disk_causes_no_wakeup() {
    let (mut queue, mut client) = connection_of(Framing::Simple, &budgets(1, 0));
    client.write_all(&header(0, READ, 1, 0, PART_BYTES as u32)).unwrap();
    client.write_all(&header(0, READ, 2, 0, PART_BYTES as u32)).unwrap();
    let [request] = received(&mut queue)[..] else { panic!("the second one has no memory") };
    assert_eq!(queue.arm(), ArmResult::Armed);
    drop(client);
    assert!(!is_readable(&queue), "the worker would poll until the disk has completed the request");
    queue.complete(request.tag, DiskOutcome::Done);
    assert_eq!(queue.flush().unwrap_err().kind, FaultKind::Disconnected);
}

#[test]
fn a_part_that_is_returned_unexecuted_is_received_again() {
    let (mut queue, mut client) = connection_of(Framing::Simple, &budgets(1, 0));
    client.write_all(&header(0, READ, 7, OFFSET, LEN)).unwrap();
    let [part] = received(&mut queue)[..] else { panic!("one part at a time") };
    assert_eq!(queue.arm(), ArmResult::Armed);
    assert!(queue.requeue(part));
    assert_eq!(queue.arm(), ArmResult::Pending);
    assert_eq!(received(&mut queue), [part]);
}
