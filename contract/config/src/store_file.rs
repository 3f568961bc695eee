//! Paths of files in stores.

use core::fmt;
use core::str::FromStr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::{DiskFormat, Name};

/// Largest length of a path component in bytes: `NAME_MAX` of Linux (limits.h).
const PART_BYTES_MAX: usize = 255;
/// Largest length of a path in a store in bytes. Well below `PATH_MAX`, which leaves room for the
/// store's path.
const BYTES_MAX: usize = 1023;

/// Path of a file relative to its store's path. Components are separated by `/`, and none is empty,
/// `.` or `..`, so that the file is in the store and different paths denote different files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "vms/web.vhdx")]
pub struct StoreFile(String);

/// Error for a text that is not a valid path in a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a valid file name in a store; write a path like vms/web.vhdx, without `/` at \
     its start, `.` and `..`"
)]
pub struct StoreFileError {
    text: String,
}

impl StoreFile {
    /// Returns the path relative to the store's path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the default file of a disk with this name, such as `web.vhdx`; `None` for a format
    /// without a file.
    pub(crate) fn default_for_disk(name: &Name, format: DiskFormat) -> Option<Self> {
        format.extension().map(|extension| Self(format!("{name}.{extension}")))
    }
}

impl FromStr for StoreFile {
    type Err = StoreFileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_part =
            |part: &str| (1..=PART_BYTES_MAX).contains(&part.len()) && !matches!(part, "." | "..");
        let is_file = text.len() <= BYTES_MAX
            && !text.contains(char::is_control)
            && text.split('/').all(is_part);
        if is_file {
            Ok(Self(text.to_owned()))
        } else {
            Err(StoreFileError { text: crate::quote(text) })
        }
    }
}

impl TryFrom<String> for StoreFile {
    type Error = StoreFileError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<StoreFile> for String {
    fn from(file: StoreFile) -> Self {
        file.0
    }
}

impl AsRef<Path> for StoreFile {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for StoreFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_in_their_store() {
        for valid in ["a", "web.vhdx", "vms/web/disk 0.vhdx", "..a", "a..", "...", "ä/ß.raw"] {
            assert!(valid.parse::<StoreFile>().is_ok(), "{valid}");
        }
        let long_name = "x".repeat(256);
        let long_path = "ab/".repeat(341) + "x";
        for invalid in [
            "", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "./a", "a/.", "a\nb", "a\0",
            &long_name, &long_path,
        ] {
            assert!(invalid.parse::<StoreFile>().is_err(), "{invalid:?}");
        }
        assert_eq!(
            "../a".parse::<StoreFile>().unwrap_err().to_string(),
            "`../a` is not a valid file name in a store; write a path like vms/web.vhdx, without \
             `/` at its start, `.` and `..`"
        );
    }

    #[test]
    fn every_name_of_a_disk_makes_a_file() {
        let name: Name = "x".repeat(63).parse().unwrap();
        let file = StoreFile::default_for_disk(&name, DiskFormat::Vhdx).unwrap();
        assert_eq!(file.as_str().parse::<StoreFile>(), Ok(file));
        assert_eq!(StoreFile::default_for_disk(&name, DiskFormat::PassThrough), None);
    }
}
