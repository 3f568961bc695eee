//! Positions of keys in a TOML text.

use std::collections::BTreeMap;

/// Lines of keys by path, such as `nic[2].offload.tx_checksum`.
pub(crate) struct TomlLines {
    /// Byte offset of the start of each line, including the first.
    starts: Vec<usize>,
    by_path: BTreeMap<String, usize>,
}

impl TomlLines {
    pub(crate) fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = core::iter::once(0).chain(breaks.map(|(index, _)| index.saturating_add(1)));
        Self { starts: starts.collect(), by_path: BTreeMap::new() }
    }

    /// Returns the line of a byte offset, counted from 1.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// Records that the key with this path begins at the byte offset `offset`.
    pub(crate) fn record(&mut self, path: String, offset: usize) {
        let line = self.line_of(offset);
        self.by_path.insert(path, line);
    }

    /// As [`record`](Self::record), unless a key with this path was recorded.
    pub(crate) fn record_if_absent(&mut self, path: String, offset: usize) {
        let line = self.line_of(offset);
        self.by_path.entry(path).or_insert(line);
    }

    /// Returns the line of `field` in the table at `path`, or the line of the nearest enclosing
    /// table if the file does not contain the key.
    pub(crate) fn line_of_key(&self, path: &str, field: Option<&str>) -> Option<usize> {
        let mut full = match field {
            Some(field) if path.is_empty() => field.to_owned(),
            Some(field) => format!("{path}.{field}"),
            None => path.to_owned(),
        };
        loop {
            if let Some(line) = self.by_path.get(&full) {
                return Some(*line);
            }
            full.truncate(full.rfind('.')?);
        }
    }
}
