//! Benchmark of a connection between two nodes, which carries the memory of a migrating VM: from
//! one Unix socket through TLS over the loopback device to another.
//!
//! Peers: client and server of OpenSSL with a pipe at each end, and TCP without TLS as the upper
//! bound, which is the limit of the kernel.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use suimon_rig::{Process, Rig, create_certificates, example, run, system_program, wait_until};

use crate::report::{Bar, Pair, Sample, Work};

const TITLE: &str = "Connection between nodes, TLS over the loopback device";
/// Bytes sent through OpenSSL, as many as through Suimon.
const BYTES: u64 = 2 << 30;
const START_LIMIT: Duration = Duration::from_secs(10);

/// Measures `pairs` pairs with each peer. Each measurement of Suimon is compared with both.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let openssl = "`openssl s_client` and `s_server`, with pipes";
    let mut openssl =
        Work::new("node-line-openssl", TITLE, openssl, "GB/s").with_bar(Bar::Ratio(1.0));
    openssl.missing = system_program("openssl").err().map(|error| error.to_string());
    let mut limit =
        Work::new("node-line-tcp", TITLE, "TCP without TLS: the kernel’s limit", "GB/s");
    let rig = Rig::new()?;
    let folder = create_certificates(Path::new(&rig.path("pki")));
    for _ in 0..pairs {
        let suimon = Sample::without_distance(line("tls")?);
        if openssl.missing.is_none() {
            let peer = Sample::without_distance(of_openssl(&rig, &folder)?);
            openssl.push(Pair { peer, suimon });
        }
        limit.push(Pair { peer: Sample::without_distance(line("tcp")?), suimon });
    }
    Ok(vec![openssl, limit])
}

/// Returns the rate in GB/s of the connections that `node_line` measures.
fn line(way: &str) -> Result<f64> {
    let said = run(&[example("node_line")?.as_str(), way])?;
    said.trim().parse().with_context(|| format!("node_line printed no rate: {said}"))
}

/// Returns the rate in GB/s of OpenSSL's client and server.
fn of_openssl(rig: &Rig, folder: &Path) -> Result<f64> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let folder = folder.display();
    let server = format!(
        "exec openssl s_server -quiet -accept {address} -cert {folder}/server-cert.pem \
         -key {folder}/server-key.pem >/dev/null"
    );
    let _server = Process::start(rig, "openssl", &["sh", "-c", &server])?;
    wait_until("openssl listens", START_LIMIT, || Ok(TcpStream::connect(address).is_ok()))?;
    let client = format!(
        "head -c {BYTES} /dev/zero | openssl s_client -quiet -no_ign_eof -connect {address} \
         -CAfile {folder}/ca-cert.pem"
    );
    let began = Instant::now();
    run(&["sh", "-c", &client])?;
    Ok(BYTES as f64 / began.elapsed().as_secs_f64() / 1e9)
}
