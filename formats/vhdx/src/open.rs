//! Opening an image: headers, log, region table, metadata, BAT, in this order
//! ([MS-VHDX] 2.1).

use core::ops::Range;
use std::collections::BTreeMap;

use suimon_image::{ByteRange, Commit, FileError, ImageError, ImageFault, ImageFile, Redo, Step};

use crate::bat::{Bat, Faults, normalize};
use crate::fields::{MB, PAGE, PAGE_LEN, WRITTEN_MAX, round_up_mb};
use crate::geometry::{Geometry, Slot};
use crate::header::{HEADER_SECTION, Headers};
use crate::log::{Replay, Writer, find};
use crate::metadata::Metadata;
use crate::region::Regions;
use crate::sector_bitmap::SectorBitmaps;
use crate::space::{Occupancy, Space};
use crate::vhdx::Writing;
use crate::view::{Change, Overlay, View};
use crate::{Guid, Vhdx};

/// Identifiers for an image that is opened for writing. All are new: nobody has used
/// them before.
#[derive(Clone, Copy, Debug)]
pub struct WriteGuids {
    /// Says that the file has changed.
    pub file_write: Guid,
    /// Says that what a guest reads may have changed: children are not linked to the
    /// image any more.
    pub data_write: Guid,
    /// Tells entries of the log from older ones; not nil.
    pub log: Guid,
}

/// What a file says, with its log replayed in memory.
pub(crate) struct Structures {
    pub headers: Headers,
    pub regions: Regions,
    pub metadata: Metadata,
    pub geometry: Geometry,
    pub bat: Bat,
    pub occupancy: Occupancy,
    pub overlay: Overlay,
    /// Its changes in stages, each of which is durable before the next: the log's, and those of the
    /// redo.
    stages: Vec<Range<usize>>,
    pub log_entries: usize,
    pub file_len: u64,
    /// The file's length once the log is replayed.
    pub replayed_len: u64,
}

impl Structures {
    /// Reads all that there is, with `redo` over it. `faults` says what becomes of those of blocks; with
    /// others the rest cannot be told. If the changes stay in memory, they must not be
    /// to payload.
    pub(crate) fn read(
        file: &dyn ImageFile,
        stays_in_memory: bool,
        redo: &Redo,
        faults: &mut Faults<'_>,
    ) -> Result<Self, ImageError> {
        let file_len = file.len().map_err(|error| ImageError::new("file", 0, error))?;
        let headers = Headers::read(file, file_len)?;
        let Replay { changes, file_len: len, entries } = find(file, file_len, &headers.current)?;
        let (mut overlay, mut replayed_len) = (Overlay { changes }, len.max(file_len));
        let mut stages = Vec::from([Range { start: 0, end: overlay.changes.len() }]);
        let mut view = View { file, file_len, len: replayed_len, overlay: &overlay };
        let regions = Regions::read(&view)?;
        let mut occupancy = Occupancy::default();
        let header_section = ByteRange::new(0, HEADER_SECTION).map(|range| (range, 0));
        let log = Some((headers.current.log, crate::header::HEADER_OFFSETS[0] + 72));
        for (range, at) in header_section.into_iter().chain(log).chain(regions.ranges()) {
            occupancy.take_range(range).map_err(|fault| ImageError::new("region", at, fault))?;
        }
        let metadata = Metadata::read(&view, regions.metadata)?;
        let geometry = Geometry::new(&metadata);
        if is_to_redo(redo, &headers)? {
            replayed_len = replayed_len.max(redo.opened.file_len);
            view.len = replayed_len;
            for stage in redo_stages(redo, &view, regions.bat, &geometry)? {
                let start = overlay.changes.len();
                overlay.changes.extend(stage);
                stages.push(start..overlay.changes.len());
            }
        }
        let view = View { file, file_len, len: replayed_len, overlay: &overlay };
        if stays_in_memory {
            occupancy.set_logged(logged(&overlay, &regions));
        }
        let bat = Bat::read(&view, regions.bat, &geometry, &mut occupancy, faults)?;
        if stages.len() > 1 {
            redo.check_places(regions.bat.offset()..regions.bat.end(), |fill| bat.has_bits(fill))?;
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

    fn into_image(self, writing: Option<Writing>) -> Vhdx {
        Vhdx {
            linear: Vhdx::find_linear(&self.bat, &self.metadata),
            geometry: self.geometry,
            metadata: self.metadata,
            headers: self.headers,
            regions: self.regions,
            bat: self.bat,
            bitmaps: SectorBitmaps::default(),
            // Only what is open for reading has any left.
            overlay: self.overlay,
            writing,
        }
    }
}

/// Megabytes that the log changes and that no block of payload may have, in order and
/// apart. Regions and sector bitmaps are read by way of the log's changes.
fn logged(overlay: &Overlay, regions: &Regions) -> Vec<(u32, u32)> {
    let to_mb = |bytes: u64| u32::try_from(bytes / MB).unwrap_or(u32::MAX);
    let is_metadata = |range: ByteRange| {
        range.end() <= HEADER_SECTION
            || [regions.bat, regions.metadata]
                .iter()
                .any(|region| region.offset() <= range.offset() && range.end() <= region.end())
    };
    let ranges = overlay.changes.iter().map(Change::range);
    let mut all: Vec<(u32, u32)> = ranges
        .filter(|range| !range.is_empty() && !is_metadata(*range))
        .map(|range| (to_mb(range.offset()), to_mb(round_up_mb(range.end()))))
        .collect();
    all.sort_unstable();
    let mut apart: Vec<(u32, u32)> = Vec::with_capacity(all.len());
    for (from, to) in all {
        match apart.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => apart.push((from, to)),
        }
    }
    apart
}

impl Vhdx {
    /// Opens an image for reading. Nothing is written: what its log has still to change
    /// is changed in memory, 64 MB at most.
    ///
    /// # Errors
    /// It is no VHDX image, or a broken one, or needs what is not known here: the field
    /// and its offset are told. Something in its log can only be done to the file: it
    /// has to be opened for writing once.
    pub fn open_read_only(file: &dyn ImageFile) -> Result<Self, ImageError> {
        Ok(Structures::read(file, true, &Redo::default(), &mut Err)?.into_image(None))
    }

    /// Opens an image for writing. Its log is replayed, and headers say that it is in
    /// use. A broken image is not changed.
    ///
    /// # Errors
    /// As [`Vhdx::open_read_only`], or the file could not be written.
    pub fn open(file: &dyn ImageFile, guids: &WriteGuids) -> Result<Self, ImageError> {
        Self::open_and_redo(file, guids, &Redo::default())
    }

    /// Opens an image for writing that another process on this host had open when it was killed,
    /// with the changes that it had not written yet. If this process is killed too, it can be done
    /// again with the same `redo`, whose `redone_as` has to be `guids.file_write`.
    ///
    /// # Errors
    /// As [`Vhdx::open`]; or another program has opened the image for writing since. Then nothing
    /// was changed.
    pub fn open_and_redo(
        file: &dyn ImageFile,
        guids: &WriteGuids,
        redo: &Redo,
    ) -> Result<Self, ImageError> {
        if guids.log.is_nil() {
            let fault = ImageFault::Value { value: 0, allowed: "a GUID that is not nil" };
            return Err(ImageError::new("Header.LogGuid", 0, fault));
        }
        let mut read = Structures::read(file, false, redo, &mut Err)?;
        if !redo.changes.is_empty() {
            read.redo(file, guids.file_write)?;
        } else if !read.headers.current.log_guid.is_nil() {
            read.headers.update(file, |header| header.file_write = guids.file_write)?;
            read.replay(file, read.stages.get(..1).unwrap_or_default()).map_err(failed)?;
            read.headers.update(file, |header| header.log_guid = Guid::NIL)?;
        }
        read.overlay = Overlay::default();
        let space = Space::new(&read.occupancy, read.metadata.block, read.geometry.has_parent);
        let end = space.end_bytes();
        // What is behind the last block is nobody's, and nobody knows what is there.
        let file_len = end;
        let log = read.headers.current.log;
        let mut writer = Writer::new(log, guids.log);
        let mut steps = vec![cleared(log)];
        // A log that is in use has an entry that counts, always.
        writer.write(&[], file_len, end, &mut steps);
        steps.extend([Step::Flush, Step::Durable]);
        let prepare = || {
            file.set_len(file_len)?;
            Commit { steps }.carry_out(file)
        };
        prepare().map_err(failed)?;
        // Twice, so that both headers say so.
        for _ in 0..2 {
            read.headers.update(file, |header| {
                header.file_write = guids.file_write;
                header.data_write = guids.data_write;
                header.log_guid = guids.log;
                header.log_version = 0;
            })?;
        }
        let writing =
            Writing { space, log: writer, pending: BTreeMap::new(), committing: None, file_len };
        Ok(read.into_image(Some(writing)))
    }

    /// Makes everything durable and says in the headers that the log is not needed.
    /// An image that is not closed is as good, but who opens it next has to replay its
    /// log.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn close(mut self, file: &dyn ImageFile) -> Result<(), ImageError> {
        if let Some(commit) = self.commit_steps() {
            commit.carry_out(file).map_err(failed)?;
        }
        let Some(writing) = self.writing else { return Ok(()) };
        file.flush().map_err(failed)?;
        for _ in 0..2 {
            self.headers.update(file, |header| header.log_guid = Guid::NIL)?;
        }
        // The log had promised the longer file.
        let end = writing.space.end_bytes();
        file.set_len(end).and_then(|()| file.flush()).map_err(failed)
    }
}

/// Whether changes are to be made of a file that has not got them.
fn is_to_redo(redo: &Redo, headers: &Headers) -> Result<bool, ImageError> {
    let write_id = headers.current.file_write.stored();
    if redo.changes.is_empty() || write_id == redo.redone_as {
        return Ok(false);
    }
    if write_id != redo.opened.write_id {
        let what = "another program has opened it for writing";
        let fault = ImageFault::Changed { what };
        return Err(ImageError::new("Header.FileWriteGuid", 0, fault));
    }
    Ok(true)
}

/// Pages that change, in stages. Each is durable before the next, so that a crash of the host in
/// between leaves an image: what the BAT names, its entries of sector bitmaps, and those of blocks,
/// which need the bitmaps.
fn redo_stages(
    redo: &Redo,
    view: &View<'_>,
    bat: ByteRange,
    geometry: &Geometry,
) -> Result<[Vec<Change>; 3], ImageError> {
    let pages = redo.pages(PAGE, normalize, |page| view.read("page that changes", page))?;
    let mut stages = [const { Vec::new() }; 3];
    let [named, bitmaps, blocks] = &mut stages;
    for (offset, bytes) in pages {
        let Some(range) = ByteRange::new(offset, PAGE) else { continue };
        let change = |bytes: Vec<u8>| {
            let bytes: Option<Box<[u8; PAGE_LEN]>> = bytes.into_boxed_slice().try_into().ok();
            bytes.map(|bytes| Change::Page { range, bytes })
        };
        if !(bat.offset()..bat.end()).contains(&offset) {
            named.extend(change(bytes));
            continue;
        }
        let found = view.read("page that changes", range)?;
        let mut with_bitmaps = found.clone();
        let entries = with_bitmaps.chunks_exact_mut(8).zip(bytes.chunks_exact(8));
        for (number, (entry, after)) in ((offset - bat.offset()) / 8..).zip(entries) {
            if matches!(geometry.slot(number), Slot::Bitmap(_)) {
                entry.copy_from_slice(after);
            }
        }
        if with_bitmaps != found {
            bitmaps.extend(change(with_bitmaps));
        }
        blocks.extend(change(bytes));
    }
    Ok(stages)
}

impl Structures {
    /// Makes the log's changes and those of the redo. Until the header says that the file is another
    /// one, all this can be done again. The log is older than the redo: it is not needed any more
    /// before that begins, so that nobody replays it over a part of it.
    fn redo(&mut self, file: &dyn ImageFile, file_write: Guid) -> Result<(), ImageError> {
        file.flush().map_err(failed)?;
        let (log, redo) = self.stages.split_at_checked(1).unwrap_or_default();
        self.replay(file, log).map_err(failed)?;
        if !self.headers.current.log_guid.is_nil() {
            self.headers.update(file, |header| header.log_guid = Guid::NIL)?;
        }
        self.replay(file, redo).map_err(failed)?;
        self.headers.update(file, |header| header.file_write = file_write)
    }

    /// Makes the changes of some stages, and makes them durable.
    fn replay(&self, file: &dyn ImageFile, stages: &[Range<usize>]) -> Result<(), FileError> {
        if self.file_len < self.replayed_len {
            file.set_len(self.replayed_len)?;
        }
        for stage in stages {
            let changes = self.overlay.changes.get(stage.clone()).unwrap_or_default();
            for change in changes {
                match change {
                    Change::Page { range, bytes } => {
                        file.write_at(range.offset(), bytes.as_slice())?;
                    }
                    Change::Zero(range) => file.zero(range.offset(), range.len())?,
                }
            }
            if !changes.is_empty() {
                file.flush()?;
            }
        }
        Ok(())
    }
}

/// Fills the log with zeros. One of usual length has its space from then on, so that a commit does not
/// fail on a store that has become full.
fn cleared(log: ByteRange) -> Step {
    match usize::try_from(log.len()) {
        Ok(len) if log.len() <= WRITTEN_MAX => {
            Step::Write { offset: log.offset(), bytes: vec![0; len] }
        }
        _ => Step::Zero(log),
    }
}

pub(crate) fn failed(error: FileError) -> ImageError {
    ImageError::new("file", 0, error)
}
