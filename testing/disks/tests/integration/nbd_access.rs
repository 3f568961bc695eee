//! Tests of access to NBD sockets, and of connections when exports are added and removed.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bench::{Bench, run, run_ok};
use suimon_disk_tests::{DiskExports, DiskWorker};
use suimon_nbd_server::{Accounts, NbdServer, UnixAccess};
use suimon_ports::{CpuAffinity, NbdLimits};
use suimon_rig::wait_until;

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_socket_has_its_mode_and_admits_the_listed_users() {
    let bench = Bench::start();
    let uid = rustix::process::getuid().as_raw();
    for (users, is_let_in) in [(vec![uid], true), (vec![uid + 1], false), (Vec::new(), true)] {
        let path = bench.path("guarded");
        let accounts = Accounts { users, groups: Vec::new() };
        let access = UnixAccess { mode: 0o600, accounts };
        let server = NbdServer::listen(&path, access, bench.exports.nbd()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let uri = format!("nbd+unix:///disk?socket={}", path.display());
        assert_eq!(run("nbdinfo", &[&uri]).status.success(), is_let_in);
        drop(server);
        assert!(!path.exists());
    }
}

#[test]
fn exports_are_listed_come_and_go_and_take_their_connections_with_them() {
    let bench = Bench::start();
    let list = || {
        let output = run_ok("nbdinfo", &["--json", "--list", &bench.uri("")]);
        let listing: serde_json::Value = serde_json::from_str(&output).unwrap();
        let exports = listing["exports"].as_array().unwrap().iter();
        exports.map(|export| export["export-name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(), ["disk", "fixed"]);
    let path = bench.path("late.raw");
    std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    bench.exports.add_raw("late", &path, false).unwrap();
    assert_eq!(list(), ["disk", "fixed", "late"]);
    // A client that has written and stays connected.
    let url = format!("nbd:unix:{}:exportname=late", bench.path("nbd").display());
    let mut client = Command::new("stdbuf")
        .args(["-o0", "timeout", "600", "qemu-io", "-f", "raw", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
    stdin.write_all(b"write -P 9 0 4k\n").unwrap();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("wrote 4096/4096") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }
    bench.exports.remove("late").unwrap();
    assert_eq!(list(), ["disk", "fixed"]);
    assert!(bench.exports.remove("late").is_err());
    assert_eq!(std::fs::read(&path).unwrap()[..4096], [9; 4096]);
    stdin.write_all(b"read 0 4k\n").unwrap();
    drop(stdin);
    let mut remaining = String::new();
    stdout.read_to_string(&mut remaining).unwrap();
    client.wait().unwrap();
    assert!(!remaining.contains("read 4096/4096"), "{remaining}");
    assert!(!run("nbdinfo", &[&bench.uri("late")]).status.success());
    // The same name with a larger size: a new client sees the new size.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
    bench.exports.add_raw("late", &path, false).unwrap();
    assert_eq!(run_ok("nbdinfo", &["--size", &bench.uri("late")]).trim(), "2097152");
}

#[test]
fn a_connection_beyond_the_maximum_is_closed_until_another_one_ends() {
    let bench = Bench::start();
    // Client flags, then NBD_OPT_EXPORT_NAME of "disk".
    let hello =
        [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 4], b"disk"].concat();
    let come_in = || -> std::io::Result<UnixStream> {
        let mut socket = UnixStream::connect(bench.path("nbd"))?;
        let (mut greeting, mut answer) = ([0; 18], [0; 10]);
        socket.read_exact(&mut greeting)?;
        socket.write_all(&hello)?;
        socket.read_exact(&mut answer)?;
        Ok(socket)
    };
    let mut connections: Vec<_> =
        (0..NbdLimits::EXPORT_DEFAULT.connections_max).map(|_| come_in().unwrap()).collect();
    assert!(come_in().is_err());
    connections.pop();
    wait_until("a connection slot that is free again", PATIENCE, || Ok(come_in().is_ok())).unwrap();
}

#[test]
fn a_flush_on_one_connection_covers_writes_of_others() {
    let bench = Bench::start();
    let image = bench.path("image.vhdx");
    let arguments =
        ["create", "-q", "-f", "vhdx", "-o", "subformat=dynamic", image.to_str().unwrap()];
    run_ok("qemu-img", &[&arguments[..], &["64M"]].concat());
    let disk = bench.exports.add_image("image", &image).unwrap();
    let url = format!("nbd:unix:{}:exportname=image", bench.path("nbd").display());
    let commits = || bench.exports.worker().counters(disk).unwrap().commits;
    // QEMU flushes when it closes; before, its writes are not durable on completion.
    let mut writer = Command::new("stdbuf")
        .args(["-o0", "timeout", "600", "qemu-io", "-f", "raw", "-t", "writeback", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (writer.stdin.take().unwrap(), writer.stdout.take().unwrap());
    stdin.write_all(b"write -P 7 3M 64k\n").unwrap();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("wrote 65536/65536") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }
    let before = commits();
    run_ok("qemu-io", &["-f", "raw", "-t", "writeback", "-c", "flush", &url]);
    assert!(commits() > before, "the flush wrote down what the other connection had changed");
    // As after a crash: the file in its current state contains the written data.
    let copy = bench.path("copy.vhdx");
    std::fs::copy(&image, &copy).unwrap();
    let arguments = ["-f", "vhdx", "-c", "read -P 7 3M 64k", copy.to_str().unwrap()];
    let read_output = run_ok("qemu-io", &arguments);
    assert!(!read_output.contains("failed"), "{read_output}");
    let _ = writer.kill();
    let _ = writer.wait();
}

#[test]
fn a_socket_that_a_killed_process_has_left_is_replaced_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nbd");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let worker = DiskWorker::start(CpuAffinity::Floating).unwrap();
    let exports = DiskExports::new(worker).unwrap();
    let listen = || NbdServer::listen(&path, UnixAccess::default(), exports.nbd());
    let server = listen().unwrap();
    let error = listen().map(drop).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    drop(server);
    std::fs::write(&path, "no socket").unwrap();
    assert!(listen().is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"no socket");
}
