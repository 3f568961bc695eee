//! Faults of a cluster.

use suimon_quantity::Time;
use suimon_sim_kernel::{RandomStream, SECOND_NS};

use crate::cluster::cluster_model::ClusterModel;
use crate::cluster::event::{ControlEvent, DiskModel};
use crate::cluster::facts::{ClusterFact, NodeLimit};
use crate::cluster::network::{Direction, NetworkSpec};

/// Kind of a fault; its duration is drawn separately.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Some members of etcd fail.
    EtcdDown {
        members: Vec<u32>,
    },
    /// A member of etcd is partitioned from the others.
    EtcdMemberPartitioned {
        member: u32,
    },
    /// The leader of etcd fails, or the first member if there is no leader.
    EtcdLeaderDown,
    EtcdSlow {
        percent: u64,
    },
    /// Messages between these nodes and members are lost in one or both directions.
    MessagesLost {
        nodes: Vec<u32>,
        members: Vec<u32>,
        directions: Vec<Direction>,
    },
    BadNetwork(NetworkSpec),
    /// A node and its VMs are paused.
    Freeze {
        node: u32,
    },
    /// A node's daemon ends and restarts.
    Restart {
        node: u32,
    },
    /// The leader of a store is paused; no effect without a leader.
    FreezeLeader {
        store: u32,
    },
    RestartLeader {
        store: u32,
    },
}

impl ClusterModel {
    /// Starts a fault that lasts until a time.
    pub(crate) fn start_fault(
        &mut self,
        now: Time,
        fault: &Fault,
        until: Time,
        model: &mut dyn DiskModel,
    ) {
        self.facts.push(ClusterFact::Disturbed { until_ns: until.as_ns() });
        match fault {
            Fault::EtcdDown { members } => {
                for member in members {
                    self.end_member(now, *member, until);
                }
            }
            Fault::EtcdLeaderDown => {
                self.end_member(now, self.etcd.leader().unwrap_or_default(), until);
            }
            Fault::EtcdMemberPartitioned { member } => {
                self.etcd.set_partitions(now, |other| u32::from(other == *member));
                self.schedule(until, ControlEvent::EtcdRecovered { member: None });
                self.schedule_etcd(now);
            }
            Fault::EtcdSlow { percent } => {
                self.etcd.slow_down(until, *percent);
                self.schedule(until, ControlEvent::EtcdSlowdownEnded);
            }
            Fault::MessagesLost { nodes, members, directions } => {
                for node in nodes {
                    for member in members {
                        for direction in directions {
                            self.network.cut(*node, *member, *direction, until);
                        }
                    }
                }
            }
            Fault::BadNetwork(spec) => self.network.impair(until, *spec),
            Fault::Freeze { node } => self.stop(now, *node, until, model),
            Fault::Restart { node } => self.restart(now, *node, until, model),
            Fault::FreezeLeader { store } => {
                if let Some(node) = self.leader_of(*store) {
                    self.stop(now, node, until, model);
                }
            }
            Fault::RestartLeader { store } => {
                if let Some(node) = self.leader_of(*store) {
                    self.restart(now, node, until, model);
                }
            }
        }
    }

    /// Returns the node that considers itself the leader of a store; `None` if no node does.
    fn leader_of(&self, store: u32) -> Option<u32> {
        let leads = |node: &&u32| {
            let host = &self.node_states[**node as usize];
            host.participants
                .iter()
                .any(|participant| participant.store == store && participant.led_term().is_some())
        };
        self.report_receivers[store as usize].iter().find(leads).copied()
    }

    fn end_member(&mut self, now: Time, member: u32, until: Time) {
        self.etcd.set_member_up(now, member, false);
        self.schedule(until, ControlEvent::EtcdRecovered { member: Some(member) });
        self.schedule_etcd(now);
    }

    fn stop(&mut self, now: Time, node: u32, until: Time, model: &mut dyn DiskModel) {
        let host = self.node_state(node);
        host.paused_until = host.paused_until.max(until);
        let until = host.paused_until;
        model.pause_node(now, node, until);
        self.facts.push(ClusterFact::NodePaused { node, until_ns: until.as_ns() });
    }

    fn restart(&mut self, now: Time, node: u32, until: Time, model: &mut dyn DiskModel) {
        self.lose_leaderships(now, node, model);
        self.stop(now, node, until, model);
        let host = self.node_state(node);
        host.epoch += 1;
        let (until, epoch) = (host.paused_until, host.epoch);
        // The limits of a node end with its daemon.
        for index in 0..self.node_state(node).participants.len() {
            let store = self.node_state(node).participants[index].store;
            let limit = NodeLimit::default();
            model.set_limit(now, node, store, limit);
            self.facts.push(ClusterFact::LimitSet { node, store, to: limit });
        }
        self.schedule(until, ControlEvent::DaemonStarts { node, epoch });
    }
}

/// Draws a random fault and its duration in ns.
pub(crate) fn draw_fault(
    random: &mut RandomStream,
    nodes: u32,
    stores: u32,
    members: u32,
) -> (Fault, u64) {
    let ns = random.draw_in_range(SECOND_NS / 10, 30 * SECOND_NS);
    let node = random.draw_below(nodes.into()) as u32;
    let store = random.draw_below(stores.into()) as u32;
    let member = random.draw_below(members.into()) as u32;
    let directions = match random.draw_below(4) {
        0 => vec![Direction::ToEtcd],
        1 => vec![Direction::ToNode],
        _ => vec![Direction::ToEtcd, Direction::ToNode],
    };
    let fault = match random.draw_below(12) {
        0 => Fault::EtcdDown { members: vec![member] },
        // All members except one fail: etcd has no majority until one is restored.
        1 => Fault::EtcdDown {
            members: (0..members).filter(|member_down| *member_down != member).collect(),
        },
        2 => Fault::EtcdMemberPartitioned { member },
        3 => Fault::EtcdLeaderDown,
        4 => Fault::EtcdSlow { percent: random.draw_in_range(200, 100_000) },
        5 => Fault::MessagesLost { nodes: vec![node], members: (0..members).collect(), directions },
        6 => {
            let node_count = random.draw_in_range(1, nodes.into()) as u32;
            Fault::MessagesLost {
                nodes: (0..node_count).collect(),
                members: vec![member],
                directions,
            }
        }
        7 => {
            let lost_permille = random.draw_in_range(10, 400);
            let jitter_us = random.draw_in_range(100, 500_000);
            Fault::BadNetwork(NetworkSpec {
                delay_us: 200,
                jitter_us,
                loss_permille: lost_permille,
            })
        }
        8 => Fault::Freeze { node },
        9 => Fault::Restart { node },
        10 => Fault::FreezeLeader { store },
        _ => Fault::RestartLeader { store },
    };
    let is_restart = matches!(fault, Fault::Restart { .. } | Fault::RestartLeader { .. });
    (fault, if is_restart { ns.min(5 * SECOND_NS) } else { ns })
}
