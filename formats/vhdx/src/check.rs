//! What is wrong with an image, all of it.

use suimon_image::{ImageError, ImageFile, Redo};

use crate::fields::MB;
use crate::metadata::Metadata;
use crate::open::Structures;

/// Faults that are told one by one.
const FAULTS_MAX: usize = 1000;

/// What a check has found.
#[derive(Debug, Default)]
pub struct Report {
    /// What is wrong: the field, where it is and why. 1000 at most.
    pub faults: Vec<ImageError>,
    /// Faults beyond those.
    pub more_faults: u64,
    /// Entries of the log that whoever opens the image has to replay. That is no fault:
    /// the image was not closed.
    pub log_entries: usize,
    /// Blocks that have space in the file.
    pub present_blocks: u64,
    /// Whether the image was not closed: the next writer has to replay its log.
    pub is_dirty: bool,
    /// Blocks of the disk.
    pub blocks: u64,
    /// Bytes behind the last one in use, if they are more than programs keep there: a block, or
    /// 8 MB.
    pub tail_bytes: u64,
    /// Bytes between what is in use and behind it that nothing points to.
    pub unused_bytes: u64,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    fn add(&mut self, fault: ImageError) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        } else {
            self.more_faults = self.more_faults.saturating_add(1);
        }
    }
}

/// Bytes that QEMU 7.2 has at the end of a new image at most.
const ROOM_BYTES: u64 = 8 * MB;

/// Returns true if bytes behind the last one in use are more than programs keep there. A fixed
/// image may have all its space there: QEMU sets space aside, and entries say zeros.
pub(crate) fn exceeds_room(tail: u64, metadata: &Metadata) -> bool {
    !metadata.leave_allocated && tail > metadata.block.max(ROOM_BYTES)
}

/// Reads all structures of an image and compares them. Nothing is written; payload is not
/// read.
///
/// A fault by which the rest cannot be told is the last one.
#[must_use]
pub fn check(file: &dyn ImageFile) -> Report {
    let mut report = Report::default();
    let read = Structures::read(file, false, &Redo::default(), &mut |fault| {
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
    let tail = read.file_len.saturating_sub(u64::from(read.occupancy.end()) * MB);
    report.tail_bytes = if exceeds_room(tail, &read.metadata) { tail } else { 0 };
    for fault in read.headers.other_fault.into_iter().chain(read.regions.copy_faults) {
        report.add(fault);
    }
    report.log_entries = read.log_entries;
    report.present_blocks = read.bat.entries().filter(|entry| entry.is_present()).count() as u64;
    report.unused_bytes = read.replayed_len.saturating_sub(read.occupancy.used() * MB);
    report
}
