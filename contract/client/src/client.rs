//! Client, and the endpoints that are not collections of resources.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::Method;
use suimon_contract::{
    AddressStatus, Event, EventFilter, HostConfig, HostStatus, MoveQueueRequest, Name, NicConfig,
    Operation, QosFlowStatus, QueueStatus, Resource, Severity, SriovAdapter, TopSnapshot,
    UplinkConfig, VmqStatus, WhatIfRequest, WhatIfResponse, WorkerStatus,
};

use crate::resources::{body, item};
use crate::transport::{self, Call};
use crate::transport_stream::{TlsTransport, Transport};
use crate::{Capture, ClientError, Follow, TlsError, TlsReach};

/// Default time limit for the head of a response, in addition to the time that the request asks the
/// daemon to wait.
const ANSWER_TIME_DEFAULT: Duration = Duration::from_secs(60);
/// Default maximum size in bytes of a response that is not streamed.
const ANSWER_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// Client of one daemon. Holds no connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) transport: Transport,
    pub(crate) answer_time: Duration,
    pub(crate) answer_bytes_max: usize,
}

/// Selection of events from the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Returns events after this sequence number; the most recent ones if `None`.
    pub after: Option<u64>,
    /// Maximum number of events to return.
    pub limit: Option<usize>,
    /// Filter by severity, subject and id.
    pub filter: EventFilter,
}

/// Kind of resource whose frames can be captured.
pub trait Captured: Resource {}

impl Captured for NicConfig {}
impl Captured for UplinkConfig {}

/// Limits of a capture. Without any limit it continues until it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Bytes captured of each frame.
    pub snaplen: Option<u32>,
    /// Number of frames after which the capture ends.
    pub frames_max: Option<u64>,
    /// Number of bytes after which the capture ends.
    pub bytes_max: Option<u64>,
}

/// Every method fails with [`ClientError`].
impl Client {
    /// Creates a client of the daemon that listens on this Unix socket. Does not connect.
    pub fn unix(socket: impl Into<PathBuf>) -> Self {
        Self::over(Transport::Unix(socket.into()))
    }

    /// Creates a client of a daemon that is reached over TCP with TLS. Reads the files but does not
    /// connect.
    ///
    /// # Errors
    /// A file cannot be used, or the server name is invalid.
    pub fn tls(reach: &TlsReach) -> Result<Self, TlsError> {
        let transport = Transport::Tls(Arc::new(TlsTransport::new(reach)?));
        Ok(Self::over(transport))
    }

    const fn over(transport: Transport) -> Self {
        Self {
            transport,
            answer_time: ANSWER_TIME_DEFAULT,
            answer_bytes_max: ANSWER_BYTES_MAX_DEFAULT,
        }
    }

    /// Sets the time limit for responses, in addition to the time that a request asks the daemon to
    /// wait. The default is 60 s.
    #[must_use]
    pub fn with_answer_time(mut self, answer_time: Duration) -> Self {
        self.answer_time = answer_time;
        self
    }

    /// Sets the maximum size in bytes of a response that is not streamed. The default is 64 MiB.
    #[must_use]
    pub fn with_answer_bytes_max(mut self, answer_bytes_max: usize) -> Self {
        self.answer_bytes_max = answer_bytes_max;
        self
    }

    /// Returns the status of the host.
    pub async fn host(&self) -> Result<HostStatus, ClientError> {
        self.json("/1.0").await
    }

    /// Returns the desired state of the host.
    pub async fn config(&self) -> Result<HostConfig, ClientError> {
        self.json("/1.0/config").await
    }

    /// Returns the desired state as a host file (TOML).
    pub async fn config_toml(&self) -> Result<String, ClientError> {
        transport::text(self, Call::get("/1.0/config?format=toml")).await
    }

    /// Returns the OpenAPI document of the API.
    pub async fn openapi(&self) -> Result<String, ClientError> {
        transport::text(self, Call::get("/1.0/openapi.json")).await
    }

    /// Returns the metrics in Prometheus' text format.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        transport::text(self, Call::get("/metrics")).await
    }

    /// Returns the forwarding table of a switch.
    pub async fn addresses(&self, switch: &Name) -> Result<Vec<AddressStatus>, ClientError> {
        self.json(format!("/1.0/switches/{switch}/addresses")).await
    }

    /// Returns the VMQ state of every team and uplink that a switch uses.
    pub async fn vmqs(&self) -> Result<Vec<VmqStatus>, ClientError> {
        self.json("/1.0/vmq").await
    }

    /// Returns the VMQ state of a team or uplink that a switch uses.
    pub async fn vmq(&self, uplink: &Name) -> Result<VmqStatus, ClientError> {
        self.json(format!("/1.0/vmq/{uplink}")).await
    }

    /// Returns all network adapters of the host that support SR-IOV.
    pub async fn sriov_adapters(&self) -> Result<Vec<SriovAdapter>, ClientError> {
        self.json("/1.0/sriov").await
    }

    /// Returns the adapter with this PCI address, network device or `[[pf]]`.
    pub async fn sriov_adapter(&self, name: &str) -> Result<SriovAdapter, ClientError> {
        // Other characters do not occur in these names.
        let name: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.:".contains(*c)).collect();
        self.json(format!("/1.0/sriov/{name}")).await
    }

    /// Returns the delivered rates and limits of each disk.
    pub async fn qos_flows(&self) -> Result<Vec<QosFlowStatus>, ClientError> {
        self.json("/1.0/qos/flows").await
    }

    /// Returns the guarantees that stores would accept; nothing changes.
    pub async fn what_if(&self, request: &WhatIfRequest) -> Result<WhatIfResponse, ClientError> {
        let call = Call::new(Method::POST, "/1.0/qos/what-if").with_body(body(request)?);
        transport::json(self, call).await
    }

    /// Returns all queues of the data plane.
    pub async fn queues(&self) -> Result<Vec<QueueStatus>, ClientError> {
        self.json("/1.0/queues").await
    }

    /// Moves the queue with this id (`NIC/rx/0`) to a worker.
    pub async fn move_queue(&self, id: &str, worker: u16) -> Result<Operation, ClientError> {
        let id: String =
            id.chars().filter(|c| c.is_ascii_alphanumeric() || "-_./:".contains(*c)).collect();
        let call = Call::new(Method::POST, format!("/1.0/queues/{id}/move"))
            .with_body(body(&MoveQueueRequest { worker })?);
        transport::json(self, call).await
    }

    /// Returns all workers of the data plane.
    pub async fn workers(&self) -> Result<Vec<WorkerStatus>, ClientError> {
        self.json("/1.0/workers").await
    }

    /// Returns all counters at one instant.
    pub async fn top(&self) -> Result<TopSnapshot, ClientError> {
        self.json("/1.0/top").await
    }

    /// Returns events of the log, oldest first.
    pub async fn events(&self, query: EventQuery) -> Result<Vec<Event>, ClientError> {
        let [severity, subject, id] = filter_query(&query.filter);
        let after = ("after", query.after.map(|n| n.to_string()));
        let limit = ("limit", query.limit.map(|n| n.to_string()));
        self.json(with_query("/1.0/events", &[after, limit, severity, subject, id])).await
    }

    /// Streams matching events as they occur, from this sequence number or from now on.
    pub async fn follow_events(
        &self,
        after: Option<u64>,
        filter: &EventFilter,
    ) -> Result<Follow<Event>, ClientError> {
        let [severity, subject, id] = filter_query(filter);
        let after = ("after", after.map(|n| n.to_string()));
        let path = with_query("/1.0/events/follow", &[after, severity, subject, id]);
        let answer = transport::send(self, Call::get(path.clone())).await?;
        Ok(Follow::new(path, answer))
    }

    /// Returns all operations that the daemon keeps.
    pub async fn operations(&self) -> Result<Vec<Operation>, ClientError> {
        self.json("/1.0/operations").await
    }

    /// Returns one operation with its progress.
    pub async fn operation(&self, id: u64) -> Result<Operation, ClientError> {
        self.json(format!("/1.0/operations/{id}")).await
    }

    /// Returns an operation once it has ended, or after `timeout`.
    pub async fn wait_operation(
        &self,
        id: u64,
        timeout: Duration,
    ) -> Result<Operation, ClientError> {
        let mut call =
            Call::get(format!("/1.0/operations/{id}/wait?timeout_s={}", timeout.as_secs()));
        call.timeout = timeout;
        transport::json(self, call).await
    }

    /// Streams the progress of an operation until it has ended.
    pub async fn follow_operation(&self, id: u64) -> Result<Follow<Operation>, ClientError> {
        let path = format!("/1.0/operations/{id}/follow");
        let answer = transport::send(self, Call::get(path.clone())).await?;
        Ok(Follow::new(path, answer))
    }

    /// Requests cancellation of an operation. The returned state shows the result.
    pub async fn cancel_operation(&self, id: u64) -> Result<Operation, ClientError> {
        let call = Call::new(Method::DELETE, format!("/1.0/operations/{id}"));
        transport::json(self, call).await
    }

    /// Starts a capture of a port. It ends when the returned value is dropped, a limit is reached
    /// or its operation is cancelled.
    pub async fn capture<R: Captured>(
        &self,
        port: &Name,
        options: CaptureOptions,
    ) -> Result<Capture, ClientError> {
        let path = with_query(
            &format!("{}/capture", item::<R>(port)),
            &[
                ("snaplen", options.snaplen.map(|n| n.to_string())),
                ("max_frames", options.frames_max.map(|n| n.to_string())),
                ("max_bytes", options.bytes_max.map(|n| n.to_string())),
            ],
        );
        transport::send(self, Call::get(path)).await.map(Capture::new)
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        path: impl Into<String>,
    ) -> Result<T, ClientError> {
        transport::json(self, Call::get(path)).await
    }
}

/// Appends the given query parameters to a path. Values are percent-encoded.
pub(crate) fn with_query(path: &str, pairs: &[(&str, Option<String>)]) -> String {
    let mut full = path.to_owned();
    let given = pairs.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    for (index, (key, value)) in given.enumerate() {
        full.push(if index == 0 { '?' } else { '&' });
        full.push_str(key);
        full.push('=');
        full.extend(form_urlencoded::byte_serialize(value.as_bytes()));
    }
    full
}

/// Encodes an event filter as query parameters.
fn filter_query(filter: &EventFilter) -> [(&'static str, Option<String>); 3] {
    let severity = Some(filter.severity).filter(|severity| *severity > Severity::Info);
    [
        ("severity", severity.map(|severity| severity.as_str().to_owned())),
        ("subject", filter.subject.clone()),
        ("id", filter.id.map(|id| id.to_string())),
    ]
}
