//! State shared between the control thread (writer) and all other threads (readers).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use suimon_ports::{CpuTopology, DeviceFactory, MemberDevices, SocketFiles, SriovHost};
use suimon_recording::{ObjectNames, RecordSink, StreamId, encode_names};

use crate::adapters::Sriov;
use crate::captures::Captures;
use crate::cluster::Cluster;
use crate::device_notices::UnannouncedNotices;
use crate::disks::{DiskDependencies, Disks};
use crate::drain::Drain;
use crate::events::EventLog;
use crate::host::ConfinementReader;
use crate::images::ImageRequests;
use crate::migration::{AbandonedMigrations, LogLimit};
use crate::operations::Operations;
use crate::ports::{BoundAddresses, PlaneIds, PortTable, PublishedKernelPaths};
use crate::power::PowerTable;
use crate::remote_nodes::Queries;
use crate::state::{DeferringStore, StoredState};
use crate::teams::Teams;
use crate::virtual_functions::VfAssignments;
use crate::vmq::{SteeringPlan, VmqTable};
use crate::vms::{VmDependencies, Vms};
use crate::{ClusterStoreConnector, NodeListener, PeerNodes, PortKey, SwitchPlane, UnixClock};

/// State and interfaces of a node that exist for its whole lifetime.
pub(crate) struct Shared {
    pub(crate) plane: Arc<dyn SwitchPlane>,
    pub(crate) devices: Arc<dyn DeviceFactory>,
    pub(crate) team_member_devices: Arc<dyn MemberDevices>,
    pub(crate) socket_files: Arc<dyn SocketFiles>,
    pub(crate) events: EventLog,
    pub(crate) store: Arc<DeferringStore>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) ports: PortTable,
    pub(crate) disks: Disks,
    /// Requests about image files in progress.
    pub(crate) image_requests: ImageRequests,
    pub(crate) vms: Vms,
    pub(crate) abandoned_migrations: AbandonedMigrations,
    /// Limit of log entries about requests of source nodes to prepare a migration that cannot be
    /// read.
    pub(crate) unreadable_request_log_limit: LogLimit,
    pub(crate) unannounced_notices: Arc<UnannouncedNotices>,
    pub(crate) drain: Drain,
    pub(crate) cluster: Cluster,
    pub(crate) sriov: Sriov,
    pub(crate) vf_assignments: VfAssignments,
    pub(crate) peer_nodes: Arc<dyn PeerNodes>,
    pub(crate) node_queries: Queries,
    pub(crate) captures: Arc<Captures>,
    pub(crate) bound_addresses: BoundAddresses,
    pub(crate) kernel_paths: PublishedKernelPaths,
    pub(crate) vmq_table: VmqTable,
    pub(crate) steering: SteeringPlan,
    pub(crate) power: PowerTable,
    pub(crate) teams: Arc<Teams>,
    pub(crate) listener: Arc<dyn NodeListener>,
    /// Sink for recordings of policy decisions; `None` if recording is off.
    pub(crate) recording: Option<Arc<dyn RecordSink>>,
    pub(crate) clock: UnixClock,
    /// Logical CPUs permitted for workers, ascending.
    pub(crate) cpus: Vec<u16>,
    /// Topology (core, NUMA node) of the CPUs in `cpus`.
    pub(crate) cpu_topology: Vec<CpuTopology>,
    pub(crate) host_name: String,
    pub(crate) confinement: ConfinementReader,
    /// Called after each attempt to open an object.
    pub(crate) progress: Arc<dyn Fn() + Send + Sync>,
    pub(crate) version: String,
    pub(crate) started_at: Instant,
    desired: RwLock<Arc<StoredState>>,
    ids: RwLock<PlaneIds>,
}

/// Constructor arguments of [`Shared`].
pub(crate) struct SharedDependencies {
    pub(crate) guest_reconnect_window: Duration,
    pub(crate) plane: Arc<dyn SwitchPlane>,
    pub(crate) devices: Arc<dyn DeviceFactory>,
    pub(crate) team_member_devices: Arc<dyn MemberDevices>,
    pub(crate) teams: Arc<Teams>,
    pub(crate) disks: DiskDependencies,
    pub(crate) vms: VmDependencies,
    pub(crate) power: PowerTable,
    pub(crate) sriov: Arc<dyn SriovHost>,
    pub(crate) peer_nodes: Arc<dyn PeerNodes>,
    pub(crate) cluster_connector: Arc<dyn ClusterStoreConnector>,
    pub(crate) socket_files: Arc<dyn SocketFiles>,
    pub(crate) events: EventLog,
    pub(crate) store: Arc<DeferringStore>,
    pub(crate) listener: Arc<dyn NodeListener>,
    pub(crate) recording: Option<Arc<dyn RecordSink>>,
    pub(crate) clock: UnixClock,
    pub(crate) cpus: Vec<u16>,
    pub(crate) cpu_topology: Vec<CpuTopology>,
    pub(crate) host_name: String,
    pub(crate) confinement: ConfinementReader,
    pub(crate) progress: Arc<dyn Fn() + Send + Sync>,
    pub(crate) version: String,
    pub(crate) desired: StoredState,
}

impl Shared {
    pub(crate) fn new(parts: SharedDependencies) -> Self {
        let disks = Disks::new(parts.disks, parts.store.clone());
        disks.set_nbd_limits(&parts.desired.config.host);
        Self {
            operations: Arc::new(Operations::new(parts.clock.clone(), parts.listener.clone())),
            plane: parts.plane,
            devices: parts.devices,
            team_member_devices: parts.team_member_devices,
            teams: parts.teams,
            socket_files: parts.socket_files,
            events: parts.events,
            store: parts.store,
            ports: PortTable::default(),
            disks,
            image_requests: ImageRequests::default(),
            vms: Vms::new(parts.vms),
            abandoned_migrations: AbandonedMigrations::default(),
            unreadable_request_log_limit: LogLimit::default(),
            unannounced_notices: Arc::default(),
            drain: Drain::default(),
            cluster: Cluster::new(parts.cluster_connector),
            sriov: Sriov::new(parts.sriov),
            vf_assignments: VfAssignments::default(),
            peer_nodes: parts.peer_nodes,
            node_queries: Queries::default(),
            captures: Arc::default(),
            bound_addresses: BoundAddresses::new(parts.guest_reconnect_window),
            kernel_paths: PublishedKernelPaths::default(),
            vmq_table: VmqTable::default(),
            steering: SteeringPlan::default(),
            power: parts.power,
            listener: parts.listener,
            recording: parts.recording,
            started_at: Instant::now(),
            clock: parts.clock,
            cpus: parts.cpus,
            cpu_topology: parts.cpu_topology,
            host_name: parts.host_name,
            confinement: parts.confinement,
            progress: parts.progress,
            version: parts.version,
            desired: RwLock::new(Arc::new(parts.desired)),
            ids: RwLock::default(),
        }
    }

    /// Returns the desired state that was committed last.
    pub(crate) fn desired(&self) -> Arc<StoredState> {
        self.desired.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_desired(&self, state: StoredState) {
        self.disks.set_nbd_limits(&state.config.host);
        *self.desired.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    /// Returns a copy of the identifiers of switches, ports and teams in use.
    pub(crate) fn ids(&self) -> PlaneIds {
        self.ids.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes the names of disks, stores and ports into the recording, if one is active.
    pub(crate) fn record_names(&self) {
        let Some(sink) = &self.recording else { return };
        let (disks, stores) = self.disks.disk_and_store_names();
        let names = ObjectNames { disks, stores, ports: self.ids().port_names() };
        sink.accept_block(StreamId::default(), encode_names(&names));
    }

    pub(crate) fn change_ids<T>(&self, change: impl FnOnce(&mut PlaneIds) -> T) -> T {
        change(&mut self.ids.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the key of a port or team; `None` if the port was removed.
    pub(crate) fn port_key(&self, id: suimon_quantity::PortId) -> Option<PortKey> {
        let of_device = self.ports.find_id(id).map(|port| port.key.clone());
        of_device.or_else(|| {
            let ids = self.ids();
            ids.teams().find(|(_, team)| *team == id).map(|(key, _)| key.clone())
        })
    }

    /// Returns the display names of ports: the plain name, or `KIND:NAME` like `uplink:wan` if
    /// ports of several kinds have this name.
    pub(crate) fn port_labels(&self) -> BTreeMap<suimon_quantity::PortId, String> {
        let (ports, ids) = (self.ports.all(), self.ids());
        let keys = || ports.iter().map(|port| (&port.key, port.id)).chain(ids.teams());
        let mut uses = BTreeMap::<&str, usize>::new();
        for (key, _) in keys() {
            *uses.entry(key.name().as_str()).or_default() += 1;
        }
        keys()
            .map(|(key, id)| {
                let is_unique = uses.get(key.name().as_str()) == Some(&1);
                (id, if is_unique { key.name().to_string() } else { qualified(key) })
            })
            .collect()
    }

    /// Returns the identifier of an existing port, or of a team that a switch uses.
    pub(crate) fn port_id(&self, key: &PortKey) -> Option<suimon_quantity::PortId> {
        match key {
            PortKey::Team(_) => self.ids().port(key),
            _ => self.ports.find(key).map(|port| port.id),
        }
    }

    /// Returns the MTU of the device under a port; `None` if the device is not open or reports
    /// none.
    pub(crate) fn device_mtu(&self, key: &PortKey) -> Option<u16> {
        let status = self.ports.find(key)?.device_status()?;
        (status.mtu > 0).then_some(status.mtu)
    }

    /// Returns the port with this display name, in its plain or its `KIND:NAME` form.
    pub(crate) fn port_by_label(&self, label: &str) -> Option<Arc<crate::ports::Port>> {
        let labels = self.port_labels();
        self.ports.all().into_iter().find(|port| {
            labels.get(&port.id).is_some_and(|l| l == label) || qualified(&port.key) == label
        })
    }
}

fn qualified(key: &PortKey) -> String {
    format!("{}:{}", key.kind(), key.name())
}
