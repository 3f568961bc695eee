use std::sync::Arc;

use proptest::prelude::*;
use suimon_ports::NbdLevelUsage;

use super::*;
use crate::limit_level::{PAYLOAD_RESERVED_BYTES, RESERVED_BYTES};
use crate::pool::Pool;

const PEERS: u32 = 3;
const EXPORTS: usize = 2;
/// Maximum payload of a request.
const PAYLOAD_MAX: u64 = 32 << 20;

fn limits(connections_max: u32, buffer_max_bytes: u64) -> NbdLimits {
    NbdLimits { connections_max, buffer_bytes_max: buffer_max_bytes }
}

#[test]
fn connections_and_reservations_are_limited_for_exports_peers_and_the_host() {
    let budgets = NbdAccounting::default();
    budgets.set_limits(limits(4, 1 << 30), limits(3, 1 << 30));
    let admit = |user, export, of_export| budgets.admit(Origin::User(user), export, of_export);
    let wide = limits(9, 1 << 30);
    let exceeded = |scope, max| LimitExceeded::Connections { scope, max };
    let first = [admit(1, "a", limits(2, 1 << 30)), admit(1, "a", limits(2, 1 << 30))];
    assert_eq!(
        admit(2, "a", limits(2, 1 << 30)).unwrap_err(),
        exceeded(NbdScope::Export, 2),
        "of other peers too"
    );
    let third = admit(1, "b", wide).unwrap();
    assert_eq!(admit(1, "b", wide).unwrap_err(), exceeded(NbdScope::Peer, 3));
    assert_eq!(budgets.check(Origin::User(1)), Err(exceeded(NbdScope::Peer, 3)));
    let fourth = admit(2, "b", wide).unwrap();
    assert_eq!(budgets.check(Origin::User(3)), Err(exceeded(NbdScope::Host, 4)));
    drop(third);
    let small = limits(9, 2 * RESERVED_BYTES - 1);
    let full =
        LimitExceeded::Buffers { scope: NbdScope::Export, max_bytes: small.buffer_bytes_max };
    assert_eq!(admit(2, "b", small).unwrap_err(), full);
    // Connections of the daemon itself are always admitted, and their memory is counted.
    let own_connection = budgets.admit_daemon();
    assert_eq!(budgets.usage().host.buffer_bytes, 4 * RESERVED_BYTES);
    drop((first, fourth, own_connection));
    let usage = budgets.usage();
    assert!(usage.peers.is_empty() && usage.exports.is_empty());
    assert_eq!((usage.host.connections, usage.host.buffer_bytes), (0, 0));
}

#[test]
fn a_refusal_names_the_limit_and_its_key() {
    let text = LimitExceeded::Connections { scope: NbdScope::Peer, max: 512 }.to_string();
    assert_eq!(
        text,
        "its user or address has 512 connections, its maximum. Raise host.nbd_peer_connections_max"
    );
    let text = LimitExceeded::Buffers { scope: NbdScope::Host, max_bytes: 1 << 30 }.to_string();
    assert!(
        text.contains("1073741824 bytes") && text.contains("host.nbd_buffer_max_bytes"),
        "{text}"
    );
}

#[test]
fn limits_change_for_connections_that_exist() {
    let budgets = NbdAccounting::default();
    let admit = || budgets.admit(Origin::User(1), "a", NbdLimits::EXPORT_DEFAULT).unwrap();
    let (share, _other) = (admit(), admit());
    assert!(share.try_charge(1 << 20));
    budgets.set_export_limits("a", limits(1, 2 * RESERVED_BYTES));
    budgets.set_export_limits("none", limits(1, 1));
    assert!(!share.try_charge(1) && !share.can_charge(1), "the export holds more than its limit");
    share.release(1 << 20);
    assert!(!share.try_charge(1));
    budgets.set_export_limits("a", NbdLimits::EXPORT_DEFAULT);
    budgets.set_limits(limits(9, 1 << 30), limits(9, 2 * RESERVED_BYTES + 1));
    assert!(share.try_charge(1) && !share.try_charge(1), "the peer's limit");
    assert_eq!(budgets.usage().peers[0].0, "user 1");
}

/// Connection in the model: its memory, and the sizes of the replies that its client has not
/// received.
struct Model {
    pool: Pool,
    held: Vec<Vec<u32>>,
    /// True if the client receives no replies until its connection ends.
    is_greedy: bool,
    /// Number of bytes that the client still has to transfer, in requests of at most
    /// [`PAYLOAD_MAX`].
    left: u64,
}

impl Model {
    /// Executes a step of a connection as its queue does: a request of `bytes` bytes if there is
    /// memory for it, otherwise a part of one if no memory is in use. Returns false if neither is
    /// possible.
    fn step(&mut self, bytes: u64) -> bool {
        let bytes = bytes.min(self.left);
        let allocation = self.pool.take(bytes, &mut |_| {}).map(|chunks| (chunks, bytes));
        let allocation = allocation.or_else(|| {
            let part = bytes.min(PAYLOAD_RESERVED_BYTES);
            let is_unused = self.pool.is_unused();
            let chunks = is_unused.then(|| self.pool.take(part, &mut |_| {}))?;
            Some((chunks.expect("a connection without requests can process a part"), part))
        });
        let Some((chunks, bytes)) = allocation else { return false };
        self.left -= bytes;
        self.held.push(chunks);
        true
    }

    fn collect(&mut self) {
        self.held.drain(..).for_each(|chunks| self.pool.release(chunks));
    }
}

#[derive(Clone, Debug)]
enum Action {
    Connect { peer: u32, export: usize, is_greedy: bool },
    Request { connection: usize, bytes: u64 },
    Collect { connection: usize },
    Release { connection: usize },
    Disconnect { connection: usize },
}

fn action() -> impl Strategy<Value = Action> {
    let size = prop_oneof![1..=4096_u64, 4097..=1_u64 << 20, Just(PAYLOAD_MAX)];
    prop_oneof![
        3 => (0..PEERS, 0..EXPORTS, any::<bool>())
            .prop_map(|(peer, export, is_greedy)| Action::Connect { peer, export, is_greedy }),
        8 => (0..16_usize, size).prop_map(|(connection, bytes)| Action::Request { connection, bytes }),
        3 => (0..16_usize).prop_map(|connection| Action::Collect { connection }),
        2 => (0..16_usize).prop_map(|connection| Action::Release { connection }),
        1 => (0..16_usize).prop_map(|connection| Action::Disconnect { connection }),
    ]
}

fn is_within_limits(level: &NbdLevelUsage) -> bool {
    level.connections <= level.limits.connections_max
        && level.buffer_bytes <= level.limits.buffer_bytes_max
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn limits_hold_and_every_client_that_collects_its_replies_is_served(
        actions in prop::collection::vec(action(), 1..120),
        spare in 0..64_u64 << 20,
    ) {
        let budgets = NbdAccounting::default();
        budgets.set_limits(
            limits(10, 8 * RESERVED_BYTES + spare),
            limits(6, 6 * RESERVED_BYTES + spare / 2),
        );
        let of_export = limits(7, 7 * RESERVED_BYTES + spare / 2);
        let mut open: Vec<Model> = Vec::new();
        for action in actions {
            let connection_index = |connection: usize| (!open.is_empty()).then(|| connection % open.len());
            match action {
                Action::Connect { peer, export, is_greedy } => {
                    let names = ["a", "b"];
                    let origin = Origin::User(peer);
                    let share = budgets.admit(origin, names[export], of_export);
                    let share = share.map(|share| Pool::new(Arc::new(share)));
                    open.extend(share.map(|pool| {
                        Model { pool, held: Vec::new(), is_greedy, left: 128 << 20 }
                    }));
                }
                Action::Request { connection, bytes } => {
                    let Some(index) = connection_index(connection) else { continue };
                    let stuck = open[index].held.is_empty() && open[index].left > 0;
                    prop_assert!(open[index].step(bytes) || !stuck);
                }
                Action::Collect { connection } => {
                    let Some(index) = connection_index(connection) else { continue };
                    if !open[index].is_greedy {
                        open[index].collect();
                    }
                }
                Action::Release { connection } => {
                    let Some(index) = connection_index(connection) else { continue };
                    open[index].pool.release_unused(&mut |_| {});
                }
                Action::Disconnect { connection } => {
                    let Some(index) = connection_index(connection) else { continue };
                    open.swap_remove(index);
                }
            }
            let usage = budgets.usage();
            prop_assert!(is_within_limits(&usage.host));
            prop_assert!(usage.peers.iter().chain(&usage.exports).all(|(_, level)| is_within_limits(level)));
        }
        // Greedy clients take the remaining memory and do not return it.
        for greedy in open.iter_mut().filter(|client| client.is_greedy) {
            greedy.left = u64::MAX;
            while greedy.step(1 << 20) {}
        }
        for client in open.iter_mut().filter(|client| !client.is_greedy) {
            while client.left > 0 {
                client.collect();
                prop_assert!(client.step(PAYLOAD_MAX));
            }
        }
        drop(open);
        let host = budgets.usage().host;
        prop_assert_eq!((host.connections, host.buffer_bytes), (0, 0));
    }
}
