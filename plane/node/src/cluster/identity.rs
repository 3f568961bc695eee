//! Whether a store is the one that the cluster has by its name.
//!
//! A directory that the cluster has marked has an empty file in it, whose name is the cluster's and
//! 128 random bits; the cluster's store has the same bits. Who finds another cluster's mark, another
//! mark of his own, or none although there is to be one (a file system that is not mounted), has
//! another directory.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_contract::Name;
use suimon_ports::{
    ClusterChange, ClusterCondition, ClusterStore, ClusterStoreError, FileName, StoreFileError,
    StoreFiles,
};

use super::session::{read, write};

const ENDING: &str = ".suimon-cluster";
/// How often it is looked again because somebody else was faster.
const TRIES: usize = 4;

/// Why a store is not the one that the cluster has by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) why: String,
    /// It is another cluster's, whose nodes are to see who else is there.
    pub(super) is_anothers: bool,
}

/// What makes a store this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoreRecord {
    identity: String,
}

/// What the cluster has, as of now; the key is that of the store's record.
pub(super) struct Known {
    pub(super) store: Arc<dyn ClusterStore>,
    pub(super) key: String,
}

/// What is to be done.
enum Step {
    Right,
    Wrong(Wrong),
    /// The cluster has no record: it gets this.
    Record(String),
    /// Nobody has marked the directory.
    Mark,
}

/// Looks at a store's directory: why it is another one, or `None` if it is the cluster's, which marks it
/// if it is new.
///
/// # Errors
/// It cannot be found out now.
pub(super) fn check(
    known: &Known,
    files: &dyn StoreFiles,
    cluster: &Name,
    random: [u8; 16],
) -> Result<Option<Wrong>, String> {
    let of_store = |error: ClusterStoreError| error.to_string();
    let of_files = |error: StoreFileError| error.to_string();
    for _ in 0..TRIES {
        let view = known.store.read(&known.key).map_err(of_store)?;
        let entry = view.entries.iter().find(|entry| entry.key == known.key);
        let record = entry.and_then(read::<StoreRecord>).map(|record| record.identity);
        let marks = marks(&files.names(ENDING).map_err(of_files)?);
        match judge(cluster.as_str(), record.as_deref(), &marks) {
            Step::Right => return Ok(None),
            Step::Wrong(why) => return Ok(Some(why)),
            Step::Record(identity) => {
                let record = write(&StoreRecord { identity });
                let put = ClusterChange::Put(known.key.clone(), record, None);
                let is_new = ClusterCondition::Absent(known.key.clone());
                known.store.commit(&[is_new], &[put]).map_err(of_store)?;
            }
            Step::Mark => {
                let bits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
                let name = FileName::new(&format!("{cluster}.{bits}{ENDING}"));
                let name = name.map_err(|error| error.to_string())?;
                files.create(&name, 1).map_err(of_files)?;
            }
        }
    }
    Err("other nodes create the identity file at the same time; the daemon retries".to_owned())
}

/// The cluster and the bits of each mark.
fn marks(names: &[FileName]) -> Vec<(String, String)> {
    let mark = |name: &FileName| {
        let (cluster, bits) = name.as_str().strip_suffix(ENDING)?.rsplit_once('.')?;
        (!cluster.contains('/')).then(|| (cluster.to_owned(), bits.to_owned()))
    };
    names.iter().filter_map(mark).collect()
}

fn judge(cluster: &str, record: Option<&str>, marks: &[(String, String)]) -> Step {
    if let Some((other, _)) = marks.iter().find(|(of, _)| of != cluster) {
        let why = format!(
            "the directory belongs to cluster `{other}`; two clusters cannot share a store. Use \
             another directory, or, if that cluster no longer exists, remove the file of its name \
             that ends in {ENDING}"
        );
        return Step::Wrong(Wrong { why, is_anothers: true });
    }
    let wrong = |why: &str| Step::Wrong(Wrong { why: why.to_owned(), is_anothers: false });
    match (record, marks.first()) {
        (Some(record), _) if marks.iter().any(|(_, bits)| bits == record) => Step::Right,
        (Some(_), None) => wrong(
            "the directory has no identity file of the cluster; check that it is mounted, and the \
             same directory as on other nodes",
        ),
        (Some(_), Some(_)) => wrong(
            "the directory is not the one that the cluster has recorded for this store; mount the \
             same directory as on other nodes, or give the store another name",
        ),
        (None, Some((_, bits))) => Step::Record(bits.clone()),
        (None, None) => Step::Mark,
    }
}

#[cfg(test)]
mod tests {
    use suimon_ports::testing::MemoryStore;

    use super::*;
    use crate::testing::{FakeCluster, name};

    fn look(cluster: &FakeCluster, files: &MemoryStore, of: &str, bits: u8) -> Option<String> {
        let key = format!("/suimon/{of}/stores/san");
        let known = Known { store: Arc::new(cluster.clone()), key };
        check(&known, files, &name(of), [bits; 16]).unwrap().map(|wrong| wrong.why)
    }

    #[test]
    fn the_same_directory_is_known_and_others_are_not() {
        let (cluster, files) = (FakeCluster::default(), MemoryStore::default());
        assert_eq!(look(&cluster, &files, "lab", 1), None);
        assert_eq!(look(&cluster.other(), &files, "lab", 2), None, "another node");
        assert_eq!(files.files().len(), 1, "it is marked once");
        let empty = MemoryStore::default();
        assert!(look(&cluster, &empty, "lab", 3).unwrap().contains("mounted"));
        let other = look(&cluster, &files, "else", 4).unwrap();
        assert!(other.contains("belongs to cluster `lab`"), "{other}");
        assert_eq!(look(&cluster, &empty, "else", 5), None);
        assert!(look(&cluster, &empty, "lab", 6).unwrap().contains("belongs to cluster `else`"));
        // etcd is made anew, or a node died between the two: the mark is what counts.
        assert_eq!(look(&FakeCluster::default(), &files, "lab", 7), None);
        // A copy of another one's directory.
        let strange = MemoryStore::default();
        assert_eq!(look(&FakeCluster::default(), &strange, "lab", 8), None);
        assert!(look(&cluster, &strange, "lab", 9).unwrap().contains("not the one"));
    }
}
