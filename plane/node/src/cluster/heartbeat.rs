//! Heartbeats of nodes on a shared store. They show nodes without etcd, and nodes that are not
//! members of this cluster.
//!
//! A node has one empty file beside the store's mark. Its name contains the node, a counter, and
//! rates. The file is renamed for each heartbeat, so that no partial heartbeat can be read and no
//! lock is needed. A node is alive if its heartbeat changes; clocks of different nodes are not
//! compared.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use suimon_contract::Name;
use suimon_ports::{FileName, StoreFileError, StoreFiles};
use suimon_quantity::Time;
use thiserror::Error;

const ENDING: &str = ".suimon-beat";
/// Separator between the parts of a heartbeat's file name; not permitted in names of clusters and
/// nodes.
const BETWEEN: char = '@';
/// Interval at which a node writes its heartbeat and reads those of others.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Time after which an unchanged heartbeat is considered that of a dead node.
const ALIVE_FOR: Duration = Duration::from_secs(20);
/// Maximum number of heartbeats read from a store. Clusters have fewer nodes.
const BEATS_MAX: usize = 1024;

/// Heartbeat of a node on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heartbeat {
    pub(super) cluster: Name,
    pub(super) node: Name,
    /// Number of the daemon's start.
    pub(super) incarnation: u64,
    /// Counter, increased by each heartbeat.
    pub(super) sequence_number: u64,
    /// Delivered rate of the node's disks in normalised operations per second.
    pub(super) delivered_iops: u64,
    /// Rate that the node may use without a lease, in normalised operations per second.
    pub(super) reserved_iops: u64,
}

/// Reason why a file name is not a valid heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum HeartbeatError {
    #[error("the name of a heartbeat file has {0} parts instead of 6")]
    WrongPartCount(usize),
    #[error("`{0}` in the name of a heartbeat file is not a valid name of a {1}")]
    InvalidName(String, &'static str),
    #[error("`{0}` in the name of a heartbeat file is not a number ({1})")]
    InvalidNumber(String, &'static str),
}

impl fmt::Display for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cluster,
            node,
            incarnation,
            sequence_number: number,
            delivered_iops,
            reserved_iops,
        } = self;
        write!(
            f,
            "{cluster}@{node}@{incarnation}@{number}@{delivered_iops}@{reserved_iops}{ENDING}"
        )
    }
}

impl Heartbeat {
    fn parse(file: &str) -> Result<Self, HeartbeatError> {
        let text = file.strip_suffix(ENDING).unwrap_or(file);
        let parts: Vec<&str> = text.split(BETWEEN).collect();
        let [cluster, node, incarnation, number, delivered, reserved] = parts[..] else {
            return Err(HeartbeatError::WrongPartCount(parts.len()));
        };
        let name = |text: &str, part_name| {
            text.parse::<Name>()
                .map_err(|_| HeartbeatError::InvalidName(text.to_owned(), part_name))
        };
        // Digits only, so that each heartbeat has exactly one name.
        let count = |text: &str, part_name| {
            let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|_| is_digits);
            number.ok_or_else(|| HeartbeatError::InvalidNumber(text.to_owned(), part_name))
        };
        Ok(Self {
            cluster: name(cluster, "cluster")?,
            node: name(node, "node")?,
            incarnation: count(incarnation, "start")?,
            sequence_number: count(number, "beat")?,
            delivered_iops: count(delivered, "IOPS")?,
            reserved_iops: count(reserved, "reserved IOPS")?,
        })
    }

    fn is_of(&self, other: &Self) -> bool {
        (&self.cluster, &self.node) == (&other.cluster, &other.node)
    }
}

/// Replaces a node's heartbeat, and returns the heartbeats of other nodes. Other files are not
/// changed.
///
/// # Errors
/// Fails if the store's file system reports an error.
pub(super) fn exchange_heartbeats(
    files: &dyn StoreFiles,
    own_heartbeat: &Heartbeat,
) -> Result<Vec<Heartbeat>, StoreFileError> {
    let mut others = Vec::new();
    let mut before = Vec::new();
    for file in files.names(ENDING)?.into_iter().filter(|file| !file.as_str().contains('/')) {
        match Heartbeat::parse(file.as_str()) {
            Ok(heartbeat) if heartbeat.is_of(own_heartbeat) => before.push(file),
            Ok(heartbeat) if others.len() < BEATS_MAX => others.push(heartbeat),
            Ok(_) => {}
            Err(error) => tracing::debug!(
                file = file.as_str(), %error,
                "the file is not a heartbeat of a node"
            ),
        }
    }
    // Does not fail: both names are valid, and numbers have at most 20 digits.
    let Ok(name) = FileName::new(&own_heartbeat.to_string()) else { return Ok(others) };
    let mut before = before.into_iter();
    match before.next() {
        Some(last) if last == name => {}
        Some(last) => files.rename(&last, &name)?,
        None => drop(files.create(&name, 1)?),
    }
    // Left by a daemon that was killed between two operations.
    for old_file in before.filter(|old_file| *old_file != name) {
        files.remove(&old_file)?;
    }
    Ok(others)
}

/// Removes a node's heartbeat.
///
/// # Errors
/// Fails if the store's file system reports an error.
pub(super) fn remove_heartbeat(
    files: &dyn StoreFiles,
    own_heartbeat: &Heartbeat,
) -> Result<(), StoreFileError> {
    for file in files.names(ENDING)? {
        if Heartbeat::parse(file.as_str()).is_ok_and(|heartbeat| heartbeat.is_of(own_heartbeat)) {
            files.remove(&file)?;
        }
    }
    Ok(())
}

/// Nodes with a heartbeat file on a store.
#[derive(Default)]
pub(super) struct SeenNodes {
    /// Last heartbeat by cluster and node, the time when it was first seen, and whether it has
    /// changed since the node was first seen.
    nodes: BTreeMap<(Name, Name), (Heartbeat, Time, bool)>,
}

impl SeenNodes {
    pub(super) fn handle(&mut self, now: Time, heartbeats: Vec<Heartbeat>) {
        let is_current = |key: &(Name, Name)| {
            heartbeats
                .iter()
                .any(|heartbeat| (&heartbeat.cluster, &heartbeat.node) == (&key.0, &key.1))
        };
        self.nodes.retain(|key, _| is_current(key));
        for heartbeat in heartbeats {
            let key = (heartbeat.cluster.clone(), heartbeat.node.clone());
            match self.nodes.get_mut(&key) {
                Some((last, seen_at, is_alive)) => {
                    if *last != heartbeat {
                        (*last, *seen_at, *is_alive) = (heartbeat, now, true);
                    }
                }
                None => {
                    self.nodes.insert(key, (heartbeat, now, false));
                }
            }
        }
    }

    /// Returns nodes that are alive, each with the age of its heartbeat.
    pub(super) fn alive(&self, now: Time) -> impl Iterator<Item = (&Heartbeat, Duration)> {
        let heartbeats = self
            .nodes
            .values()
            .map(move |(heartbeat, seen_at, is_alive)| (heartbeat, now.since(*seen_at), *is_alive));
        heartbeats
            .filter(|(_, age, is_alive)| *is_alive && *age < ALIVE_FOR)
            .map(|(heartbeat, age, _)| (heartbeat, age))
    }
}

#[cfg(test)]
mod tests {
    use suimon_ports::testing::MemoryStore;

    use super::*;
    use crate::testing::name;

    fn beat(cluster: &str, node: &str, number: u64) -> Heartbeat {
        Heartbeat {
            cluster: name(cluster),
            node: name(node),
            incarnation: 3,
            sequence_number: number,
            delivered_iops: 500,
            reserved_iops: 2064,
        }
    }

    #[test]
    fn nodes_see_each_other_and_each_has_one_file() {
        let files = MemoryStore::default();
        assert_eq!(exchange_heartbeats(&files, &beat("lab", "n1", 1)).unwrap(), []);
        assert_eq!(
            exchange_heartbeats(&files, &beat("lab", "n.2", 7)).unwrap(),
            [beat("lab", "n1", 1)]
        );
        assert_eq!(
            exchange_heartbeats(&files, &beat("lab", "n1", 2)).unwrap(),
            [beat("lab", "n.2", 7)]
        );
        assert_eq!(
            exchange_heartbeats(&files, &beat("lab", "n1", 2)).unwrap(),
            [beat("lab", "n.2", 7)]
        );
        assert_eq!(files.names(ENDING).unwrap().len(), 2);
        remove_heartbeat(&files, &beat("lab", "n1", 9)).unwrap();
        assert_eq!(files.names(ENDING).unwrap().len(), 1);
    }

    #[test]
    fn file_names_that_are_not_heartbeats_are_rejected_and_ignored() {
        let files = MemoryStore::default();
        let odd = [
            "lab@n1@1@2@3.suimon-beat",
            "lab@n1@1@2@3@4@5.suimon-beat",
            "-@n1@1@2@3@4.suimon-beat",
            "lab@n1@1@+2@3@4.suimon-beat",
            "lab@n1@1@2@3@99999999999999999999999.suimon-beat",
            "@@@@@.suimon-beat",
            ".suimon-beat",
            "below/lab@n3@1@2@3@4.suimon-beat",
        ];
        for name in odd {
            files.create(&FileName::new(name).unwrap(), 1).unwrap();
        }
        assert_eq!(exchange_heartbeats(&files, &beat("lab", "n1", 1)).unwrap(), []);
        let parse_error = |text: &str| Heartbeat::parse(text).unwrap_err().to_string();
        assert_eq!(parse_error(odd[0]), "the name of a heartbeat file has 5 parts instead of 6");
        assert_eq!(
            parse_error(odd[2]),
            "`-` in the name of a heartbeat file is not a valid name of a \
                                   cluster"
        );
        assert_eq!(
            parse_error(odd[3]),
            "`+2` in the name of a heartbeat file is not a number (beat)"
        );
        assert!(parse_error(odd[4]).ends_with("(reserved IOPS)"));
        assert_eq!(
            files.names(ENDING).unwrap().len(),
            odd.len() + 1,
            "other files are not changed"
        );
    }

    /// Anyone who can write to the store can create any number of files.
    #[test]
    fn heartbeats_that_are_read_from_a_store_are_bounded() {
        let files = MemoryStore::default();
        for node in 0..2 * BEATS_MAX as u64 {
            let name = beat("lab", &format!("n{node}"), 1).to_string();
            files.create(&FileName::new(&name).unwrap(), 1).unwrap();
        }
        let others = exchange_heartbeats(&files, &beat("lab", "own", 1)).unwrap();
        assert_eq!(others.len(), BEATS_MAX);
        let mut seen_nodes = SeenNodes::default();
        seen_nodes.handle(Time::ZERO, others);
        // Nodes whose files were removed are not stored.
        seen_nodes.handle(Time::ZERO, vec![beat("lab", "n1", 2)]);
        assert_eq!(seen_nodes.nodes.len(), 1);
    }

    #[test]
    fn nodes_are_alive_while_their_heartbeats_change() {
        let time = |s: u64| Time::ZERO + Duration::from_secs(s);
        let mut seen_nodes = SeenNodes::default();
        seen_nodes.handle(time(0), vec![beat("lab", "n1", 1)]);
        assert_eq!(seen_nodes.alive(time(0)).count(), 0, "a first heartbeat may be old");
        seen_nodes.handle(time(10), vec![beat("lab", "n1", 2), beat("else", "n1", 4)]);
        assert_eq!(
            seen_nodes.alive(time(12)).next(),
            Some((&beat("lab", "n1", 2), Duration::from_secs(2)))
        );
        assert_eq!(seen_nodes.alive(time(12)).count(), 1);
        assert_eq!(seen_nodes.alive(time(31)).count(), 0);
        seen_nodes.handle(time(50), Vec::new());
        assert!(seen_nodes.nodes.is_empty());
    }
}
