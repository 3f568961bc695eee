//! The client and the endpoints that are not collections of resources.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::Method;
use suimon_contract::{
    AddressStatus, Event, EventFilter, HostConfig, HostStatus, MoveQueueRequest, Name, NicConfig,
    Operation, ProcessorStatus, QosFlowStatus, QueueStatus, Resource, Severity, SriovAdapter,
    TopSnapshot, UplinkConfig, VmqStatus, WhatIfAnswer, WhatIfRequest,
};

use crate::resources::{body, item};
use crate::transport::{self, Call};
use crate::way::{TlsWay, Way};
use crate::{Capture, ClientError, Follow, TlsError, TlsReach};

/// Longest wait for the head of an answer, beyond what the request itself asks
/// the daemon to wait.
const ANSWER_TIME_DEFAULT: Duration = Duration::from_secs(60);

/// A client of one daemon.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) way: Way,
    pub(crate) answer_time: Duration,
}

/// Which events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only those after this sequence number; the last ones if absent.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Which of them.
    pub filter: EventFilter,
}

/// A kind of resource whose frames can be captured.
pub trait Captured: Resource {}

impl Captured for NicConfig {}
impl Captured for UplinkConfig {}

/// Bounds of a capture. Without any it goes on until it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Bytes kept of each frame.
    pub snaplen: Option<u32>,
    /// Frames after which it ends.
    pub frames_max: Option<u64>,
    /// Bytes after which it ends.
    pub bytes_max: Option<u64>,
}

/// Every method fails with [`ClientError`].
impl Client {
    /// A client of the daemon that listens on this Unix socket. Nothing is
    /// connected yet.
    pub fn unix(socket: impl Into<PathBuf>) -> Self {
        Self { way: Way::Unix(socket.into()), answer_time: ANSWER_TIME_DEFAULT }
    }

    /// A client of the daemon that is reached over TCP with TLS like this. Files are read now;
    /// nothing is connected yet.
    ///
    /// # Errors
    /// A file that is named cannot be used, or a name is none.
    pub fn tls(reach: &TlsReach) -> Result<Self, TlsError> {
        let way = Way::Tls(Arc::new(TlsWay::new(reach)?));
        Ok(Self { way, answer_time: ANSWER_TIME_DEFAULT })
    }

    /// The same, which waits no longer for an answer than this, beyond what a request itself
    /// asks the daemon to wait. 60 s otherwise.
    #[must_use]
    pub fn with_answer_time(mut self, answer_time: Duration) -> Self {
        self.answer_time = answer_time;
        self
    }

    /// The host.
    pub async fn host(&self) -> Result<HostStatus, ClientError> {
        self.json("/1.0").await
    }

    /// Desired state.
    pub async fn config(&self) -> Result<HostConfig, ClientError> {
        self.json("/1.0/config").await
    }

    /// Desired state as a host file.
    pub async fn config_toml(&self) -> Result<String, ClientError> {
        transport::text(self, Call::get("/1.0/config?format=toml")).await
    }

    /// The OpenAPI document.
    pub async fn openapi(&self) -> Result<String, ClientError> {
        transport::text(self, Call::get("/1.0/openapi.json")).await
    }

    /// Metrics in Prometheus' text format.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        transport::text(self, Call::get("/metrics")).await
    }

    /// The forwarding table of a switch.
    pub async fn addresses(&self, switch: &Name) -> Result<Vec<AddressStatus>, ClientError> {
        self.json(format!("/1.0/switches/{switch}/addresses")).await
    }

    /// VMQ of every team and uplink that a switch uses.
    pub async fn vmqs(&self) -> Result<Vec<VmqStatus>, ClientError> {
        self.json("/1.0/vmq").await
    }

    /// VMQ of the team or uplink of this name, if a switch uses it.
    pub async fn vmq(&self, uplink: &Name) -> Result<VmqStatus, ClientError> {
        self.json(format!("/1.0/vmq/{uplink}")).await
    }

    /// All network adapters of the host that have SR-IOV.
    pub async fn sriov_adapters(&self) -> Result<Vec<SriovAdapter>, ClientError> {
        self.json("/1.0/sriov").await
    }

    /// The adapter of this PCI address, network device or `[[pf]]`.
    pub async fn sriov_adapter(&self, name: &str) -> Result<SriovAdapter, ClientError> {
        // What else could be in a name of those is in none of them.
        let name: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.:".contains(*c)).collect();
        self.json(format!("/1.0/sriov/{name}")).await
    }

    /// What each disk gets and is held to.
    pub async fn qos_flows(&self) -> Result<Vec<QosFlowStatus>, ClientError> {
        self.json("/1.0/qos/flows").await
    }

    /// What stores would promise; nothing changes.
    pub async fn what_if(&self, request: &WhatIfRequest) -> Result<WhatIfAnswer, ClientError> {
        let call = Call::new(Method::POST, "/1.0/qos/what-if").with_body(body(request)?);
        transport::json(self, call).await
    }

    /// All queues.
    pub async fn queues(&self) -> Result<Vec<QueueStatus>, ClientError> {
        self.json("/1.0/queues").await
    }

    /// Hands the queue of this id (`NIC/rx/0`) over to a processor.
    pub async fn move_queue(&self, id: &str, processor: u16) -> Result<Operation, ClientError> {
        let id: String =
            id.chars().filter(|c| c.is_ascii_alphanumeric() || "-_./:".contains(*c)).collect();
        let call = Call::new(Method::POST, format!("/1.0/queues/{id}/move"))
            .with_body(body(&MoveQueueRequest { processor })?);
        transport::json(self, call).await
    }

    /// All processors.
    pub async fn processors(&self) -> Result<Vec<ProcessorStatus>, ClientError> {
        self.json("/1.0/processors").await
    }

    /// All counters at one moment.
    pub async fn top(&self) -> Result<TopSnapshot, ClientError> {
        self.json("/1.0/top").await
    }

    /// Events of the log, oldest first.
    pub async fn events(&self, query: EventQuery) -> Result<Vec<Event>, ClientError> {
        let [severity, subject, id] = filter_query(&query.filter);
        let after = ("after", query.after.map(|n| n.to_string()));
        let limit = ("limit", query.limit.map(|n| n.to_string()));
        self.json(with_query("/1.0/events", &[after, limit, severity, subject, id])).await
    }

    /// Events as they happen that are wanted, beginning after this sequence number or with the
    /// next one.
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

    /// All operations the daemon remembers.
    pub async fn operations(&self) -> Result<Vec<Operation>, ClientError> {
        self.json("/1.0/operations").await
    }

    /// One operation.
    pub async fn operation(&self, id: u64) -> Result<Operation, ClientError> {
        self.json(format!("/1.0/operations/{id}")).await
    }

    /// One operation, as soon as it has ended or the time is up.
    pub async fn wait_operation(
        &self,
        id: u64,
        timeout: Duration,
    ) -> Result<Operation, ClientError> {
        let mut call =
            Call::get(format!("/1.0/operations/{id}/wait?timeout_s={}", timeout.as_secs()));
        call.patience = timeout;
        transport::json(self, call).await
    }

    /// An operation with every change of its progress, until it has ended.
    pub async fn follow_operation(&self, id: u64) -> Result<Follow<Operation>, ClientError> {
        let path = format!("/1.0/operations/{id}/follow");
        let answer = transport::send(self, Call::get(path.clone())).await?;
        Ok(Follow::new(path, answer))
    }

    /// Asks an operation to stop; its state tells whether it could.
    pub async fn cancel_operation(&self, id: u64) -> Result<Operation, ClientError> {
        let call = Call::new(Method::DELETE, format!("/1.0/operations/{id}"));
        transport::json(self, call).await
    }

    /// Begins a capture of what passes the port. It ends when the result is dropped, when a bound is
    /// reached or when its operation is cancelled.
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

/// `path?a=1&b=2` of what is given. Values are numbers and plain words.
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

/// A filter of events as the API has it.
fn filter_query(filter: &EventFilter) -> [(&'static str, Option<String>); 3] {
    let severity = Some(filter.severity).filter(|severity| *severity > Severity::Info);
    [
        ("severity", severity.map(|severity| severity.as_str().to_owned())),
        ("subject", filter.subject.clone()),
        ("id", filter.id.map(|id| id.to_string())),
    ]
}
