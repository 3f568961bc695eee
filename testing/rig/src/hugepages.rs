//! Huge pages, which DPDK's programs want and Suimon does not.

use std::fs;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

const COUNT: &str = "/proc/sys/vm/nr_hugepages";
const COMPACT: &str = "/proc/sys/vm/compact_memory";
/// How often memory is asked for; the kernel gathers it in between.
const TRIES: u32 = 5;

/// What all live [`Hugepages`] of this process ask for, and what was there before
/// the first of them.
static RESERVED: Mutex<Reserved> = Mutex::new(Reserved { pages: 0, before: 0 });

struct Reserved {
    pages: u64,
    before: u64,
}

/// Huge pages set aside; dropping this gives them back.
#[derive(Debug)]
pub struct Hugepages {
    pages: u64,
}

impl Hugepages {
    /// Sets `pages` of 2 MiB aside, beside those of others.
    ///
    /// # Errors
    /// The machine has not that much memory in one piece.
    pub fn reserve(pages: u64) -> Result<Self> {
        let mut all = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        if all.pages == 0 {
            all.before = read()?;
        }
        all.pages += pages;
        let wanted = all.before + all.pages;
        drop(all);
        let reserved = Self { pages };
        let mut got = 0;
        for _ in 0..TRIES {
            fs::write(COUNT, wanted.to_string()).context("cannot reserve huge pages")?;
            got = read()?;
            if got >= wanted {
                return Ok(reserved);
            }
            // What files left in memory lies about in small pieces.
            let _ = fs::write(COMPACT, "1");
        }
        bail!("only {got} of {wanted} huge pages could be reserved; free some memory")
    }
}

impl Drop for Hugepages {
    fn drop(&mut self) {
        let mut all = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        all.pages -= self.pages;
        let _ = fs::write(COUNT, (all.before + all.pages).to_string());
    }
}

fn read() -> Result<u64> {
    Ok(fs::read_to_string(COUNT).context("this kernel has no huge pages")?.trim().parse()?)
}
