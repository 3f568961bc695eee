//! Differencing disks with blocks so large that the cache cannot hold every bitmap.

use crate::support::disk_file::DiskFile;
use crate::support::{
    PARENT_SECTOR, new_vhd, parent, range, read_parent, sector_data, sector_number,
};
use suimon_image::testing::TestDisk;
use suimon_vhd::{Access, CreateParameters, OpenOptions, SizeSource, Vhd, check};

const BLOCK_SECTORS: u64 = 131_072;
/// Number of blocks, above the capacity of the cache: 256 bitmaps of 16 KiB.
const BLOCKS: u64 = 400;

#[test]
fn evicted_bitmaps_are_reloaded() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = DiskFile::open(&folder.path().join("child.vhd"));
    let block_size = (BLOCK_SECTORS * 512) as u32;
    let disk = CreateParameters::Differencing { block_size, parent: parent() };
    new_vhd(disk, BLOCKS * BLOCK_SECTORS * 512).create(&file).unwrap();
    let open =
        |access| Vhd::open(&file, OpenOptions { access, size: SizeSource::Creator }).unwrap();
    let mut parent = read_parent;
    let mut disk = TestDisk { image: open(Access::Write), file: &file, parent: Some(&mut parent) };
    // Without explicit flushes: the image requests commits when necessary.
    for round in 0..3 {
        for block in 0..BLOCKS {
            let sector = block * BLOCK_SECTORS + 1000 * round;
            disk.write(sector * 512, &sector_data(sector)).unwrap();
        }
    }
    disk.flush().unwrap();
    let report = check(&file, SizeSource::Creator);
    assert!(report.findings.is_empty(), "{report:?}");
    let check_all = |disk: &mut TestDisk<'_, Vhd>| {
        for block in (0..BLOCKS).rev() {
            for (offset, is_here) in
                [(0, true), (1, false), (1000, true), (2000, true), (2001, false)]
            {
                let sector = block * BLOCK_SECTORS + offset;
                let bytes = disk.read(range(sector, 1)).unwrap();
                let expected = if is_here { sector } else { PARENT_SECTOR | sector };
                assert_eq!(sector_number(&bytes), expected, "{block} {offset}");
            }
        }
    };
    check_all(&mut disk);
    let mut parent = read_parent;
    check_all(&mut TestDisk { image: open(Access::Read), file: &file, parent: Some(&mut parent) });
}
