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
pub enum FileNameError {
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
    DotComponent,
    /// The name contains a control character, which logs cannot show.
    #[error("the name has a control character; rename the file")]
    ControlCharacter,
    /// The name or a component is too long.
    #[error(
        "the name has more than 1024 bytes, or a component with more than 255; choose a shorter \
         one"
    )]
    TooLong,
}

impl FileName {
    /// Validates a name.
    ///
    /// # Errors
    /// Returns the first rule violated.
    pub fn new(name: &str) -> Result<Self, FileNameError> {
        if name.starts_with('/') {
            return Err(FileNameError::Absolute);
        }
        if name.len() > FILE_NAME_BYTES_MAX {
            return Err(FileNameError::TooLong);
        }
        if name.chars().any(char::is_control) {
            return Err(FileNameError::ControlCharacter);
        }
        for part in name.split('/') {
            match part {
                "" => return Err(FileNameError::Empty),
                "." | ".." => return Err(FileNameError::DotComponent),
                _ if part.len() > FILE_NAME_PART_BYTES_MAX => return Err(FileNameError::TooLong),
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
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, last)| last)
    }

    /// Returns the name of a file `file_name` in the same directory.
    ///
    /// # Errors
    /// Fails if the resulting name is invalid.
    pub fn with_file_name(&self, last: &str) -> Result<Self, FileNameError> {
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
    fn file_names_stay_within_the_store() {
        let long_name = "x".repeat(256);
        let deep_path = "x/".repeat(600) + "x";
        for (name, expected) in [
            ("a", None),
            ("a/b c/..d", None),
            ("größe.vhdx", None),
            ("", Some(FileNameError::Empty)),
            ("a//b", Some(FileNameError::Empty)),
            ("a/", Some(FileNameError::Empty)),
            ("/a", Some(FileNameError::Absolute)),
            ("..", Some(FileNameError::DotComponent)),
            ("a/../b", Some(FileNameError::DotComponent)),
            ("./a", Some(FileNameError::DotComponent)),
            ("a\0", Some(FileNameError::ControlCharacter)),
            ("a\n", Some(FileNameError::ControlCharacter)),
            (&long_name, Some(FileNameError::TooLong)),
            (&deep_path, Some(FileNameError::TooLong)),
        ] {
            assert_eq!(FileName::new(name).err(), expected, "{name:?}");
        }
    }

    #[test]
    fn siblings_are_in_the_same_directory() {
        let name = FileName::new("a/b/c").unwrap();
        assert_eq!((name.folder(), name.file_name()), (Some("a/b"), "c"));
        assert_eq!(name.with_file_name("d").unwrap().as_str(), "a/b/d");
        assert_eq!(FileName::new("c").unwrap().with_file_name("d").unwrap().as_str(), "d");
        assert_eq!(name.with_file_name("../d"), Err(FileNameError::DotComponent));
    }
}
