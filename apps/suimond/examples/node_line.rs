//! Measures the rate of a connection between two nodes, as for the memory of a migrating VM: from a
//! Unix socket through TLS over the loopback device to another Unix socket, all in this process.
//! With the argument `tcp`, the bytes go through TCP without TLS and without further sockets, which
//! is the limit of the kernel. Prints the rate in GB/s.
#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::{fs, thread};

use anyhow::{Result, anyhow, bail, ensure};
use suimon_contract::{Name, NodeConfig};
use suimon_node::{PeerNodes, PeerStream};
use suimond::peer_nodes::HostPeerNodes;
use suimond_api::byte_relay::{copy_bidirectional, register_local_socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

/// Number of bytes that a measurement transfers.
const BYTES: usize = 2 << 30;
/// Size of each write and read in bytes.
const BLOCK: usize = 1 << 20;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Response of a node that accepts the connection.
const GRANTED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                         upgrade: suimon-memory\r\n\r\n";
/// Maximum length of the head of the request in bytes.
const HEAD_MAX: usize = 4096;

fn main() -> Result<()> {
    let rate = match std::env::args().nth(1).as_deref() {
        Some("tls") => over_tls()?,
        Some("tcp") => over_tcp()?,
        _ => bail!("the argument must be tls or tcp"),
    };
    println!("{rate:.3}");
    Ok(())
}

fn over_tls() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let acceptor = certify(folder.path())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let config = NodeConfig {
        name: "far".parse::<Name>().map_err(|error| anyhow!("{error}"))?,
        address: listener.local_addr()?.to_string(),
        ca_certificate: folder.path().join("cert.pem"),
        token_file: secret(folder.path().join("token"), TOKEN)?,
        server_name: Some("localhost".to_owned()),
    };
    let (reads, carried) = UnixStream::pair()?;
    carried.set_nonblocking(true)?;
    // An error ends the connection, and the measurement fails because bytes are missing.
    runtime.spawn(async move {
        let far = accept(&listener, &acceptor).await?;
        copy_bidirectional(far, register_local_socket(carried.into())?).await?;
        anyhow::Ok(())
    });
    let nodes = HostPeerNodes::default();
    let node = nodes.node(&config).map_err(|error| anyhow!("{error}"))?;
    let near = node
        .open_incoming_connection("00ff", &PeerStream::Memory)
        .map_err(|error| anyhow!("{error:?}"))?;
    transfer(UnixStream::from(near), reads)
}

fn over_tcp() -> Result<f64> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let near = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    transfer(near, far)
}

/// Writes [`BYTES`] to one end of a connection and reads them from the other. Returns the rate in
/// GB/s.
fn transfer(mut to: impl Write + Send + 'static, mut from: impl Read) -> Result<f64> {
    let began = Instant::now();
    let writer = thread::spawn(move || {
        let block = vec![0x5a; BLOCK];
        // The end of the thread closes the connection.
        (0..BYTES / BLOCK).try_for_each(|_| to.write_all(&block))
    });
    let (mut total, mut buffer) = (0, vec![0; BLOCK]);
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            count => total += count,
        }
    }
    let took = began.elapsed();
    writer.join().map_err(|_| anyhow!("the writing thread panicked"))??;
    ensure!(total == BYTES, "{total} of {BYTES} bytes arrived");
    Ok(BYTES as f64 / took.as_secs_f64() / 1e9)
}

/// Writes a certificate for `localhost` into a folder, and returns its TLS server.
fn certify(folder: &Path) -> Result<TlsAcceptor> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(folder.join("cert.pem"), made.cert.pem())?;
    let key = PrivateKeyDer::try_from(made.key_pair.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![made.cert.der().clone()],
            key.map_err(|error| anyhow!("{error}"))?,
        )?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn secret(path: PathBuf, text: &str) -> Result<PathBuf> {
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

/// Accepts the connection of a node for the memory of a VM.
async fn accept(listener: &TcpListener, acceptor: &TlsAcceptor) -> Result<TlsStream<TcpStream>> {
    let (tcp, _) = listener.accept().await?;
    let mut stream = acceptor.accept(tcp).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(head.len() < HEAD_MAX, "the request is not that of a node");
        head.push(stream.read_u8().await?);
    }
    stream.write_all(GRANTED).await?;
    stream.flush().await?;
    Ok(stream)
}
