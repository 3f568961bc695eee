//! Construction of the workers' tables from the control plane's state.

use std::ops::Range;
use std::sync::Arc;

use suimon_forwarding::{PortRole, RateLimit, Tables};
use suimon_quantity::{BitRate, Direction, PortId, QueueId, WorkerId};

use super::Registry;
use crate::published::{MemberTableSlot, PortRuntime, PublishedTables, TeamRuntime};
use crate::queue_record::queues_of_port;
use crate::topology::{PortTopology, TopologyError};

type Owners = Vec<(QueueId, WorkerId)>;

impl Registry {
    pub(super) fn build_tables(&mut self) -> Result<PublishedTables, TopologyError> {
        let tables = self.tables()?;
        let mut owners = Vec::new();
        let mut ports: Vec<Option<PortRuntime>> = Vec::new();
        ports.resize_with(tables.port_count(), || None);
        for index in 0..self.topology.ports.len() {
            let id = self.topology.ports[index].spec.id;
            let shared = self.shared_port_state(id);
            let port = &self.topology.ports[index];
            let egress = self.add_owners(id, &mut owners);
            let Some(slot) = tables.slot(id) else { continue };
            let is_uplink = port.spec.role == PortRole::Uplink;
            if !port.spec.binds_source {
                shared.new_source_reports.reset();
            }
            ports[slot.index()] = Some(PortRuntime {
                bandwidth_limit: shared
                    .bandwidth_limit
                    .replace(port.bandwidth.map(bandwidth_limit)),
                storm_limit: shared.storm_limit.replace(storm_limit(port)),
                shared,
                receive_coalescing: is_uplink || port.receive_coalescing,
                forwards_coalesced: !is_uplink || port.receive_coalescing,
                is_uplink,
                binds_source: port.spec.binds_source,
                capture: self.captures.get(&id).cloned(),
                egress_queues: egress,
                team_index: None,
            });
        }
        // Every slot belongs to one of the ports from which the tables were built.
        let ports = ports.into_iter().flatten().collect();
        let (members, teams) = (Vec::new(), Vec::new());
        let mut published =
            PublishedTables { forwarding_tables: tables, ports, members, teams, owners };
        self.publish_teams(&mut published);
        Ok(published)
    }

    /// Returns the forwarding tables of the topology. They do not depend on queues, so they are
    /// built once per topology.
    fn tables(&mut self) -> Result<Arc<Tables>, TopologyError> {
        if let Some(tables) = &self.tables {
            return Ok(Arc::clone(tables));
        }
        let specs: Vec<_> = self.topology.ports.iter().map(|port| port.spec.clone()).collect();
        let tables = Arc::new(Tables::build(&self.topology.switches, &specs)?);
        self.tables = Some(Arc::clone(&tables));
        Ok(tables)
    }

    /// Appends the egress queues of a port with their owners to `owners`, and returns the range of
    /// their indices.
    fn add_owners(&self, port: PortId, owners: &mut Owners) -> Range<usize> {
        let first = owners.len();
        let egress = queues_of_port(&self.queues, port, Direction::Egress);
        owners.extend(egress.map(|(id, record)| (*id, record.owner)));
        first..owners.len()
    }

    fn publish_teams(&mut self, published: &mut PublishedTables) {
        for index in 0..self.topology.teams.len() {
            let team = self.topology.teams[index].clone();
            let Some(slot) = published.forwarding_tables.slot(team.port) else { continue };
            let number = published.teams.len();
            let mut members = Vec::new();
            for (nth, member) in team.members.iter().enumerate() {
                let slot_index = published.ports.len();
                members.push((member.id, slot_index));
                published.members.push((
                    member.port,
                    MemberTableSlot {
                        team_index: number,
                        member_index: nth,
                        port_index: slot_index,
                    },
                ));
                let runtime = self.member_runtime(member.port, &mut published.owners);
                published.ports.push(runtime);
            }
            published.ports[slot.index()].team_index = Some(number);
            published.teams.push(TeamRuntime {
                slot,
                members,
                distribution: team.distribution,
                shared: self.teams.shared_team_state(team.port),
            });
        }
        published.members.sort_by_key(|(port, _)| *port);
    }

    fn member_runtime(&mut self, port: PortId, owners: &mut Owners) -> PortRuntime {
        PortRuntime {
            shared: self.shared_port_state(port),
            // Limits belong to the team's port, not to the members.
            bandwidth_limit: None,
            storm_limit: None,
            receive_coalescing: true,
            forwards_coalesced: true,
            is_uplink: true,
            binds_source: false,
            capture: self.captures.get(&port).cloned(),
            egress_queues: self.add_owners(port, owners),
            team_index: None,
        }
    }
}

/// Returns the bandwidth limit: a burst of 4 ms at the rate, at least 64 KiB and at most 64 MiB.
fn bandwidth_limit(rate: BitRate) -> RateLimit {
    let burst = (rate.bits_per_second() / 8 / 250).clamp(64 * 1024, 64 << 20);
    RateLimit::from_bit_rate(rate, burst as u32)
}

/// Returns the limit of flooded frames: a burst of 100 ms at the rate, at least 8 frames.
fn storm_limit(port: &PortTopology) -> Option<RateLimit> {
    let per_second = port.storm_limit_fps?;
    RateLimit::from_frame_rate(u64::from(per_second), (per_second / 10).max(8))
}
