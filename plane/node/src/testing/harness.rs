//! Node in the simulated environment, and its consistency checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use suimon_contract::{
    ByteSize, Event, EventFilter, HostConfig, Name, Operation, OperationState, VmConfig, parse_toml,
};
use suimon_ports::{CpuAffinity, CpuTopology, PortDeviceSpec, VmErrorKind};
use suimon_quantity::PortId;

use crate::ports::{created_socket, created_tap, required_ports};
use crate::testing::{
    FakeCluster, FakeDevices, FakeDisks, FakeMembers, FakePeerNodes, FakePlane, FakePower,
    FakeSriov, FakeVms, MemoryStore,
};
use crate::{Edit, NoListener, Node, NodeDependencies, NodeError, ResourceEdit};

/// Maximum time of a wait in tests, long enough for any progress.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// Path of the store of [`Harness::with_store`].
pub(crate) const DISK_STORE: &str = "/srv/fast";

/// Default delay before the first retry after a failure.
const RETRY_FIRST: Duration = Duration::from_millis(20);

/// Environment of a host apart from its state store, devices, disks and VMs.
#[derive(Default)]
struct Host {
    plane: FakePlane,
    power: FakePower,
    sriov: FakeSriov,
    far_nodes: FakePeerNodes,
    cluster: FakeCluster,
    /// Value of random bytes; `None`: the default.
    bits: Option<u8>,
    /// Delay before the first retry after a failure; `None`: [`RETRY_FIRST`].
    retry_first: Option<Duration>,
    /// Wall clock in Unix milliseconds; `None`: a constant.
    clock: Option<Arc<AtomicU64>>,
}

pub(crate) struct Harness {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) devices: FakeDevices,
    pub(crate) plane: FakePlane,
    pub(crate) members: FakeMembers,
    pub(crate) disks: FakeDisks,
    pub(crate) vms: FakeVms,
    pub(crate) far_nodes: FakePeerNodes,
    /// Number of reports of progress.
    pub(crate) progress: Arc<AtomicU64>,
    pub(crate) node: Arc<Node>,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::start(MemoryStore::default(), FakeDevices::default())
    }

    /// Starts a process on a host with this state and these devices.
    pub(crate) fn start(store: MemoryStore, devices: FakeDevices) -> Self {
        Self::with_disks(store, devices, FakeDisks::default())
    }

    /// Starts a process on a new host with an empty store for disks at [`DISK_STORE`].
    pub(crate) fn with_store() -> Self {
        let disks = FakeDisks::with_store(DISK_STORE);
        Self::with_disks(MemoryStore::default(), FakeDevices::default(), disks)
    }

    /// As [`Harness::start`], with existing disks.
    pub(crate) fn with_disks(store: MemoryStore, devices: FakeDevices, disks: FakeDisks) -> Self {
        let vms = FakeVms::default();
        Self::with_all(store, devices, disks, vms, Host::default())
    }

    /// Starts a process on a new host whose first retry is after an hour.
    pub(crate) fn with_rare_retries() -> Self {
        let host = Host { retry_first: Some(Duration::from_secs(3600)), ..Host::default() };
        let (devices, disks) = (FakeDevices::default(), FakeDisks::default());
        Self::with_all(MemoryStore::default(), devices, disks, FakeVms::default(), host)
    }

    /// Starts a process with the state store and devices that a former one has left, and with this
    /// switching plane. Failures are retried after the default delay, or after an hour if
    /// `retries_rarely` is true.
    pub(crate) fn with_plane(
        (store, devices): (MemoryStore, FakeDevices),
        plane: FakePlane,
        retries_rarely: bool,
    ) -> Self {
        let retry_first = retries_rarely.then_some(Duration::from_secs(3600));
        let host = Host { plane, retry_first, ..Host::default() };
        Self::with_all(store, devices, FakeDisks::default(), FakeVms::default(), host)
    }

    /// Starts a process on a new host whose wall clock, in Unix milliseconds, is set by a test.
    pub(crate) fn with_clock(clock: Arc<AtomicU64>) -> Self {
        let host = Host { clock: Some(clock), ..Host::default() };
        let (devices, disks) = (FakeDevices::default(), FakeDisks::default());
        Self::with_all(MemoryStore::default(), devices, disks, FakeVms::default(), host)
    }

    /// As [`Harness::start`], with running VMs.
    pub(crate) fn with_vms(store: MemoryStore, devices: FakeDevices, vms: FakeVms) -> Self {
        Self::with_all(store, devices, FakeDisks::default(), vms, Host::default())
    }

    /// Starts a process on a host with this state and these CPUs.
    pub(crate) fn with_power(store: MemoryStore, power: FakePower) -> Self {
        let (devices, disks) = (FakeDevices::default(), FakeDisks::default());
        let host = Host { power, ..Host::default() };
        Self::with_all(store, devices, disks, FakeVms::default(), host)
    }

    /// Starts a process on a host with this state and these SR-IOV adapters.
    pub(crate) fn with_sriov(store: MemoryStore, sriov: FakeSriov) -> Self {
        let (devices, disks) = (FakeDevices::default(), FakeDisks::default());
        let host = Host { sriov, ..Host::default() };
        Self::with_all(store, devices, disks, FakeVms::default(), host)
    }

    /// As [`Harness::with_sriov`], with running VMs.
    pub(crate) fn with_iov(store: MemoryStore, sriov: FakeSriov, vms: FakeVms) -> Self {
        let (devices, disks) = (FakeDevices::default(), FakeDisks::default());
        Self::with_all(store, devices, disks, vms, Host { sriov, ..Host::default() })
    }

    /// Starts a process on a host with this state and these disks that can connect to a cluster's
    /// store.
    pub(crate) fn in_cluster(store: MemoryStore, disks: FakeDisks, cluster: FakeCluster) -> Self {
        // Each host has different random bytes.
        static HOSTS: AtomicU8 = AtomicU8::new(1);
        let bits = HOSTS.fetch_add(1, Ordering::Relaxed);
        let host = Host { cluster, bits: Some(bits), ..Host::default() };
        Self::with_all(store, FakeDevices::default(), disks, FakeVms::default(), host)
    }

    /// Starts a process with the state store and devices that a former one has left. The start may
    /// fail.
    pub(crate) fn try_start(store: MemoryStore, devices: FakeDevices) -> Result<Self, NodeError> {
        Self::try_all(store, devices, FakeDisks::default(), FakeVms::default(), Host::default())
    }

    fn with_all(
        store: MemoryStore,
        devices: FakeDevices,
        disks: FakeDisks,
        vms: FakeVms,
        host: Host,
    ) -> Self {
        Self::try_all(store, devices, disks, vms, host).unwrap()
    }

    fn try_all(
        store: MemoryStore,
        devices: FakeDevices,
        disks: FakeDisks,
        vms: FakeVms,
        host: Host,
    ) -> Result<Self, NodeError> {
        let store = Arc::new(store);
        disks.share_sockets(devices.bound());
        let (plane, members) = (host.plane, FakeMembers::default());
        let mut parts = disks.parts();
        if let Some(bits) = host.bits {
            plane.run_clock();
            parts.random = Arc::new(move || [bits; 16]);
        }
        let progress = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&progress);
        let node = Node::open(NodeDependencies {
            store: store.clone(),
            devices: Arc::new(devices.clone()),
            team_member_devices: Arc::new(members.clone()),
            disks: parts,
            vms: vms.parts(),
            power: Arc::new(host.power),
            sriov: Arc::new(host.sriov),
            peer_nodes: Arc::new(host.far_nodes.clone()),
            cluster_connector: Arc::new(host.cluster),
            socket_files: Arc::new(devices.clone()),
            plane: Arc::new(plane.clone()),
            clock: Arc::new(move || match &host.clock {
                Some(clock) => clock.load(Ordering::Relaxed),
                None => 1_700_000_000_000,
            }),
            listener: Arc::new(NoListener),
            recording: None,
            cpus: vec![0, 1, 2, 3],
            cpu_topology: cpu_places(),
            host_name: "test".to_owned(),
            confinement: Arc::new(suimon_contract::ConfinementStatus::default),
            progress: Arc::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            }),
            version: "0".to_owned(),
            retry_first: host.retry_first.unwrap_or(RETRY_FIRST),
            guest_reconnect_window: Duration::ZERO,
        });
        let (node, far_nodes) = (Arc::new(node?), host.far_nodes);
        Ok(Self { store, devices, plane, members, disks, vms, far_nodes, progress, node })
    }

    /// As [`Harness::with_vms`], with access to other nodes.
    pub(crate) fn among_nodes(
        (store, devices): (MemoryStore, FakeDevices),
        vms: FakeVms,
        far_nodes: FakePeerNodes,
    ) -> Self {
        Self::among_nodes_with_disks((store, devices), FakeDisks::default(), vms, far_nodes)
    }

    /// As [`Harness::among_nodes`], with existing disks.
    pub(crate) fn among_nodes_with_disks(
        (store, devices): (MemoryStore, FakeDevices),
        disks: FakeDisks,
        vms: FakeVms,
        far_nodes: FakePeerNodes,
    ) -> Self {
        let host = Host { far_nodes, ..Host::default() };
        Self::with_all(store, devices, disks, vms, host)
    }

    /// As [`Harness::among_nodes`], with SR-IOV adapters.
    pub(crate) fn with_iov_among_nodes(
        (store, devices): (MemoryStore, FakeDevices),
        (sriov, vms): (FakeSriov, FakeVms),
        far_nodes: FakePeerNodes,
    ) -> Self {
        let host = Host { far_nodes, sriov, ..Host::default() };
        Self::with_all(store, devices, FakeDisks::default(), vms, host)
    }

    /// Kills the process. Returns the state and devices that a new process finds.
    pub(crate) fn kill(self) -> (MemoryStore, FakeDevices) {
        let store = self.store.surviving();
        // The kernel closes the devices of a dead process.
        (store, FakeDevices::on_host(self.devices.host_after_kill()))
    }

    /// Kills the process. Returns the state store, the devices and the disks' stores as a new
    /// process finds them. Disks and state are copied at the same moment: writes to disks stall
    /// meanwhile.
    pub(crate) fn kill_with_disks(self) -> (MemoryStore, FakeDevices, FakeDisks) {
        let running = self.disks.clone();
        running.stall_files(true);
        let disks = running.host_after_kill();
        let store = self.store.surviving();
        running.stall_files(false);
        let (_, devices) = self.kill();
        (store, devices, disks)
    }

    /// Returns the current time of the plane's clock.
    pub(crate) fn plane_now(&self) -> suimon_quantity::Time {
        crate::SwitchPlane::now(&self.plane)
    }

    /// Submits a change and waits for its end.
    pub(crate) fn change(&self, edit: Edit) -> Operation {
        let operation = self.node.submit(edit).unwrap();
        self.node.wait_operation(operation.id, DEADLINE).unwrap()
    }

    /// Has the control thread execute a change that fails, which blocks until
    /// [`FakeVms::hold_prepare`] is unset, and fills the queue of the control thread.
    pub(crate) fn keep_busy(&self) -> Operation {
        self.vms.hold_prepare(true);
        self.vms.refuse("prepare", VmErrorKind::Host, "there is no launcher");
        let vm = VmConfig::new(name("another"), ByteSize::new(1 << 30));
        let operation = self.node.submit(Edit::Vm(ResourceEdit::Add(vm))).unwrap();
        wait_until("the control thread is busy", || self.vms.is_held());
        self.node.fill_commands();
        operation
    }

    pub(crate) fn apply(&self, config: &HostConfig) -> Operation {
        self.change(Edit::Apply(Box::new(config.clone())))
    }

    pub(crate) fn apply_ok(&self, config: &HostConfig) {
        let operation = self.apply(config);
        assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    }

    pub(crate) fn events(&self, id: u32) -> Vec<Event> {
        let events = self.node.events(0, usize::MAX, &EventFilter::default()).events;
        events.into_iter().filter(|event| event.kind_number == id).collect()
    }

    /// Waits for this number of events with an id, and returns them. An event may be published
    /// after the state that it reports is visible.
    pub(crate) fn wait_events(&self, id: u32, count: usize) -> Vec<Event> {
        wait_until(&format!("{count} events {id}"), || self.events(id).len() >= count);
        let events = self.events(id);
        assert_eq!(events.len(), count, "{events:?}");
        events
    }

    /// Waits for an event with an id, and returns the first one.
    pub(crate) fn wait_event(&self, id: u32) -> Event {
        wait_until(&format!("an event {id}"), || !self.events(id).is_empty());
        self.events(id).remove(0)
    }

    /// Returns the names of the disks exported over NBD, by socket.
    pub(crate) fn offered(&self) -> Vec<String> {
        self.disks.sockets().1.into_values().flatten().collect()
    }

    pub(crate) fn ports(&self) -> BTreeMap<String, PortId> {
        let claims = self.devices.open_devices().into_iter();
        claims
            .map(|(port, spec)| (format!("{:?}", crate::ports::exclusive_resource(&spec)), port))
            .collect()
    }

    /// Asserts that open devices, TAPs, sockets, tables and workers agree with desired state.
    /// `others_taps` are TAPs of other owners.
    pub(crate) fn assert_consistent(&self, others_taps: &[&str]) {
        let config = self.node.config();
        let required = required_ports(&config);
        let open: BTreeSet<String> =
            self.devices.open_devices().iter().map(|(_, spec)| format!("{spec:?}")).collect();
        let expected: BTreeSet<String> =
            required.values().map(|spec: &PortDeviceSpec| format!("{spec:?}")).collect();
        assert_eq!(open, expected, "open devices");
        let mut taps: BTreeSet<String> =
            required.values().filter_map(created_tap).map(|tap| tap.device).collect();
        taps.extend(others_taps.iter().map(|tap| (*tap).to_owned()));
        assert_eq!(self.devices.taps(), taps, "TAPs on the host");
        let sockets = required.values().filter_map(created_socket).collect();
        assert_eq!(self.devices.sockets(), sockets, "socket files on the host");

        let topology = self.plane.topology();
        assert_eq!(topology.switches.len(), config.switches.len(), "switches");
        let mut in_tables: BTreeSet<PortId> = topology.ports.iter().map(|p| p.spec.id).collect();
        for team in &topology.teams {
            assert!(in_tables.remove(&team.port), "a team is a port");
            in_tables.extend(team.members.iter().map(|member| member.port));
        }
        let open: BTreeSet<PortId> =
            self.devices.open_devices().into_iter().map(|(port, _)| port).collect();
        assert_eq!(in_tables, open, "ports in the tables");
        for nic in config.nics.iter().filter(|nic| config.is_connected(nic)) {
            let mtus = topology.ports.iter().map(|port| port.spec.mtu);
            assert!(mtus.into_iter().any(|mtu| mtu == nic.mtu), "{nic:?}");
        }
        let placements = match (&config.host.worker_cpus, config.host.unpinned_workers) {
            (Some(cpus), _) => cpus.iter().copied().map(CpuAffinity::Pinned).collect(),
            (None, number) => vec![CpuAffinity::Floating; number.unwrap_or(1).into()],
        };
        assert_eq!(self.plane.placements(), placements, "processors");
        assert!(!self.store.keys("desired").contains(&"intent".to_owned()), "intent");
    }
}

/// Returns four CPUs on two cores with two threads each: 0 and 2, 1 and 3. Each core is a NUMA
/// node.
pub(crate) fn cpu_places() -> Vec<CpuTopology> {
    let topology = |cpu: u16| CpuTopology { cpu, core: u32::from(cpu % 2), numa_node: cpu % 2 };
    (0..4).map(topology).collect()
}

/// Parses a host file.
pub(crate) fn host(toml: &str) -> HostConfig {
    parse_toml(toml, None).unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    // Other tests run meanwhile: long waits cost little CPU time.
    let mut pause = Duration::from_millis(2);
    while !condition() {
        assert!(Instant::now() < deadline, "not in time: {description}");
        std::thread::sleep(pause);
        pause = (pause + pause / 8).min(Duration::from_millis(40));
    }
}
