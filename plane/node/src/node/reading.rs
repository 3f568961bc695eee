//! Functions that read the state of the node. None changes it.

use std::time::Duration;

use suimon_contract::{
    AddressStatus, ApiError, ClusterDisk, ClusterStatus, DiskStatus, EventFilter, HostConfig,
    HostStatus, NicStatus, NodeStatus, Operation, PfStatus, PowerStatus, QosFlowStatus,
    QosPolicyStatus, QueueStatus, SriovAdapter, StoreStatus, SwitchStatus, TeamStatus, TopSnapshot,
    UplinkStatus, VmStatus, VmqStatus, WhatIfRequest, WhatIfResponse, WorkerStatus,
};

use super::Node;
use crate::events::EventPage;

impl Node {
    /// Returns the configuration in effect, which is the desired state.
    pub fn config(&self) -> HostConfig {
        self.shared.desired().config.clone()
    }

    /// Returns the status of the host.
    pub fn host_status(&self) -> HostStatus {
        self.shared.host_status()
    }

    /// Returns the status of all NICs.
    pub fn nics(&self) -> Vec<NicStatus> {
        self.shared.nics()
    }

    /// Returns the status of a NIC.
    ///
    /// # Errors
    /// Fails if there is no NIC of that name.
    pub fn nic(&self, name: &str) -> Result<NicStatus, ApiError> {
        self.shared.nic(name)
    }

    /// Returns the status of all uplinks.
    pub fn uplinks(&self) -> Vec<UplinkStatus> {
        self.shared.uplinks()
    }

    /// Returns the status of an uplink.
    ///
    /// # Errors
    /// Fails if there is no uplink of that name.
    pub fn uplink(&self, name: &str) -> Result<UplinkStatus, ApiError> {
        self.shared.uplink(name)
    }

    /// Returns the status of all teams.
    pub fn teams(&self) -> Vec<TeamStatus> {
        self.shared.teams()
    }

    /// Returns the status of a team.
    ///
    /// # Errors
    /// Fails if there is no team of that name.
    pub fn team(&self, name: &str) -> Result<TeamStatus, ApiError> {
        self.shared.team(name)
    }

    /// Returns the VMQ status of every team and uplink that a switch uses.
    pub fn vmqs(&self) -> Vec<VmqStatus> {
        self.shared.vmqs()
    }

    /// Returns the VMQ status of a team or uplink.
    ///
    /// # Errors
    /// Fails if there is no team or uplink of that name, or no switch uses it.
    pub fn vmq(&self, uplink: &str) -> Result<VmqStatus, ApiError> {
        self.shared.vmq(uplink)
    }

    /// Returns the status of all switches.
    pub fn switches(&self) -> Vec<SwitchStatus> {
        self.shared.switches()
    }

    /// Returns the status of a switch.
    ///
    /// # Errors
    /// Fails if there is no switch of that name.
    pub fn switch(&self, name: &str) -> Result<SwitchStatus, ApiError> {
        self.shared.switch(name)
    }

    /// Returns the forwarding table of a switch.
    ///
    /// # Errors
    /// Fails if there is no switch of that name.
    pub fn addresses(&self, switch: &str) -> Result<Vec<AddressStatus>, ApiError> {
        self.shared.addresses(switch)
    }

    /// Returns the status of all stores. Each store that does not respond delays the call by up to
    /// 0.4 s.
    pub fn stores(&self) -> Vec<StoreStatus> {
        self.shared.stores()
    }

    /// Returns the status of a store.
    ///
    /// # Errors
    /// Fails if there is no store of that name.
    pub fn store(&self, name: &str) -> Result<StoreStatus, ApiError> {
        self.shared.store(name)
    }

    /// Returns the status of all disks. Each store that does not respond delays the call by up to
    /// 0.2 s.
    pub fn disks(&self) -> Vec<DiskStatus> {
        self.shared.disks()
    }

    /// Returns the status of a disk.
    ///
    /// # Errors
    /// Fails if there is no disk of that name.
    pub fn disk(&self, name: &str) -> Result<DiskStatus, ApiError> {
        self.shared.disk(name)
    }

    /// Returns the status of all VMs.
    pub fn vms(&self) -> Vec<VmStatus> {
        self.shared.vms()
    }

    /// Returns the status of a VM.
    ///
    /// # Errors
    /// Fails if there is no VM of that name.
    pub fn vm(&self, name: &str) -> Result<VmStatus, ApiError> {
        self.shared.vm(name)
    }

    /// Returns the status of all configured SR-IOV adapters.
    pub fn pfs(&self) -> Vec<PfStatus> {
        self.shared.pfs()
    }

    /// Returns the status of a configured SR-IOV adapter.
    ///
    /// # Errors
    /// Fails if no adapter of that name is configured.
    pub fn pf(&self, name: &str) -> Result<PfStatus, ApiError> {
        self.shared.pf(name)
    }

    /// Returns the status of all other nodes. Queries them, and blocks some seconds if a node does
    /// not respond.
    pub fn nodes(&self) -> Vec<NodeStatus> {
        self.shared.nodes()
    }

    /// Returns the status of another node. Queries the node, and blocks some seconds if it does not
    /// respond.
    ///
    /// # Errors
    /// Fails if there is no node of that name.
    pub fn peer_node(&self, name: &str) -> Result<NodeStatus, ApiError> {
        self.shared.node(name)
    }

    /// Returns the status of the cluster. Reads from etcd, and blocks up to two seconds if etcd
    /// does not respond.
    pub fn cluster(&self) -> ClusterStatus {
        self.shared.cluster_status()
    }

    /// Returns the disks of all nodes on shared stores, as far as the nodes' reports contain them.
    ///
    /// # Errors
    /// Fails if no cluster is configured, or it does not respond.
    pub fn cluster_disks(&self) -> Result<Vec<ClusterDisk>, ApiError> {
        self.shared.cluster_disks()
    }

    /// Returns all network adapters of the host with SR-IOV.
    ///
    /// # Errors
    /// Fails if the host's adapters cannot be read.
    pub fn sriov_adapters(&self) -> Result<Vec<SriovAdapter>, ApiError> {
        self.shared.sriov_adapters()
    }

    /// Returns the adapter with this PCI address, network device or `[[pf]]` name.
    ///
    /// # Errors
    /// Fails if there is no such adapter.
    pub fn sriov_adapter(&self, name: &str) -> Result<SriovAdapter, ApiError> {
        self.shared.sriov_adapter(name)
    }

    /// Returns guaranteed, demanded and delivered rates of every disk in service.
    pub fn qos_flows(&self) -> Vec<QosFlowStatus> {
        self.shared.qos_flows()
    }

    /// Returns minimums and capacity of the stores that these proposals would affect. Changes
    /// nothing.
    ///
    /// # Errors
    /// Returns all errors of the proposals, never empty.
    pub fn what_if(&self, request: &WhatIfRequest) -> Result<WhatIfResponse, Vec<ApiError>> {
        self.shared.what_if(request)
    }

    /// Returns the status of all QoS policies.
    pub fn qos_policies(&self) -> Vec<QosPolicyStatus> {
        self.shared.qos_policies()
    }

    /// Returns the status of a QoS policy.
    ///
    /// # Errors
    /// Fails if there is no policy of that name.
    pub fn qos_policy(&self, name: &str) -> Result<QosPolicyStatus, ApiError> {
        self.shared.qos_policy(name)
    }

    /// Returns the status of all queues.
    pub fn queues(&self) -> Vec<QueueStatus> {
        self.shared.queues()
    }

    /// Returns the status of all workers.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        self.shared.workers()
    }

    /// Returns desired and current power settings, and energy. Reads sysfs.
    pub fn power(&self) -> PowerStatus {
        self.shared.power_status()
    }

    /// Returns a snapshot of all counters.
    pub fn top(&self) -> TopSnapshot {
        self.shared.top()
    }

    /// Returns up to `limit` events after a sequence number.
    pub fn events(&self, after: u64, limit: usize, filter: &EventFilter) -> EventPage {
        self.shared.events.page(after, limit, filter)
    }

    /// Returns the last `limit` events.
    pub fn last_events(&self, limit: usize, filter: &EventFilter) -> EventPage {
        self.shared.events.tail(limit, filter)
    }

    /// Returns events like [`Node::events`], but blocks up to `timeout` until there is one.
    pub fn wait_events(
        &self,
        after: u64,
        limit: usize,
        filter: &EventFilter,
        timeout: Duration,
    ) -> EventPage {
        self.shared.events.wait(after, limit, filter, timeout)
    }

    /// Returns the operations in progress and the last ones that have ended.
    pub fn operations(&self) -> Vec<Operation> {
        self.shared.operations.list()
    }

    /// Returns an operation; `None` if it is unknown.
    pub fn operation(&self, id: u64) -> Option<Operation> {
        self.shared.operations.find(id)
    }

    /// Blocks until an operation has ended, at most `timeout`. Returns its state; `None` if it is
    /// unknown.
    pub fn wait_operation(&self, id: u64, timeout: Duration) -> Option<Operation> {
        self.shared.operations.wait(id, timeout)
    }
}
