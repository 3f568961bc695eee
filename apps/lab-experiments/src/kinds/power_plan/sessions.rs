//! TCP connections that exchange one byte in each direction repeatedly.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use suimon_rig::Namespace;

/// Time limit of a reply, well above the retransmission timeout of TCP.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST: u8 = 1;
/// Byte that ends the exchange. The receiver does not reply to it.
const OVER: u8 = 2;

/// TCP connections, each with its client end and its server end.
pub(super) struct Sessions(Vec<(TcpStream, TcpStream)>);

impl Sessions {
    /// Opens `number` connections to `address` in the namespace `to`, from the namespaces `from` in
    /// turn.
    pub(super) fn connect(
        from: &[&Namespace],
        to: &Namespace,
        address: &str,
        number: u64,
    ) -> Result<Self> {
        let listener = to.inside(|| TcpListener::bind((address, 0)))??;
        let listens_at = listener.local_addr()?;
        let connect = |namespace: &&Namespace| -> Result<_> {
            let near = namespace.inside(|| TcpStream::connect(listens_at))??;
            let (far, _) = listener.accept()?;
            for end in [&near, &far] {
                end.set_nodelay(true)?;
                end.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
            }
            Ok((near, far))
        };
        let sessions = from.iter().cycle().take(usize::try_from(number)?).map(connect);
        sessions.collect::<Result<_>>().map(Self)
    }

    /// Exchanges bytes on all connections for `time`. Returns the number of exchanges of all
    /// connections.
    pub(super) fn run(&self, time: Duration) -> Result<u64> {
        thread::scope(|scope| {
            let ends: Vec<_> = self
                .0
                .iter()
                .map(|(near, far)| {
                    (
                        scope.spawn(move || send_request(near, time)),
                        scope.spawn(move || send_response(far)),
                    )
                })
                .collect();
            let mut exchanges = 0;
            for (request_threads, answers) in ends {
                exchanges += request_threads.join().ok().context("a client panicked")??;
                answers.join().ok().context("a server panicked")??;
            }
            Ok(exchanges)
        })
    }
}

fn send_request(mut stream: &TcpStream, time: Duration) -> Result<u64> {
    let started = Instant::now();
    let mut exchanges = 0;
    while started.elapsed() < time {
        stream.write_all(&[REQUEST])?;
        stream.read_exact(&mut [0])?;
        exchanges += 1;
    }
    stream.write_all(&[OVER])?;
    Ok(exchanges)
}

fn send_response(mut stream: &TcpStream) -> Result<()> {
    let mut request = [0];
    loop {
        stream.read_exact(&mut request)?;
        if request == [OVER] {
            return Ok(());
        }
        stream.write_all(&request)?;
    }
}
