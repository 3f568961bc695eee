//! Location of an image's parent, and verification that a file is that parent.

use suimon_ports::{FileName, StoreFiles};
use suimon_vhd::{Parent, ParentLocator, ParentMismatch};
use suimon_vhdx::ParentLocator as VhdxLocator;

use super::error::{DiskError, DiskFault};
use super::layer::{OpenLayer, OpenedImage};
use super::unix_time;

/// File name under which a parent is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) name: FileName,
    /// True if only the last component of a recorded path was used. Another file may have the same
    /// name.
    pub(crate) is_guess: bool,
}

/// Recorded paths of a parent: those relative to the child, and all others.
type ParentPaths<'a> = (Vec<&'a str>, Vec<&'a str>);

/// Returns the names under which the parent of a layer is searched, as [`parent_candidates`].
pub(crate) fn candidates(child: &OpenLayer) -> Vec<Candidate> {
    parent_candidates(&child.name, paths(&child.image))
}

/// Returns the names under which the parent of the image `child` is searched, in this order:
/// recorded paths relative to the child, then the last component of every recorded path in the
/// child's directory. The latter finds a parent that was moved together with the child, or was
/// created on another system.
pub(crate) fn parent_candidates(
    child: &FileName,
    (relative, absolute): ParentPaths<'_>,
) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut add = |name: Option<FileName>, is_guess| {
        if let Some(name) = name.filter(|name| candidates.iter().all(|other| other.name != *name)) {
            candidates.push(Candidate { name, is_guess });
        }
    };
    for path in &relative {
        add(relative_to(child, path), false);
    }
    for path in relative.into_iter().chain(absolute) {
        let last = path.rsplit(['\\', '/']).next().unwrap_or(path);
        add(child.with_file_name(last).ok(), true);
    }
    candidates
}

/// Returns the paths of the parent that the child's image records.
pub(crate) fn recorded_paths(child: &OpenLayer) -> Vec<String> {
    let (relative, absolute) = paths(&child.image);
    let mut paths: Vec<String> = Vec::new();
    for path in relative.into_iter().chain(absolute).filter(|path| !path.is_empty()) {
        if paths.iter().all(|other| other != path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Returns two lists of recorded parent paths: those relative to the child, and all others.
fn paths(image: &OpenedImage) -> ParentPaths<'_> {
    match image {
        OpenedImage::Raw(_) => (Vec::new(), Vec::new()),
        OpenedImage::Vhdx(image) => {
            image.parent_locator().map_or_else(Default::default, vhdx_paths)
        }
        OpenedImage::Vhd(image) => image.parent().map_or_else(Default::default, vhd_paths),
    }
}

pub(crate) fn vhdx_paths(locator: &VhdxLocator) -> ParentPaths<'_> {
    let absolute = locator.volume_path().into_iter().chain(locator.absolute_win32_path());
    (locator.relative_path().into_iter().collect(), absolute.collect())
}

pub(crate) fn vhd_paths(parent: &Parent) -> ParentPaths<'_> {
    let relative = parent.locators.iter().filter_map(|locator| match locator {
        ParentLocator::WindowsRelative(path) => Some(path.as_str()),
        _ => None,
    });
    let absolute = parent.locators.iter().filter_map(|locator| match locator {
        ParentLocator::WindowsAbsolute(path) => Some(path.as_str()),
        _ => None,
    });
    let absolute = core::iter::once(parent.name.as_str()).chain(absolute);
    (relative.collect(), absolute.collect())
}

/// Converts a relative Windows path, which starts at the child's directory, to a name in the store;
/// `None` if it leads out of the store, or is not relative.
fn relative_to(child: &FileName, path: &str) -> Option<FileName> {
    let mut parts: Vec<&str> = child.folder().map_or_else(Vec::new, |f| f.split('/').collect());
    if path.starts_with(['\\', '/']) || path.contains(':') {
        return None;
    }
    for part in path.split(['\\', '/']) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    FileName::new(&parts.join("/")).ok()
}

/// Returns the path of `parent` relative to the directory of `child`, in Windows syntax.
pub(crate) fn relative_path(child: &FileName, parent: &FileName) -> String {
    let split = |name: &FileName| -> Vec<String> {
        name.folder().map_or_else(Vec::new, |f| f.split('/').map(str::to_owned).collect())
    };
    let (from, to) = (split(child), split(parent));
    let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let mut parts = vec!["..".to_owned(); from.len() - shared];
    if parts.is_empty() {
        parts.push(".".to_owned());
    }
    parts.extend(to.into_iter().skip(shared));
    parts.push(parent.file_name().to_owned());
    parts.join("\\")
}

/// Checks that `parent` is the disk for which `child` was created, unchanged since. Fails with
/// [`DiskFault::WrongParent`] or [`DiskFault::ParentChanged`] otherwise.
pub(crate) fn verify(
    files: &dyn StoreFiles,
    child: &OpenLayer,
    parent: &OpenLayer,
) -> Result<(), DiskError> {
    let judged = match (&child.image, &parent.image) {
        (OpenedImage::Vhd(of_child), OpenedImage::Vhd(of_parent)) => {
            let Some(claim) = of_child.parent() else { return Ok(()) };
            check_vhd(
                claim,
                of_parent.footer().unique_id,
                parent.modified_vhd_time(files)?,
                &parent.name,
            )
        }
        (OpenedImage::Vhdx(of_child), OpenedImage::Vhdx(of_parent)) => {
            let Some(locator) = of_child.parent_locator() else { return Ok(()) };
            let parent_guid = of_parent.data_write_guid();
            if locator.is_linked_to(parent_guid) {
                return Ok(());
            }
            let expected = locator.linkage().map_or_else(String::new, |guid| guid.to_string());
            Err(DiskFault::ParentChanged {
                field: "parent_linkage",
                parent: parent.name.clone(),
                expected: format!("DataWriteGuid {expected}"),
                found: parent_guid.to_string(),
                hint: "the parent is another disk, or was written to since; restore the file that \
                       existed when this disk was created"
                    .to_owned(),
            })
        }
        _ => return Ok(()),
    };
    judged.map_err(|fault| DiskError::new(&child.name, fault))
}

/// Returns true if `layer` references `parent` by its name and identifiers.
pub(crate) fn is_child_of(layer: &OpenLayer, parent: &OpenLayer) -> bool {
    let is_linked = match (&layer.image, &parent.image) {
        (OpenedImage::Vhd(child), OpenedImage::Vhd(parent)) => {
            child.parent().is_some_and(|claim| claim.unique_id == parent.footer().unique_id)
        }
        (OpenedImage::Vhdx(child), OpenedImage::Vhdx(parent)) => child
            .parent_locator()
            .is_some_and(|locator| locator.is_linked_to(parent.data_write_guid())),
        _ => false,
    };
    is_linked && candidates(layer).iter().any(|candidate| candidate.name == parent.name)
}

pub(crate) fn check_vhd(
    claim: &Parent,
    unique_id: [u8; 16],
    modified: u32,
    parent: &FileName,
) -> Result<(), DiskFault> {
    let hex = |id: [u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match claim.check(unique_id, modified) {
        Ok(()) => Ok(()),
        // Some programs record 0 because they do not determine the time.
        Err(ParentMismatch::Modified { expected: 0, .. }) => Ok(()),
        Err(ParentMismatch::UniqueId) => Err(DiskFault::WrongParent {
            field: "Parent Unique ID",
            parent: parent.clone(),
            expected: hex(claim.unique_id),
            found: hex(unique_id),
        }),
        Err(ParentMismatch::Modified { expected, found: found_time }) => {
            let (expected, found_time) = (unix_time(expected), unix_time(found_time));
            Err(DiskFault::ParentChanged {
                field: "Parent Time Stamp",
                parent: parent.clone(),
                expected: format!("Unix time {expected}"),
                found: format!("Unix time {found_time}"),
                hint: format!(
                    "if the parent was written to, restore it; if it was only copied, restore its \
                     time: touch -d @{expected} {parent}"
                ),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_windows_are_names_in_the_store_or_nothing() {
        for (child, path, expected) in [
            ("c", r".\p", Some("p")),
            ("c", "p", Some("p")),
            ("a/c", r"..\b\p", Some("b/p")),
            ("a/b/c", r"..\..\p", Some("p")),
            ("a/c", r"..\..\p", None),
            ("c", r"..\p", None),
            ("c", r"C:\p", None),
            ("c", r"\p", None),
            ("c", "/etc/passwd", None),
            ("c", r".\a:b", None),
            ("a/c", r"..", None),
            ("c", "", None),
        ] {
            let child = FileName::new(child).unwrap();
            let relative_path = relative_to(&child, path);
            assert_eq!(relative_path.as_ref().map(FileName::as_str), expected, "{child} {path}");
        }
    }

    #[test]
    fn a_relative_path_leads_back() {
        for (child, parent, expected) in [
            ("c", "p", r".\p"),
            ("a/c", "p", r"..\p"),
            ("c", "a/p", r".\a\p"),
            ("a/b/c", "a/d/e/p", r"..\d\e\p"),
        ] {
            let (child, parent) = (FileName::new(child).unwrap(), FileName::new(parent).unwrap());
            let path = relative_path(&child, &parent);
            assert_eq!(path, expected);
            assert_eq!(relative_to(&child, &path), Some(parent));
        }
    }
}
