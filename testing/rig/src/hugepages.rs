//! Huge pages, which DPDK's programs want and Suimon does not.

use std::fs;

use anyhow::{Context, Result, ensure};

const COUNT: &str = "/proc/sys/vm/nr_hugepages";

/// Huge pages set aside; dropping this gives them back.
#[derive(Debug)]
pub struct Hugepages {
    before: u64,
}

impl Hugepages {
    /// Sets at least `pages` of 2 MiB aside.
    ///
    /// # Errors
    /// The machine has not that much memory in one piece.
    pub fn reserve(pages: u64) -> Result<Self> {
        let before = read()?;
        let reserved = Self { before };
        if before < pages {
            fs::write(COUNT, pages.to_string()).context("cannot reserve huge pages")?;
            let got = read()?;
            ensure!(got >= pages, "only {got} of {pages} huge pages could be reserved");
        }
        Ok(reserved)
    }
}

impl Drop for Hugepages {
    fn drop(&mut self) {
        let _ = fs::write(COUNT, self.before.to_string());
    }
}

fn read() -> Result<u64> {
    Ok(fs::read_to_string(COUNT).context("this kernel has no huge pages")?.trim().parse()?)
}
