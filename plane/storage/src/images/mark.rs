//! Files by which a node knows that another node's store is the same as its own.
//!
//! A node makes a file with a name that nobody else can have chosen, and keeps it open. A node
//! that finds a file of that name has the same store before it, whatever the paths, and if it
//! cannot open it, locks on files hold between both nodes: then two that want the same image
//! keep each other off.

use std::sync::Arc;

use suimon_ports::{FileName, FileUse, StoreFault, StoreFiles};
use thiserror::Error;

use super::draft::Draft;
use super::error::{DiskError, DiskFault};

/// Such a file, as long as it lives. What a crash leaves of it, [`sweep`](super::sweep) removes.
pub struct StoreMark {
    _draft: Draft,
}

/// Why a store is not known to be the same.
#[derive(Debug, Error)]
pub enum MarkFault {
    /// There is no such file.
    #[error("the file that the other node has made in it is not there")]
    Missing,
    /// The file can be opened although the other node has it open.
    #[error("locks on its files do not hold between both nodes")]
    NotLocked,
    /// The store cannot be looked at.
    #[error(transparent)]
    Store(#[from] DiskError),
}

impl StoreMark {
    /// Makes the file of this name: `token` has random letters and digits, of 128 bits.
    ///
    /// # Errors
    /// The store takes no file, or somebody has one of this name.
    pub fn make(files: &Arc<dyn StoreFiles>, token: &str) -> Result<Self, DiskError> {
        Ok(Self { _draft: Draft::new(files, &target(token)?, 1)? })
    }

    /// Looks whether another node has made a file of this name in what may be the same store.
    ///
    /// # Errors
    /// It is not known to be the same.
    pub fn check(files: &dyn StoreFiles, token: &str) -> Result<(), MarkFault> {
        let name = Draft::name_for(&target(token)?)?;
        match files.open(&name, FileUse::Write, 1) {
            Ok(_) => Err(MarkFault::NotLocked),
            Err(error) => match error.fault {
                StoreFault::InUse { .. } => Ok(()),
                StoreFault::Missing => Err(MarkFault::Missing),
                fault => Err(DiskError::new(&name, fault).into()),
            },
        }
    }
}

fn target(token: &str) -> Result<FileName, DiskError> {
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let name = FileName::new(&format!("mark-{token}")).ok().filter(|_| is_token);
    name.ok_or_else(|| {
        let fault = DiskFault::Plan {
            field: "token",
            value: token.to_owned(),
            allowed: "letters and digits",
        };
        DiskError { file: "a mark".to_owned(), fault: Box::new(fault) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_ports::testing::MemoryStore;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn store() -> (MemoryStore, Arc<dyn StoreFiles>) {
        let store = MemoryStore::default();
        (store.clone(), Arc::new(store))
    }

    #[test]
    fn the_same_store_is_known_by_a_file_that_is_held() {
        let (here, files) = store();
        let (other, _) = store();
        let mark = StoreMark::make(&files, TOKEN).unwrap();
        StoreMark::check(&here, TOKEN).unwrap();
        assert!(matches!(StoreMark::check(&other, TOKEN), Err(MarkFault::Missing)));
        let another = TOKEN.replace('0', "1");
        assert!(matches!(StoreMark::check(&here, &another), Err(MarkFault::Missing)));
        drop(mark);
        assert!(matches!(StoreMark::check(&here, TOKEN), Err(MarkFault::Missing)));
        assert!(here.files().is_empty());
    }

    /// As where locks are each node's own: the file is there, and nobody seems to have it.
    #[test]
    fn a_store_without_locks_between_nodes_is_told() {
        let (_, files) = store();
        let mark = StoreMark::make(&files, TOKEN).unwrap();
        let seen = MemoryStore::with_files(
            files.names("").unwrap().into_iter().map(|name| (name, Vec::new())),
        );
        assert!(matches!(StoreMark::check(&seen, TOKEN), Err(MarkFault::NotLocked)));
        drop(mark);
    }

    #[test]
    fn what_a_crash_has_left_is_swept_and_made_again() {
        let (here, files) = store();
        let name = Draft::name_for(&target(TOKEN).unwrap()).unwrap();
        let left = MemoryStore::with_files([(name, Vec::new())]);
        super::super::sweep(&left, &[]).unwrap();
        assert!(left.files().is_empty());
        // What somebody holds is not swept.
        let mark = StoreMark::make(&files, TOKEN).unwrap();
        super::super::sweep(&here, &[]).unwrap();
        StoreMark::check(&here, TOKEN).unwrap();
        drop(mark);
        let _again = StoreMark::make(&files, TOKEN).unwrap();
    }

    #[test]
    fn a_token_is_no_path() {
        let (here, files) = store();
        for token in ["", "../x", "a/b", "a.b"] {
            assert!(StoreMark::make(&files, token).is_err(), "{token}");
            assert!(matches!(StoreMark::check(&here, token), Err(MarkFault::Store(_))), "{token}");
        }
    }
}
