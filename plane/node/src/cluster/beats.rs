//! What nodes write on a shared store itself, so that they see each other without etcd, and see who is there
//! that the cluster does not know.
//!
//! A node has one empty file beside the store's mark, whose name says who it is, how often it has
//! written, and what its disks do. It is renamed at each beat, so nobody ever reads half of one, and
//! nobody has to lock it. A beat that changes is of somebody who lives: no clock is compared with
//! another's.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use suimon_contract::Name;
use suimon_ports::{FileName, StoreFileError, StoreFiles};
use suimon_quantity::Time;
use thiserror::Error;

const ENDING: &str = ".suimon-beat";
/// What no name has.
const BETWEEN: char = '@';
/// How often a node writes, and looks.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// A beat that has not changed for so long is of somebody who is gone.
const LIVES: Duration = Duration::from_secs(20);
/// So many beats of a store are looked at. There are not as many nodes.
const BEATS_MAX: usize = 1024;

/// What a node says of itself on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub(super) cluster: Name,
    pub(super) node: Name,
    /// Which start of its daemon.
    pub(super) incarnation: u64,
    /// Counts up.
    pub(super) number: u64,
    /// What its disks do, in normalised operations per second.
    pub(super) delivered_iops: u64,
    /// What they may do without anybody.
    pub(super) reserved_iops: u64,
}

/// Why a file's name is no beat.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum BeatError {
    #[error("the name of a heartbeat file has {0} parts instead of 6")]
    Parts(usize),
    #[error("`{0}` in the name of a heartbeat file is not the name of a {1}")]
    Name(String, &'static str),
    #[error("`{0}` in the name of a heartbeat file is not a number ({1})")]
    Number(String, &'static str),
}

impl fmt::Display for Beat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, node, incarnation, number, delivered_iops, reserved_iops } = self;
        write!(
            f,
            "{cluster}@{node}@{incarnation}@{number}@{delivered_iops}@{reserved_iops}{ENDING}"
        )
    }
}

impl Beat {
    fn parse(file: &str) -> Result<Self, BeatError> {
        let text = file.strip_suffix(ENDING).unwrap_or(file);
        let parts: Vec<&str> = text.split(BETWEEN).collect();
        let [cluster, node, incarnation, number, delivered, reserved] = parts[..] else {
            return Err(BeatError::Parts(parts.len()));
        };
        let name = |text: &str, what| {
            text.parse::<Name>().map_err(|_| BeatError::Name(text.to_owned(), what))
        };
        // Digits alone, so that each beat has one name.
        let count = |text: &str, what| {
            let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|_| is_digits);
            number.ok_or_else(|| BeatError::Number(text.to_owned(), what))
        };
        Ok(Self {
            cluster: name(cluster, "cluster")?,
            node: name(node, "node")?,
            incarnation: count(incarnation, "start")?,
            number: count(number, "beat")?,
            delivered_iops: count(delivered, "IOPS")?,
            reserved_iops: count(reserved, "reserved IOPS")?,
        })
    }

    fn is_of(&self, other: &Self) -> bool {
        (&self.cluster, &self.node) == (&other.cluster, &other.node)
    }
}

/// Writes a node's beat in place of its last, and reads those of others.
///
/// # Errors
/// The store's file system said no.
pub(super) fn exchange(files: &dyn StoreFiles, own: &Beat) -> Result<Vec<Beat>, StoreFileError> {
    let mut others = Vec::new();
    let mut before = Vec::new();
    for file in files.names(ENDING)?.into_iter().filter(|file| !file.as_str().contains('/')) {
        match Beat::parse(file.as_str()) {
            Ok(beat) if beat.is_of(own) => before.push(file),
            Ok(beat) if others.len() < BEATS_MAX => others.push(beat),
            Ok(_) => {}
            Err(error) => tracing::debug!(
                file = file.as_str(), %error,
                "the file is not a heartbeat of a node"
            ),
        }
    }
    // Both parts are names, and numbers have twenty digits.
    let Ok(name) = FileName::new(&own.to_string()) else { return Ok(others) };
    let mut before = before.into_iter();
    match before.next() {
        Some(last) if last == name => {}
        Some(last) => files.rename(&last, &name)?,
        None => drop(files.create(&name, 1)?),
    }
    // Of a daemon that died in between.
    for rest in before.filter(|rest| *rest != name) {
        files.remove(&rest)?;
    }
    Ok(others)
}

/// Takes a node's beat away.
///
/// # Errors
/// The store's file system said no.
pub(super) fn end(files: &dyn StoreFiles, own: &Beat) -> Result<(), StoreFileError> {
    for file in files.names(ENDING)? {
        if Beat::parse(file.as_str()).is_ok_and(|beat| beat.is_of(own)) {
            files.remove(&file)?;
        }
    }
    Ok(())
}

/// Who was seen on a store.
#[derive(Default)]
pub(super) struct Seen {
    /// Each with when its beat was first seen as it is, and whether it has changed since the first.
    all: BTreeMap<(Name, Name), (Beat, Time, bool)>,
}

impl Seen {
    pub(super) fn handle(&mut self, now: Time, beats: Vec<Beat>) {
        let is_there = |key: &(Name, Name)| {
            beats.iter().any(|beat| (&beat.cluster, &beat.node) == (&key.0, &key.1))
        };
        self.all.retain(|key, _| is_there(key));
        for beat in beats {
            let key = (beat.cluster.clone(), beat.node.clone());
            match self.all.get_mut(&key) {
                Some((last, at, lives)) => {
                    if *last != beat {
                        (*last, *at, *lives) = (beat, now, true);
                    }
                }
                None => {
                    self.all.insert(key, (beat, now, false));
                }
            }
        }
    }

    /// Those who live, with for how long they have said nothing new.
    pub(super) fn living(&self, now: Time) -> impl Iterator<Item = (&Beat, Duration)> {
        let all = self.all.values().map(move |(beat, at, lives)| (beat, now.since(*at), *lives));
        all.filter(|(_, age, lives)| *lives && *age < LIVES).map(|(beat, age, _)| (beat, age))
    }
}

#[cfg(test)]
mod tests {
    use suimon_ports::testing::MemoryStore;

    use super::*;
    use crate::testing::name;

    fn beat(cluster: &str, node: &str, number: u64) -> Beat {
        Beat {
            cluster: name(cluster),
            node: name(node),
            incarnation: 3,
            number,
            delivered_iops: 500,
            reserved_iops: 2064,
        }
    }

    #[test]
    fn nodes_see_each_other_and_each_has_one_file() {
        let files = MemoryStore::default();
        assert_eq!(exchange(&files, &beat("lab", "n1", 1)).unwrap(), []);
        assert_eq!(exchange(&files, &beat("lab", "n.2", 7)).unwrap(), [beat("lab", "n1", 1)]);
        assert_eq!(exchange(&files, &beat("lab", "n1", 2)).unwrap(), [beat("lab", "n.2", 7)]);
        assert_eq!(exchange(&files, &beat("lab", "n1", 2)).unwrap(), [beat("lab", "n.2", 7)]);
        assert_eq!(files.names(ENDING).unwrap().len(), 2);
        end(&files, &beat("lab", "n1", 9)).unwrap();
        assert_eq!(files.names(ENDING).unwrap().len(), 1);
    }

    #[test]
    fn names_that_are_no_beats_are_told_apart_and_do_no_harm() {
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
        assert_eq!(exchange(&files, &beat("lab", "n1", 1)).unwrap(), []);
        let wrong = |text: &str| Beat::parse(text).unwrap_err().to_string();
        assert_eq!(wrong(odd[0]), "the name of a heartbeat file has 5 parts instead of 6");
        assert_eq!(
            wrong(odd[2]),
            "`-` in the name of a heartbeat file is not the name of a \
                                   cluster"
        );
        assert_eq!(wrong(odd[3]), "`+2` in the name of a heartbeat file is not a number (beat)");
        assert!(wrong(odd[4]).ends_with("(reserved IOPS)"));
        assert_eq!(files.names(ENDING).unwrap().len(), odd.len() + 1, "nobody's files are touched");
    }

    #[test]
    fn who_writes_lives_and_who_does_not_any_more_is_gone() {
        let at = |s: u64| Time::ZERO + Duration::from_secs(s);
        let mut seen = Seen::default();
        seen.handle(at(0), vec![beat("lab", "n1", 1)]);
        assert_eq!(seen.living(at(0)).count(), 0, "it may be of long ago");
        seen.handle(at(10), vec![beat("lab", "n1", 2), beat("else", "n1", 4)]);
        assert_eq!(
            seen.living(at(12)).next(),
            Some((&beat("lab", "n1", 2), Duration::from_secs(2)))
        );
        assert_eq!(seen.living(at(12)).count(), 1);
        assert_eq!(seen.living(at(31)).count(), 0);
        seen.handle(at(50), Vec::new());
        assert!(seen.all.is_empty());
    }
}
