//! Undoing of unflushed writes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Former contents of ranges that were written since the last flush, by node number, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Unflushed(Mutex<BTreeMap<u64, Vec<Former>>>);

#[derive(Debug)]
struct Former {
    offset: u64,
    bytes: Vec<u8>,
}

impl Unflushed {
    fn of<T>(&self, change: impl FnOnce(&mut BTreeMap<u64, Vec<Former>>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers the contents of a range before it is written. Bytes beyond the end of the file are
    /// zeros.
    pub(crate) fn handle_write(
        &self,
        node: u64,
        file: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<()> {
        let mut bytes = vec![0; len];
        let mut read = 0;
        while read < len {
            match file.read_at(&mut bytes[read..], offset + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        self.of(|all| all.entry(node).or_default().push(Former { offset, bytes }));
        Ok(())
    }

    /// Forgets the writes to a file that were flushed.
    pub(crate) fn handle_flushed(&self, node: u64) {
        self.of(|all| all.remove(&node));
    }

    /// Undoes the unflushed writes to a file. Its length stays.
    pub(crate) fn undo(&self, node: u64, file: &File) -> io::Result<()> {
        let formers = self.of(|all| all.remove(&node)).unwrap_or_default();
        for former in formers.iter().rev() {
            file.write_all_at(&former.bytes, former.offset)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn writes_since_the_last_flush_are_undone() {
        let path = std::env::temp_dir().join(format!("unflushed-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let unflushed = Unflushed::default();
        let write = |offset, bytes: &[u8]| {
            unflushed.handle_write(1, &file, offset, bytes.len()).unwrap();
            file.write_all_at(bytes, offset).unwrap();
        };
        write(0, b"aaaa");
        unflushed.handle_flushed(1);
        write(2, b"bbbb");
        write(1, b"cc");
        unflushed.undo(1, &file).unwrap();
        let mut found = [1; 6];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(&found, b"aaaa\0\0");
    }
}
