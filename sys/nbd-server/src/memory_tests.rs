//! Tests of the memory that a server uses, with real sockets. Each test runs in a separate process.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use suimon_nbd::Framing;
use suimon_ports::{DiskOutcome, DiskQueue, NbdLimits};

use crate::queue_tests::{READ, connection_of, header, received};
use crate::server_tests::{Exports, LIMIT, choose, host};
use crate::{NbdAccounting, NbdQueue, NbdServer, RESERVED_BYTES, UnixAccess};

/// Memory of a connection that the limits do not count, in bytes: its tables of requests and
/// chunks.
const TABLES_BYTES: u64 = 128 << 10;
/// Size of the export, and length of the requests, in bytes.
const LEN: u32 = 1 << 20;

/// Returns the anonymous memory of this process in bytes, without the private pages of its program
/// and libraries: these become shared and private again as other processes of the same files start
/// and end.
fn anonymous_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let anonymous = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    let kib = anonymous.split_whitespace().next().unwrap().parse::<u64>().unwrap();
    kib << 10
}

/// Executes the available requests of a queue. Returns their number.
fn serve(queue: &mut NbdQueue) -> usize {
    let requests = received(queue);
    for request in &requests {
        // This writes to the memory.
        queue.zero_payload(request.tag, 0, request.range.len());
        queue.complete(request.tag, DiskOutcome::Done);
    }
    let _ = queue.flush();
    requests.len()
}

fn connect(path: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    choose(&mut stream, "works").unwrap();
    stream
}

/// Sends read requests until the server stops receiving, at most `max`.
fn send_reads(stream: &mut UnixStream, max: u64) {
    stream.set_nonblocking(true).unwrap();
    for cookie in 0..max {
        if stream.write_all(&header(0, READ, cookie, 0, LEN)).is_err() {
            break;
        }
    }
    stream.set_nonblocking(false).unwrap();
}

#[test]
fn clients_that_collect_nothing_use_no_more_than_the_limit_of_their_export() {
    let exports = Arc::new(Exports::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nbd");
    let host = host(&exports);
    let budgets = host.accounting.clone();
    let _server = NbdServer::listen(&path, UnixAccess::default(), host).unwrap();
    let before = anonymous_bytes();
    let count = NbdLimits::EXPORT_DEFAULT.connections_max as usize;
    let mut clients: Vec<_> = (1..count).map(|_| connect(&path)).collect();
    // Without a limit, each connection would get 64 MiB.
    clients.iter_mut().for_each(|client| send_reads(client, 64));
    let deadline = Instant::now() + LIMIT;
    let mut quiet = 0;
    while quiet < 3 {
        assert!(Instant::now() < deadline, "the queues do not become idle");
        let mut queues = exports.queues.lock().unwrap();
        let served: usize = queues.iter_mut().map(serve).sum();
        quiet = if served == 0 && queues.len() == count - 1 { quiet + 1 } else { 0 };
    }
    let level = budgets.usage().exports[0].1;
    assert_eq!(level.connections as usize, count - 1);
    assert!(level.buffer_bytes <= level.limits.buffer_bytes_max, "{level:?}");
    // The connections use nearly all of the memory, except for the part reserved for another
    // connection.
    assert!(level.limits.buffer_bytes_max - level.buffer_bytes < 4 * RESERVED_BYTES, "{level:?}");
    let used = anonymous_bytes().saturating_sub(before);
    let bound = level.limits.buffer_bytes_max + count as u64 * TABLES_BYTES;
    assert!(used <= bound, "{used} bytes, of at most {bound}");
    // One more client is served, and the next one is rejected.
    let mut last = connect(&path);
    assert!(choose(&mut UnixStream::connect(&path).unwrap(), "works").is_err());
    assert!(exports.limited.lock().unwrap()[0].contains("connections_max"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                exports.queues.lock().unwrap().iter_mut().map(serve).sum::<usize>();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        send_reads(&mut last, 8);
        let read = last.read_exact(&mut vec![0; 8 * (16 + LEN as usize)]);
        is_over.store(true, Ordering::Relaxed);
        read.unwrap();
    });
}

#[test]
fn a_connection_returns_the_memory_of_its_largest_requests() {
    let budgets = NbdAccounting::default();
    let (mut queue, mut client) = connection_of(Framing::Simple, &budgets);
    let idle = anonymous_bytes();
    const ALL: u32 = 32 << 20;
    client.write_all(&header(0, READ, 1, 0, ALL)).unwrap();
    assert_eq!(serve(&mut queue), 1);
    let busy = anonymous_bytes();
    assert!(busy - idle >= u64::from(ALL), "{idle} {busy}");
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 1 << 14];
        let mut remaining = 16 + ALL as usize;
        while remaining > 0 {
            remaining -= client.read(&mut buffer).unwrap();
        }
        client
    });
    while !reader.is_finished() {
        serve(&mut queue);
    }
    let _client = reader.join().unwrap();
    assert!(budgets.usage().host.buffer_bytes > RESERVED_BYTES);
    for _ in 0..9 {
        queue.release_unused_buffers();
    }
    assert!(!queue.release_unused_buffers(), "everything was released");
    assert_eq!(budgets.usage().host.buffer_bytes, RESERVED_BYTES);
    let after = anonymous_bytes();
    // The thread's stack and the allocator may retain some memory.
    assert!(after < idle + (4 << 20), "{idle} {after}");
}

#[test]
fn an_idle_connection_costs_little_memory() {
    const COUNT: u64 = 64;
    let budgets = NbdAccounting::default();
    let first = connection_of(Framing::Simple, &budgets);
    let before = anonymous_bytes();
    let mut idle: Vec<_> = (0..COUNT).map(|_| connection_of(Framing::Simple, &budgets)).collect();
    for (queue, _) in &mut idle {
        assert_eq!(serve(queue), 0);
    }
    let per_connection = anonymous_bytes().saturating_sub(before) / COUNT;
    assert!(per_connection <= TABLES_BYTES, "{per_connection} bytes for each connection");
    drop((first, idle));
}
