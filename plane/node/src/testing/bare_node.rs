//! Shared state of a node without threads. The tests execute the threads' work.

use std::sync::Arc;
use std::time::Duration;

use suimon_contract::ConfinementStatus;

use super::{
    FakeCluster, FakeDevices, FakeDisks, FakeMembers, FakePeerNodes, FakePlane, FakePower,
    FakeSriov, FakeVms, MemoryStore, cpu_places,
};
use crate::events::EventLog;
use crate::power::PowerTable;
use crate::shared::{Shared, SharedDependencies};
use crate::state::{DeferringStore, StoredState};
use crate::teams::Teams;
use crate::{NoListener, UnixClock};

/// Returns the state of a node that was just opened in this environment.
pub(crate) fn shared_only_node(
    plane: &FakePlane,
    devices: &FakeDevices,
    members: &FakeMembers,
    store: &Arc<MemoryStore>,
) -> Shared {
    let clock: UnixClock = Arc::new(|| 1_700_000_000_000);
    let listener = Arc::new(NoListener);
    let events = EventLog::open(store.clone(), clock.clone(), listener.clone()).unwrap();
    Shared::new(SharedDependencies {
        guest_reconnect_window: Duration::ZERO,
        plane: Arc::new(plane.clone()),
        devices: Arc::new(devices.clone()),
        team_member_devices: Arc::new(members.clone()),
        teams: Arc::new(Teams::new().unwrap()),
        disks: FakeDisks::default().parts(),
        vms: FakeVms::default().parts(),
        power: PowerTable::load(
            Arc::new(FakePower::default()),
            store.clone(),
            Duration::from_secs(1),
        )
        .unwrap(),
        sriov: Arc::new(FakeSriov::default()),
        cluster_connector: Arc::new(FakeCluster::default()),
        peer_nodes: Arc::new(FakePeerNodes::default()),
        socket_files: Arc::new(devices.clone()),
        events,
        store: Arc::new(DeferringStore::new(store.clone())),
        listener,
        recording: None,
        clock,
        cpus: vec![0, 1, 2, 3],
        cpu_topology: cpu_places(),
        host_name: "test".to_owned(),
        confinement: Arc::new(ConfinementStatus::default),
        progress: Arc::new(|| {}),
        version: "0".to_owned(),
        desired: StoredState::default(),
    })
}
