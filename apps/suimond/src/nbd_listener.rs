//! NBD servers for the node.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

use suimon_nbd::{Export, ExportSpec};
use suimon_nbd_server::{
    AccountError, Accounts, NbdExports, NbdQueue, NbdServer, NbdServerContext, NbdTls, NbdTlsError,
    TcpAccess, TlsFile, UnixAccess,
};
use suimon_ports::{
    DeviceError, DeviceErrorKind, DiskExports, ExportedDisk, NbdLimits, NbdListener, NbdNotice,
    NbdServerSpec, NbdTcpAccess, NbdUnixAccess,
};

/// Checks that the server's access rules can be applied: users and groups exist, TLS files are
/// usable.
pub(crate) fn probe(spec: &NbdServerSpec) -> Result<(), DeviceError> {
    match spec {
        NbdServerSpec::Unix { access, .. } => unix_access(access).map(drop),
        NbdServerSpec::Tcp { access, .. } => tcp_access(access).map(drop),
    }
}

/// NBD server. It accepts clients until dropped.
pub(crate) struct Listener(NbdServer);

impl Listener {
    pub(crate) fn open(spec: &NbdServerSpec, host: NbdServerContext) -> Result<Self, DeviceError> {
        let (server, field, address) = match spec {
            NbdServerSpec::Unix { socket, access } => {
                let server = NbdServer::listen(socket, unix_access(access)?, host);
                (server, "socket", socket.display().to_string())
            }
            NbdServerSpec::Tcp { address, access } => {
                let server = NbdServer::listen_tcp(*address, tcp_access(access)?, host);
                (server, "listen", address.to_string())
            }
        };
        let server = server.map_err(|error| device_error(field, &address, &error))?;
        Ok(Self(server))
    }
}

impl NbdListener for Listener {
    fn replace_access_rules(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        match spec {
            NbdServerSpec::Unix { access, socket } => {
                let changed = self.0.set_unix_access(unix_access(access)?);
                changed
                    .map_err(|error| device_error("socket", &socket.display().to_string(), &error))
            }
            NbdServerSpec::Tcp { access, address } => {
                let changed = self.0.set_tcp_access(tcp_access(access)?);
                changed.map_err(|error| device_error("listen", &address.to_string(), &error))
            }
        }
    }
}

fn device_error(field: &'static str, address: &str, error: &std::io::Error) -> DeviceError {
    let kind = match error.kind() {
        ErrorKind::AddrInUse => DeviceErrorKind::Busy,
        ErrorKind::NotFound | ErrorKind::AddrNotAvailable => DeviceErrorKind::Missing,
        ErrorKind::PermissionDenied => DeviceErrorKind::Denied,
        _ => DeviceErrorKind::Host,
    };
    DeviceError { kind, field, detail: format!("cannot listen at {address}: {error}") }
}

fn unix_access(access: &NbdUnixAccess) -> Result<UnixAccess, DeviceError> {
    let NbdUnixAccess { users, groups } = access;
    if users.is_empty() && groups.is_empty() {
        return Ok(UnixAccess::default());
    }
    let accounts = Accounts::resolve(users, groups).map_err(|error| {
        let (kind, field) = match error {
            AccountError::NoUser(_) => (DeviceErrorKind::Missing, "users"),
            AccountError::NoGroup(_) => (DeviceErrorKind::Missing, "groups"),
            AccountError::Unreadable { .. } => (DeviceErrorKind::Host, "users"),
        };
        DeviceError { kind, field, detail: error.to_string() }
    })?;
    Ok(UnixAccess::for_accounts(accounts))
}

fn tcp_access(access: &NbdTcpAccess) -> Result<TcpAccess, DeviceError> {
    let tls = access.tls.as_ref().map(|files| {
        let clients = files.client_ca.as_deref();
        NbdTls::load(&files.certificate, &files.key, clients, &files.client_names)
    });
    let tls = tls.transpose().map_err(|error| {
        let field = match &error {
            NbdTlsError::File { file: TlsFile::Certificate, .. } => "tls_certificate",
            NbdTlsError::File { file: TlsFile::Key, .. }
            | NbdTlsError::Secret(_)
            | NbdTlsError::Identity(_) => "tls_key",
            NbdTlsError::File { file: TlsFile::ClientCaCertificates, .. }
            | NbdTlsError::ClientCaCertificates(_) => "tls_client_ca",
        };
        let kind = DeviceErrorKind::Host;
        DeviceError { kind, field, detail: error.to_string() }
    })?;
    Ok(TcpAccess {
        tls,
        allowed_networks: access.allowed_networks.clone(),
        allows_plaintext: access.allows_plaintext,
    })
}

/// Disks that one NBD server exports.
pub(crate) struct Exports {
    disks: Option<Arc<dyn DiskExports>>,
    /// Names of disks that cannot be exported and have been reported. Contains only disks that the
    /// server had when a client last connected.
    reported: Mutex<BTreeSet<String>>,
}

impl Exports {
    pub(crate) fn new(disks: Arc<dyn DiskExports>) -> Self {
        Self { disks: Some(disks), reported: Mutex::default() }
    }

    /// Returns an empty list of exports.
    pub(crate) fn empty() -> Self {
        Self { disks: None, reported: Mutex::default() }
    }

    fn export(&self, disk: ExportedDisk) -> Option<Export> {
        let ExportedDisk { name, size_bytes: bytes, sector_bytes, is_read_only, .. } = disk;
        let mut spec = ExportSpec::for_disk(name.clone(), bytes, sector_bytes, is_read_only);
        spec.features.trim = disk.can_discard;
        spec.features.fast_zero = disk.can_zero_fast;
        let error = match Export::new(spec) {
            Ok(export) => return Some(export),
            Err(error) => error.to_string(),
        };
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.insert(name.clone()) {
            self.report(NbdNotice::ExportFailed { disk: name, reason: error });
        }
        None
    }

    fn report(&self, notice: NbdNotice) {
        if let Some(disks) = &self.disks {
            disks.handle_notice(notice);
        }
    }
}

impl NbdExports for Exports {
    fn exports(&self) -> Vec<Export> {
        let disks = self.disks.as_ref().map(|disks| disks.exports()).unwrap_or_default();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.retain(|name| disks.iter().any(|disk| disk.name == *name));
        drop(reported);
        disks.into_iter().filter_map(|disk| self.export(disk)).collect()
    }

    fn attach(&self, name: &str, queue: NbdQueue) -> Result<(), String> {
        match &self.disks {
            Some(disks) => disks.attach(name, Box::new(queue)),
            None => Err("no export is configured".to_owned()),
        }
    }

    fn limits(&self, name: &str) -> NbdLimits {
        let disks = self.disks.as_ref().map(|disks| disks.exports()).unwrap_or_default();
        let disk = disks.into_iter().find(|disk| disk.name == name);
        disk.map_or(NbdLimits::EXPORT_DEFAULT, |disk| disk.limits)
    }

    fn handle_access_rejection(&self, peer: String, reason: String) {
        self.report(NbdNotice::Refused { peer, reason });
    }

    fn handle_limit_rejection(&self, peer: String, reason: String) {
        self.report(NbdNotice::LimitReached { peer, reason });
    }
}

#[cfg(test)]
mod tests {
    use suimon_ports::DiskQueue;

    use super::*;

    /// Server whose only disk has a name that NBD does not permit.
    #[derive(Default)]
    struct Renamed {
        name: Mutex<String>,
        reported: Mutex<Vec<NbdNotice>>,
    }

    impl DiskExports for Renamed {
        fn exports(&self) -> Vec<ExportedDisk> {
            let name = self.name.lock().unwrap().clone();
            let limits = NbdLimits { connections_max: 3, ..NbdLimits::EXPORT_DEFAULT };
            let can_discard = name.starts_with('d');
            vec![ExportedDisk {
                name,
                size_bytes: 1 << 20,
                sector_bytes: 512,
                is_read_only: false,
                limits,
                can_discard,
                can_zero_fast: can_discard,
            }]
        }

        fn attach(&self, _name: &str, _queue: Box<dyn DiskQueue>) -> Result<(), String> {
            Err("not offered".to_owned())
        }

        fn handle_notice(&self, notice: NbdNotice) {
            self.reported.lock().unwrap().push(notice);
        }
    }

    #[test]
    fn exports_have_the_limits_of_their_disks() {
        let disks = Arc::new(Renamed::default());
        *disks.name.lock().unwrap() = "web".to_owned();
        let exports = Exports::new(disks.clone());
        assert_eq!(exports.limits("web").connections_max, 3);
        assert_eq!(exports.limits("other"), NbdLimits::EXPORT_DEFAULT);
        let (peer, reason) = ("192.0.2.7:40000".to_owned(), "too many".to_owned());
        exports.handle_limit_rejection(peer.clone(), reason.clone());
        assert_eq!(*disks.reported.lock().unwrap(), [NbdNotice::LimitReached { peer, reason }]);
    }

    #[test]
    fn exports_support_trim_if_the_store_can_discard() {
        let disks = Arc::new(Renamed::default());
        let exports = Exports::new(disks.clone());
        for (name, can_free) in [("disk", true), ("solid", false)] {
            *disks.name.lock().unwrap() = name.to_owned();
            let features = exports.exports().remove(0).features();
            assert_eq!((features.trim, features.fast_zero), (can_free, can_free), "{name}");
            assert!(features.write_zeroes);
        }
    }

    #[test]
    fn reported_disks_are_forgotten_after_their_removal() {
        let disks = Arc::new(Renamed::default());
        let exports = Exports::new(disks.clone());
        for round in 0..100 {
            *disks.name.lock().unwrap() = format!("{round}{}", "x".repeat(5000));
            for _ in 0..2 {
                assert!(exports.exports().is_empty());
            }
        }
        assert_eq!(disks.reported.lock().unwrap().len(), 100, "each is reported once");
        assert_eq!(exports.reported.lock().unwrap().len(), 1);
    }
}
