use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream as StdStream;
use std::time::Instant;

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

use super::*;

/// Starts [`copy_bidirectional`] between two connections. Returns the peers' ends of both, and the
/// task.
fn line() -> (DuplexStream, UnixStream, JoinHandle<io::Result<()>>) {
    let (far, carried_end) = tokio::io::duplex(64 << 10);
    let (near, local_end) = StdStream::pair().unwrap();
    let task = tokio::spawn(copy_bidirectional(
        carried_end,
        register_local_socket(local_end.into()).unwrap(),
    ));
    (far, registered(near), task)
}

fn registered(end: StdStream) -> UnixStream {
    end.set_nonblocking(true).unwrap();
    UnixStream::from_std(end).unwrap()
}

/// Returns bytes that depend on their position.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

#[tokio::test]
async fn both_directions_carry_bytes_concurrently_without_loss_or_reordering() {
    let (far, near, task) = line();
    let (mut far_reads, mut far_writes) = tokio::io::split(far);
    let (mut near_reads, mut near_writes) = near.into_split();
    let (out, inbound) = (pattern(9_000_001), pattern(5_000_003));
    let (sent_out, sent_back) = (out.clone(), inbound.clone());
    let writes_near = tokio::spawn(async move {
        near_writes.write_all(&sent_out).await.unwrap();
        near_writes.shutdown().await.unwrap();
    });
    let writes_far = tokio::spawn(async move {
        far_writes.write_all(&sent_back).await.unwrap();
        far_writes.shutdown().await.unwrap();
    });
    let reads_near = tokio::spawn(async move {
        let mut read = Vec::new();
        near_reads.read_to_end(&mut read).await.unwrap();
        read
    });
    let mut read = Vec::new();
    far_reads.read_to_end(&mut read).await.unwrap();
    assert!(read == out, "the outgoing bytes differ");
    assert!(reads_near.await.unwrap() == inbound, "the returned bytes differ");
    writes_near.await.unwrap();
    writes_far.await.unwrap();
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_end_that_shut_down_writing_still_reads() {
    let (mut far, mut near, task) = line();
    near.write_all(b"last words").await.unwrap();
    near.shutdown().await.unwrap();
    let mut read = Vec::new();
    far.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"last words");
    // The wait is longer than the detection of a closed end takes.
    tokio::time::sleep(POLL_INTERVAL * 3).await;
    far.write_all(b"heard").await.unwrap();
    let mut received = [0; 5];
    near.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"heard");
    far.shutdown().await.unwrap();
    assert_eq!(near.read(&mut received).await.unwrap(), 0);
    task.await.unwrap().unwrap();

    // The same in the opposite direction.
    let (mut far, mut near, task) = line();
    far.shutdown().await.unwrap();
    assert_eq!(near.read(&mut received).await.unwrap(), 0);
    near.write_all(b"still").await.unwrap();
    far.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"still");
    drop(near);
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_closed_end_ends_the_connection_after_its_bytes_are_delivered() {
    let (mut far, mut near, task) = line();
    let started = Instant::now();
    near.write_all(&pattern(100_000)).await.unwrap();
    let last = tokio::spawn(async move {
        let mut read = Vec::new();
        // This end keeps reading and writes nothing.
        far.read_to_end(&mut read).await.unwrap();
        (far, read)
    });
    drop(near);
    task.await.unwrap().unwrap();
    let (mut far, read) = last.await.unwrap();
    assert!(read == pattern(100_000));
    assert!(far.write_all(b"hello?").await.is_err(), "the connection is still open");
    // Without the detection, the line would end with TCP's timeout after about 15 minutes.
    assert!(started.elapsed() < Duration::from_secs(120));

    let (far, mut near, task) = line();
    drop(far);
    let mut byte = [0; 1];
    assert_eq!(near.read(&mut byte).await.unwrap(), 0);
    // An end that still writes receives an error.
    while near.write_all(&[0; 4096]).await.is_ok() {}
    assert!(task.await.unwrap().is_err());
}

#[tokio::test]
async fn an_end_that_does_not_read_blocks_the_other_end_within_bounded_memory() {
    let (_far, near, _task) = line();
    let mut sent_bytes = 0;
    let chunk = vec![0; 64 << 10];
    while tokio::time::timeout(Duration::from_millis(500), near.writable()).await.is_ok() {
        sent_bytes += near.try_write(&chunk).unwrap_or_default();
        assert!(sent_bytes < 16 << 20, "bytes are piled up");
    }
}

/// The kernel cannot refuse descriptors here, and the last close of the attached socket blocks.
#[tokio::test]
async fn an_attached_descriptor_ends_the_connection_and_blocks_no_thread_of_the_runtime() {
    let (_far, carried_end) = tokio::io::duplex(64 << 10);
    let (near, local_end) = StdStream::pair().unwrap();
    let task = tokio::spawn(copy_bidirectional(
        carried_end,
        LocalSocket::new(local_end.into(), true).unwrap(),
    ));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut attached = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    attached.set_nonblocking(true).unwrap();
    while std::io::Write::write(&mut attached, &[0; 1 << 16]).is_ok() {}
    attached.set_nonblocking(false).unwrap();
    set_socket_linger(&attached, Some(Duration::from_secs(600))).unwrap();
    for _ in 0..2 {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [attached.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let bytes = [IoSlice::new(b"x")];
        // The connection may have ended before the second message.
        let _ = sendmsg(&near, &bytes, &mut control, SendFlags::NOSIGNAL);
    }
    std::thread::spawn(move || drop(attached));
    let result = tokio::time::timeout(Duration::from_secs(60), task).await.expect("the line ends");
    let error = result.unwrap().unwrap_err();
    assert!(error.to_string().contains("attached a descriptor"), "{error}");
    drop(peer);
}
