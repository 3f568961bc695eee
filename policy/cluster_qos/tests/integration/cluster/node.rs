//! Simulated node: clock, disks, and division of its cap among them.

use std::collections::BTreeMap;

use suimon_cluster_qos::{
    Allocator, AllocatorEvent, DiskKey, DiskLoad, DurableState, Member, MemberEvent, MemberNotice,
    NodeId, Parameters, PolicyCap, TimedRateLimit,
};
use suimon_quantity::Time;

/// Clock of a node, with an offset and a drift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) offset: u64,
    /// Drift in parts per million; negative if the clock is slow.
    pub(crate) ppm: i64,
}

impl Clock {
    pub(crate) const RIGHT: Self = Self { offset: 0, ppm: 0 };

    pub(crate) fn at(self, now: u64) -> Time {
        let rate = i128::from(1_000_000 + self.ppm);
        let ns = i128::from(now) * rate / 1_000_000;
        Time::from_ns(self.offset + u64::try_from(ns).unwrap())
    }
}

pub(crate) struct Node {
    pub(crate) id: u32,
    pub(crate) clock: Clock,
    pub(crate) member: Member,
    pub(crate) allocator: Allocator,
    pub(crate) disks: BTreeMap<DiskKey, (DiskLoad, u64)>,
    pub(crate) cap: TimedRateLimit,
    pub(crate) policy_caps: Vec<PolicyCap>,
    pub(crate) durable: DurableState,
    pub(crate) notices: Vec<(u64, MemberNotice)>,
    pub(crate) is_cut_off: bool,
    pub(crate) frozen_until: u64,
    pub(crate) incarnation: u64,
    pub(crate) falls_back: bool,
    pub(crate) next_sample: u64,
    pub(crate) write_until: Option<u64>,
    pub(crate) reports: u64,
    /// Throughput that the store delivers to this node; `None`: unlimited.
    pub(crate) store_does: Option<u64>,
    pub(crate) latency_ns: u64,
    /// Additional delay of grants to this node.
    pub(crate) grants_late: u64,
    /// Events that the node's state machine processed since the daemon started, with their times;
    /// `None` for a deadline.
    pub(crate) member_events: Vec<(Time, Option<MemberEvent>)>,
    pub(crate) allocator_events: Vec<(Time, Option<AllocatorEvent>)>,
}

impl Node {
    pub(crate) fn new(
        terms: Parameters,
        now: u64,
        id: u32,
        clock: Clock,
        falls_back: bool,
    ) -> Self {
        let durable = DurableState::default();
        let local = clock.at(now);
        let member = Member::new(terms, local, NodeId(id), 1, durable.clone());
        Self {
            id,
            clock,
            member,
            allocator: Allocator::new(terms),
            disks: BTreeMap::new(),
            cap: TimedRateLimit::default(),
            policy_caps: Vec::new(),
            durable,
            notices: Vec::new(),
            is_cut_off: false,
            frozen_until: 0,
            incarnation: 1,
            falls_back,
            next_sample: now,
            write_until: None,
            reports: 0,
            store_does: None,
            latency_ns: 1_000_000,
            grants_late: 0,
            member_events: Vec::new(),
            allocator_events: Vec::new(),
        }
    }

    pub(crate) fn restart(&mut self, terms: Parameters, now: u64) {
        self.incarnation += 1;
        let local = self.clock.at(now);
        self.cap = TimedRateLimit::default();
        self.policy_caps = Vec::new();
        let (id, durable) = (NodeId(self.id), self.durable.clone());
        self.member = Member::new(terms, local, id, self.incarnation, durable);
        self.allocator = Allocator::new(terms);
        (self.member_events, self.allocator_events) = (Vec::new(), Vec::new());
        self.write_until = None;
    }

    pub(crate) fn handle_member_event(&mut self, local: Time, event: Option<&MemberEvent>) {
        match event {
            Some(event) => self.member.handle(local, event),
            None => self.member.handle_deadline(local),
        }
        self.member_events.push((local, event.cloned()));
    }

    pub(crate) fn handle_allocator_event(&mut self, local: Time, event: Option<&AllocatorEvent>) {
        match event {
            Some(event) => self.allocator.handle(local, event),
            None => self.allocator.handle_deadline(local),
        }
        self.allocator_events.push((local, event.cloned()));
    }

    pub(crate) fn runs(&self, now: u64) -> bool {
        now >= self.frozen_until
    }

    pub(crate) fn is_reachable(&self, now: u64) -> bool {
        self.runs(now) && !self.is_cut_off
    }

    pub(crate) fn cap_at(&self, now: u64) -> u64 {
        self.cap.iops_at(self.clock.at(now))
    }

    /// Returns the throughput of each disk under the node's cap: minimums first, then by weight.
    pub(crate) fn delivered(&self, now: u64) -> BTreeMap<DiskKey, u64> {
        let local = self.clock.at(now);
        let limit = self.cap.iops_at(local).min(self.store_does.unwrap_or(u64::MAX));
        let mut remaining = limit;
        let mut delivered = BTreeMap::new();
        let limited_demand =
            |load: &DiskLoad, demand: u64| demand.min(load.max_iops.unwrap_or(u64::MAX));
        for (key, (load, demand)) in &self.disks {
            let policy = load
                .policy
                .and_then(|policy| self.policy_caps.iter().find(|cap| cap.policy == policy));
            let min = policy.map_or(load.min_iops, |cap| cap.min_iops);
            let first = limited_demand(load, *demand).min(min).min(remaining);
            remaining -= first;
            delivered.insert(*key, first);
        }
        // Rounds of equal steps by weight, until no capacity or demand is left.
        for _ in 0..64 {
            let hungry: Vec<DiskKey> = self
                .disks
                .iter()
                .filter(|(key, (load, demand))| delivered[key] < limited_demand(load, *demand))
                .map(|(key, _)| *key)
                .collect();
            let weights: u64 = hungry.iter().map(|key| u64::from(self.disks[key].0.weight)).sum();
            if weights == 0 || remaining < weights {
                break;
            }
            let per_weight = remaining / weights;
            for key in hungry {
                let (load, demand) = &self.disks[&key];
                let lacks = limited_demand(load, *demand) - delivered[&key];
                let extra = (per_weight * u64::from(load.weight)).min(lacks);
                *delivered.get_mut(&key).unwrap() += extra;
                remaining -= extra;
            }
        }
        // The disks of a policy are limited by the policy; here one disk of each per node.
        for (key, (load, _)) in &self.disks {
            let Some(policy) = load.policy else { continue };
            let cap = self.policy_caps.iter().find(|cap| cap.policy == policy);
            let policy_max =
                cap.map_or(0, |cap| cap.max.map_or(u64::MAX, |max| max.iops_at(local)));
            let slot = delivered.get_mut(key).unwrap();
            *slot = (*slot).min(policy_max);
        }
        delivered
    }

    /// Returns the loads that the node's scheduler would report at the node's time `local`.
    pub(crate) fn sample(&self, local: Time) -> MemberEvent {
        let now = local.as_ns() - self.clock.offset;
        let now =
            u64::try_from(i128::from(now) * 1_000_000 / i128::from(1_000_000 + self.clock.ppm));
        let delivered = self.delivered(now.unwrap());
        let is_store_full =
            self.store_does.is_some_and(|capacity| capacity < self.cap.iops_at(local));
        let disks = self.disks.iter().map(|(key, (load, demand))| {
            let demand = (*demand).min(load.max_iops.unwrap_or(u64::MAX));
            let lacks = delivered[key] + delivered[key] / 100 + 1 < demand;
            DiskLoad {
                fallback_iops: load.fallback_iops.or(load.max_iops).filter(|_| self.falls_back),
                demand_iops: if lacks { delivered[key] } else { demand },
                delivered_iops: delivered[key],
                waits_for_grant: lacks && !is_store_full,
                waits_for_store: lacks && is_store_full,
                is_fully_utilised: lacks,
                ..*load
            }
        });
        MemberEvent::Loads { disks: disks.collect(), latency_ns: self.latency_ns }
    }
}
