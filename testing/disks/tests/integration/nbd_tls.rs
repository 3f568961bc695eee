//! Tests of TLS over TCP with independent clients: libnbd with GnuTLS, and QEMU.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::bench::{Bench, SIZE, run, run_ok, sample};
use suimon_nbd_server::{NbdServer, NbdTls, TcpAccess};
use suimon_rig::create_certificates;

fn serve(bench: &Bench, certificates: &Path, clients: Option<&Path>) -> (NbdServer, SocketAddr) {
    serve_named(bench, certificates, clients, &[])
}

fn serve_named(
    bench: &Bench,
    certificates: &Path,
    clients: Option<&Path>,
    names: &[String],
) -> (NbdServer, SocketAddr) {
    let authorities = clients.map(|folder| folder.join("ca-cert.pem"));
    let files = [certificates.join("server-cert.pem"), certificates.join("server-key.pem")];
    let tls = NbdTls::load(&files[0], &files[1], authorities.as_deref(), names).unwrap();
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let server =
        NbdServer::listen_tcp(any_port, TcpAccess::with_tls(tls), bench.exports.nbd()).unwrap();
    let address = server.address().unwrap();
    (server, address)
}

fn uri(address: SocketAddr, certificates: &Path) -> String {
    let folder = certificates.display();
    format!("nbds://localhost:{}/disk?tls-certificates={folder}", address.port())
}

/// Creates a directory with a CA certificate but no client certificate.
fn without_client(certificates: &Path, folder: &Path) -> PathBuf {
    std::fs::create_dir(folder).unwrap();
    std::fs::copy(certificates.join("ca-cert.pem"), folder.join("ca-cert.pem")).unwrap();
    folder.to_owned()
}

#[test]
fn a_disk_is_copied_in_and_out_over_tls() {
    let bench = Bench::start();
    let valid = create_certificates(&bench.path("good"));
    let (_server, address) = serve(&bench, &valid, None);
    let uri = uri(address, &without_client(&valid, &bench.path("anonymous")));
    let info = run_ok("nbdinfo", &["--json", &uri]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!((&info["TLS"], &info["exports"][0]["export-size"]), (&true.into(), &SIZE.into()));
    let (source, returned) = (bench.path("source"), bench.path("back"));
    sample(&source);
    run_ok("nbdcopy", &["--flush", "--connections=4", source.to_str().unwrap(), &uri]);
    assert!(std::fs::read(bench.path("disk.raw")).unwrap() == std::fs::read(&source).unwrap());
    run_ok("nbdcopy", &["--connections=4", &uri, returned.to_str().unwrap()]);
    assert!(std::fs::read(&returned).unwrap() == std::fs::read(&source).unwrap());
    let credentials =
        format!("tls-creds-x509,id=tls,endpoint=client,dir={}", bench.path("anonymous").display());
    let port = address.port();
    let image = format!("driver=nbd,host=localhost,port={port},export=disk,tls-creds=tls");
    let source_options = format!("driver=raw,file.filename={}", source.display());
    run_ok(
        "qemu-img",
        &["compare", "--object", &credentials, "--image-opts", &source_options, &image],
    );
}

#[test]
fn clients_must_present_a_certificate_of_the_configured_authority() {
    let bench = Bench::start();
    let (valid, other) =
        (create_certificates(&bench.path("good")), create_certificates(&bench.path("other")));
    let (_server, address) = serve(&bench, &valid, Some(&valid));
    run_ok("nbdinfo", &[&uri(address, &valid)]);
    let anonymous = without_client(&valid, &bench.path("anonymous"));
    // The client trusts the server and presents a certificate that the server's CA has not signed.
    let unsigned = without_client(&valid, &bench.path("stranger"));
    for file in ["client-cert.pem", "client-key.pem"] {
        std::fs::copy(other.join(file), unsigned.join(file)).unwrap();
    }
    for folder in [anonymous, unsigned] {
        assert!(!run("nbdinfo", &[&uri(address, &folder)]).status.success());
    }
    // The reverse: the server presents a certificate that the client does not trust.
    assert!(!run("nbdinfo", &[&uri(address, &other)]).status.success());
    run_ok("nbdinfo", &[&uri(address, &valid)]);
}

#[test]
fn clients_are_admitted_by_the_names_in_their_certificates() {
    let bench = Bench::start();
    let valid = create_certificates(&bench.path("good"));
    for (name, is_let_in) in [("client.example.org", true), ("other.example.org", false)] {
        let names = ["vm.example.org".to_owned(), name.to_owned()];
        let (server, address) = serve_named(&bench, &valid, Some(&valid), &names);
        let info = run("nbdinfo", &[&uri(address, &valid)]);
        assert_eq!(info.status.success(), is_let_in, "{name}");
        drop(server);
    }
}

#[test]
fn the_admitted_clients_change_while_the_server_listens() {
    let bench = Bench::start();
    let (valid, other) =
        (create_certificates(&bench.path("good")), create_certificates(&bench.path("other")));
    let (server, address) = serve(&bench, &valid, Some(&valid));
    run_ok("nbdinfo", &[&uri(address, &valid)]);
    let [certificate, key, ca] =
        ["server-cert.pem", "server-key.pem", "ca-cert.pem"].map(|name| other.join(name));
    let tls = NbdTls::load(&certificate, &key, Some(&ca), &[]).unwrap();
    server.set_tcp_access(TcpAccess::with_tls(tls)).unwrap();
    assert!(!run("nbdinfo", &[&uri(address, &valid)]).status.success());
    run_ok("nbdinfo", &[&uri(address, &other)]);
    let addresses = vec!["192.0.2.0/24".parse().unwrap()];
    server
        .set_tcp_access(TcpAccess { allowed_networks: addresses, ..TcpAccess::default() })
        .unwrap();
    let plain = format!("nbd://localhost:{}/disk", address.port());
    assert!(!run("nbdinfo", &[&plain]).status.success());
    server.set_tcp_access(TcpAccess::default()).unwrap();
    run_ok("nbdinfo", &[&plain]);
}

#[test]
fn without_tls_nothing_is_served_and_remote_clients_are_rejected() {
    let bench = Bench::start();
    let valid = create_certificates(&bench.path("good"));
    let (_server, address) = serve(&bench, &valid, None);
    let plain = format!("nbd://localhost:{}/disk", address.port());
    assert!(!run("nbdinfo", &[&plain]).status.success());
    assert!(!run("nbdinfo", &["--list", &plain]).status.success());
    // Sent manually: an option other than STARTTLS is rejected because TLS is required.
    let mut socket = TcpStream::connect(address).unwrap();
    let mut greeting = [0; 18];
    socket.read_exact(&mut greeting).unwrap();
    let list = [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &[0, 0, 0, 3, 0, 0, 0, 0]].concat();
    socket.write_all(&list).unwrap();
    let mut answer = [0; 20];
    socket.read_exact(&mut answer).unwrap();
    // NBD_REP_ERR_TLS_REQD.
    assert_eq!(answer[12..16], 0x8000_0005_u32.to_be_bytes());
    let everybody = SocketAddr::from(([0, 0, 0, 0], 0));
    let error =
        NbdServer::listen_tcp(everybody, TcpAccess::default(), bench.exports.nbd()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server =
        NbdServer::listen_tcp(loopback, TcpAccess::default(), bench.exports.nbd()).unwrap();
    let port = server.address().unwrap().port();
    run_ok("nbdinfo", &[&format!("nbd://localhost:{port}/disk")]);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let valid = create_certificates(&folder.path().join("good"));
    let other = create_certificates(&folder.path().join("other"));
    let [certificate, key] = ["server-cert.pem", "server-key.pem"].map(|name| valid.join(name));
    let missing = folder.path().join("missing");
    let error = NbdTls::load(&missing, &key, None, &[]).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
    let error = NbdTls::load(&key, &key, None, &[]).unwrap_err().to_string();
    assert!(error.contains("the file has no certificate"), "{error}");
    assert!(NbdTls::load(&certificate, &other.join("server-key.pem"), None, &[]).is_err());
    assert!(NbdTls::load(&certificate, &key, Some(&key), &[]).is_err());
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = NbdTls::load(&certificate, &key, None, &[]).unwrap_err().to_string();
    assert!(error.contains("chmod o="), "{error}");
}
