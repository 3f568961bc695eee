//! The mark of an image matches until something is written to its disk, even after the image was
//! opened.

use std::any::Any;
use std::io;
use std::sync::Arc;

use suimon_image::{CommitOutcome, ImageFile, Location, Translation};
use suimon_ports::testing::MemoryStore;
use suimon_ports::{AllocationExtent, FileLockMode, FileProperties, StoreFiles};

use super::*;
use crate::layer_stack::DiskLayer;
use crate::open_tests::{name, plan, seeded};
use crate::{DiskKind, DiskPlan, OpenedDisk, close, create, open};

const MB: u64 = 1 << 20;
/// Size of the disks. The last sectors of a fixed VHD are in the same page as its footer.
const SIZE: u64 = 3 * MB + 1024;
const HEADERS: [u64; 2] = [64 << 10, 128 << 10];

/// Plans of disks whose creation writes an image without data.
fn plans() -> [DiskPlan; 6] {
    use DiskFormat::{Raw, Vhd, Vhdx};
    use DiskKind::{Dynamic, Fixed};
    [(Raw, Fixed), (Raw, Dynamic), (Vhd, Fixed), (Vhd, Dynamic), (Vhdx, Fixed), (Vhdx, Dynamic)]
        .map(|(format, kind)| DiskPlan { size_bytes: Some(SIZE), ..plan(format, kind, "disk") })
}

struct Created {
    store: MemoryStore,
    files: Arc<dyn StoreFiles>,
    plan: DiskPlan,
    mark: ContentFingerprint,
}

impl Created {
    fn new(plan: DiskPlan) -> Self {
        let store = MemoryStore::default();
        let files: Arc<dyn StoreFiles> = Arc::new(store.clone());
        seeded(1, |seeds| create(&files, &plan, seeds)).unwrap();
        let mark = ContentFingerprint::compute(found(&files).as_ref(), plan.format).unwrap();
        Self { store, files, plan, mark }
    }

    fn open(&self) -> OpenedDisk {
        seeded(900, |seeds| open(self.files.as_ref(), &self.plan, seeds)).unwrap()
    }

    fn is_same(&self) -> Option<bool> {
        self.mark.matches(found(&self.files).as_ref())
    }

    /// Replaces the store by the state that a killed process leaves.
    fn kill(&mut self) {
        self.store = self.store.after_kill();
        self.files = Arc::new(self.store.clone());
    }

    fn file(&self) -> Arc<dyn DiskFile> {
        found(&self.files)
    }
}

fn found(files: &Arc<dyn StoreFiles>) -> Arc<dyn DiskFile> {
    files.open(&name("disk"), FileLockMode::Write, 1).unwrap()
}

fn commit(layer: &mut DiskLayer) {
    if let Some(commit) = layer.image.begin_commit() {
        assert!(commit.execute(layer.file.as_image_file()).is_ok());
        layer.image.handle_commit(CommitOutcome::Done);
    }
}

/// Writes one sector to the disk, and commits if `commits`.
fn write_sector(disk: &mut OpenedDisk, offset: u64, commits: bool) {
    let layer = &mut disk.layer_stack.layers[0];
    let (range, mut extents) = (ByteRange::new(offset, 512).unwrap(), Vec::new());
    loop {
        match layer.image.translate_write(range, &mut extents).unwrap() {
            Translation::Ready => break,
            Translation::NeedsCommit => commit(layer),
            Translation::NeedsMetadata(range) => {
                let mut bytes = vec![0; usize::try_from(range.len()).unwrap()];
                layer.file.read_at(range.offset(), &mut bytes).unwrap();
                layer.image.handle_metadata(range, &bytes).unwrap();
            }
        }
    }
    let Location::File(at) = extents[0].location else { panic!("{extents:?}") };
    layer.file.write_at(at, &[7; 512]).unwrap();
    layer.image.handle_written(range);
    if commits {
        commit(layer);
    }
}

#[test]
fn an_image_that_was_only_opened_has_its_content() {
    for plan in plans() {
        let mut image = Created::new(plan);
        assert_eq!(image.is_same(), Some(true), "{:?}", image.plan);
        close(image.open().layer_stack, "disk").unwrap();
        assert_eq!(image.is_same(), Some(true), "closed: {:?}", image.plan);
        let open = image.open();
        image.kill();
        drop(open);
        assert_eq!(image.is_same(), Some(true), "killed: {:?}", image.plan);
        close(image.open().layer_stack, "disk").unwrap();
        assert_eq!(image.is_same(), Some(true), "opened after a kill: {:?}", image.plan);
    }
}

#[test]
fn an_image_with_written_data_has_another_content() {
    for plan in plans() {
        for offset in [0, SIZE - 512] {
            for commits in [false, true] {
                let mut image = Created::new(plan.clone());
                let mut open = image.open();
                write_sector(&mut open, offset, commits);
                image.kill();
                assert_eq!(image.is_same(), Some(false), "killed: {plan:?}, {offset}, {commits}");
            }
            let image = Created::new(plan.clone());
            let mut open = image.open();
            write_sector(&mut open, offset, true);
            close(open.layer_stack, "disk").unwrap();
            assert_eq!(image.is_same(), Some(false), "closed: {plan:?}, {offset}");
        }
    }
}

#[test]
fn a_torn_header_of_a_vhdx_is_ignored() {
    for torn in HEADERS {
        let image = Created::new(plan(DiskFormat::Vhdx, DiskKind::Dynamic, "disk"));
        close(image.open().layer_stack, "disk").unwrap();
        image.file().write_at(torn, &[9; 512]).unwrap();
        assert_eq!(image.is_same(), Some(true), "{torn}");
    }
    let image = Created::new(plan(DiskFormat::Vhdx, DiskKind::Dynamic, "disk"));
    for torn in HEADERS {
        image.file().write_at(torn, &[9; 512]).unwrap();
    }
    assert_eq!(image.is_same(), Some(false), "without a valid header");
}

#[test]
fn another_empty_vhdx_has_another_content() {
    for kind in [DiskKind::Fixed, DiskKind::Dynamic] {
        let image = Created::new(plan(DiskFormat::Vhdx, kind, "disk"));
        let other: Arc<dyn StoreFiles> = Arc::new(MemoryStore::default());
        seeded(500, |seeds| create(&other, &image.plan, seeds)).unwrap();
        let other = found(&other);
        let mut bytes = vec![0; usize::try_from(other.len().unwrap()).unwrap()];
        other.read_at(0, &mut bytes).unwrap();
        image.file().write_at(0, &bytes).unwrap();
        assert_eq!(image.file().len().unwrap(), bytes.len() as u64);
        assert_eq!(image.is_same(), Some(false), "{kind:?}");
    }
}

#[test]
fn a_vhdx_that_was_replaced_by_another_format_has_another_content() {
    let image = Created::new(plan(DiskFormat::Vhdx, DiskKind::Dynamic, "disk"));
    image.file().write_at(0, &[1; 512]).unwrap();
    assert_eq!(image.is_same(), Some(false));
    image.file().set_len(0).unwrap();
    assert_eq!(image.is_same(), Some(false), "truncated");
}

/// File with one byte at the start of each data extent.
struct Sparse {
    len: u64,
    data: Vec<(u64, u64, u8)>,
    has_holes: bool,
}

impl ImageFile for Sparse {
    fn len(&self) -> Result<u64, FileError> {
        Ok(self.len)
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        bytes.fill(0);
        for (at, _, byte) in &self.data {
            let place = at.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
            if let Some(place) = place.and_then(|place| bytes.get_mut(place)) {
                *place = *byte;
            }
        }
        Ok(())
    }
    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), FileError> {
        Err(io::Error::from(io::ErrorKind::PermissionDenied).into())
    }
    fn set_len(&self, _: u64) -> Result<(), FileError> {
        Err(io::Error::from(io::ErrorKind::PermissionDenied).into())
    }
    fn zero(&self, _: u64, _: u64) -> Result<(), FileError> {
        Err(io::Error::from(io::ErrorKind::PermissionDenied).into())
    }
    fn flush(&self) -> Result<(), FileError> {
        Ok(())
    }
}

impl DiskFile for Sparse {
    fn properties(&self) -> FileProperties {
        FileProperties {
            len: self.len,
            is_direct: false,
            alignment: 1,
            is_block_device: false,
            can_punch_holes: true,
            id: None,
        }
    }
    fn allocation(&self, range: ByteRange) -> io::Result<AllocationExtent> {
        let of = |allocation, end: u64| AllocationExtent {
            allocation,
            len: end.min(range.end()) - range.offset(),
        };
        if !self.has_holes {
            return Ok(of(Allocation::Data, u64::MAX));
        }
        let next = self.data.iter().find(|(at, len, _)| range.offset() < at + len);
        Ok(match next {
            None => of(Allocation::Hole, u64::MAX),
            Some((at, ..)) if range.offset() < *at => of(Allocation::Hole, *at),
            Some((at, len, _)) => of(Allocation::Data, at + len),
        })
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_image_file(&self) -> &dyn ImageFile {
        self
    }
}

#[test]
fn the_content_does_not_depend_on_the_extents() {
    let of = |data: &[(u64, u64, u8)], has_holes| {
        let file = Sparse { len: 32 * MB + 512, data: data.to_vec(), has_holes };
        ContentFingerprint::compute(&file, DiskFormat::Raw).unwrap()
    };
    let empty = of(&[], true);
    assert_eq!(empty.nonzero_pages, 0);
    assert_eq!(of(&[], false), empty, "allocated zeros");
    assert_eq!(of(&[(512, 512, 0), (32 * MB, 512, 0)], true), empty);
    let data = [(512, 512, 1), (2048, 512, 2), (MB, 4096, 3), (32 * MB, 512, 4)];
    let mark = of(&data, true);
    assert_eq!((mark.nonzero_pages, mark), (3, of(&data, false)));
    assert_ne!(of(&[(512, 512, 1)], true).digest, of(&[(8192 + 512, 512, 1)], true).digest);
}

#[test]
fn reading_of_a_content_is_limited() {
    let file = |data: &[(u64, u64, u8)], has_holes| Sparse {
        len: 1 << 40,
        data: data.to_vec(),
        has_holes,
    };
    let empty = ContentFingerprint::compute(&file(&[], true), DiskFormat::Raw).unwrap();
    assert_eq!(empty.matches(&file(&[(1 << 39, 512, 0)], true)), Some(true));
    assert_eq!(empty.matches(&file(&[(1 << 39, 512, 1)], true)), Some(false));
    // Zeros that were written, or a file system that does not report holes.
    assert_eq!(empty.matches(&file(&[(0, 64 * MB, 0)], true)), Some(true));
    assert_eq!(empty.matches(&file(&[(0, 64 * MB + 1, 0)], true)), None);
    assert_eq!(empty.matches(&file(&[], false)), None);
    assert_eq!(ContentFingerprint::compute(&file(&[], false), DiskFormat::Raw), None);
    assert_eq!(empty.matches(&file(&[(0, 512, 1)], false)), Some(false), "data is found first");
    let extents: Vec<(u64, u64, u8)> = (0..3000).map(|nth| (nth * MB, 512, 0)).collect();
    assert_eq!(empty.matches(&file(&extents, true)), None);
    assert_eq!(empty.matches(&file(&extents[..2000], true)), Some(true));
}
