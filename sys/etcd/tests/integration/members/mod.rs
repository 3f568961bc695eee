//! Etcd cluster of three members on loopback, from Debian's etcd-server.
#![allow(dead_code, reason = "each test uses a part")]

mod gate;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use suimon_etcd::{EtcdSpec, EtcdStore, EtcdTls};
use suimon_ports::{ClusterEntry, ClusterKvStore, ClusterObserver, ClusterStoreError, ClusterView};
use tempfile::TempDir;

pub(crate) use gate::Gate;

pub(crate) struct Etcd {
    children: Vec<Option<Child>>,
    arguments: Vec<Vec<String>>,
    pub(crate) endpoints: Vec<String>,
    tls: Option<EtcdTls>,
    folder: TempDir,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Paths of a CA certificate, and of a certificate issued by it for the loopback address, with its
/// key.
pub(crate) struct Authority {
    pub(crate) authority: Vec<u8>,
    certificate: PathBuf,
    key: PathBuf,
}

pub(crate) fn authority(folder: &TempDir) -> Authority {
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let authority = parameters.self_signed(&authority_key).unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let parameters = rcgen::CertificateParams::new(names).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.signed_by(&key, &authority, &authority_key).unwrap();
    let files = [("certificate.pem", certificate.pem()), ("key.pem", key.serialize_pem())];
    let [certificate, key] = files.map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    Authority { authority: authority.pem().into_bytes(), certificate, key }
}

impl Etcd {
    pub(crate) fn start(with_tls: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let authority = with_tls.then(|| authority(&folder));
        let scheme = if with_tls { "https" } else { "http" };
        let urls = |scheme: &str| -> Vec<String> {
            (0..3).map(|_| format!("{scheme}://127.0.0.1:{}", free_port())).collect()
        };
        let (endpoints, peers) = (urls(scheme), urls("http"));
        let members: Vec<String> =
            peers.iter().enumerate().map(|(index, url)| format!("m{index}={url}")).collect();
        let mut arguments = Vec::new();
        for (index, (endpoint, peer)) in endpoints.iter().zip(&peers).enumerate() {
            let data = folder.path().join(format!("data{index}")).display().to_string();
            let pairs = [
                ("--name", format!("m{index}")),
                ("--data-dir", data),
                ("--listen-client-urls", endpoint.clone()),
                ("--advertise-client-urls", endpoint.clone()),
                ("--listen-peer-urls", peer.clone()),
                ("--initial-advertise-peer-urls", peer.clone()),
                ("--initial-cluster", members.join(",")),
                ("--initial-cluster-state", "new".to_owned()),
                ("--heartbeat-interval", "100".to_owned()),
                ("--election-timeout", "500".to_owned()),
                ("--log-level", "error".to_owned()),
            ];
            let mut words: Vec<String> =
                pairs.into_iter().flat_map(|(key, value)| [key.to_owned(), value]).collect();
            if let Some(authority) = &authority {
                let files =
                    [("--cert-file", &authority.certificate), ("--key-file", &authority.key)];
                for (key, path) in files {
                    words.extend([key.to_owned(), path.display().to_string()]);
                }
            }
            arguments.push(words);
        }
        let tls = authority
            .map(|authority| EtcdTls { ca_certificates: authority.authority, identity: None });
        let mut etcd = Self { children: vec![None, None, None], arguments, endpoints, tls, folder };
        for index in 0..3 {
            etcd.begin(index);
        }
        etcd
    }

    pub(crate) fn begin(&mut self, index: usize) {
        let log = std::fs::File::create(self.folder.path().join(format!("log{index}"))).unwrap();
        let child = Command::new("etcd")
            .args(&self.arguments[index])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("etcd can be started; scripts/setup installs it");
        self.children[index] = Some(child);
    }

    pub(crate) fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.children[index].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn signal(&self, index: usize, name: &str) {
        let id = self.children[index].as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Suspends a member's process (SIGSTOP).
    pub(crate) fn freeze(&self, index: usize) {
        self.signal(index, "-STOP");
    }

    pub(crate) fn thaw(&self, index: usize) {
        self.signal(index, "-CONT");
    }

    pub(crate) fn spec(&self) -> EtcdSpec {
        EtcdSpec {
            endpoints: self.endpoints.clone(),
            tls: self.tls.clone(),
            credentials: None,
            prefix: "/suimon/".to_owned(),
            timeout: REPLY_TIMEOUT,
        }
    }

    /// Connects with [`REPLY_TIMEOUT`]. Returns once the cluster has a leader.
    pub(crate) fn connect(&self) -> EtcdStore {
        self.connect_for(REPLY_TIMEOUT)
    }

    /// Connects with this time limit per request.
    pub(crate) fn connect_for(&self, timeout: Duration) -> EtcdStore {
        let spec = EtcdSpec { timeout, ..self.spec() };
        eventually("a reply of etcd", || EtcdStore::connect(spec.clone()).ok())
    }

    /// Waits until a member replies to linearizable reads.
    pub(crate) fn wait_back(&self, index: usize) {
        let endpoints = vec![self.endpoints[index].clone()];
        let spec = EtcdSpec { endpoints, ..self.spec() };
        eventually("a reply of the member", || EtcdStore::connect(spec.clone()).ok());
    }

    /// Waits until a running member reports to be the leader. Returns its index.
    pub(crate) fn leader(&self) -> usize {
        eventually("a leader", || self.found_leader())
    }

    fn found_leader(&self) -> Option<usize> {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            for (index, endpoint) in self.endpoints.iter().enumerate() {
                let Ok(mut client) = etcd_client::Client::connect([endpoint], None).await else {
                    continue;
                };
                let Ok(status) = client.status().await else { continue };
                let id = status.header().unwrap().member_id();
                if status.leader() == id {
                    return Some(index);
                }
            }
            None
        })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for index in 0..3 {
            if self.children[index].is_some() {
                self.thaw(index);
            }
            self.kill(index);
        }
    }
}

/// Time limit for requests without reply, generous because the machine may be loaded.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of [`eventually`].
const LIMIT: Duration = Duration::from_secs(120);

/// Blocks until `condition` returns a value, and returns it. Panics with `subject` after [`LIMIT`].
pub(crate) fn eventually<T>(subject: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let started_at = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(started_at.elapsed() < LIMIT, "timeout of {LIMIT:?} while waiting for: {subject}");
        sleep(Duration::from_millis(50));
    }
}

/// Observer that records what it receives.
#[derive(Default)]
pub(crate) struct RecordingObserver {
    pub(crate) snapshots: Mutex<Vec<ClusterView>>,
    pub(crate) changes: Mutex<Vec<(u64, String, Option<ClusterEntry>)>>,
    pub(crate) errors: Mutex<Vec<ClusterStoreError>>,
}

impl RecordingObserver {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Returns the successive values of a key that the observer received.
    pub(crate) fn values(&self, key: &str) -> Vec<String> {
        let changes = self.changes.lock().unwrap();
        let matching = changes.iter().filter(|(_, changed, _)| changed == key);
        let text = |entry: &Option<ClusterEntry>| {
            entry
                .as_ref()
                .map_or("-".to_owned(), |entry| String::from_utf8(entry.value.clone()).unwrap())
        };
        matching.map(|(.., entry)| text(entry)).collect()
    }
}

impl ClusterObserver for RecordingObserver {
    fn handle_snapshot(&self, view: ClusterView) {
        self.snapshots.lock().unwrap().push(view);
    }

    fn handle_changes(&self, revision: u64, changes: Vec<(String, Option<ClusterEntry>)>) {
        let mut recorded = self.changes.lock().unwrap();
        recorded.extend(changes.into_iter().map(|(key, entry)| (revision, key, entry)));
    }

    fn handle_interruption(&self, error: &ClusterStoreError) {
        self.errors.lock().unwrap().push(error.clone());
    }
}

/// Returns the value of a key.
pub(crate) fn value(store: &EtcdStore, key: &str) -> Option<String> {
    let view = store.read(key).unwrap();
    let matching = view.entries.into_iter().find(|entry| entry.key == key);
    matching.map(|entry| String::from_utf8(entry.value).unwrap())
}
