//! Run of a fleet: disks, nodes and the cluster, one event at a time.

use suimon_cluster_qos::DiskLoad;
use suimon_quantity::Time;
use suimon_sim_kernel::{EventQueue, Observer, RandomStream};

use crate::cluster::{ClusterModel, ControlEvent, DiskFact, DiskModel, NodeLimit};
use crate::fleet::facts::Fact;
use crate::fleet::node_store_disks::{FluidDisk, NodeStoreDisks};
use crate::fleet::random_interventions::{Intervention, next_demand};
use crate::fleet::spec::FleetScenario;

#[derive(Clone, Debug)]
enum Event {
    Cluster(ControlEvent),
    /// The demand of a disk changes.
    DemandChange {
        disk: u32,
    },
    Intervention {
        number: u32,
    },
}

/// Disks of all nodes, by node and store.
struct Disks {
    pools: Vec<NodeStoreDisks>,
    stores: Vec<u32>,
    per_node: usize,
    per_pool: u32,
    facts: Vec<DiskFact>,
}

impl Disks {
    fn pool(&self, node: u32, store: u32) -> usize {
        let first = node as usize * self.per_node;
        let position = self.stores[first..first + self.per_node]
            .iter()
            .position(|store_number| *store_number == store);
        first + position.unwrap_or_default()
    }

    /// Reports a fact if the disks of a pool have started or stopped waiting for the node's limit.
    fn report_waiting(&mut self, pool: usize) {
        let (node, store) = ((pool / self.per_node) as u32, self.stores[pool]);
        let pool = &mut self.pools[pool];
        let is_waiting = pool.is_limited_by_node();
        if std::mem::replace(&mut pool.is_reported_waiting, is_waiting) != is_waiting {
            self.facts.push(DiskFact::NodeLimitWaitChanged { node, store, is_so: is_waiting });
        }
    }

    fn change(&mut self, now: Time, disk: u32, change: impl FnOnce(&mut FluidDisk)) {
        let pool = (disk / self.per_pool) as usize;
        let disk_index = (disk % self.per_pool) as usize;
        self.pools[pool].change(now.as_ns(), |disks| change(&mut disks[disk_index]));
        self.report_waiting(pool);
    }
}

impl DiskModel for Disks {
    fn append_loads(&mut self, now: Time, node: u32, store: u32, loads: &mut Vec<DiskLoad>) -> u64 {
        let pool = self.pool(node, store);
        let facts = &mut self.facts;
        let first = pool as u32 * self.per_pool;
        self.pools[pool].append_loads(now.as_ns(), first, loads, |disk, operations| {
            facts.push(DiskFact::OperationsCompleted { disk, operations });
        });
        self.report_waiting(pool);
        0
    }

    fn set_limit(&mut self, now: Time, node: u32, store: u32, limit: NodeLimit) {
        let pool = self.pool(node, store);
        self.pools[pool].set_limit(now.as_ns(), limit);
        self.report_waiting(pool);
    }

    fn pause_node(&mut self, now: Time, node: u32, until: Time) {
        for offset in 0..self.per_node {
            let pool_index = node as usize * self.per_node + offset;
            self.pools[pool_index].pause(now.as_ns(), until.as_ns());
            self.report_waiting(pool_index);
        }
    }
}

/// Run of a fleet scenario in progress.
pub(crate) struct World<'s> {
    scenario: &'s FleetScenario,
    agenda: EventQueue<Event>,
    pub(crate) observer: Observer<Fact>,
    pub(crate) cluster_model: ClusterModel,
    disks: Disks,
    count: usize,
    interventions: Vec<Intervention>,
    random: RandomStream,
}

impl<'s> World<'s> {
    /// Returns the initial state of a run. `interventions` are pairs of time in ns and event.
    pub(crate) fn new(
        scenario: &'s FleetScenario,
        seed: u64,
        control: ClusterModel,
        disks: &[FluidDisk],
        interventions: Vec<(u64, Intervention)>,
        mut observer: Observer<Fact>,
    ) -> Self {
        let mut agenda = EventQueue::new(Time::ZERO);
        for (number, (at_ns, _)) in (0..).zip(&interventions) {
            agenda.schedule(Time::from_ns(*at_ns), Event::Intervention { number });
        }
        for (disk, disk_spec) in (0..).zip(disks) {
            agenda.schedule(Time::ZERO, Event::DemandChange { disk });
            let max_iops = disk_spec.max_iops.unwrap_or(u64::MAX);
            let fact =
                Fact::Disk(DiskFact::Limits { disk, min_iops: disk_spec.min_iops, max_iops });
            observer.record(Time::ZERO, &fact);
        }
        let per_pool = scenario.disks_per_store;
        let pools = disks
            .chunks(per_pool as usize)
            .map(|disk_chunk| NodeStoreDisks::new(disk_chunk.to_vec()))
            .collect();
        let disks_of = Disks {
            pools,
            stores: (0..scenario.nodes).flat_map(|node| scenario.node_stores(node)).collect(),
            per_node: scenario.stores_per_node as usize,
            per_pool,
            facts: Vec::new(),
        };
        Self {
            scenario,
            agenda,
            observer,
            cluster_model: control,
            disks: disks_of,
            count: disks.len(),
            interventions: interventions
                .into_iter()
                .map(|(_, intervention)| intervention)
                .collect(),
            random: RandomStream::new(seed, "wants"),
        }
    }

    /// Returns the number of processed events.
    pub(crate) fn processed_events(&self) -> u64 {
        self.agenda.processed_events()
    }

    /// Advances the run to a time.
    pub(crate) fn run(&mut self, until: Time) {
        self.pass_on_facts();
        while let Some(event) = self.agenda.next(until) {
            let now = self.agenda.now();
            match event {
                Event::Cluster(event) => self.cluster_model.handle(now, event, &mut self.disks),
                Event::DemandChange { disk } => self.set_demand(now, disk),
                Event::Intervention { number } => self.carry_out(now, number),
            }
            self.pass_on_facts();
        }
        self.observer.end(until);
    }

    fn set_demand(&mut self, now: Time, disk: u32) {
        let (iops, ns) = next_demand(self.scenario, self.count, &mut self.random);
        self.disks.change(now, disk, |disk_state| disk_state.demand_iops = iops);
        self.observer.record(now, &Fact::Disk(DiskFact::Demand { disk, iops }));
        self.agenda.schedule_after_ns(ns, Event::DemandChange { disk });
    }

    fn carry_out(&mut self, now: Time, number: u32) {
        match self.interventions[number as usize].clone() {
            Intervention::Limit { disk, min_iops } => {
                let mut max_iops = u64::MAX;
                self.disks.change(now, disk, |disk_state| {
                    disk_state.min_iops = min_iops;
                    max_iops = disk_state.max_iops.unwrap_or(u64::MAX);
                });
                let fact = DiskFact::Limits { disk, min_iops, max_iops };
                self.observer.record(now, &Fact::Disk(fact));
            }
            Intervention::Fault { fault, ns } => {
                let until = Time::from_ns(now.as_ns() + ns);
                self.cluster_model.start_fault(now, &fault, until, &mut self.disks);
            }
        }
    }

    /// Passes new facts of the cluster and the disks to the checkers, and planned events to the
    /// agenda.
    fn pass_on_facts(&mut self) {
        let now = self.agenda.now();
        for (time, event) in self.cluster_model.drain_planned() {
            self.agenda.schedule(time, Event::Cluster(event));
        }
        for fact in self.cluster_model.facts.drain(..) {
            self.observer.record(now, &Fact::Cluster(fact));
        }
        for fact in self.disks.facts.drain(..) {
            self.observer.record(now, &Fact::Disk(fact));
        }
    }
}
