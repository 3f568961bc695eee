//! A tmpfs of limited size as a store.

use std::fs;

use suimon_rig::run;

/// A file system of its own, until it is dropped.
pub(crate) struct Mounted(String);

impl Mounted {
    pub(crate) fn new(path: &str, size: &str) -> Self {
        fs::create_dir(path).unwrap();
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", path]).unwrap();
        Self(path.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run(&["umount", "-l", &self.0]);
    }
}
