//! Loads on NICs: TAP, an uplink over AF_PACKET, vhost-user.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Namespace, NamespaceGuest, Testpmd, TestpmdSpec, wait_for_value};

use super::bench::rig::{Driver, GUEST_BASE, Vm, event};
use super::bench::{BYTES, CSUM, FrontEnd, MERGEABLE, VERSION_1};
use super::gate::Tally;
use super::site::Site;

const PATIENCE: Duration = Duration::from_secs(120);
const STREAM_BYTES: usize = 4 << 20;

/// Each iteration opens a TCP connection from one namespace to an address of the other, sends
/// [`STREAM_BYTES`] bytes and waits for a short reply.
pub(super) fn tcp<'a>(
    from: &'a Namespace,
    to: &'a Namespace,
    address: &str,
) -> Result<impl FnMut() -> Result<()> + Send + 'a> {
    let address: SocketAddr = format!("{address}:7000").parse()?;
    let listener = to.inside(|| TcpListener::bind(address))??;
    Ok(move || {
        std::thread::scope(|scope| {
            let server = scope.spawn(|| -> Result<()> {
                let (mut stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                let (mut buffer, mut sum) = (vec![0; 1 << 16], 0);
                while sum < STREAM_BYTES {
                    let count = stream.read(&mut buffer)?;
                    ensure!(count > 0, "the stream has ended after {sum} bytes");
                    sum += count;
                }
                Ok(stream.write_all(b"done")?)
            });
            let send_result = from.inside(|| -> Result<()> {
                let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.write_all(&vec![7; STREAM_BYTES])?;
                let mut answer = [0; 4];
                Ok(stream.read_exact(&mut answer)?)
            });
            send_result?.context("client")?;
            server.join().map_err(|_| anyhow::anyhow!("the server panicked"))?
        })
    })
}

/// Each iteration connects front-ends that send frames. One of four disconnects during the
/// negotiation, and one of four violates the protocol.
pub(super) fn front_ends(site: &Site, totals: &Tally) -> impl FnMut() -> Result<()> + Send {
    let socket = site.path("vm.sock");
    let mut round = 0;
    move || {
        for _ in 0..4 {
            round += 1;
            let mut front_end = arrive(&socket)?;
            match round % 4 {
                0 => drop(front_end.get_number(1)),
                1 => {
                    front_end.negotiate(VERSION_1 | MERGEABLE | CSUM);
                }
                nth => send_frames(front_end, nth == 2),
            }
            totals.count_connections(1);
        }
        Ok(())
    }
}

/// Connects repeatedly until the previous front-end's disconnection was detected: the NIC serves
/// one at a time and rejects others.
fn arrive(socket: &str) -> Result<FrontEnd> {
    wait_for_value("a front-end that is served", PATIENCE, || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&FrontEnd::message(1, 1, &[]))?;
        stream.read_exact(&mut [0; 12 + 8])?;
        Ok(Some(FrontEnd::over(stream)))
    })
}

fn send_frames(mut front_end: FrontEnd, violates: bool) {
    let vm = Vm::with_regions(vec![BYTES]);
    let rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
    let mut tx = Driver::placed(&vm, 16, 0, GUEST_BASE + 0x2000);
    let kick = event();
    front_end.negotiate(VERSION_1 | MERGEABLE | CSUM);
    assert!(front_end.share_memory(&vm, BYTES));
    front_end.start_ring(0, &rx, &event(), &event());
    front_end.start_ring(1, &tx, &kick, &event());
    // Broadcast frame with the IEEE 802 local experimental EtherType 0x88b5.
    let mut frame = vec![0; 12 + 100];
    frame[12..26].copy_from_slice(&[255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 9, 9, 0x88, 0xb5]);
    for _ in 0..16 {
        for _ in 0..8 {
            tx.add(&[112], false, false, &frame).unwrap();
        }
        rustix::io::write(&kick, &1_u64.to_ne_bytes()).unwrap();
        let mut reaped = 0;
        super::bench::wait_for("used buffers", || {
            reaped += tx.reap().len();
            reaped == 8
        });
    }
    if violates {
        tx.offer(999);
        rustix::io::write(&kick, &1_u64.to_ne_bytes()).unwrap();
    }
}

/// Each iteration circulates frames between two NICs of testpmd for half a second.
pub(super) fn testpmd(site: &Site) -> Result<impl FnMut() -> Result<()> + Send + use<>> {
    let sockets = [site.path("pmd0.sock"), site.path("pmd1.sock")];
    let macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(str::to_owned);
    let mut testpmd = Testpmd::start(&site.rig, &TestpmdSpec::new(sockets, macs))?;
    Ok(move || {
        testpmd.start_circulating()?;
        std::thread::sleep(Duration::from_millis(500));
        testpmd.stop()
    })
}

/// Waits until the guests have their devices and addresses.
pub(super) fn bring_up(guests: &[NamespaceGuest]) -> Result<()> {
    guests.iter().try_for_each(NamespaceGuest::bring_up)
}
