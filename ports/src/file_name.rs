//! Names of files in a store.

use core::fmt;

use thiserror::Error;

/// Bytes that a name may have.
pub const FILE_NAME_BYTES_MAX: usize = 1024;
/// Bytes that each part of a name may have (`NAME_MAX` of Linux).
pub const FILE_NAME_PART_BYTES_MAX: usize = 255;

/// The name of a file, from a store's directory down: parts with `/` between them, none
/// of which is empty, `.` or `..`. So it cannot lead out of the directory but by a link,
/// and links are not followed ([`StoreFiles`](crate::StoreFiles)).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName(String);

/// A text that names no file of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadFileName {
    /// Nothing, or nothing between two slashes, or at an end.
    #[error("a part of it is empty: name the file from the store's directory down, as in a/b")]
    Empty,
    /// It begins with a slash.
    #[error("it is an absolute path: name the file from the store's directory down")]
    Absolute,
    /// It has a part that is `.` or `..`.
    #[error("it has a part that is . or ..: name the file from the store's directory down")]
    Dots,
    /// It has a control character, which no log could show.
    #[error("it has a control character: rename the file")]
    Control,
    /// It is too long.
    #[error("it has more than 1024 bytes, or a part with more than 255: choose a shorter one")]
    Long,
}

impl FileName {
    /// A name.
    ///
    /// # Errors
    /// The text names no file of a store.
    pub fn new(name: &str) -> Result<Self, BadFileName> {
        if name.starts_with('/') {
            return Err(BadFileName::Absolute);
        }
        if name.len() > FILE_NAME_BYTES_MAX {
            return Err(BadFileName::Long);
        }
        if name.chars().any(char::is_control) {
            return Err(BadFileName::Control);
        }
        for part in name.split('/') {
            match part {
                "" => return Err(BadFileName::Empty),
                "." | ".." => return Err(BadFileName::Dots),
                _ if part.len() > FILE_NAME_PART_BYTES_MAX => return Err(BadFileName::Long),
                _ => {}
            }
        }
        Ok(Self(name.to_owned()))
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory that the file is in, from the store's down; `None` if it is the
    /// store's itself.
    #[must_use]
    pub fn folder(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(folder, _)| folder)
    }

    /// The last part.
    #[must_use]
    pub fn last(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, last)| last)
    }

    /// A file in the same directory.
    ///
    /// # Errors
    /// `last` is no name.
    pub fn sibling(&self, last: &str) -> Result<Self, BadFileName> {
        match self.folder() {
            Some(folder) => Self::new(&format!("{folder}/{last}")),
            None => Self::new(last),
        }
    }
}

impl From<&FileName> for String {
    fn from(name: &FileName) -> Self {
        name.0.clone()
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_within_the_store_or_none() {
        let long = "x".repeat(256);
        let deep = "x/".repeat(600) + "x";
        for (name, expected) in [
            ("a", None),
            ("a/b c/..d", None),
            ("größe.vhdx", None),
            ("", Some(BadFileName::Empty)),
            ("a//b", Some(BadFileName::Empty)),
            ("a/", Some(BadFileName::Empty)),
            ("/a", Some(BadFileName::Absolute)),
            ("..", Some(BadFileName::Dots)),
            ("a/../b", Some(BadFileName::Dots)),
            ("./a", Some(BadFileName::Dots)),
            ("a\0", Some(BadFileName::Control)),
            ("a\n", Some(BadFileName::Control)),
            (&long, Some(BadFileName::Long)),
            (&deep, Some(BadFileName::Long)),
        ] {
            assert_eq!(FileName::new(name).err(), expected, "{name:?}");
        }
    }

    #[test]
    fn siblings_are_in_the_same_directory() {
        let name = FileName::new("a/b/c").unwrap();
        assert_eq!((name.folder(), name.last()), (Some("a/b"), "c"));
        assert_eq!(name.sibling("d").unwrap().as_str(), "a/b/d");
        assert_eq!(FileName::new("c").unwrap().sibling("d").unwrap().as_str(), "d");
        assert_eq!(name.sibling("../d"), Err(BadFileName::Dots));
    }
}
