//! Opening of images: headers, log, region table, metadata and BAT, in this order ([MS-VHDX] 2.1).

use core::ops::Range;
use std::collections::BTreeMap;

use suimon_image::{
    ByteRange, Commit, CommitOutcome, FileError, ImageError, ImageFault, ImageFile, RedoChanges,
    Step,
};

use crate::bat::{Bat, FaultHandler, normalize};
use crate::fields::{MB, METADATA_WRITE_BYTES_MAX, PAGE_BYTES, PAGE_LEN, round_up_mb};
use crate::geometry::{BatEntryTarget, Geometry};
use crate::header::{HEADER_OFFSETS, HEADER_SECTION_BYTES, Headers};
use crate::log::{LogWriter, Replay, read_log};
use crate::metadata::Metadata;
use crate::region::{REGION_TABLE_OFFSETS, Regions};
use crate::replayed_view::{LogChange, LogOverlay, ReplayedView};
use crate::sector_bitmap::SectorBitmaps;
use crate::space::{Occupancy, SpaceAllocator};
use crate::vhdx::WriteState;
use crate::{Guid, Vhdx};

/// New GUIDs that opening an image for writing records. Each must be unique.
#[derive(Clone, Copy, Debug)]
pub struct WriteGuids {
    /// New FileWriteGuid, which marks the file as modified.
    pub file_write: Guid,
    /// New DataWriteGuid, which marks guest-visible data as modified and so invalidates existing
    /// children.
    pub data_write: Guid,
    /// New LogGuid, which distinguishes new log entries from older ones; not nil.
    pub log: Guid,
}

/// Structures of an image, with its log applied in memory.
pub(crate) struct Structures {
    pub headers: Headers,
    pub regions: Regions,
    pub metadata: Metadata,
    pub geometry: Geometry,
    pub bat: Bat,
    pub occupancy: Occupancy,
    pub overlay: LogOverlay,
    /// Ranges of changes in `overlay`: those of the log, then those of the redo record. Each range
    /// must be durable before the next one is written.
    stages: Vec<Range<usize>>,
    pub log_entries: usize,
    pub file_len: u64,
    /// Length of the file after replay of the log, in bytes.
    pub replayed_len: u64,
}

impl Structures {
    /// Reads the structures, with the changes of `redo` applied. `faults` handles errors of BAT
    /// entries. If `stays_in_memory`, the changes must not concern payload, because payload is read
    /// directly from the file.
    ///
    /// # Errors
    ///
    /// All errors except those that `faults` accepts.
    pub(crate) fn read(
        file: &dyn ImageFile,
        stays_in_memory: bool,
        redo: &RedoChanges,
        faults: &mut FaultHandler<'_>,
    ) -> Result<Self, ImageError> {
        let file_len = file.len().map_err(|error| ImageError::new("file", 0, error))?;
        let headers = Headers::read(file, file_len)?;
        let Replay { changes, file_len: len, entry_count: entries } =
            read_log(file, file_len, &headers.current)?;
        let (mut overlay, mut replayed_len) = (LogOverlay { changes }, len.max(file_len));
        let mut stages = Vec::from([Range { start: 0, end: overlay.changes.len() }]);
        let mut view = ReplayedView { file, file_len, replayed_len, overlay: &overlay };
        let regions = Regions::read(&view)?;
        let mut occupancy = Occupancy::default();
        let header_section = ByteRange::new(0, HEADER_SECTION_BYTES).map(|range| (range, 0));
        let log = Some((headers.current.log, HEADER_OFFSETS[0] + 72));
        for (range, offset) in header_section.into_iter().chain(log).chain(regions.ranges()) {
            occupancy
                .occupy_range(range)
                .map_err(|fault| ImageError::new("region", offset, fault))?;
        }
        let metadata = Metadata::read(&view, regions.metadata)?;
        let geometry = Geometry::new(&metadata);
        if is_to_redo(redo, &headers)? {
            replayed_len = replayed_len.max(redo.identity_at_open.file_len);
            view.replayed_len = replayed_len;
            for stage in redo_stages(redo, &view, regions.bat, &geometry)? {
                let start = overlay.changes.len();
                overlay.changes.extend(stage);
                stages.push(start..overlay.changes.len());
            }
        }
        let view = ReplayedView { file, file_len, replayed_len, overlay: &overlay };
        if stays_in_memory {
            occupancy.set_logged(logged(&overlay, &regions));
        }
        let bat = Bat::read(&view, regions.bat, &geometry, &mut occupancy, faults)?;
        if stages.len() > 1 {
            redo.check_ranges(regions.bat.offset()..regions.bat.end(), |fill| {
                bat.contains_bitmap_range(fill)
            })?;
        }
        Ok(Self {
            headers,
            regions,
            metadata,
            geometry,
            bat,
            occupancy,
            overlay,
            stages,
            log_entries: entries,
            file_len,
            replayed_len,
        })
    }

    fn into_image(self, writing: Option<WriteState>) -> Vhdx {
        Vhdx {
            linear_payload_offset: Vhdx::find_linear_payload(&self.bat, &self.metadata),
            geometry: self.geometry,
            metadata: self.metadata,
            headers: self.headers,
            regions: self.regions,
            bat: self.bat,
            bitmaps: SectorBitmaps::default(),
            // Changes remain in memory only for images that are open for reading.
            overlay: self.overlay,
            write_state: writing,
        }
    }
}

/// Returns the file ranges, in megabytes, that the log changes and that payload blocks must not
/// use. They are disjoint and in ascending order. Regions and sector bitmaps are exempt, because
/// they are read with the changes applied.
fn logged(overlay: &LogOverlay, regions: &Regions) -> Vec<(u32, u32)> {
    let to_mb = |bytes: u64| u32::try_from(bytes / MB).unwrap_or(u32::MAX);
    let is_metadata = |range: ByteRange| {
        range.end() <= HEADER_SECTION_BYTES
            || [regions.bat, regions.metadata]
                .iter()
                .any(|region| region.offset() <= range.offset() && range.end() <= region.end())
    };
    let ranges = overlay.changes.iter().map(LogChange::range);
    let mut sorted: Vec<(u32, u32)> = ranges
        .filter(|range| !range.is_empty() && !is_metadata(*range))
        .map(|range| (to_mb(range.offset()), to_mb(round_up_mb(range.end()))))
        .collect();
    sorted.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
    for (from, to) in sorted {
        match merged.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => merged.push((from, to)),
        }
    }
    merged
}

impl Vhdx {
    /// Opens an image for reading, without writing. Pending log changes, at most 64 MB, are applied
    /// in memory.
    ///
    /// # Errors
    ///
    /// With field and offset: the file is not a VHDX image, is damaged, or requires unsupported
    /// features; or the log changes payload, which requires opening the image for writing once.
    pub fn open_read_only(file: &dyn ImageFile) -> Result<Self, ImageError> {
        Ok(Structures::read(file, true, &RedoChanges::default(), &mut Err)?.into_image(None))
    }

    /// Opens an image for writing: replays the log and marks the image as in use. A damaged image
    /// is not changed.
    ///
    /// # Errors
    ///
    /// As [`Vhdx::open_read_only`]; also if the file cannot be written.
    pub fn open(file: &dyn ImageFile, guids: &WriteGuids) -> Result<Self, ImageError> {
        Self::open_with_redo(file, guids, &RedoChanges::default())
    }

    /// Opens an image that a killed process of this host had open for writing, and applies the
    /// metadata changes that this process had not committed. May be repeated with the same `redo`
    /// if the calling process is killed, too. `redo.redone_as` must equal `guids.file_write`.
    ///
    /// # Errors
    ///
    /// As [`Vhdx::open`]; also if another program has opened the image for writing since. The file
    /// is then unchanged.
    pub fn open_with_redo(
        file: &dyn ImageFile,
        guids: &WriteGuids,
        redo: &RedoChanges,
    ) -> Result<Self, ImageError> {
        if guids.log.is_nil() {
            let fault = ImageFault::InvalidValue { value: 0, allowed: "a GUID other than nil" };
            return Err(ImageError::new("Header.LogGuid", 0, fault));
        }
        let mut read = Structures::read(file, false, redo, &mut Err)?;
        if !redo.changes.is_empty() {
            read.redo(file, guids.file_write)?;
        } else if !read.headers.current.log_guid.is_nil() {
            read.headers.update(file, |header| header.file_write = guids.file_write)?;
            read.replay(file, read.stages.get(..1).unwrap_or_default())
                .map_err(image_error_from)?;
            read.headers.update(file, |header| header.log_guid = Guid::NIL)?;
        }
        read.overlay = LogOverlay::default();
        let space = SpaceAllocator::new(
            &read.occupancy,
            read.metadata.block_bytes,
            read.geometry.has_parent,
        );
        let end = space.required_file_bytes();
        // The space behind the last block is unreferenced and has unknown contents.
        let file_len = end;
        let log = read.headers.current.log;
        let mut writer = LogWriter::new(log, guids.log);
        let mut steps = vec![clear_log_step(log)];
        // The log of an open image must always contain a valid entry.
        writer.append_entry(&[], file_len, end, &mut steps);
        steps.extend([Step::Flush, Step::DurableMarker]);
        let prepare = || {
            file.set_len(file_len)?;
            Commit { steps }.execute(file).map_err(|failed| failed.error)
        };
        prepare().map_err(image_error_from)?;
        // The second update makes the other header contain the change, too.
        for _ in 0..2 {
            read.headers.update(file, |header| {
                header.file_write = guids.file_write;
                header.data_write = guids.data_write;
                header.log_guid = guids.log;
                header.log_version = 0;
            })?;
        }
        let writing = WriteState {
            space,
            log: writer,
            unapplied_pages: Vec::new(),
            pending_blocks: BTreeMap::new(),
            committing: None,
            file_len,
        };
        Ok(read.into_image(Some(writing)))
    }

    /// Commits all changes and marks the log as empty. An image that is not closed remains valid,
    /// but the next opener must replay its log.
    ///
    /// # Errors
    ///
    /// The file cannot be written; or another program has replaced its headers since it was opened
    /// for writing, in which case the file is unchanged.
    pub fn close(mut self, file: &dyn ImageFile) -> Result<(), ImageError> {
        if self.write_state.is_some() {
            self.check_headers(file)?;
        }
        if let Some(commit) = self.start_commit() {
            commit.execute(file).map_err(|step| image_error_from(step.error))?;
            self.end_commit(CommitOutcome::Done);
        }
        let Some(mut writing) = self.write_state else { return Ok(()) };
        while let Some(freed) = writing.space.pop_released() {
            file.zero(freed.offset(), freed.len()).map_err(image_error_from)?;
        }
        file.flush().map_err(image_error_from)?;
        for _ in 0..2 {
            self.headers.update(file, |header| header.log_guid = Guid::NIL)?;
        }
        // The log entries require the former length, so the file can be truncated only now.
        let end = writing.space.required_file_bytes();
        file.set_len(end).and_then(|()| file.flush()).map_err(image_error_from)
    }

    /// Checks that the file has the headers that this image has written.
    ///
    /// # Errors
    ///
    /// The file was overwritten with another image, which commits and the truncation would destroy.
    fn check_headers(&self, file: &dyn ImageFile) -> Result<(), ImageError> {
        let found = Headers::read(file, file.len().map_err(image_error_from)?)?;
        if found.current == self.headers.current {
            return Ok(());
        }
        let fault =
            ImageFault::ImageModified { difference: "another program replaced its headers" };
        Err(ImageError::new("Header.FileWriteGuid", 0, fault))
    }
}

/// Returns the ranges of a file that opening an image for writing changes, although nothing is
/// written to the disk: those of the headers and the log. `None` if the log has changes that are
/// not in the file yet.
///
/// # Errors
///
/// The file cannot be read or is not a VHDX image, or headers or log are damaged.
pub fn ranges_changed_by_opening(
    file: &dyn ImageFile,
) -> Result<Option<[ByteRange; 2]>, ImageError> {
    let file_len = file.len().map_err(image_error_from)?;
    let headers = Headers::read(file, file_len)?;
    let log = headers.current.log;
    let replay = read_log(file, file_len, &headers.current)?;
    if !replay.changes.is_empty() || replay.file_len > file_len {
        return Ok(None);
    }
    let [start, end] = [HEADER_OFFSETS[0], REGION_TABLE_OFFSETS[0]];
    Ok(ByteRange::new(start, end - start).map(|headers| [headers, log]))
}

/// Returns true if the changes of `redo` are not yet in the file.
///
/// # Errors
///
/// Another program has opened the image for writing since they were recorded.
fn is_to_redo(redo: &RedoChanges, headers: &Headers) -> Result<bool, ImageError> {
    let write_id = headers.current.file_write.to_stored_bytes();
    if redo.changes.is_empty() || write_id == redo.new_write_id {
        return Ok(false);
    }
    if write_id != redo.identity_at_open.write_id {
        let what = "another program opened it for writing";
        let fault = ImageFault::ImageModified { difference: what };
        return Err(ImageError::new("Header.FileWriteGuid", 0, fault));
    }
    Ok(true)
}

/// Returns the changed pages in three stages. Each stage must be durable before the next, so that a
/// host crash in between leaves a consistent image: sector bitmap contents, BAT entries of sector
/// bitmaps, BAT entries of blocks.
fn redo_stages(
    redo: &RedoChanges,
    view: &ReplayedView<'_>,
    bat: ByteRange,
    geometry: &Geometry,
) -> Result<[Vec<LogChange>; 3], ImageError> {
    let pages =
        redo.changed_pages(PAGE_BYTES, normalize, |page| view.read("page that changes", page))?;
    let mut stages = [const { Vec::new() }; 3];
    let [first_stage, bitmaps, blocks] = &mut stages;
    for (offset, bytes) in pages {
        let Some(range) = ByteRange::new(offset, PAGE_BYTES) else { continue };
        let change = |bytes: Vec<u8>| {
            let bytes: Option<Box<[u8; PAGE_LEN]>> = bytes.into_boxed_slice().try_into().ok();
            bytes.map(|bytes| LogChange::Page { range, bytes })
        };
        if !(bat.offset()..bat.end()).contains(&offset) {
            first_stage.extend(change(bytes));
            continue;
        }
        let table_page = view.read("page that changes", range)?;
        let mut with_bitmaps = table_page.clone();
        let entries = with_bitmaps.chunks_exact_mut(8).zip(bytes.chunks_exact(8));
        for (number, (entry, after)) in ((offset - bat.offset()) / 8..).zip(entries) {
            if matches!(geometry.entry_target(number), BatEntryTarget::Bitmap(_)) {
                entry.copy_from_slice(after);
            }
        }
        if with_bitmaps != table_page {
            bitmaps.extend(change(with_bitmaps));
        }
        blocks.extend(change(bytes));
    }
    Ok(stages)
}

impl Structures {
    /// Writes the changes of the log and of the redo record to the file. May be repeated until the
    /// FileWriteGuid changes. The log precedes the redo record; it is marked empty before the
    /// record is applied, so that no later opener replays it over a partially applied record.
    fn redo(&mut self, file: &dyn ImageFile, file_write: Guid) -> Result<(), ImageError> {
        file.flush().map_err(image_error_from)?;
        let (log, redo) = self.stages.split_at_checked(1).unwrap_or_default();
        self.replay(file, log).map_err(image_error_from)?;
        if !self.headers.current.log_guid.is_nil() {
            self.headers.update(file, |header| header.log_guid = Guid::NIL)?;
        }
        self.replay(file, redo).map_err(image_error_from)?;
        self.headers.update(file, |header| header.file_write = file_write)
    }

    /// Writes the changes of `stages` to the file, each stage durably before the next.
    fn replay(&self, file: &dyn ImageFile, stages: &[Range<usize>]) -> Result<(), FileError> {
        if self.file_len < self.replayed_len {
            file.set_len(self.replayed_len)?;
        }
        for stage in stages {
            let changes = self.overlay.changes.get(stage.clone()).unwrap_or_default();
            for change in changes {
                match change {
                    LogChange::Page { range, bytes } => {
                        file.write_at(range.offset(), bytes.as_slice())?;
                    }
                    LogChange::Zero(range) => file.zero(range.offset(), range.len())?,
                }
            }
            if !changes.is_empty() {
                file.flush()?;
            }
        }
        Ok(())
    }
}

/// Returns the step that zeroes the log. A log of usual length is written, which allocates its
/// space, so that commits do not fail when the store becomes full.
fn clear_log_step(log: ByteRange) -> Step {
    match usize::try_from(log.len()) {
        Ok(len) if log.len() <= METADATA_WRITE_BYTES_MAX => {
            Step::Write { offset: log.offset(), bytes: vec![0; len] }
        }
        _ => Step::Zero(log),
    }
}

pub(crate) fn image_error_from(error: FileError) -> ImageError {
    ImageError::new("file", 0, error)
}
