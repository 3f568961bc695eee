//! Huge pages for DPDK's programs; Suimon does not need them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

const COUNT: &str = "/proc/sys/vm/nr_hugepages";
const COMPACT: &str = "/proc/sys/vm/compact_memory";
/// File with the machine's own number of huge pages, locked by the process that has changed it. The
/// number is global, so one test at a time may reserve pages.
const RECORD: &str = "/var/tmp/suimon-hugepages";
/// Time in which the kernel must find the pages; it compacts memory between attempts.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Reservation of this process: the sum of its live [`Hugepages`].
static RESERVATION: Mutex<Option<Reservation>> = Mutex::new(None);

struct Reservation {
    /// Locked while the reservation exists.
    _record: File,
    /// The machine's own number of pages.
    before: u64,
    pages: u64,
}

/// Reserved huge pages. Dropping the last reservation of a process restores the machine's own
/// number.
#[derive(Debug)]
pub struct Hugepages {
    pages: u64,
}

impl Hugepages {
    /// Waits until no other process has a reservation, then reserves `pages` of 2 MiB in addition
    /// to the machine's own.
    ///
    /// # Errors
    /// The machine does not have that much contiguous memory.
    pub fn reserve(pages: u64) -> Result<Self> {
        let mut reservation = RESERVATION.lock().unwrap_or_else(PoisonError::into_inner);
        let reserved = match reservation.take() {
            Some(reserved) => reservation.insert(reserved),
            None => reservation.insert(begin()?),
        };
        reserved.pages += pages;
        let required = reserved.before + reserved.pages;
        drop(reservation);
        let reserved = Self { pages };
        let started = Instant::now();
        loop {
            fs::write(COUNT, required.to_string()).context("cannot reserve huge pages")?;
            let available = read()?;
            if available >= required {
                return Ok(reserved);
            }
            if started.elapsed() > PATIENCE {
                bail!("only {available} of {required} huge pages are available; free some memory");
            }
            // Files in the page cache fragment memory, and other programs allocate meanwhile.
            let _ = fs::write(COMPACT, "1");
            sleep(PAUSE);
        }
    }
}

impl Drop for Hugepages {
    fn drop(&mut self) {
        let mut reservation = RESERVATION.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reserved) = reservation.as_mut() else { return };
        reserved.pages -= self.pages;
        if reserved.pages == 0 {
            restore();
            *reservation = None;
        } else {
            let _ = fs::write(COUNT, (reserved.before + reserved.pages).to_string());
        }
    }
}

/// Locks the record and writes the machine's own number of pages to it.
fn begin() -> Result<Reservation> {
    let record = lock_record()?;
    // A killed process has left its record.
    restore();
    let before = read()?;
    fs::write(RECORD, before.to_string()).with_context(|| format!("cannot write {RECORD}"))?;
    Ok(Reservation { _record: record, before, pages: 0 })
}

/// Blocks until the lock of the record is acquired.
fn lock_record() -> Result<File> {
    loop {
        let record = OpenOptions::new().create(true).append(true).open(RECORD);
        let record = record.with_context(|| format!("cannot open {RECORD}"))?;
        flock(&record, FlockOperation::LockExclusive).context("cannot lock the record")?;
        // A sweep may have removed the file meanwhile, and another process created a new one.
        let number = record.metadata()?.ino();
        if fs::metadata(RECORD).is_ok_and(|now| now.ino() == number) {
            return Ok(record);
        }
    }
}

/// Restores the number of huge pages if no live process has reserved some.
pub(crate) fn sweep() {
    let Ok(record) = OpenOptions::new().append(true).open(RECORD) else { return };
    if flock(&record, FlockOperation::NonBlockingLockExclusive).is_ok() {
        restore();
        let _ = fs::remove_file(RECORD);
    }
}

/// Restores the recorded number. The caller must have locked the record.
fn restore() {
    let recorded = fs::read_to_string(RECORD).unwrap_or_default();
    if let Ok(before) = recorded.trim().parse::<u64>() {
        let _ = fs::write(COUNT, before.to_string());
        let _ = fs::write(RECORD, "");
    }
}

fn read() -> Result<u64> {
    Ok(fs::read_to_string(COUNT).context("this kernel has no huge pages")?.trim().parse()?)
}
