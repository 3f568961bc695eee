//! Loads on disks: vhost-user-blk, NBD with and without TLS, and disks that are created and
//! deleted.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::{NbdClient, example, fio, run, run_any, wait_for_value, wait_until};

use super::client::Client;
use super::gate::Tally;
use super::site::Site;

const PATIENCE: Duration = Duration::from_secs(120);
/// Number of connections per iteration.
const CONNECTIONS: u64 = 100;

/// Options of `disk_speed`. Each iteration runs a new front-end with the next options.
const FRONT_ENDS: [&str; 6] = [
    "--read-percent 50",
    "--packed --read-percent 70",
    "--block-kib 64 --read-percent 0 --sequential",
    "--without event-index --wait",
    "--without indirect --read-percent 30",
    "--packed --wait --block-kib 16",
];

/// Each iteration connects a front-end that issues requests for a second.
pub(super) fn vhost_user<'a>(
    site: &'a Site,
    totals: &'a Tally,
    disk: &'a str,
) -> impl FnMut() -> Result<()> + Send + 'a {
    let (socket, program) = (site.path(&format!("{disk}.sock")), example("disk_speed").unwrap());
    let mut round = 0;
    move || {
        let options = FRONT_ENDS[round % FRONT_ENDS.len()];
        round += 1;
        let mut arguments =
            vec![program.as_str(), "--json", "--disk-mib", "64", "--socket", &socket];
        arguments.extend(options.split_whitespace());
        arguments.extend(["1", "1", "32"]);
        // A disk serves one front-end at a time and rejects others.
        wait_until("the previous front-end to be disconnected", PATIENCE, || {
            let status = site.daemon.get(&format!("/1.0/disks/{disk}"))?;
            Ok(status["vhost_user"]["queues"].as_u64().unwrap_or(0) == 0)
        })?;
        run(&arguments)?;
        totals.count_connections(1);
        Ok(())
    }
}

/// Each iteration runs several connections with many outstanding requests.
pub(super) fn nbd_requests(site: &Site, totals: &Tally) -> impl FnMut() -> Result<()> + Send {
    let (folder, socket) = (site.folder(), site.path("nbd.sock"));
    let mut round = 0;
    move || {
        let disk = Site::NBD_DISKS[round % Site::NBD_DISKS.len()];
        round += 1;
        let bytes = Site::SHARED_BYTES;
        let job = format!(
            "--rw=randrw --bs=4k --iodepth=32 --size={bytes} --time_based --runtime=1 --fsync=64"
        );
        let fio_result = fio::run(&folder, &socket, disk, &job)?;
        ensure!(fio_result.errors == 0, "{fio_result:?}");
        totals.count_connections(1);
        Ok(())
    }
}

/// Each iteration connects many clients that issue few requests. One of eight is rejected, and one
/// of eight disconnects in the middle of the handshake or of a request.
pub(super) fn nbd_connections(site: &Site, totals: &Tally) -> impl FnMut() -> Result<()> + Send {
    let socket = site.path("nbd.sock");
    let mut round = 0_u64;
    move || {
        for _ in 0..CONNECTIONS {
            round += 1;
            match round % 8 {
                0 => leave_early(&socket, round / 8)?,
                1 => {
                    let result = NbdClient::connect(&socket, &format!("unknown-{round}"));
                    ensure!(result.is_err(), "an unknown disk is exported");
                }
                _ => {
                    serve(&socket, Site::NBD_DISKS[round as usize % Site::NBD_DISKS.len()], round)?;
                }
            }
        }
        totals.count_connections(CONNECTIONS);
        Ok(())
    }
}

fn serve(socket: &str, disk: &str, round: u64) -> Result<()> {
    let mut client = NbdClient::connect(socket, disk)?;
    let offset = Site::SHARED_BYTES + round * 4096 % (Site::DISK_BYTES - Site::SHARED_BYTES);
    client.write(offset, &[round as u8; 4096], round % 16 == 2)?;
    let mut content = [0; 4096];
    client.read(offset, &mut content)?;
    ensure!(content == [round as u8; 4096], "disk {disk}, byte {offset}: not what was written");
    if round % 32 == 3 {
        client.write_zeroes(offset & !0xffff, 1 << 16)?;
        client.flush()?;
    }
    Ok(())
}

/// Connects, sends a part of the handshake or of a request, and disconnects.
fn leave_early(socket: &str, round: u64) -> Result<()> {
    let option = [&b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x08\0\0\0\x02d0\0\0"[..]].concat();
    let request = b"\x25\x60\x95\x13\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\x10\0half";
    if round % 4 == 0 {
        // The remaining payload of the write is never sent.
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reply = [0; 18];
        stream.read_exact(&mut reply)?;
        stream.write_all(&option)?;
        stream.read_exact(&mut reply)?;
        stream.write_all(request)?;
        return Ok(());
    }
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if round % 4 > 1 {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        stream.write_all(&option[..round as usize % option.len()])?;
    }
    Ok(())
}

/// Each iteration connects TLS clients: with a valid certificate, with one of another CA, and some
/// that disconnect in the handshake.
pub(super) fn nbd_tls(site: &Site, totals: &Tally) -> impl FnMut() -> Result<()> + Send {
    let (port, valid, other) = (site.tls_port, site.path("good"), site.path("other"));
    let uri = move |folder: &str| format!("nbds://localhost:{port}/tls?tls-certificates={folder}");
    move || {
        run(&["nbdcopy", "--connections=2", "--no-extents", &uri(&valid), "null:"])?;
        run(&["nbdinfo", "--size", &uri(&valid)])?;
        let output = run_any(&["nbdinfo", "--size", &uri(&other)], PATIENCE)?;
        ensure!(!output.is_ok(), "a certificate of another CA is accepted");
        for cut in 0..20 {
            leave_tls_handshake(port, cut)?;
        }
        totals.count_connections(24);
        Ok(())
    }
}

/// Sends `NBD_OPT_STARTTLS` and a part of a `ClientHello`, and disconnects. `cut` determines the
/// length.
fn leave_tls_handshake(port: u16, cut: usize) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0")?;
    let mut reply = [0; 20];
    stream.read_exact(&mut reply)?;
    let hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    stream.write_all(&hello[..cut * 2 % hello.len()])?;
    Ok(())
}

/// Each iteration creates a disk with a new name, writes it, changes it and deletes it with its
/// file.
pub(super) fn connect_and_disconnect<'a>(
    site: &'a Site,
    totals: &'a Tally,
) -> impl FnMut() -> Result<()> + Send + 'a {
    let mut round = 0;
    let formats =
        [("raw", ""), ("vhdx", ",\"kind\":\"dynamic\""), ("vhd", ",\"kind\":\"dynamic\"")];
    move || {
        let (format, kind) = formats[round % formats.len()];
        let name = format!("new-{round}");
        round += 1;
        let mut api = Client::connect(&site.socket(), totals)?;
        let socket = site.path("nbd.sock");
        let body = format!(
            "{{\"name\":\"{name}\",\"store\":\"s\",\"format\":\"{format}\"{kind},\
             \"size_bytes\":8388608,\"nbd\":{{\"socket\":\"{socket}\"}}}}"
        );
        api.change("POST", "/1.0/disks", &body)?;
        let mut client = wait_for_value("the new disk", PATIENCE, || {
            NbdClient::connect(&socket, &name).map(Some)
        })?;
        for block in 0..16 {
            client.write(block * 500 * 1024, &[1; 65536], false)?;
        }
        client.flush()?;
        drop(client);
        let path = format!("/1.0/disks/{name}");
        api.change("PATCH", &path, "{\"qos\":{\"max_iops\":5000}}")?;
        api.change("DELETE", &format!("{path}?with_file=true"), "")?;
        totals.count_connections(1);
        Ok(())
    }
}

/// Returns the number of requests that the disks of the host file have completed.
pub(super) fn requests(api: &mut Client<'_>) -> Result<u64> {
    let disks = api.get("/1.0/disks")?;
    let disks = disks.as_array().context("no list of disks")?;
    let requests_of = |disk: &serde_json::Value| -> u64 {
        let counters = disk["counters"].as_object().into_iter().flatten();
        counters.filter_map(|(_, kind)| kind["requests"].as_u64()).sum()
    };
    Ok(disks.iter().map(requests_of).sum())
}
