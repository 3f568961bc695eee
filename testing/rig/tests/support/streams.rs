//! TCP streams whose received bytes are compared: a checksum that was computed over wrong bytes
//! would be correct.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use suimon_rig::{Namespace, wait_until};

/// Deadline for one end's next step. The machine may be loaded.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Returns `bytes` bytes of a pattern with a long period.
pub fn sample(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| (index * index >> 9) as u8).collect()
}

/// Sends `bytes` over one TCP connection between namespaces.
///
/// # Panics
///
/// The bytes do not arrive, or differ.
pub fn tcp_stream(
    from: &Namespace,
    to: &Namespace,
    address: SocketAddr,
    bytes: &[u8],
    description: &str,
) {
    let listener = to.inside(|| TcpListener::bind(address).unwrap()).unwrap();
    std::thread::scope(|scope| {
        let received = scope.spawn(|| receive(&listener));
        from.inside(|| {
            let mut stream = TcpStream::connect_timeout(&address, PATIENCE)
                .unwrap_or_else(|error| panic!("{description}: {error}"));
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(bytes).unwrap_or_else(|error| panic!("{description}: {error}"));
        })
        .unwrap();
        assert!(received.join().unwrap() == bytes, "{description}: the received bytes differ");
    });
}

/// Accepts the next connection, and returns all bytes received on it.
///
/// # Panics
///
/// No byte arrives for [`PATIENCE`].
pub fn receive(listener: &TcpListener) -> Vec<u8> {
    let mut received = Vec::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_to_end(&mut received).unwrap();
    received
}

/// Waits until the connections of a port are closed in both kernels, so that none of their frames
/// is in flight: the end that closed first has received and acknowledged the other's FIN.
///
/// # Panics
///
/// A connection is not closed in time.
pub fn wait_closed(ends: [&Namespace; 2], port: u16) {
    let port = format!(":{port}");
    let mut connections = Vec::new();
    let closed = wait_until("closed connections", PATIENCE, || {
        connections.clear();
        for end in ends {
            let output = end.run(&["ss", "-Htan"])?;
            let is_open = |line: &&str| !line.starts_with("TIME-WAIT") && line.contains(&port);
            connections.extend(output.lines().filter(is_open).map(str::to_owned));
        }
        Ok(connections.is_empty())
    });
    closed.unwrap_or_else(|error| panic!("{error:#}: {connections:?}"));
}
