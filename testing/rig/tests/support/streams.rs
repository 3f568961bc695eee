//! Streams whose bytes are compared, not counted: a checksum that was computed over the
//! wrong bytes is a right one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use suimon_rig::{Namespace, wait_until};

/// Deadline for one end's next step. The machine may be loaded.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Bytes that do not repeat for long.
pub fn sample(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| (index * index >> 9) as u8).collect()
}

/// Sends `bytes` in one TCP connection between namespaces.
///
/// # Panics
/// They do not arrive, or arrive as something else.
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
        assert!(received.join().unwrap() == bytes, "{description}: it arrived as something else");
    });
}

/// All that the next connection brings.
///
/// # Panics
/// It brings nothing for a while.
pub fn receive(listener: &TcpListener) -> Vec<u8> {
    let mut received = Vec::new();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_to_end(&mut received).unwrap();
    received
}

/// Waits until the connections of a port have ended in both kernels, so that no frame of theirs is
/// under way: the end that closed first has heard that the other one has closed too, and has
/// acknowledged it.
///
/// # Panics
/// They have not ended.
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
