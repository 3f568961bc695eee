//! What can be read of the node. Nothing is changed by it.

use std::time::Duration;

use suimon_contract::{
    AddressStatus, ApiError, ClusterDisk, ClusterStatus, DiskStatus, EventFilter, HostConfig,
    HostStatus, NicStatus, NodeStatus, Operation, PfStatus, PowerStatus, ProcessorStatus,
    QosFlowStatus, QosPolicyStatus, QueueStatus, SriovAdapter, StoreStatus, SwitchStatus,
    TeamStatus, TopSnapshot, UplinkStatus, VmStatus, VmqStatus, WhatIfAnswer, WhatIfRequest,
};

use super::Node;
use crate::events::EventPage;

impl Node {
    /// Desired state.
    pub fn config(&self) -> HostConfig {
        self.shared.desired().config.clone()
    }

    /// The host.
    pub fn host_status(&self) -> HostStatus {
        self.shared.host_status()
    }

    /// All NICs.
    pub fn nics(&self) -> Vec<NicStatus> {
        self.shared.nics()
    }

    /// One NIC.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn nic(&self, name: &str) -> Result<NicStatus, ApiError> {
        self.shared.nic(name)
    }

    /// All uplinks.
    pub fn uplinks(&self) -> Vec<UplinkStatus> {
        self.shared.uplinks()
    }

    /// One uplink.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn uplink(&self, name: &str) -> Result<UplinkStatus, ApiError> {
        self.shared.uplink(name)
    }

    /// All teams.
    pub fn teams(&self) -> Vec<TeamStatus> {
        self.shared.teams()
    }

    /// One team.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn team(&self, name: &str) -> Result<TeamStatus, ApiError> {
        self.shared.team(name)
    }

    /// VMQ of every team and uplink that a switch uses.
    pub fn vmqs(&self) -> Vec<VmqStatus> {
        self.shared.vmqs()
    }

    /// VMQ of one team or uplink.
    ///
    /// # Errors
    /// There is none of that name, or no switch uses it.
    pub fn vmq(&self, uplink: &str) -> Result<VmqStatus, ApiError> {
        self.shared.vmq(uplink)
    }

    /// All switches.
    pub fn switches(&self) -> Vec<SwitchStatus> {
        self.shared.switches()
    }

    /// One switch.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn switch(&self, name: &str) -> Result<SwitchStatus, ApiError> {
        self.shared.switch(name)
    }

    /// The forwarding table of a switch.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn addresses(&self, switch: &str) -> Result<Vec<AddressStatus>, ApiError> {
        self.shared.addresses(switch)
    }

    /// All stores.
    pub fn stores(&self) -> Vec<StoreStatus> {
        self.shared.stores()
    }

    /// One store.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn store(&self, name: &str) -> Result<StoreStatus, ApiError> {
        self.shared.store(name)
    }

    /// All disks.
    pub fn disks(&self) -> Vec<DiskStatus> {
        self.shared.disks()
    }

    /// One disk.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn disk(&self, name: &str) -> Result<DiskStatus, ApiError> {
        self.shared.disk(name)
    }

    /// All VMs.
    pub fn vms(&self) -> Vec<VmStatus> {
        self.shared.vms()
    }

    /// One VM.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn vm(&self, name: &str) -> Result<VmStatus, ApiError> {
        self.shared.vm(name)
    }

    /// All adapters of which something is desired.
    pub fn pfs(&self) -> Vec<PfStatus> {
        self.shared.pfs()
    }

    /// One of them.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn pf(&self, name: &str) -> Result<PfStatus, ApiError> {
        self.shared.pf(name)
    }

    /// All other nodes, asked now how they are: it takes some seconds where one does not answer.
    pub fn nodes(&self) -> Vec<NodeStatus> {
        self.shared.nodes()
    }

    /// One of them.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn far_node(&self, name: &str) -> Result<NodeStatus, ApiError> {
        self.shared.node(name)
    }

    /// The cluster that the host is a node of; asks it, and waits for a second or two where it does
    /// not answer.
    pub fn cluster(&self) -> ClusterStatus {
        self.shared.cluster_status()
    }

    /// What disks of all nodes do on shared stores, as far as their nodes name them.
    ///
    /// # Errors
    /// There is no cluster, or it does not answer.
    pub fn cluster_flows(&self) -> Result<Vec<ClusterDisk>, ApiError> {
        self.shared.cluster_flows()
    }

    /// All network adapters of the host that have SR-IOV.
    ///
    /// # Errors
    /// The host cannot be asked.
    pub fn sriov_adapters(&self) -> Result<Vec<SriovAdapter>, ApiError> {
        self.shared.sriov_adapters()
    }

    /// The one of this PCI address, network device or `[[pf]]`.
    ///
    /// # Errors
    /// There is none.
    pub fn sriov_adapter(&self, name: &str) -> Result<SriovAdapter, ApiError> {
        self.shared.sriov_adapter(name)
    }

    /// What every disk in service is entitled to, wants and gets.
    pub fn qos_flows(&self) -> Vec<QosFlowStatus> {
        self.shared.qos_flows()
    }

    /// What stores would promise if these proposals were made; nothing is changed.
    ///
    /// # Errors
    /// All that is wrong with the proposals, never empty.
    pub fn what_if(&self, request: &WhatIfRequest) -> Result<WhatIfAnswer, Vec<ApiError>> {
        self.shared.what_if(request)
    }

    /// All QoS policies.
    pub fn qos_policies(&self) -> Vec<QosPolicyStatus> {
        self.shared.qos_policies()
    }

    /// One QoS policy.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn qos_policy(&self, name: &str) -> Result<QosPolicyStatus, ApiError> {
        self.shared.qos_policy(name)
    }

    /// All queues.
    pub fn queues(&self) -> Vec<QueueStatus> {
        self.shared.queues()
    }

    /// All processors.
    pub fn processors(&self) -> Vec<ProcessorStatus> {
        self.shared.processors()
    }

    /// Power: what is wanted, what is so, and energy. Reads the host's files.
    pub fn power(&self) -> PowerStatus {
        self.shared.power_status()
    }

    /// All counters at one time.
    pub fn top(&self) -> TopSnapshot {
        self.shared.top()
    }

    /// Up to `limit` events after a sequence.
    pub fn events(&self, after: u64, limit: usize, wanted: &EventFilter) -> EventPage {
        self.shared.events.page(after, limit, wanted)
    }

    /// The last `limit` events.
    pub fn last_events(&self, limit: usize, wanted: &EventFilter) -> EventPage {
        self.shared.events.tail(limit, wanted)
    }

    /// Like [`Node::events`], but waits up to `timeout` until there is one.
    pub fn wait_events(
        &self,
        after: u64,
        limit: usize,
        wanted: &EventFilter,
        timeout: Duration,
    ) -> EventPage {
        self.shared.events.wait(after, limit, wanted, timeout)
    }

    /// The operations under way and the last that ended.
    pub fn operations(&self) -> Vec<Operation> {
        self.shared.operations.list()
    }

    /// One operation.
    pub fn operation(&self, id: u64) -> Option<Operation> {
        self.shared.operations.find(id)
    }

    /// Waits until an operation has ended, up to `timeout`.
    pub fn wait_operation(&self, id: u64, timeout: Duration) -> Option<Operation> {
        self.shared.operations.wait(id, timeout)
    }
}
