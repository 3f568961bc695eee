//! Anonymous memory of a process, by what it is used for.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

/// Anonymous memory in KiB by use: heap, stacks, and private copies of pages of files.
///
/// Other pages of files are not counted: they become shared and private again as other processes of
/// the same files start and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AnonymousMemory {
    by_use: BTreeMap<String, u64>,
}

/// Mapping of a process.
struct Mapping {
    start: u64,
    end: u64,
    is_accessible: bool,
    /// Path of the mapped file, or a name in brackets. Empty: anonymous memory.
    name: String,
}

impl AnonymousMemory {
    /// Reads the memory of a process (proc_pid_smaps(5)).
    pub(super) fn read(process: u32) -> Result<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/smaps"))?)
    }

    fn parse(smaps: &str) -> Result<Self> {
        let mut memory = Self::default();
        let (mut before, mut mapping): (Option<Mapping>, Option<Mapping>) = (None, None);
        for line in smaps.lines() {
            if let Some(next) = Mapping::parse(line) {
                before = mapping.replace(next);
            } else if let Some(field) = line.strip_prefix("Anonymous:") {
                let mapping = mapping.as_ref().context("a field before the first mapping")?;
                let kib: u64 = field.trim().trim_end_matches(" kB").parse()?;
                let use_name = mapping.use_name(before.as_ref());
                *memory.by_use.entry(use_name).or_default() += kib;
            }
        }
        Ok(memory)
    }

    pub(super) fn total_kib(&self) -> u64 {
        self.by_use.values().sum()
    }

    /// Returns the uses whose memory differs in `later`, with the differences in KiB.
    pub(super) fn difference(&self, later: &Self) -> String {
        let mut text = String::new();
        for (use_name, now) in &later.by_use {
            let before = self.by_use.get(use_name).copied().unwrap_or(0);
            let _ = match now.checked_sub(before) {
                Some(0) => continue,
                Some(growth) => write!(text, "{use_name} +{growth} KiB; "),
                None => write!(text, "{use_name} -{} KiB; ", before - now),
            };
        }
        text
    }
}

impl Mapping {
    /// Parses the first line of a mapping, `START-END PERMISSIONS OFFSET DEVICE INODE NAME`.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            is_accessible: permissions.starts_with('r'),
            name: fields.skip(3).collect::<Vec<_>>().join(" "),
        })
    }

    /// Returns the use of the mapping. The stack of a thread follows the inaccessible page that
    /// guards it.
    fn use_name(&self, before: Option<&Self>) -> String {
        let is_guarded =
            before.is_some_and(|guard| guard.end == self.start && !guard.is_accessible);
        match self.name.as_str() {
            "" if is_guarded && self.end - self.start < 16 << 20 => "thread stacks".to_owned(),
            "" => "allocator and anonymous mappings".to_owned(),
            name => name.rsplit('/').next().unwrap_or(name).to_owned(),
        }
    }
}
