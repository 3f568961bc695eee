//! Requests about the host: its state, data plane, adapters and rates.

use hyper::Method;
use suimon_contract::{
    AddressStatus, HostConfig, HostStatus, MoveQueueRequest, Name, Operation, QosFlowStatus,
    QueueStatus, SriovAdapter, TopSnapshot, VmqStatus, WhatIfRequest, WhatIfResponse, WorkerStatus,
};

use crate::client::Client;
use crate::resources::json_body;
use crate::transport::ApiRequest;
use crate::{ClientError, transport};

impl Client {
    /// Returns the status of the host.
    pub async fn host(&self) -> Result<HostStatus, ClientError> {
        self.get_json("/1.0").await
    }

    /// Returns the desired state of the host.
    pub async fn config(&self) -> Result<HostConfig, ClientError> {
        self.get_json("/1.0/config").await
    }

    /// Returns the desired state as a host file (TOML).
    pub async fn config_toml(&self) -> Result<String, ClientError> {
        transport::fetch_text(self, ApiRequest::get("/1.0/config?format=toml")).await
    }

    /// Returns the OpenAPI document of the API.
    pub async fn openapi(&self) -> Result<String, ClientError> {
        transport::fetch_text(self, ApiRequest::get("/1.0/openapi.json")).await
    }

    /// Returns the metrics in Prometheus' text format.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        transport::fetch_text(self, ApiRequest::get("/metrics")).await
    }

    /// Returns the forwarding table of a switch.
    pub async fn addresses(&self, switch: &Name) -> Result<Vec<AddressStatus>, ClientError> {
        self.get_json(format!("/1.0/switches/{switch}/addresses")).await
    }

    /// Returns the VMQ state of every team and uplink that a switch uses.
    pub async fn vmqs(&self) -> Result<Vec<VmqStatus>, ClientError> {
        self.get_json("/1.0/vmq").await
    }

    /// Returns the VMQ state of a team or uplink that a switch uses.
    pub async fn vmq(&self, uplink: &Name) -> Result<VmqStatus, ClientError> {
        self.get_json(format!("/1.0/vmq/{uplink}")).await
    }

    /// Returns all network adapters of the host that support SR-IOV.
    pub async fn sriov_adapters(&self) -> Result<Vec<SriovAdapter>, ClientError> {
        self.get_json("/1.0/sriov").await
    }

    /// Returns the adapter with this PCI address, network device or `[[pf]]`.
    pub async fn sriov_adapter(&self, name: &str) -> Result<SriovAdapter, ClientError> {
        // The names contain no other characters.
        let name: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.:".contains(*c)).collect();
        self.get_json(format!("/1.0/sriov/{name}")).await
    }

    /// Returns the delivered rates and limits of each disk.
    pub async fn qos_flows(&self) -> Result<Vec<QosFlowStatus>, ClientError> {
        self.get_json("/1.0/qos/flows").await
    }

    /// Returns the guarantees that stores could accept in addition. Nothing is changed.
    pub async fn what_if(&self, request: &WhatIfRequest) -> Result<WhatIfResponse, ClientError> {
        let call = ApiRequest::new(Method::POST, "/1.0/qos/what-if").with_body(json_body(request)?);
        transport::fetch_json(self, call).await
    }

    /// Returns all queues of the data plane.
    pub async fn queues(&self) -> Result<Vec<QueueStatus>, ClientError> {
        self.get_json("/1.0/queues").await
    }

    /// Moves the queue with this id (`NIC/rx/0`) to a worker.
    pub async fn move_queue(&self, id: &str, worker: u16) -> Result<Operation, ClientError> {
        let id: String =
            id.chars().filter(|c| c.is_ascii_alphanumeric() || "-_./:".contains(*c)).collect();
        let call = ApiRequest::new(Method::POST, format!("/1.0/queues/{id}/move"))
            .with_body(json_body(&MoveQueueRequest { worker })?);
        transport::fetch_json(self, call).await
    }

    /// Returns all workers of the data plane.
    pub async fn workers(&self) -> Result<Vec<WorkerStatus>, ClientError> {
        self.get_json("/1.0/workers").await
    }

    /// Returns all counters at one point in time.
    pub async fn top(&self) -> Result<TopSnapshot, ClientError> {
        self.get_json("/1.0/top").await
    }
}
