//! Names of resources.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// Name of a resource: 1 to 63 letters, digits, `-`, `_` and `.`, starting with a letter or a
/// digit. Safe in paths, URLs and metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
pub struct Name(String);

/// Error for a text that is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a valid name; use 1 to 63 letters, digits, `-`, `_` and `.`, starting with a \
     letter or a digit"
)]
pub struct NameError {
    text: String,
}

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        let all_allowed =
            text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if starts_well && all_allowed && text.len() <= 63 {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError { text: text.chars().take(80).collect() })
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
