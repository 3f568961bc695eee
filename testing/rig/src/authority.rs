//! Certificates for tests of TLS.
#![allow(clippy::unwrap_used, reason = "tests want to stop where their world cannot be made")]

use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};

/// Creates a folder with a CA certificate and certificates of a server and a client, with the file
/// names that libnbd, nbdkit and QEMU expect. The server is `localhost` and 127.0.0.1, the client
/// `client.example.org`. `expired-cert.pem` is a server certificate that expired in 2001.
///
/// # Panics
/// The folder exists already, or cannot be written.
pub fn create_certificates(folder: &Path) -> PathBuf {
    std::fs::create_dir(folder).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::DigitalSignature];
    params.distinguished_name.push(rcgen::DnType::CommonName, "an authority");
    let root = params.self_signed(&key).unwrap();
    write(folder.join("ca-cert.pem"), root.pem()).unwrap();
    let server = ["localhost", "127.0.0.1"].as_slice();
    let uses = [
        ("server", server, ExtendedKeyUsagePurpose::ServerAuth),
        ("expired", server, ExtendedKeyUsagePurpose::ServerAuth),
        ("client", &["client.example.org"], ExtendedKeyUsagePurpose::ClientAuth),
    ];
    for (name, hosts, usage) in uses {
        let own_key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())
                .unwrap();
        params.extended_key_usages = vec![usage];
        if name == "expired" {
            params.not_before = rcgen::date_time_ymd(2000, 1, 1);
            params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        }
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.signed_by(&own_key, &root, &key).unwrap();
        write(folder.join(format!("{name}-cert.pem")), certificate.pem()).unwrap();
        let file = folder.join(format!("{name}-key.pem"));
        write(&file, own_key.serialize_pem()).unwrap();
        set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    }
    folder.to_owned()
}
