//! Writer of an initramfs: a cpio archive in "newc" format, which the kernel unpacks
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`).

use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// An archive under construction.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    inode: u32,
}

impl Archive {
    /// Adds a folder and its ancestors.
    pub(crate) fn folder(&mut self, path: &str) {
        let path = path.trim_start_matches('/');
        if path.is_empty() || self.folders.contains(path) {
            return;
        }
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.folder(parent);
        }
        self.folders.insert(path.to_owned());
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds an executable file.
    pub(crate) fn file(&mut self, path: &str, content: &[u8]) {
        self.parent_of(path);
        self.entry(path.trim_start_matches('/'), PROGRAM, content);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.parent_of(path);
        self.entry(path.trim_start_matches('/'), LINK, target.as_bytes());
    }

    /// Returns the complete archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn parent_of(&mut self, path: &str) {
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.folder(parent);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            u32::try_from(content.len()).unwrap_or(u32::MAX),
            0,
            0,
            0,
            0,
            u32::try_from(path.len() + 1).unwrap_or(u32::MAX),
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_independent_reader_lists_what_was_added() {
        let mut archive = Archive::default();
        archive.file("/a/b/file", b"hello");
        archive.link("/a/link", "b/file");
        let bytes = archive.finish();
        let mut child = Command::new("busybox")
            .args(["cpio", "-t"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(
            listed.split_whitespace().collect::<Vec<_>>(),
            ["a", "a/b", "a/b/file", "a/link"]
        );
    }
}
