//! Faults of a store for tests: rules that the rig sends to `faulty-store`, as text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};

/// Declares [`StoreOperation`] with the names of the operations in rules.
macro_rules! operations {
    ($($(#[doc = $text:literal])+ $operation:ident $name:literal,)+) => {
        /// Operation of a file system into which faults are injected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum StoreOperation {
            $($(#[doc = $text])+ $operation,)+
        }

        impl StoreOperation {
            /// Every operation.
            pub const ALL: &[Self] = &[$(Self::$operation),+];

            /// Returns the name in rules and counts.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)+
                }
            }
        }
    };
}

operations! {
    /// Opening of an existing file.
    Open "open",
    /// Creation of a file.
    Create "create",
    /// Read from a file.
    Read "read",
    /// Write to a file.
    Write "write",
    /// Flush of a file: `fsync`, `fdatasync`.
    Flush "flush",
    /// Flush of a directory.
    FlushFolder "flush-folder",
    /// Allocation of space: `fallocate` without further modes.
    Allocate "allocate",
    /// Punch of a hole, or zeroing of a range.
    Punch "punch",
    /// Change of a file's length: `ftruncate`.
    SetLength "set-length",
    /// Change of other attributes of a file, such as its modification time.
    SetAttributes "set-attributes",
    /// Query of a file's attributes, by name or descriptor.
    Attributes "attributes",
    /// Search for data or holes: `lseek`.
    Seek "seek",
    /// Renaming of a file. The pattern of a rule applies to the former name.
    Rename "rename",
    /// Removal of a file.
    Remove "remove",
    /// Listing of a directory.
    List "list",
    /// Query of free space: `statfs`.
    Space "space",
}

/// Effect of a fault on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// The operation has no effect and fails with this error number.
    Error(i32),
    /// The operation begins after this time.
    Delay(Duration),
    /// A read or write transfers about half of its bytes, in whole units of 4 KiB. One that is
    /// shorter than 8 KiB is complete.
    Short,
    /// The operation begins when the faults are cleared.
    Hold,
    /// The flush fails with EIO, and writes since the last successful flush are undone, as Linux
    /// discards pages whose writeback failed. Writes are remembered while such a rule exists.
    Lose,
}

/// Rule that injects faults into operations on files with matching names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFault {
    /// Operation that the rule applies to.
    pub operation: StoreOperation,
    /// Name of the file; each `*` stands for any characters.
    pub pattern: String,
    /// Effect on the operation.
    pub effect: FaultEffect,
    /// Number of matching operations before the first fault.
    pub after: u64,
    /// Maximum number of faults.
    pub count: u64,
}

impl StoreFault {
    /// Creates a rule for each operation of a kind on all files.
    #[must_use]
    pub fn new(operation: StoreOperation, effect: FaultEffect) -> Self {
        Self { operation, pattern: "*".to_owned(), effect, after: 0, count: u64::MAX }
    }

    /// Restricts the rule to files with a name.
    #[must_use]
    pub fn on(self, pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), ..self }
    }

    /// Restricts the rule to the `nth` operation, counted from 1 from now on.
    #[must_use]
    pub fn nth(self, nth: u64) -> Self {
        Self { after: nth.saturating_sub(1), count: 1, ..self }
    }

    /// Restricts the rule to the next `count` operations.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// Returns true if the rule applies to a file.
    #[must_use]
    pub fn applies_to(&self, name: &str) -> bool {
        let mut rest = name;
        let mut parts = self.pattern.split('*');
        // The first part is at the beginning of the name, the last one at its end.
        let Some(after) = rest.strip_prefix(parts.next().unwrap_or_default()) else { return false };
        rest = after;
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for FaultEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(number) => write!(f, "error={number}"),
            Self::Delay(time) => write!(f, "delay_ms={}", time.as_millis()),
            Self::Short => f.write_str("short"),
            Self::Hold => f.write_str("hold"),
            Self::Lose => f.write_str("lose"),
        }
    }
}

impl FromStr for FaultEffect {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text.split_once('=') {
            Some(("error", number)) => Self::Error(number.parse()?),
            Some(("delay_ms", time)) => Self::Delay(Duration::from_millis(time.parse()?)),
            None if text == "short" => Self::Short,
            None if text == "hold" => Self::Hold,
            None if text == "lose" => Self::Lose,
            _ => bail!("{text} is no effect of a fault"),
        })
    }
}

impl FromStr for StoreOperation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|operation| operation.name() == text);
        found.copied().with_context(|| format!("{text} is no operation of a store"))
    }
}

impl fmt::Display for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, pattern, effect, after, count } = self;
        write!(f, "{} {pattern} {effect} {after} {count}", operation.name())
    }
}

impl FromStr for StoreFault {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [operation, pattern, effect, after, count] = words[..] else {
            bail!("a rule has operation, pattern, effect, `after` and `count`, not `{text}`")
        };
        Ok(Self {
            operation: operation.parse()?,
            pattern: pattern.to_owned(),
            effect: effect.parse()?,
            after: after.parse()?,
            count: count.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_was_written() {
        let delay = FaultEffect::Delay(Duration::from_secs(2));
        for effect in
            [FaultEffect::Error(5), delay, FaultEffect::Short, FaultEffect::Hold, FaultEffect::Lose]
        {
            for operation in StoreOperation::ALL {
                let rule = StoreFault::new(*operation, effect).on("web*.vhdx").nth(3);
                assert_eq!(rule.to_string().parse::<StoreFault>().unwrap(), rule);
            }
        }
        for text in ["", "write *", "write * error 0 1", "wipe * short 0 1", "write * short x 1"] {
            assert!(text.parse::<StoreFault>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_selects_names() {
        let applies = |pattern: &str, name: &str| {
            StoreFault::new(StoreOperation::Read, FaultEffect::Short).on(pattern).applies_to(name)
        };
        for (pattern, name) in
            [("*", "a"), ("a.raw", "a.raw"), ("*.raw", "a.raw"), ("a*", "a"), (".*new*", ".x-new")]
        {
            assert!(applies(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("a", "ab"), ("*.raw", "a.raw2"), ("b*", "ab"), ("a*a", "a"), ("*x*y*", "yx")]
        {
            assert!(!applies(pattern, name), "{pattern} {name}");
        }
    }
}
