//! Verification that a store is the one registered in the cluster under its name.
//!
//! The directory contains an empty mark file, whose name consists of the cluster's name and 128
//! random bits. etcd has the same bits. Another cluster's mark, other bits, or a missing mark (for
//! example a file system that is not mounted) show that the directory is another one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_contract::Name;
use suimon_ports::{
    ClusterChange, ClusterCondition, ClusterKvStore, ClusterStoreError, FileName, StoreFileError,
    StoreFiles,
};

use super::encoding::{decode_entry, encode_value};

const ENDING: &str = ".suimon-cluster";
/// Number of attempts if other nodes mark the store at the same time.
const TRIES: usize = 4;

/// Maximum number of identities of stores that a cluster records. They stay while the cluster has a
/// member, because the identity shows that a directory is not mounted.
const IDENTITIES_MAX: usize = 1024;

/// Reason why a store is not the one registered in the cluster under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IdentityMismatch {
    pub(super) reason: String,
    /// True if another cluster uses the store. Heartbeats are then written, so that its nodes see
    /// this one.
    pub(super) is_of_other_cluster: bool,
}

/// Record of a store's identity in etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoreRecord {
    identity: String,
}

/// Access to the store's record; `key` is the record's key in etcd.
pub(super) struct StoreRecordAccess {
    pub(super) store: Arc<dyn ClusterKvStore>,
    pub(super) key: String,
}

impl StoreRecordAccess {
    /// Returns the reason why the identity of a further store cannot be recorded; `None` if it can.
    fn full(&self) -> Result<Option<IdentityMismatch>, ClusterStoreError> {
        let Some((parent, _)) = self.key.rsplit_once('/') else { return Ok(None) };
        let prefix = format!("{parent}/");
        if self.store.read(&prefix)?.entries.len() < IDENTITIES_MAX {
            return Ok(None);
        }
        let reason = format!(
            "the cluster has recorded the identities of {IDENTITIES_MAX} stores, the most it can \
             have; remove the keys {prefix}NAME of stores that no node shares from etcd, or share \
             a store that is recorded"
        );
        Ok(Some(IdentityMismatch { reason, is_of_other_cluster: false }))
    }
}

/// Result of the comparison of the mark files in a store's directory with the store's record in
/// etcd.
enum Verdict {
    Right,
    Wrong(IdentityMismatch),
    /// The record is missing and must be created with this identity.
    Record(String),
    /// Both the record and the mark are missing.
    Mark,
}

/// Checks the identity of a store's directory. A new directory is marked. Returns `None` if the
/// directory is the cluster's, otherwise the reason.
///
/// # Errors
/// Fails if etcd or the file system does not respond, or other nodes mark the directory at the same
/// time.
pub(super) fn check(
    known_identity: &StoreRecordAccess,
    files: &dyn StoreFiles,
    cluster: &Name,
    random: [u8; 16],
) -> Result<Option<IdentityMismatch>, String> {
    let of_store = |error: ClusterStoreError| error.to_string();
    let of_files = |error: StoreFileError| error.to_string();
    for _ in 0..TRIES {
        let view = known_identity.store.read(&known_identity.key).map_err(of_store)?;
        let entry = view.entries.iter().find(|entry| entry.key == known_identity.key);
        let record = entry.and_then(decode_entry::<StoreRecord>).map(|record| record.identity);
        let marks = marks(&files.names(ENDING).map_err(of_files)?);
        match compare(cluster.as_str(), record.as_deref(), &marks) {
            Verdict::Right => return Ok(None),
            Verdict::Wrong(reason) => return Ok(Some(reason)),
            Verdict::Record(identity) => {
                if let Some(mismatch) = known_identity.full().map_err(of_store)? {
                    return Ok(Some(mismatch));
                }
                let record = encode_value(&StoreRecord { identity });
                let change = ClusterChange::Put(known_identity.key.clone(), record, None);
                let is_new = ClusterCondition::KeyAbsent(known_identity.key.clone());
                known_identity.store.commit(&[is_new], &[change]).map_err(of_store)?;
            }
            Verdict::Mark => {
                let bits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
                let name = FileName::new(&format!("{cluster}.{bits}{ENDING}"));
                let name = name.map_err(|error| error.to_string())?;
                files.create(&name, 1).map_err(of_files)?;
            }
        }
    }
    Err("other nodes create the identity file at the same time; the daemon retries".to_owned())
}

/// Returns the cluster's name and the random bits of each mark file.
fn marks(names: &[FileName]) -> Vec<(String, String)> {
    let mark = |name: &FileName| {
        let (cluster, bits) = name.as_str().strip_suffix(ENDING)?.rsplit_once('.')?;
        (!cluster.contains('/')).then(|| (cluster.to_owned(), bits.to_owned()))
    };
    names.iter().filter_map(mark).collect()
}

fn compare(cluster: &str, record: Option<&str>, marks: &[(String, String)]) -> Verdict {
    if let Some((other, _)) = marks.iter().find(|(other_cluster, _)| other_cluster != cluster) {
        let reason = format!(
            "the directory belongs to cluster `{other}`; two clusters cannot share a store. Use \
             another directory, or, if that cluster no longer exists, remove the file of its name \
             that ends in {ENDING}"
        );
        return Verdict::Wrong(IdentityMismatch { reason, is_of_other_cluster: true });
    }
    let mismatch = |reason: &str| {
        Verdict::Wrong(IdentityMismatch { reason: reason.to_owned(), is_of_other_cluster: false })
    };
    match (record, marks.first()) {
        (Some(record), _) if marks.iter().any(|(_, bits)| bits == record) => Verdict::Right,
        (Some(_), None) => mismatch(
            "the directory has no identity file of the cluster; check that it is mounted, and the \
             same directory as on other nodes",
        ),
        (Some(_), Some(_)) => mismatch(
            "the directory is not the one that the cluster has recorded for this store; mount the \
             same directory as on other nodes, or give the store another name",
        ),
        (None, Some((_, bits))) => Verdict::Record(bits.clone()),
        (None, None) => Verdict::Mark,
    }
}

#[cfg(test)]
mod tests {
    use suimon_ports::testing::MemoryStore;

    use super::*;
    use crate::testing::{FakeCluster, name};

    fn mismatch_reason(
        cluster: &FakeCluster,
        files: &MemoryStore,
        cluster_name: &str,
        bits: u8,
    ) -> Option<String> {
        let key = format!("/suimon/{cluster_name}/stores/san");
        let known_identity = StoreRecordAccess { store: Arc::new(cluster.clone()), key };
        check(&known_identity, files, &name(cluster_name), [bits; 16])
            .unwrap()
            .map(|mismatch| mismatch.reason)
    }

    #[test]
    fn the_same_directory_is_known_and_others_are_not() {
        let (cluster, files) = (FakeCluster::default(), MemoryStore::default());
        assert_eq!(mismatch_reason(&cluster, &files, "lab", 1), None);
        assert_eq!(
            mismatch_reason(&cluster.new_client(), &files, "lab", 2),
            None,
            "the check of another node creates no mark"
        );
        assert_eq!(files.files().len(), 1, "the directory has one mark");
        let empty = MemoryStore::default();
        assert!(mismatch_reason(&cluster, &empty, "lab", 3).unwrap().contains("mounted"));
        let other = mismatch_reason(&cluster, &files, "else", 4).unwrap();
        assert!(other.contains("belongs to cluster `lab`"), "{other}");
        assert_eq!(mismatch_reason(&cluster, &empty, "else", 5), None);
        assert!(
            mismatch_reason(&cluster, &empty, "lab", 6)
                .unwrap()
                .contains("belongs to cluster `else`")
        );
        // A mark without a record is valid: etcd was set up again, or a node died between the two
        // steps.
        assert_eq!(mismatch_reason(&FakeCluster::default(), &files, "lab", 7), None);
        // Directory of another store.
        let strange = MemoryStore::default();
        assert_eq!(mismatch_reason(&FakeCluster::default(), &strange, "lab", 8), None);
        assert!(mismatch_reason(&cluster, &strange, "lab", 9).unwrap().contains("not the one"));
    }

    /// The identity of a store outlives its use.
    #[test]
    fn recorded_identities_are_bounded() {
        let (cluster, files) = (FakeCluster::default(), MemoryStore::default());
        assert_eq!(mismatch_reason(&cluster, &files, "lab", 1), None);
        let put = |number: usize| {
            let key = format!("/suimon/lab/stores/store-{number}");
            ClusterChange::Put(key, b"{}".to_vec(), None)
        };
        let changes: Vec<_> = (1..IDENTITIES_MAX).map(put).collect();
        for chunk in changes.chunks(cluster.changes_max()) {
            cluster.commit(&[], chunk).unwrap();
        }
        assert_eq!(mismatch_reason(&cluster, &files, "lab", 2), None, "it is recorded");
        let key = "/suimon/lab/stores/new".to_owned();
        let known_identity = StoreRecordAccess { store: Arc::new(cluster.clone()), key };
        let new = MemoryStore::default();
        let mismatch = check(&known_identity, &new, &name("lab"), [3; 16]).unwrap().unwrap();
        assert!(mismatch.reason.contains("/suimon/lab/stores/NAME"), "{mismatch:?}");
        let removal = ClusterChange::Remove("/suimon/lab/stores/store-7".to_owned());
        cluster.commit(&[], &[removal]).unwrap();
        assert_eq!(check(&known_identity, &new, &name("lab"), [4; 16]), Ok(None));
    }
}
