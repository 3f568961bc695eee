//! Validated names of files in a store.

use core::fmt;

use thiserror::Error;

/// Maximum length of a name in bytes.
pub const FILE_NAME_BYTES_MAX: usize = 1024;
/// Maximum length of each component of a name in bytes (`NAME_MAX` of Linux).
pub const FILE_NAME_PART_BYTES_MAX: usize = 255;

/// Path of a file relative to the directory of its store: components separated by `/`, none of them
/// empty, `.` or `..`. Without symbolic links, which [`StoreFiles`](crate::StoreFiles) does not
/// follow, such a path cannot leave the directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName(String);

/// Reason why a text is not a valid file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadFileName {
    /// The name is empty or has an empty component.
    #[error(
        "a component of the name is empty; name the file relative to the store's directory, like \
         a/b"
    )]
    Empty,
    /// The name is an absolute path.
    #[error("the name is an absolute path; name the file relative to the store's directory")]
    Absolute,
    /// A component is `.` or `..`.
    #[error("the name has a component . or ..; name the file relative to the store's directory")]
    Dots,
    /// The name contains a control character, which logs cannot show.
    #[error("the name has a control character; rename the file")]
    Control,
    /// The name or a component is too long.
    #[error(
        "the name has more than 1024 bytes, or a component with more than 255; choose a shorter \
         one"
    )]
    Long,
}

impl FileName {
    /// Validates a name.
    ///
    /// # Errors
    /// Returns the first rule violated.
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

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directory of the file relative to the store; `None` if the file is in the
    /// store's own directory.
    #[must_use]
    pub fn folder(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(folder, _)| folder)
    }

    /// Returns the last component, without its directory.
    #[must_use]
    pub fn last(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, last)| last)
    }

    /// Returns the name of a file `last` in the same directory.
    ///
    /// # Errors
    /// Fails if the resulting name is invalid.
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
