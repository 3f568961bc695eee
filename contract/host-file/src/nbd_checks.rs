//! Validation of NBD exports: each by itself, and together with others on the same socket or
//! address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;

use crate::finding::{Finding, FindingLocation};
use crate::{DiskConfig, DiskNbd, ErrorCode, HostConfig, ResourceKind};

/// Keys with the access rules of a disk's `socket`.
const SOCKET_ACCESS_KEYS: [&str; 2] = ["users", "groups"];
/// Keys with the access rules of a disk's `listen` address.
const LISTEN_ACCESS_KEYS: [&str; 6] =
    ["tls_certificate", "tls_key", "tls_client_ca", "tls_clients", "addresses", "plaintext"];

/// Reports invalid combinations of one export's keys.
pub(crate) fn check_nbd(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    let Some(nbd) = &disk.nbd else { return };
    let mut find = |code, key: &str, message: String| {
        findings.push(location.finding(code, &format!("nbd.{key}"), message));
    };
    if nbd.socket.is_none() && nbd.listen.is_none() {
        find(
            ErrorCode::MissingKey,
            "socket",
            "missing; set it to an absolute path of at most 107 bytes, or set `listen` to an \
             address and port, or remove the table"
                .to_owned(),
        );
        return;
    }
    for (has_place, required_key, keys) in [
        (nbd.socket.is_some(), "socket", &SOCKET_ACCESS_KEYS[..]),
        (nbd.listen.is_some(), "listen", &LISTEN_ACCESS_KEYS[..]),
    ] {
        for key in keys.iter().filter(|key| !has_place && is_written(nbd, key)) {
            let text = format!(
                "restricts the clients of `{required_key}`, which is missing; set `{required_key}` or remove this \
                 key"
            );
            find(ErrorCode::KeyNotApplicable, key, text);
        }
    }
    if let Some(address) = nbd.listen {
        tls_fits(nbd, &mut find);
        reach_fits(nbd, address, &mut find);
    }
}

fn tls_fits(nbd: &DiskNbd, find: &mut impl FnMut(ErrorCode, &str, String)) {
    let halves =
        [("tls_certificate", nbd.tls_certificate.is_some()), ("tls_key", nbd.tls_key.is_some())];
    for (key, _) in halves.iter().filter(|(_, is_there)| nbd.has_tls() && !is_there) {
        let text = "missing; TLS needs both a certificate and its key; set this key to a PEM file";
        find(ErrorCode::MissingKey, key, text.to_owned());
    }
    if nbd.tls_client_ca.is_some() && !nbd.has_tls() {
        let text = "client certificates require TLS; set `tls_certificate` and `tls_key`, or \
                    remove this key";
        find(ErrorCode::KeyNotApplicable, "tls_client_ca", text.to_owned());
    }
    if nbd.tls_clients.is_some() && nbd.tls_client_ca.is_none() {
        let text = "names in client certificates are only trustworthy with a CA certificate; set \
                    `tls_client_ca`, or remove this key";
        find(ErrorCode::KeyNotApplicable, "tls_clients", text.to_owned());
    }
    if nbd.allows_plaintext && nbd.has_tls() {
        let text = "excludes `tls_certificate`, with which only TLS is accepted; remove one of \
                    the two keys";
        find(ErrorCode::KeyNotApplicable, "plaintext", text.to_owned());
    }
}

/// Reports addresses that clients on other hosts can reach without an explicit permission.
fn reach_fits(nbd: &DiskNbd, address: SocketAddr, find: &mut impl FnMut(ErrorCode, &str, String)) {
    if address.port() == 0 {
        let text = "clients need a fixed port; set one from 1 to 65535, like 10809";
        find(ErrorCode::InvalidValue, "listen", text.to_owned());
    }
    if address.ip().to_canonical().is_loopback() {
        return;
    }
    if !nbd.has_tls() && !nbd.allows_plaintext {
        let text = format!(
            "other hosts can reach {address}; set `tls_certificate` and `tls_key`, listen on \
             127.0.0.1, or set plaintext = true and `addresses`"
        );
        find(ErrorCode::InvalidValue, "listen", text);
    } else if nbd.allowed_networks.is_none() && nbd.tls_client_ca.is_none() {
        let text = format!(
            "missing; any host that reaches {address} could read and write the disk: list the \
             permitted addresses, or set `tls_client_ca` with TLS"
        );
        find(ErrorCode::MissingKey, "addresses", text);
    }
}

fn is_written(nbd: &DiskNbd, key: &str) -> bool {
    value_of(nbd, key).is_some()
}

fn value_of(nbd: &DiskNbd, key: &str) -> Option<Value> {
    serde_json::to_value(nbd).ok()?.get(key).cloned()
}

/// Reports exports on one socket or address with different access rules: one server with one set of
/// rules listens on each.
pub(crate) fn check_shared_servers(config: &HostConfig, findings: &mut Vec<Finding>) {
    let mut sockets: BTreeMap<&PathBuf, &DiskConfig> = BTreeMap::new();
    let mut addresses: BTreeMap<SocketAddr, &DiskConfig> = BTreeMap::new();
    for (index, disk) in config.disks.iter().enumerate() {
        let Some(nbd) = &disk.nbd else { continue };
        let location = FindingLocation::new(ResourceKind::Disk, index);
        if let Some(socket) = &nbd.socket {
            let first = *sockets.entry(socket).or_insert(disk);
            let server = format!("socket `{}`", socket.display());
            agrees(location, first, nbd, &SOCKET_ACCESS_KEYS, &server, findings);
        }
        if let Some(address) = nbd.listen {
            let first = *addresses.entry(address).or_insert(disk);
            agrees(
                location,
                first,
                nbd,
                &LISTEN_ACCESS_KEYS,
                &format!("address {address}"),
                findings,
            );
        }
    }
}

fn agrees(
    location: FindingLocation,
    first: &DiskConfig,
    nbd: &DiskNbd,
    keys: &[&str],
    server: &str,
    findings: &mut Vec<Finding>,
) {
    let Some(other) = &first.nbd else { return };
    let format_value =
        |value: Option<Value>| value.map_or_else(|| "none".to_owned(), |v| v.to_string());
    for key in keys {
        let (value, other_value) = (value_of(nbd, key), value_of(other, key));
        if value != other_value {
            let text = format!(
                "disk/{} uses {server} too, with {} instead of {}; set the same values for both \
                 disks, or another path or address",
                first.name,
                format_value(other_value),
                format_value(value)
            );
            findings.push(location.finding(ErrorCode::Conflict, &format!("nbd.{key}"), text));
        }
    }
}

#[cfg(test)]
#[path = "nbd_checks_tests.rs"]
mod tests;
