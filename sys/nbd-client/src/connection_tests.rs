//! Connections to independent servers, and to one that sends invalid replies.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_image::ByteRange;
use suimon_ports::{Allocation, DiskClient, DiskClientError, ThreadInit};

use crate::NbdConnection;

const MIB: u64 = 1 << 20;
const SIZE: u64 = 8 * MIB;

fn start() -> ThreadInit {
    Arc::new(|| Ok(()))
}

fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange::new(offset, len).unwrap()
}

/// Server program, killed on drop.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn peer(command: &str, socket: &Path) -> (Peer, UnixStream) {
    let mut arguments = command.split(' ');
    let child = Command::new(arguments.next().unwrap()).args(arguments).spawn().unwrap();
    let peer = Peer(child);
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return (peer, stream),
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Exercises a disk with eight concurrent threads.
fn exercise(disk: &NbdConnection) {
    assert_eq!(disk.size_bytes(), SIZE);
    std::thread::scope(|scope| {
        for number in 0..8_u8 {
            scope.spawn(move || {
                let offset = u64::from(number) * MIB;
                for round in 0..20_u8 {
                    let bytes = vec![number ^ round; 64 << 10];
                    disk.write(offset + u64::from(round) * 4096, &bytes).unwrap();
                }
                let mut bytes = Vec::new();
                disk.read(range(offset, MIB), &mut bytes).unwrap();
                let expected = |offset: usize| match offset / 4096 {
                    block @ 0..=19 => number ^ block as u8,
                    20..=34 => number ^ 19,
                    _ => 0,
                };
                assert!(bytes.iter().enumerate().all(|(index, byte)| *byte == expected(index)));
                disk.write_zeroes(range(offset, 64 << 10)).unwrap();
                disk.read(range(offset, 68 << 10), &mut bytes).unwrap();
                assert!(bytes[..64 << 10].iter().all(|byte| *byte == 0));
                assert_eq!(bytes[64 << 10], number ^ 16);
            });
        }
    });
    disk.flush().unwrap();
    let (mut offset, mut data) = (0, 0);
    while offset < SIZE {
        for extent in disk.allocation(range(offset, SIZE - offset)).unwrap() {
            offset += extent.len;
            data += if extent.allocation == Allocation::Data { extent.len } else { 0 };
        }
    }
    assert_eq!(offset, SIZE);
    // Less than half of each MiB was written.
    assert!((8 * (76 << 10)..=SIZE / 2).contains(&data), "{data} bytes of data");
    let result = disk.read(range(SIZE, 512), &mut Vec::new());
    assert!(matches!(result, Err(DiskClientError::RequestFailed(_))), "{result:?}");
    let mut bytes = Vec::new();
    disk.read(range(SIZE - 512, 512), &mut bytes).unwrap();
    disk.disconnect();
    let ended = disk.read(range(0, 512), &mut bytes);
    assert!(matches!(ended, Err(DiskClientError::Disconnected(_))), "{ended:?}");
}

#[test]
fn qemu_nbd_and_nbdkit_serve_us() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, image) = (folder.path().join("nbd"), folder.path().join("disk.raw"));
    std::fs::File::create(&image).unwrap().set_len(SIZE).unwrap();
    let command = format!(
        "qemu-nbd -f raw -x disk -k {} --discard=unmap --detect-zeroes=off {}",
        socket.display(),
        image.display()
    );
    let (_qemu, stream) = peer(&command, &socket);
    exercise(&NbdConnection::connect(stream.into(), "disk", true, &start()).unwrap());
    let socket = folder.path().join("nbdkit");
    let command = format!("nbdkit -f -U {} memory {SIZE}", socket.display());
    let (_nbdkit, stream) = peer(&command, &socket);
    exercise(&NbdConnection::connect(stream.into(), "", true, &start()).unwrap());
}

#[test]
fn unusable_exports_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, image) = (folder.path().join("nbd"), folder.path().join("disk.raw"));
    std::fs::File::create(&image).unwrap().set_len(SIZE).unwrap();
    let command =
        format!("qemu-nbd -t -r -f raw -x disk -k {} {}", socket.display(), image.display());
    let (_qemu, stream) = peer(&command, &socket);
    let error_of = |name: &str, writes: bool, stream: UnixStream| {
        let refused = NbdConnection::connect(stream.into(), name, writes, &start()).err().unwrap();
        refused.to_string()
    };
    assert!(error_of("other", false, stream).contains("NBD_OPT_GO"));
    let stream = || UnixStream::connect(&socket).unwrap();
    assert!(error_of("disk", true, stream()).contains("read-only"));
    let disk = NbdConnection::connect(stream().into(), "disk", false, &start()).unwrap();
    let refused = disk.write(0, &[1; 512]);
    assert!(matches!(refused, Err(DiskClientError::RequestFailed(_))), "{refused:?}");
    // The connection continues.
    disk.read(range(0, 4096), &mut Vec::new()).unwrap();
    let (near, far) = UnixStream::pair().unwrap();
    drop(far);
    assert!(!error_of("disk", true, near).is_empty());
}

/// Returns what a server sends after the handshake, given the client's first request.
type Reply = fn(&[u8]) -> Vec<u8>;

/// Serves one client: performs the handshake, and sends the reply to its first request.
fn serve_reply(mut stream: UnixStream, server_reply: Reply) {
    let reply = |option: u32, kind: u32, data: &[u8]| {
        let magic = 0x0003_e889_0455_65a9_u64.to_be_bytes();
        let header = [magic.as_slice(), &option.to_be_bytes()];
        let length = (data.len() as u32).to_be_bytes();
        [header.concat(), kind.to_be_bytes().to_vec(), length.to_vec(), data.to_vec()].concat()
    };
    stream.write_all(b"NBDMAGICIHAVEOPT\x00\x03").unwrap();
    let mut received = [0; 4 + 16];
    stream.read_exact(&mut received).unwrap();
    stream.write_all(&reply(8, 1, &[])).unwrap();
    let mut option = vec![0; 16 + 4 + 4 + 4 + 15];
    stream.read_exact(&mut option).unwrap();
    stream.write_all(&reply(10, 4, b"\0\0\0\x05base:allocation")).unwrap();
    stream.write_all(&reply(10, 1, &[])).unwrap();
    let mut option = [0; 16 + 4 + 2 + 2];
    stream.read_exact(&mut option).unwrap();
    let export = [[0; 2].as_slice(), &SIZE.to_be_bytes(), &0x4d_u16.to_be_bytes()].concat();
    stream.write_all(&reply(7, 3, &export)).unwrap();
    stream.write_all(&reply(7, 1, &[])).unwrap();
    let mut request = [0; 28];
    stream.read_exact(&mut request).unwrap();
    // The client may close the connection earlier.
    let _ = stream.write_all(&server_reply(&request));
    // Until the client closes the connection.
    let _ = stream.read(&mut [0; 1]);
}

/// Encodes a chunk of this type for the request.
fn chunk(request: &[u8], kind: u16, payload: &[u8]) -> Vec<u8> {
    let header = [0x668e_33ef_u32.to_be_bytes().as_slice(), &1_u16.to_be_bytes()].concat();
    let length = (payload.len() as u32).to_be_bytes();
    [
        header,
        kind.to_be_bytes().to_vec(),
        request[8..16].to_vec(),
        length.to_vec(),
        payload.to_vec(),
    ]
    .concat()
}

/// Encodes this number of equal chunks, none of which is the last one.
fn repeated(request: &[u8], kind: u16, payload: &[u8], count: usize) -> Vec<u8> {
    let mut single = chunk(request, kind, payload);
    single[4..6].fill(0);
    single.repeat(count)
}

/// Encodes a chunk of 256 bytes of data at `offset`; without NBD_REPLY_FLAG_DONE unless it is the
/// last one.
fn half(request: &[u8], offset: u64, byte: u8, is_last: bool) -> Vec<u8> {
    let mut bytes = chunk(request, 1, &[&offset.to_be_bytes()[..], &[byte; 256]].concat());
    bytes[5] = u8::from(is_last);
    bytes
}

/// Encodes a chunk of 256 zeros at `offset`; without NBD_REPLY_FLAG_DONE unless it is the last one.
fn half_hole(request: &[u8], offset: u64, is_last: bool) -> Vec<u8> {
    let payload = [&offset.to_be_bytes()[..], &256_u32.to_be_bytes()].concat();
    let mut bytes = chunk(request, 2, &payload);
    bytes[5] = u8::from(is_last);
    bytes
}

#[test]
fn chunks_of_a_read_are_accepted_in_any_order() {
    let replies: [(Reply, u8); 3] = [
        (|request| [half(request, 256, 2, false), half(request, 0, 1, true)].concat(), 2),
        (|request| [half(request, 0, 1, false), half(request, 256, 2, true)].concat(), 2),
        (|request| [half_hole(request, 256, false), half(request, 0, 1, true)].concat(), 0),
    ];
    for (reply, second) in replies {
        let (near, far) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || serve_reply(far, reply));
        let disk = NbdConnection::connect(near.into(), "", true, &start()).unwrap();
        let mut bytes = vec![0xaa; 512];
        disk.read(range(0, 512), &mut bytes).unwrap();
        assert_eq!(bytes, [[1; 256], [second; 256]].concat());
        drop(disk);
        server.join().unwrap();
    }
}

#[test]
fn invalid_replies_of_a_server_end_the_connection() {
    let invalid_replies: [(Reply, &str); 18] = [
        // One half twice, and the other one not at all: bytes of a former read must not be returned
        // for it.
        (
            |request| [half(request, 0, 7, false), half(request, 0, 7, true)].concat(),
            "between offsets 0 and 256 more than once",
        ),
        (
            |request| [half(request, 256, 7, false), half_hole(request, 256, true)].concat(),
            "between offsets 256 and 512 more than once",
        ),
        (
            |request| [half_hole(request, 0, false), half(request, 128, 7, true)].concat(),
            "between offsets 128 and 384 more than once",
        ),
        (|request| half_hole(request, 256, true), "256 of 512"),
        // Chunks without NBD_REPLY_FLAG_DONE: of the same bytes, of the same hole, without data,
        // with extents of no length, and with errors, without end.
        (
            |request| repeated(request, 1, &[&[0; 8][..], &[7; 512]].concat(), 100),
            "between offsets 0 and 512 more than once",
        ),
        (
            |request| repeated(request, 2, &[&[0; 8][..], &512_u32.to_be_bytes()].concat(), 100),
            "between offsets 0 and 512 more than once",
        ),
        (|request| repeated(request, 0, &[], 70_000), "more than 65536 parts"),
        (
            |request| repeated(request, 5, &[&5_u32.to_be_bytes()[..], &[0; 8]].concat(), 70_000),
            "more than 65536 parts",
        ),
        (|request| repeated(request, 0x8001, &[0, 0, 0, 5, 0, 0], 70_000), "more than 65536 parts"),
        // An error with a text of 4 GiB.
        (
            |request| {
                let mut bytes = chunk(request, 0x8001, &[]);
                bytes.truncate(16);
                [bytes, u32::MAX.to_be_bytes().to_vec(), vec![b'x'; 4096]].concat()
            },
            "has 4294967295 bytes",
        ),
        (|_| b"HTTP/1.1 200 OK\r\n".to_vec(), "magic"),
        (
            |request| chunk(request, 1, &[&MIB.to_be_bytes()[..], &[7; 512]].concat()),
            "not requested",
        ),
        (
            |request| chunk(request, 1, &[&0_u64.to_be_bytes()[..], &[7; 1024]].concat()),
            "not requested",
        ),
        (
            |request| chunk(request, 1, &[&0_u64.to_be_bytes()[..], &[7; 256]].concat()),
            "256 of 512",
        ),
        (|request| chunk(request, 2, &[0; 12]), "invalid length"),
        (|request| chunk(request, 5, &[0; 12]), "context 0"),
        (|request| chunk(request, 77, &[]), "was not negotiated"),
        (|_| chunk(&[9; 16], 0, &[]), "not in flight"),
    ];
    for (invalid_reply, reason) in invalid_replies {
        let (near, far) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || serve_reply(far, invalid_reply));
        let disk = NbdConnection::connect(near.into(), "", true, &start()).unwrap();
        let error = disk.read(range(0, 512), &mut vec![0xaa; 512]).unwrap_err();
        assert!(
            matches!(&error, DiskClientError::Disconnected(text) if text.contains(reason)),
            "{error:?}"
        );
        let later = disk.flush().unwrap_err();
        assert_eq!(later, error, "it stays so");
        drop(disk);
        server.join().unwrap();
    }
}

/// Servers whose handshake does not end.
#[test]
fn a_handshake_without_end_is_given_up() {
    let reply = |option: u32, kind: u32, bytes: u32| {
        let magic = 0x0003_e889_0455_65a9_u64.to_be_bytes();
        let header = [magic.as_slice(), &option.to_be_bytes(), &kind.to_be_bytes()];
        [header.concat(), bytes.to_be_bytes().to_vec()].concat()
    };
    let greeting = b"NBDMAGICIHAVEOPT\x00\x03".to_vec();
    let context = [reply(10, 4, 19), b"\0\0\0\x05base:allocation".to_vec()].concat();
    let info = [reply(7, 3, 2), vec![0, 9]].concat();
    let cases = [
        ("an error of 4 GiB", vec![greeting.clone(), reply(8, 0x8000_0001, u32::MAX)]),
        (
            "replies without end to NBD_OPT_SET_META_CONTEXT",
            vec![greeting.clone(), reply(8, 1, 0), context.repeat(100_000)],
        ),
        (
            "replies without end to NBD_OPT_GO",
            vec![greeting.clone(), reply(8, 1, 0), reply(10, 1, 0), info.repeat(100_000)],
        ),
        ("a reply to another option", vec![greeting, reply(99, 1, 0)]),
    ];
    for (case, sent) in cases {
        let (near, mut far) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || {
            let _ = far.write_all(&sent.concat());
            let _ = far.read_to_end(&mut Vec::new());
        });
        let error = NbdConnection::connect(near.into(), "disk", true, &start()).err();
        let error = error.unwrap_or_else(|| panic!("{case} is accepted"));
        assert_ne!(error.kind(), std::io::ErrorKind::TimedOut, "{case}: {error}");
        server.join().unwrap();
    }
}
