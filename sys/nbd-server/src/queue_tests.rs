//! Tests of a connection from the client's end of its socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_image::ByteRange;
use suimon_nbd::{Export, ExportSpec, Features, Framing, NegotiatedParameters};
use suimon_ports::{
    Allocation, AllocationExtent, ArmResult, DiskOp, DiskOutcome, DiskQueue, DiskRequest, FaultKind,
};
use suimon_uring::PayloadTable;

use crate::memory::{CHUNK_BYTES, CHUNKS};
use crate::{NbdAccounting, NbdQueue};

const SIZE: u64 = 1 << 30;
pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const TRIM: u16 = 4;
const FUA: u16 = 1;

/// Creates a connection with simple replies, and the client's end of it.
fn connection() -> (NbdQueue, UnixStream) {
    connection_with(Framing::Simple)
}

fn connection_with(framing: Framing) -> (NbdQueue, UnixStream) {
    connection_of(framing, &NbdAccounting::default())
}

/// Creates a connection whose buffers count towards the accounts `budgets`, and the client's end of
/// it.
pub(crate) fn connection_of(framing: Framing, budgets: &NbdAccounting) -> (NbdQueue, UnixStream) {
    let has_chunks = framing.has_chunks();
    let mut features =
        Features { flush: true, fua: true, trim: true, write_zeroes: true, ..Features::default() };
    features.allocation_status = has_chunks;
    let spec = ExportSpec { name: "disk".to_owned(), size: SIZE, features, ..Default::default() };
    let export = Export::new(spec).unwrap();
    let flags = export.flags(framing, has_chunks);
    let negotiated =
        NegotiatedParameters { export, flags, framing, base_allocation: has_chunks, tls: false };
    let (socket, client) = UnixStream::pair().unwrap();
    let share = Arc::new(budgets.admit_daemon());
    (NbdQueue::new(socket, &negotiated, Vec::new(), share).unwrap(), client)
}

/// Encodes a request's header (section "Request message" of the protocol).
pub(crate) fn header(flags: u16, kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

pub(crate) fn received(queue: &mut NbdQueue) -> Vec<DiskRequest> {
    let mut requests = Vec::new();
    queue.receive(32, &mut requests).unwrap();
    requests
}

pub(crate) fn is_readable(queue: &NbdQueue) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let fd = queue.wake_fd();
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&now)).unwrap() == 1
}

/// Receives a simple reply. Returns its error number and cookie.
pub(crate) fn reply(client: &mut UnixStream) -> (u32, u64) {
    let mut bytes = [0; 16];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes[..4], 0x6744_6698_u32.to_be_bytes());
    let error = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
    (error, u64::from_be_bytes(bytes[8..].try_into().unwrap()))
}

#[test]
fn a_fragmented_request_is_one_request_and_its_reply_has_its_cookie() {
    let (mut queue, mut client) = connection();
    let bytes = [header(FUA, WRITE, 7, 4096, 70_000), vec![3; 70_000]].concat();
    for piece in bytes.chunks(9_999) {
        assert!(received(&mut queue).is_empty());
        client.write_all(piece).unwrap();
    }
    let requests = received(&mut queue);
    let range = ByteRange::new(4096, 70_000).unwrap();
    let [DiskRequest { tag, op: DiskOp::Write { is_durable: true }, range: actual }] = requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(actual, range);
    queue.complete(tag, DiskOutcome::NoSpace);
    queue.flush().unwrap();
    assert_eq!(reply(&mut client), (28, 7));
}

#[test]
fn a_header_that_has_not_arrived_completely_is_waited_for_without_polling() {
    let (mut queue, mut client) = connection();
    let bytes = header(0, READ, 1, 0, 512);
    client.write_all(&bytes[..10]).unwrap();
    assert!(received(&mut queue).is_empty());
    assert_eq!(queue.arm(), ArmResult::Armed);
    assert!(!is_readable(&queue));
    client.write_all(&bytes[10..]).unwrap();
    assert!(is_readable(&queue));
    assert_eq!(received(&mut queue).len(), 1);
}

#[test]
fn a_request_that_is_returned_unexecuted_is_received_again_with_its_payload() {
    let (mut queue, mut client) = connection();
    client.write_all(&[header(0, WRITE, 7, 4096, 512), vec![3; 512]].concat()).unwrap();
    let [request] = received(&mut queue)[..] else { panic!("it is whole") };
    assert_eq!(queue.arm(), ArmResult::Armed);
    assert!(queue.requeue(request) && !queue.redelivers_after_drop());
    assert_eq!(queue.arm(), ArmResult::Pending);
    assert_eq!(received(&mut queue), [request]);
    assert_eq!(queue.arm(), ArmResult::Armed);
    queue.complete(request.tag, DiskOutcome::Done);
    queue.flush().unwrap();
    assert_eq!(reply(&mut client), (0, 7));
}

#[test]
fn payloads_of_any_length_one_behind_the_other_each_get_their_own_bytes() {
    // The payload is longer than the bytes read ahead, and than those of one system call.
    let lens = [512, 4096, 6 << 20, 4096, 300 << 10, 1024, 65_536, 32 << 10, 4608];
    let payload = |number: usize, len: usize| -> Vec<u8> {
        (0..len).map(|position| (position ^ (position >> 9) ^ (number * 41)) as u8).collect()
    };
    let (mut queue, mut client) = connection();
    let sender = std::thread::spawn(move || {
        for (number, &len) in lens.iter().enumerate() {
            client.write_all(&header(0, WRITE, number as u64, 0, len as u32)).unwrap();
            client.write_all(&payload(number, len)).unwrap();
        }
        client
    });
    let mut received_count = 0;
    while received_count < lens.len() {
        for request in received(&mut queue) {
            let len = lens[received_count];
            assert_eq!(request.range.len(), len as u64);
            let mut bytes = vec![0; len];
            let table = queue.payloads().downcast_ref::<PayloadTable>().unwrap();
            assert!(table.copy_out(request.tag, 0, &mut bytes));
            assert!(bytes == payload(received_count, len), "number {received_count}");
            queue.complete(request.tag, DiskOutcome::Done);
            received_count += 1;
        }
    }
    queue.flush().unwrap();
    let mut client = sender.join().unwrap();
    for number in 0..lens.len() as u64 {
        assert_eq!(reply(&mut client), (0, number));
    }
}

#[test]
fn block_status_is_reported_for_selected_contexts_only() {
    let (mut queue, mut client) = connection_with(Framing::Extended);
    // Sections "Extended request message" and "NBD_CMD_BLOCK_STATUS": the payload contains the
    // length of the range, and the ids of contexts; 1 was selected.
    let ask = |cookie: u64, len: u64, context: u32| {
        let mut bytes = 0x21e4_1c71_u32.to_be_bytes().to_vec();
        bytes.extend((1_u16 << 5).to_be_bytes());
        bytes.extend(7_u16.to_be_bytes());
        bytes.extend([cookie, 8192, 12, len].map(u64::to_be_bytes).concat());
        bytes.extend(context.to_be_bytes());
        bytes
    };
    client.write_all(&[ask(1, 1 << 20, 9), ask(2, 1 << 20, 1)].concat()).unwrap();
    let requests = received(&mut queue);
    let [DiskRequest { tag, op: DiskOp::AllocationStatus { is_first_only: false }, range }] =
        requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(range, ByteRange::new(8192, 1 << 20).unwrap());
    let extents = [
        AllocationExtent { allocation: Allocation::Data, len: 4096 },
        AllocationExtent { allocation: Allocation::Hole, len: 512 },
    ];
    queue.set_allocation(tag, &extents);
    queue.complete(tag, DiskOutcome::Done);
    queue.flush().unwrap();
    // Type, cookie and payload of a chunk (section "Extended reply chunk message").
    let mut chunk = || {
        let mut header = [0; 32];
        client.read_exact(&mut header).unwrap();
        let payload = u64::from_be_bytes(header[24..].try_into().unwrap());
        let mut bytes = vec![0; payload as usize];
        client.read_exact(&mut bytes).unwrap();
        (u16::from_be_bytes([header[6], header[7]]), header[15], bytes)
    };
    let (kind, cookie, error) = chunk();
    assert_eq!((kind, cookie, &error[..4]), (0x8001, 1, &[0, 0, 0, 22][..]));
    let extent_bytes: Vec<u8> = [4096, 0, 512, 3_u64].map(u64::to_be_bytes).concat();
    let expected = [&[0, 0, 0, 1, 0, 0, 0, 2], &extent_bytes[..]].concat();
    assert_eq!(chunk(), (6, 2, expected));
}

#[test]
fn invalid_requests_end_the_connection_as_a_protocol_violation() {
    let (mut queue, mut client) = connection();
    client.write_all(&header(0, READ, 1, 0, 512)).unwrap();
    client.write_all(&[0xff; 28]).unwrap();
    let mut requests = Vec::new();
    let fault = queue.receive(32, &mut requests).unwrap_err();
    assert_eq!((fault.kind, requests.len()), (FaultKind::ProtocolViolation, 1), "{fault}");
}

#[test]
fn a_client_that_disconnects_with_or_without_notice_is_removed() {
    for bytes in [header(0, DISCONNECT, 1, 0, 0), Vec::new(), header(0, WRITE, 1, 0, 512)] {
        let (mut queue, mut client) = connection();
        client.write_all(&bytes).unwrap();
        drop(client);
        // The client receives the sent data first, and then the end of the connection.
        let fault = (0..2).find_map(|_| queue.receive(32, &mut Vec::new()).err()).unwrap();
        assert_eq!(fault.kind, FaultKind::Disconnected);
    }
}

#[test]
fn a_trim_with_forced_unit_access_is_flushed_before_its_reply() {
    let (mut queue, mut client) = connection();
    client.write_all(&header(FUA, TRIM, 5, 0, 4096)).unwrap();
    let trim = received(&mut queue);
    assert_eq!(trim[0].op, DiskOp::Discard);
    queue.complete(trim[0].tag, DiskOutcome::Done);
    assert_eq!(queue.arm(), ArmResult::Pending, "the queue has no further work");
    let flush = received(&mut queue);
    assert_eq!((flush[0].op, flush[0].tag), (DiskOp::Flush, trim[0].tag));
    queue.complete(flush[0].tag, DiskOutcome::Done);
    queue.flush().unwrap();
    assert_eq!(reply(&mut client), (0, 5));
}

#[test]
fn requests_beyond_the_memory_wait_until_memory_is_free() {
    const LEN: u32 = 8 << 20;
    let (mut queue, mut client) = connection();
    let capacity = CHUNKS as usize * CHUNK_BYTES / LEN as usize;
    for cookie in 0..capacity as u64 + 3 {
        client.write_all(&header(0, READ, cookie, 0, LEN)).unwrap();
    }
    let mut under_way = received(&mut queue);
    assert_eq!(under_way.len(), capacity);
    assert!(received(&mut queue).is_empty());
    // The queue sleeps although the client has sent more requests.
    assert_eq!(queue.arm(), ArmResult::Armed);
    assert!(!is_readable(&queue));
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let mut served = 0;
    while served < capacity + 3 {
        for request in under_way.drain(..) {
            queue.zero_payload(request.tag, 0, LEN.into());
            queue.complete(request.tag, DiskOutcome::Done);
            served += 1;
        }
        queue.flush().unwrap();
        under_way = received(&mut queue);
    }
    while !queue_is_sent(&mut queue) {
        std::thread::yield_now();
    }
    drop(queue);
    assert_eq!(reader.join().unwrap(), (capacity + 3) * (16 + LEN as usize));
}

fn queue_is_sent(queue: &mut NbdQueue) -> bool {
    // No more requests are sent, so none is received.
    assert!(received(queue).is_empty());
    queue.arm() == ArmResult::Armed && !queue.has_replies()
}

#[test]
fn a_client_that_does_not_read_is_waited_for_without_being_polled() {
    let (mut queue, mut client) = connection();
    client.write_all(&header(0, READ, 1, 0, 4 << 20)).unwrap();
    let read = received(&mut queue)[0];
    queue.complete(read.tag, DiskOutcome::Done);
    queue.flush().unwrap();
    assert!(queue.has_replies(), "no socket holds as much");
    assert_eq!(queue.arm(), ArmResult::Armed);
    assert!(!is_readable(&queue));
    // Reads all bytes that were sent to the client.
    client.set_nonblocking(true).unwrap();
    while client.read(&mut [0; 1 << 16]).is_ok() {}
    assert!(is_readable(&queue), "the client has read");
}

#[test]
fn a_connection_that_cannot_be_watched_is_ended_with_the_reason() {
    let (mut queue, mut client) = connection();
    client.write_all(&header(0, READ, 1, 0, 512)).unwrap();
    assert_eq!(received(&mut queue).len(), 1);
    // The watched descriptor is not an epoll instance, as after an error of the system.
    queue.lose_watch();
    assert_eq!(
        queue.arm(),
        ArmResult::Pending,
        "the worker waits for a connection that cannot be watched"
    );
    let fault = queue.receive(32, &mut Vec::new()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::SystemCallFailed);
    assert!(fault.detail.contains("cannot be polled"), "{fault}");
    // Accepted requests are completed nevertheless.
    queue.complete(0, DiskOutcome::Done);
}

#[test]
fn a_polled_connection_is_not_watched_until_the_worker_waits_for_it() {
    let (mut queue, mut client) = connection();
    assert_eq!(queue.arm(), ArmResult::Armed);
    for cookie in 0..3 {
        client.write_all(&header(0, READ, cookie, 0, 512)).unwrap();
        assert_eq!(received(&mut queue).len(), 1);
    }
    client.write_all(&header(0, READ, 3, 0, 512)).unwrap();
    assert!(!is_readable(&queue), "the socket is watched although it is polled");
    for _ in 0..2 {
        assert_eq!(queue.arm(), ArmResult::Armed);
        assert!(is_readable(&queue));
    }
    assert_eq!(received(&mut queue).len(), 1);
    assert_eq!(queue.arm(), ArmResult::Armed);
    assert!(!is_readable(&queue));
    drop(client);
    assert!(is_readable(&queue));
}

#[test]
fn a_client_that_has_not_read_its_replies_is_reported_as_having_unread_ones() {
    let (mut queue, mut client) = connection();
    assert!(!queue.has_unconsumed_completions());
    client.write_all(&header(0, TRIM, 1, 0, 512)).unwrap();
    let tag = received(&mut queue)[0].tag;
    queue.complete(tag, DiskOutcome::Done);
    assert!(!queue.has_unconsumed_completions(), "it was not sent");
    queue.flush().unwrap();
    assert!(queue.has_unconsumed_completions());
    assert_eq!(reply(&mut client), (0, 1));
    assert!(!queue.has_unconsumed_completions());
}

/// Executes 5000 requests of each kind. Returns the sizes of the memory that the connection keeps
/// for later requests: empty lists, and bytes of reply heads.
fn spares_after_many_requests(framing: Framing, outcome: DiskOutcome) -> (usize, usize) {
    let (mut queue, mut client) = connection_with(framing);
    let mut drain = client.try_clone().unwrap();
    drain.set_nonblocking(true).unwrap();
    for round in 0..5000 {
        for kind in [READ, WRITE, TRIM] {
            let payload = if kind == WRITE { 512 } else { 0 };
            client.write_all(&header(0, kind, round, 0, 512)).unwrap();
            client.write_all(&vec![1; payload]).unwrap();
        }
        let requests = received(&mut queue);
        assert_eq!(requests.len(), 3);
        for request in requests {
            queue.complete(request.tag, outcome);
        }
        queue.flush().unwrap();
        while drain.read(&mut [0; 1 << 16]).is_ok() {}
    }
    queue.spares()
}

#[test]
fn memory_of_a_connection_does_not_grow_with_its_requests() {
    for framing in [Framing::Simple, Framing::Structured] {
        for outcome in [DiskOutcome::Done, DiskOutcome::NoSpace] {
            let (lists, head_bytes) = spares_after_many_requests(framing, outcome);
            assert!(
                lists <= 3 && head_bytes <= 4096,
                "{framing:?} {outcome:?}: {lists} {head_bytes}"
            );
        }
    }
}
