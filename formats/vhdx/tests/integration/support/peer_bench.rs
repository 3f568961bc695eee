//! Test bench for images and third-party programs, also used for VHD: a folder with images, and the
//! reference contents of the disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use suimon_image::testing::{TestDisk, first_difference};
use suimon_image::{ByteRange, Image};
use tempfile::TempDir;

use super::disk_file::DiskFile;

const PIECE: u64 = 8 << 20;

/// Python program that reads a disk with libvhdi, including its parents, into a file.
const READ_BY_LIBVHDI: &str = "
import sys, pyvhdi
images = []
for path in sys.argv[2:]:
    image = pyvhdi.file()
    image.open(path)
    images.append(image)
for image, parent in zip(images, images[1:]):
    image.set_parent(parent)
size = images[0].get_media_size()
with open(sys.argv[1], 'wb') as out:
    for at in range(0, size, 1 << 20):
        out.write(images[0].read_buffer_at_offset(min(1 << 20, size - at), at))
";

/// Folder with images, and the contents that the disk must have.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    pub(crate) size: u64,
}

impl Bench {
    pub(crate) fn new(size: u64) -> Self {
        let bench = Self { folder: TempDir::new().unwrap(), size };
        File::create(bench.path("raw")).unwrap().set_len(size).unwrap();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str) -> DiskFile {
        DiskFile::open(&self.path(name))
    }

    /// Writes to the reference contents only.
    pub(crate) fn expect(&self, offset: u64, bytes: &[u8]) {
        let raw = File::options().write(true).open(self.path("raw")).unwrap();
        raw.write_all_at(bytes, offset).unwrap();
    }

    /// Asserts that libvhdi reads the reference contents from the first image, with the others as
    /// its chain of parents.
    pub(crate) fn libvhdi_agrees(&self, images: &[&str]) {
        self.libvhdi_agrees_on(self.size, images);
    }

    /// Asserts that libvhdi reads the first `size` bytes of the reference contents from the first
    /// image, with the others as its chain of parents.
    pub(crate) fn libvhdi_agrees_on(&self, size: u64, images: &[&str]) {
        let mut paths = vec![self.path("libvhdi")];
        paths.extend(images.iter().map(|image| self.path(image)));
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        run("/usr/bin/python3", &["-c", READ_BY_LIBVHDI], &paths);
        let read = |name: &str| std::fs::read(self.path(name)).unwrap();
        let (expected, actual) = (read("raw"), read("libvhdi"));
        let differs = first_difference(&expected, &actual);
        assert_eq!((differs, actual.len() as u64), (None, size), "libvhdi differs in {images:?}");
    }

    /// Asserts that `disk` has the reference contents.
    pub(crate) fn is_read_from(&self, disk: &mut TestDisk<'_, impl Image>) {
        assert_eq!(disk.image.disk_geometry().size_bytes, self.size);
        let raw = File::open(self.path("raw")).unwrap();
        for (_, piece) in ByteRange::new(0, self.size).unwrap().blocks(PIECE) {
            let mut expected = vec![0; piece.len() as usize];
            raw.read_exact_at(&mut expected, piece.offset()).unwrap();
            assert!(disk.read(piece).unwrap() == expected, "{piece}");
        }
    }
}

/// Runs a program that must succeed, with `arguments` followed by `paths`. Returns its output.
pub(crate) fn run(program: &str, arguments: &[&str], paths: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).args(paths).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; run scripts/setup"));
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{program} {arguments:?} {paths:?}: {text}");
    text
}
