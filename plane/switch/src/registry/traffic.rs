//! Distributions of teams, and frames and bytes carried by their members.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_quantity::{Direction, PortId};
use suimon_teaming::{BUCKETS, BucketLoad, Distribution};

use super::Registry;
use crate::latch::{Latch, RESPONSE_TIMEOUT};
use crate::port_record::TrafficCounters;
use crate::queue_record::queues_of_port;
use crate::topology::{Topology, TopologyError};
use crate::worker_mailbox::WorkerCommand;

impl Registry {
    /// Sets the distribution of a team and blocks until all workers use it.
    ///
    /// # Errors
    /// The port is not a team, or a worker did not respond within [`RESPONSE_TIMEOUT`].
    pub(crate) fn set_distribution(
        &mut self,
        port: PortId,
        distribution: &Arc<Distribution>,
    ) -> Result<(), TopologyError> {
        let team = self.topology.teams.iter_mut().find(|team| team.port == port);
        team.ok_or(TopologyError::NoSuchTeam(port))?.distribution = Arc::clone(distribution);
        let latch = Latch::new(self.mailboxes().count());
        for link in self.mailboxes() {
            link.send_command(WorkerCommand::SetDistribution(
                port,
                Arc::clone(distribution),
                latch.clone(),
            ));
        }
        if latch.wait(RESPONSE_TIMEOUT) {
            Ok(())
        } else {
            Err(TopologyError::Timeout(RESPONSE_TIMEOUT.as_secs()))
        }
    }

    /// Returns the bytes that each bucket of a team's flows carried since the last call; `None` if
    /// the port is not a team.
    pub(crate) fn take_bucket_loads(&mut self, port: PortId) -> Option<Box<[BucketLoad; BUCKETS]>> {
        let record = self.teams.0.get_mut(&port)?;
        let mut loads = record.shared.loads();
        for (load, last_read) in loads.iter_mut().zip(record.bucket_bytes_at_last_take.iter_mut()) {
            let previous = std::mem::replace(last_read, load.bytes);
            load.bytes = load.bytes.wrapping_sub(previous);
        }
        Some(loads)
    }

    /// Returns frames and bytes of the queues that belong to the port itself, including detached
    /// ones.
    pub(super) fn port_traffic_counters(&self, port: PortId) -> TrafficCounters {
        let departed =
            self.ports.get(&port).map(|record| record.detached_traffic).unwrap_or_default();
        let directions = [Direction::Ingress, Direction::Egress];
        let queues_of = |direction| {
            let attached = queues_of_port(&self.queues, port, direction);
            attached.chain(queues_of_port(&self.detaching, port, direction))
        };
        let queues = directions.into_iter().flat_map(queues_of);
        queues.fold(departed, |sum, (id, queue)| {
            sum + TrafficCounters::from_queue(id.direction, &queue.counters)
        })
    }

    /// Returns frames and bytes that members of a team carried while they belonged to it; zero for
    /// ports that are not teams.
    pub(super) fn team_traffic_counters(&self, port: PortId) -> TrafficCounters {
        let Some(record) = self.teams.0.get(&port) else { return TrafficCounters::default() };
        let members = record.counters_at_join.iter();
        members.fold(record.former_member_traffic, |sum, (member, before)| {
            sum + (self.port_traffic_counters(*member) - *before)
        })
    }

    /// Returns the current frame and byte counters of all team members in a topology, by member
    /// port.
    pub(super) fn member_traffic_counters(
        &self,
        topology: &Topology,
    ) -> BTreeMap<PortId, TrafficCounters> {
        topology
            .members()
            .map(|member| (member.port, self.port_traffic_counters(member.port)))
            .collect()
    }

    /// Starts and ends the counting of members for their teams, for a topology that is in effect.
    /// `joining`: counters of all its members just before; new members count from there on.
    pub(super) fn update_member_counting(&mut self, joining: &BTreeMap<PortId, TrafficCounters>) {
        let mut teams = std::mem::take(&mut self.teams.0);
        teams.retain(|port, _| self.topology.teams.iter().any(|team| team.port == *port));
        for team in &self.topology.teams {
            let record = teams.entry(team.port).or_default();
            let before = std::mem::take(&mut record.counters_at_join);
            for (member, initial) in &before {
                if !team.members.iter().any(|team_member| team_member.port == *member) {
                    record.former_member_traffic = record.former_member_traffic
                        + (self.port_traffic_counters(*member) - *initial);
                }
            }
            record.counters_at_join = team
                .members
                .iter()
                .map(|member| {
                    let initial = before.get(&member.port).or_else(|| joining.get(&member.port));
                    (member.port, initial.copied().unwrap_or_default())
                })
                .collect();
        }
        self.teams.0 = teams;
    }
}
