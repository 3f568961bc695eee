//! Consistency check of images.

use suimon_image::{ImageError, ImageFile, RedoChanges};

use crate::fields::MB;
use crate::metadata::Metadata;
use crate::open::Structures;

/// Maximum number of faults that a report lists.
const FAULTS_MAX: usize = 1000;

/// Result of checking an image.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Faults with field, offset and reason; at most 1000.
    pub faults: Vec<ImageError>,
    /// Number of faults beyond the listed ones.
    pub faults_omitted: u64,
    /// Number of log entries that must be replayed. Not a fault: the image was not closed.
    pub log_entries: usize,
    /// Number of blocks allocated in the file.
    pub present_blocks: u64,
    /// True if the image was not closed: the next writer must replay the log.
    pub is_dirty: bool,
    /// Number of blocks of the disk.
    pub blocks: u64,
    /// Unused space at the end of the file in bytes, if it exceeds the usual reserve (one block, at
    /// least 8 MB); otherwise 0.
    pub tail_bytes: u64,
    /// Unreferenced space of the file in bytes, including that at its end.
    pub unused_bytes: u64,
}

impl CheckReport {
    /// Returns true if the image has no faults.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    fn add(&mut self, fault: ImageError) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        } else {
            self.faults_omitted = self.faults_omitted.saturating_add(1);
        }
    }
}

/// Maximum reserve that QEMU 7.2 leaves at the end of a new image, in bytes.
const ROOM_BYTES: u64 = 8 * MB;

/// Returns true if `tail`, the unused bytes at the end of the file, exceed the usual reserve. Fixed
/// images are exempt, because QEMU allocates their space before it sets the entries.
pub(crate) fn exceeds_reserve(tail: u64, metadata: &Metadata) -> bool {
    !metadata.leave_allocated && tail > metadata.block_bytes.max(ROOM_BYTES)
}

/// Reads and cross-checks the structures of an image, without writing and without reading payload.
///
/// A fault that prevents further checks is the last one.
#[must_use]
pub fn check(file: &dyn ImageFile) -> CheckReport {
    let mut report = CheckReport::default();
    let read = Structures::read(file, false, &RedoChanges::default(), &mut |fault| {
        report.add(fault);
        Ok(())
    });
    let read = match read {
        Ok(read) => read,
        Err(fault) => {
            report.add(fault);
            return report;
        }
    };
    report.is_dirty = !read.headers.current.log_guid.is_nil();
    report.blocks = read.bat.entries().count() as u64;
    let tail = read.file_len.saturating_sub(u64::from(read.occupancy.end_mb()) * MB);
    report.tail_bytes = if exceeds_reserve(tail, &read.metadata) { tail } else { 0 };
    for fault in read.headers.other_fault.into_iter().chain(read.regions.copy_faults) {
        report.add(fault);
    }
    report.log_entries = read.log_entries;
    report.present_blocks = read.bat.entries().filter(|entry| entry.is_present()).count() as u64;
    report.unused_bytes = read.replayed_len.saturating_sub(read.occupancy.used_mb() * MB);
    report
}
