//! API of a daemon in this process: the real node, switching plane and server, with simulated
//! devices.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use suimon_confine::Confinement;
use suimon_contract::{HostSection, LabConfig};
use suimon_frame::MacAddr;
use suimon_netdev::SriovAdapters;
use suimon_node::{Node, NodeDependencies, placements};
use suimon_ports::{
    ControlSocket, DeviceError, DeviceErrorKind, DeviceFactory, DeviceFeatures, DeviceStatus,
    KernelPathCounters, KernelPathTable, LinkProperties, MemberDevices, PortDevice, PortDeviceSpec,
    PortObserver, QueueHost, StateStore, WorkerRuntime,
};
use suimon_power_files::PowerFiles;
use suimon_quantity::PortId;
use suimon_storage::StoragePlane;
use suimon_store::FileStore;
use suimon_switch::DataPlane;
use suimon_uring::UringSource;
use suimon_wait::{WorkerThreads, cpu_topology};
use suimond::disk_factory::host_disks;
use suimond::etcd_connector::EtcdConnector;
use suimond::peer_nodes::HostPeerNodes;
use suimond::socket_files::HostSocketFiles;
use suimond::socket_threads::SocketThreads;
use suimond::vm_factory::unavailable_vm_dependencies;
use suimond_api::{
    self as api, AccessFailures, ApiState, ConsoleInService, NotificationSender, Notifications,
};
use suimond_lab::Lab;
use tokio::io::{AsyncRead, AsyncWrite};

pub const WEB: &str = r#"{"name": "web", "switch": "lan", "backend": "tap", "device": "web0"}"#;

/// Name of the daemon's host file, in the directory of the server. It does not exist at first.
pub const HOST_FILE: &str = "host.toml";

pub struct Server {
    pub directory: tempfile::TempDir,
    pub socket: PathBuf,
    pub node: Arc<Node>,
    pub news: Notifications,
    pub sender: Arc<NotificationSender>,
    pub router: axum::Router,
    /// Lab with its results in the folder `lab` of `directory`.
    pub lab: Arc<Lab>,
    pub failures: AccessFailures,
    plane: DataPlane,
}

impl Server {
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime = Arc::new(WorkerThreads);
        let cpus = runtime.allowed_cpus();
        let storage = StoragePlane::new(Arc::new(UringSource));
        let storage_tasks = Arc::new(storage.clone());
        let placements = placements(&HostSection::default());
        let plane = DataPlane::start_with_tasks(&placements, runtime, storage_tasks).unwrap();
        let (sender, notifications) = NotificationSender::new();
        let sender = Arc::new(sender);
        let store: Arc<dyn StateStore> = Arc::new(FileStore::open(directory.path()).unwrap());
        let node = Node::open(NodeDependencies {
            store,
            devices: Arc::new(Remembered),
            team_member_devices: Arc::new(Remembered),
            disks: host_disks(
                storage,
                &Confinement::off(),
                SocketThreads::new(&Confinement::off()).unwrap(),
                &directory.path().join("api.sock"),
            )
            .unwrap(),
            recording: None,
            vms: unavailable_vm_dependencies("this is a test"),
            power: Arc::new(PowerFiles::new(directory.path())),
            sriov: Arc::new(SriovAdapters::new(directory.path().join("sys"))),
            peer_nodes: Arc::new(HostPeerNodes::default()),
            cluster_connector: Arc::new(EtcdConnector),
            socket_files: Arc::new(HostSocketFiles),
            plane: Arc::new(plane.clone()),
            clock: Arc::new(|| 1_700_000_000_000),
            listener: sender.clone(),
            cpu_topology: cpu_topology(&cpus),
            cpus,
            host_name: "test".to_owned(),
            confinement: Arc::new(suimon_contract::ConfinementStatus::default),
            progress: Arc::new(|| {}),
            version: "0".to_owned(),
            retry_first: Duration::from_secs(1),
            guest_reconnect_window: Duration::ZERO,
        });
        let node = Arc::new(node.unwrap());
        let results = directory.path().join("lab");
        let failures = AccessFailures::default();
        let lab = Arc::new(Lab::new(Some(&LabConfig { results })));
        let state = ApiState {
            node: node.clone(),
            notifications: notifications.clone(),
            console: ConsoleInService::default(),
            lab: lab.clone(),
            failures: failures.clone(),
            host_file: Some(directory.path().join(HOST_FILE).into()),
        };
        tokio::spawn(failures.clone().report(node.clone(), notifications.clone()));
        let router = api::router(state);
        let socket = directory.path().join("api.sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        tokio::spawn(suimond_api::serve(listener, router.clone(), notifications.clone()));
        Self { directory, socket, node, news: notifications, sender, router, lab, failures, plane }
    }

    /// Starts with a private switch `lan` and on it the TAP NIC [`WEB`]; the revision is 2.
    pub async fn with_web() -> Self {
        let server = Self::start().await;
        let lan = r#"{"name": "lan", "kind": "private"}"#;
        for (path, body) in [("/1.0/switches", lan), ("/1.0/nics", WEB)] {
            let operation = server.change(Method::POST, path, body).await;
            assert_eq!(operation["state"], "succeeded", "{operation}");
        }
        server
    }

    pub async fn send(&self, method: Method, path: &str, body: &str) -> Response<Incoming> {
        let stream = tokio::net::UnixStream::connect(&self.socket).await.unwrap();
        exchange(stream, method, path, body, None).await.unwrap()
    }

    /// Returns status and JSON of the response.
    pub async fn call(&self, method: Method, path: &str, body: &str) -> (u16, Value) {
        json(self.send(method, path, body).await).await
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, value) = self.call(Method::GET, path, "").await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// Sends a change and waits for its end.
    pub async fn change(&self, method: Method, path: &str, body: &str) -> Value {
        let answer = self.send(method, path, body).await;
        let location = answer.headers().get("location").map(|l| l.to_str().unwrap().to_owned());
        let (status, value) = json(answer).await;
        assert_eq!(status, 202, "{path}: {value}");
        self.get(&format!("{}/wait?timeout_s=20", location.unwrap())).await
    }

    /// Stops the node on a thread that may block.
    pub async fn stop(&self) {
        let node = self.node.clone();
        tokio::task::spawn_blocking(move || node.stop()).await.unwrap();
        self.sender.signal_end();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.node.stop();
        self.plane.stop();
    }
}

pub async fn exchange<S>(
    stream: S,
    method: Method,
    path: &str,
    body: &str,
    token: Option<&str>,
) -> hyper::Result<Response<Incoming>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", "suimond");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = Full::new(Bytes::from(body.to_owned()));
    sender.send_request(request.body(body).unwrap()).await
}

pub async fn json(answer: Response<Incoming>) -> (u16, Value) {
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let value = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    (status, value)
}

/// Creates a certificate for `localhost` and its key as PEM files.
pub fn certificate(directory: &Path) -> (PathBuf, PathBuf, rcgen::CertifiedKey) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.key_pair.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    (certificate, key, certified)
}

/// Factory of simulated devices. Devices named `missing…` do not exist.
struct Remembered;

impl MemberDevices for Remembered {
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError> {
        Err(no_device(device))
    }

    fn link_properties(&self, device: &str) -> Result<LinkProperties, DeviceError> {
        Err(no_device(device))
    }
}

fn no_device(device: &str) -> DeviceError {
    let detail = format!("there is no device {device}");
    DeviceError { kind: DeviceErrorKind::Missing, field: "device", detail }
}

impl DeviceFactory for Remembered {
    fn probe(&self, spec: &PortDeviceSpec) -> Result<(), DeviceError> {
        match spec {
            PortDeviceSpec::Tap(tap) if tap.device.starts_with("missing") => Err(DeviceError {
                kind: DeviceErrorKind::Missing,
                field: "device",
                detail: "there is no such device".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn open(
        &self,
        _port: PortId,
        spec: &PortDeviceSpec,
        _queues: Arc<dyn QueueHost>,
        _observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        self.probe(spec)?;
        Ok(Box::new(Open))
    }

    fn device_index(&self, _spec: &PortDeviceSpec) -> Option<u32> {
        None
    }

    fn hardware_features(
        &self,
        _spec: &PortDeviceSpec,
    ) -> Result<Option<DeviceFeatures>, DeviceError> {
        Ok(None)
    }

    fn set_kernel_path_table(
        &self,
        _table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        Ok(Vec::new())
    }

    fn kernel_path_counters(&self, _port: PortId) -> KernelPathCounters {
        KernelPathCounters::default()
    }

    fn remove_tap(&self, _device: &str, _netns: Option<&str>) -> Result<bool, DeviceError> {
        Ok(true)
    }
}

struct Open;

impl PortDevice for Open {
    fn status(&self) -> DeviceStatus {
        DeviceStatus { link_up: true, queue_pairs: 1, mtu: 1500, ..DeviceStatus::default() }
    }

    fn apply_spec(&mut self, _to: &PortDeviceSpec) -> Result<bool, DeviceError> {
        Ok(true)
    }
}
