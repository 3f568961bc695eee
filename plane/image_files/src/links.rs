//! References of images to their parents, read without locks.

use suimon_ports::{FileName, StoreFiles};

use super::error::DiskError;
use super::format::DiskFormat;
use super::locate_parent::{Candidate, check_vhd, parent_candidates, vhd_paths, vhdx_paths};
use super::vhd_time;

/// Alignment of the reads in bytes: the largest logical sector of a disk.
const UNIT: u32 = 4096;

/// Identifiers of an image and the reference to its parent.
#[derive(Clone, Debug)]
pub struct ImageLinks {
    name: FileName,
    links: Links,
}

#[derive(Clone, Debug)]
enum Links {
    /// The format has no parents.
    None,
    Vhd(suimon_vhd::Links),
    Vhdx(suimon_vhdx::Links),
}

impl ImageLinks {
    /// Reads the structures of the file `name` that identify it and its parent: some 100 KiB,
    /// independently of the size of the disk. The file is not locked, so that images in use can be
    /// read; the reference of an image to its parent does not change while it is in use.
    ///
    /// # Errors
    /// The file is missing, not an image of this format, or cannot be read
    /// ([`DiskError::is_unreadable`]).
    pub fn read(
        files: &dyn StoreFiles,
        name: &FileName,
        format: DiskFormat,
    ) -> Result<Self, DiskError> {
        let links = match format {
            DiskFormat::Raw | DiskFormat::PassThrough => Links::None,
            DiskFormat::Vhd | DiskFormat::Vhdx => {
                let file = files.open_unlocked(name, UNIT)?;
                let read = || match format {
                    DiskFormat::Vhd => {
                        suimon_vhd::Links::read(file.as_image_file()).map(Links::Vhd)
                    }
                    _ => suimon_vhdx::Links::read(file.as_image_file()).map(Links::Vhdx),
                };
                // A writer may have changed a structure between two reads.
                let links = read().or_else(|_| read());
                links.map_err(|error| DiskError::new(name, error))?
            }
        };
        Ok(Self { name: name.clone(), links })
    }

    /// Returns the names under which the parent is searched in the store, most reliable first.
    /// Empty for an image without a parent.
    #[must_use]
    pub fn parents(&self) -> Vec<FileName> {
        let candidates = match &self.links {
            Links::None => Vec::new(),
            Links::Vhd(links) => links
                .parent
                .as_ref()
                .map_or_else(Vec::new, |parent| parent_candidates(&self.name, vhd_paths(parent))),
            Links::Vhdx(links) => links.parent.as_ref().map_or_else(Vec::new, |locator| {
                parent_candidates(&self.name, vhdx_paths(locator))
            }),
        };
        candidates.into_iter().map(|Candidate { name, .. }| name).collect()
    }

    /// Returns true if the image was created for `parent`, which is unchanged since.
    /// `modified_unix_s`: modification time of the parent's file in seconds since 1970-01-01 UTC.
    #[must_use]
    pub fn accepts(&self, parent: &Self, modified_unix_s: u64) -> bool {
        match (&self.links, &parent.links) {
            (Links::Vhd(child), Links::Vhd(of_parent)) => {
                child.parent.as_ref().is_some_and(|claim| {
                    let modified = vhd_time(modified_unix_s);
                    check_vhd(claim, of_parent.unique_id, modified, &parent.name).is_ok()
                })
            }
            (Links::Vhdx(child), Links::Vhdx(of_parent)) => child
                .parent
                .as_ref()
                .is_some_and(|locator| locator.is_linked_to(of_parent.data_write)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use suimon_ports::testing::MemoryStore;

    use super::*;
    use crate::open_tests::{child, name, plan, seeded};
    use crate::{DiskKind, close, create, open};

    #[test]
    fn links_are_read_from_images_in_use_and_a_written_parent_is_not_accepted() {
        for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
            let store = MemoryStore::default();
            store.set_time(1_700_000_000);
            let files: Arc<dyn StoreFiles> = Arc::new(store.clone());
            let base_plan = plan(format, DiskKind::Dynamic, "base");
            seeded(1, |seeds| create(&files, &base_plan, seeds)).unwrap();
            let plan = child(format, "child", "base");
            seeded(100, |seeds| create(&files, &plan, seeds)).unwrap();
            let links = |file: &str| ImageLinks::read(files.as_ref(), &name(file), format);
            let modified = || files.status(&name("base")).unwrap().modified_unix_s;
            let disk = seeded(200, |seeds| open(files.as_ref(), &plan, seeds)).unwrap();
            let (base, top) = (links("base").unwrap(), links("child").unwrap());
            assert_eq!(top.parents(), [name("base")], "{format:?}");
            assert!(base.parents().is_empty());
            assert!(top.accepts(&base, modified()) && !base.accepts(&top, modified()));
            assert!(!top.accepts(&top, modified()));
            close(disk.layer_stack, "child").unwrap();
            if format == DiskFormat::Vhdx {
                let disk = seeded(300, |seeds| open(files.as_ref(), &base_plan, seeds)).unwrap();
                close(disk.layer_stack, "base").unwrap();
            } else {
                files.set_modified(&name("base"), 1_700_000_010).unwrap();
            }
            assert!(!top.accepts(&links("base").unwrap(), modified()), "{format:?}");
        }
    }

    #[test]
    fn a_missing_or_damaged_image_is_not_unreadable() {
        let store = MemoryStore::with_files([(name("empty"), vec![]), (name("zeros"), vec![0; 9])]);
        for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
            for file in ["absent", "empty", "zeros"] {
                let error = ImageLinks::read(&store, &name(file), format).err().unwrap();
                assert!(!error.is_unreadable(), "{format:?} {file}: {error}");
            }
        }
    }
}
