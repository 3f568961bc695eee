//! Inconsistent images: each is rejected with field and offset.

use std::cell::Cell;

use suimon_image::testing::MemoryFile;
use suimon_image::{FileError, ImageFile};
use suimon_vhdx::{NewVhdx, Vhdx, check};

use crate::support::*;

const KB: u64 = 1 << 10;
const HEADERS: [u64; 2] = [64 * KB, 128 * KB];
const REGIONS: [u64; 2] = [192 * KB, 256 * KB];
const METADATA: u64 = 2 * MB;
const ITEMS: u64 = METADATA + 64 * KB;
const BAT: u64 = 3 * MB;

/// Returns the bytes of an image with two allocated blocks, at 4 and 5 MB.
fn image_bytes(spec: &NewVhdx) -> Vec<u8> {
    let file = created(spec);
    let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    disk.write(0, &vec![1; 2 * MB as usize]).unwrap();
    disk.image.close(&file).unwrap();
    file.bytes()
}

/// Updates the checksum of the structure at `offset` with length `len`.
fn seal(bytes: &mut [u8], offset: u64, len: u64) {
    let structure = &mut bytes[offset as usize..(offset + len) as usize];
    structure[4..8].fill(0);
    let checksum = crc32c::crc32c(structure);
    structure[4..8].copy_from_slice(&checksum.to_le_bytes());
}

fn put(bytes: &mut [u8], offset: u64, field: &[u8]) {
    bytes[offset as usize..offset as usize + field.len()].copy_from_slice(field);
}

/// Changes a field in both structures (headers or region tables), at `offset` within each, and
/// updates their checksums.
fn with_both(mut bytes: Vec<u8>, structures: [u64; 2], offset: u64, field: &[u8]) -> Vec<u8> {
    for structure in structures {
        put(&mut bytes, structure + offset, field);
        let len = if structures == HEADERS { 4096 } else { 64 * KB };
        seal(&mut bytes, structure, len);
    }
    bytes
}

/// Asserts that all functions that open an image reject this one, with this error and without
/// changing the file.
#[track_caller]
fn refused(bytes: Vec<u8>, field: &str, offset: u64, reason: &str) {
    let file = MemoryFile::new(bytes);
    let reading = Vhdx::open_read_only(&file).unwrap_err();
    assert_eq!((reading.field, reading.offset), (field, offset), "{reading}");
    assert!(reading.to_string().contains(reason), "{reading}");
    let writing = Vhdx::open(&file, &guids(2)).unwrap_err();
    assert_eq!(writing.to_string(), reading.to_string());
    assert_eq!(file.log(), []);
    let report = check(&file);
    let first = report.faults.iter().find(|fault| (fault.field, fault.offset) == (field, offset));
    assert!(first.is_some(), "{report:?}");
}

#[test]
fn invalid_headers_are_rejected() {
    let valid = image_bytes(&dynamic(4 * MB));
    refused(Vec::new(), "header section", 0, "truncated");
    refused(vec![0; 2 * MB as usize], "FileIdentifier.Signature", 0, "vhdxfile");
    let both = |offset: u64, field: &[u8]| with_both(valid.clone(), HEADERS, offset, field);
    refused(both(0, b"x"), "Header.Signature", HEADERS[0], "head");
    refused(both(66, &[2]), "Header.Version", HEADERS[0] + 66, "version 2");
    refused(both(72, &[1]), "Header.LogOffset", HEADERS[0] + 72, "1 MB");
    refused(both(68, &[0; 4]), "Header.LogOffset", HEADERS[0] + 72, "1 MB");
    let mut invalid = valid.clone();
    for header in HEADERS {
        put(&mut invalid, header + 20, &[0xee]);
    }
    refused(invalid, "Header.Checksum", HEADERS[0] + 4, "checksum");
    let mut equal = valid.clone();
    put(&mut equal, HEADERS[0] + 8, &[9; 8]);
    put(&mut equal, HEADERS[1] + 8, &[9; 8]);
    put(&mut equal, HEADERS[1] + 16, &[9; 8]);
    for header in HEADERS {
        seal(&mut equal, header, 4096);
    }
    refused(equal, "Header.SequenceNumber", HEADERS[1] + 8, "other header");
    let mut log = both(48, &[1; 16]);
    log = with_both(log, HEADERS, 64, &[1]);
    refused(log, "Header.LogVersion", MB, "version 1 of the log");
    let long = with_both(both(48, &[1; 16]), HEADERS, 68, &(65_u32 << 20).to_le_bytes());
    refused(long, "Header.LogLength", MB, "64 MB");
}

#[test]
fn invalid_regions_are_rejected() {
    let valid = image_bytes(&dynamic(4 * MB));
    let both = |offset: u64, field: &[u8]| with_both(valid.clone(), REGIONS, offset, field);
    let first = REGIONS[0];
    refused(both(0, b"x"), "RegionTable.Signature", first, "regi");
    refused(both(8, &[0, 8]), "RegionTable.EntryCount", first + 8, "2047");
    // Unknown third region: required or optional.
    let unknown = |flags: u8| {
        let region = [[7; 16].as_slice(), &(9 * MB).to_le_bytes(), &[0, 0, 16, 0, flags, 0, 0, 0]];
        with_both(both(8, &[3]), REGIONS, 16 + 64, &region.concat())
    };
    refused(unknown(1), "RegionTableEntry.Guid", first + 16 + 64, "required feature not supported");
    assert!(Vhdx::open_read_only(&MemoryFile::new(unknown(0))).is_ok());
    // The first entry is that of the metadata region, the second that of the BAT.
    let file_offset = |mb: u64| (mb * MB).to_le_bytes();
    refused(both(32, &file_offset(0)), "RegionTableEntry.FileOffset", first + 32, "from 1 MB on");
    refused(both(32, &file_offset(1)), "region", first + 16, "overlaps");
    refused(both(64, &file_offset(2)), "region", first + 48, "overlaps");
    refused(both(64, &file_offset(100)), "BAT", 100 * MB, "truncated");
    refused(
        both(64, &[0, 0, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff]),
        "RegionTableEntry.FileOffset",
        first + 64,
        "64 bits",
    );
    refused(
        both(16, &[7; 16]),
        "RegionTableEntry.Guid",
        first + 16,
        "required feature not supported",
    );
    refused(both(8, &[1]), "BAT region", first, "missing");
}

#[test]
fn invalid_metadata_is_rejected() {
    let valid = image_bytes(&dynamic(4 * MB));
    let with_field = |offset: u64, field: &[u8]| {
        let mut bytes = valid.clone();
        put(&mut bytes, offset, field);
        bytes
    };
    refused(with_field(METADATA, b"x"), "MetadataTable.Signature", METADATA, "metadata");
    refused(with_field(METADATA + 10, &[0, 8]), "MetadataTable.EntryCount", METADATA + 10, "2047");
    // The first entry is that of the file parameters.
    let entry = METADATA + 32;
    refused(
        with_field(entry, &[7]),
        "MetadataTableEntry.ItemId",
        entry,
        "required feature not supported",
    );
    refused(with_field(entry + 16, &[0; 4]), "MetadataTableEntry.Offset", entry + 16, "behind");
    refused(with_field(entry + 16, &[255; 4]), "MetadataTableEntry.Offset", entry + 16, "behind");
    refused(with_field(entry + 20, &[4]), "FileParameters", ITEMS, "the length of its value");
    refused(
        with_field(entry + 32, &valid[entry as usize..entry as usize + 16]),
        "MetadataTableEntry.ItemId",
        entry + 32,
        "same item",
    );
    refused(with_field(METADATA + 10, &[4]), "PhysicalSectorSize", METADATA, "missing");
    refused(with_field(ITEMS, &(3_u32 << 20).to_le_bytes()), "BlockSize", ITEMS, "power of two");
    refused(with_field(ITEMS, &(1_u32 << 29).to_le_bytes()), "BlockSize", ITEMS, "256 MB");
    refused(with_field(ITEMS + 4, &[4]), "FileParameters", ITEMS + 4, "flags");
    refused(with_field(ITEMS + 4, &[2]), "ParentLocator", METADATA, "missing");
    refused(with_field(ITEMS + 16, &[1]), "VirtualDiskSize", ITEMS + 16, "64 TB");
    refused(with_field(ITEMS + 16, &[0; 8]), "VirtualDiskSize", ITEMS + 16, "64 TB");
    refused(with_field(ITEMS + 21, &[0x40]), "VirtualDiskSize", ITEMS + 16, "64 TB");
    refused(
        with_field(ITEMS + 21, &[0x20]),
        "BAT region length",
        BAT,
        "the length that the disk needs",
    );
    refused(with_field(ITEMS + 48, &[0; 4]), "LogicalSectorSize", ITEMS + 48, "512 or 4096");
    // Unknown optional items are ignored.
    let mut optional = with_field(METADATA + 10, &[6]);
    put(&mut optional, METADATA + 32 * 6, &[5; 16]);
    assert!(Vhdx::open_read_only(&MemoryFile::new(optional)).is_ok());
}

#[test]
fn invalid_blocks_are_rejected() {
    let entry = |spec: &NewVhdx, number: u64, value: u64| {
        let mut bytes = image_bytes(spec);
        put(&mut bytes, BAT + 8 * number, &value.to_le_bytes());
        bytes
    };
    let (plain, child) = (dynamic(4 * MB), child(4 * MB));
    for (spec, number, value, reason) in [
        (&plain, 0, 4, "a state of a payload block"),
        (&plain, 0, 4 * MB | 7, "a state of a payload block"),
        (&plain, 0, 6, "behind the headers"),
        (&plain, 0, MB << 30 | 6, "512 TB"),
        (&plain, 0, u64::MAX << 20 | 6, "512 TB"),
        (&plain, 0, 5 * MB | 6, "overlaps"),
        (&plain, 1, 3 * MB | 6, "overlaps"),
        (&plain, 1, 2 * MB | 6, "overlaps"),
        (&plain, 1, MB | 6, "overlaps"),
        (&plain, 0, 6 * MB | 6, "truncated"),
        (&child, 4096, 7, "the states of a sector bitmap"),
        (&child, 4096, 5 * MB | 6, "overlaps"),
        (&child, 0, 4 * MB | 7, "missing"),
    ] {
        // An overlap is detected at the second of the two structures.
        let entry_index = if value == 5 * MB | 6 && number == 0 { 1 } else { number };
        let field = if reason == "missing" { "sector bitmap of a block" } else { "BatEntry" };
        refused(entry(spec, number, value), field, BAT + 8 * entry_index, reason);
    }
    // Offsets in entries of unallocated blocks are ignored.
    for state in [0, 1, 2, 3, 5] {
        let bytes = entry(&plain, 0, 5 * MB | 0xff << 8 | state);
        let bytes = content(
            Vhdx::open_read_only(&MemoryFile::new(bytes.clone())).unwrap(),
            &MemoryFile::new(bytes),
        );
        assert!(bytes[..MB as usize].iter().all(|byte| *byte == 0), "{state}");
        assert!(bytes[MB as usize..2 * MB as usize].iter().all(|byte| *byte == 1), "{state}");
    }
}

#[test]
fn check_reports_faults_and_unused_space() {
    let mut bytes = image_bytes(&dynamic(4 * MB));
    put(&mut bytes, HEADERS[1] + 20, &[0xee]);
    put(&mut bytes, REGIONS[0] + 20, &[0xee]);
    put(&mut bytes, BAT, &(4 * MB | 4).to_le_bytes());
    put(&mut bytes, BAT + 8, &(6 * MB | 6).to_le_bytes());
    bytes.resize(bytes.len() + 3 * MB as usize, 0);
    let report = check(&MemoryFile::new(bytes));
    let actual: Vec<_> = report.faults.iter().map(|fault| (fault.field, fault.offset)).collect();
    let expected = [
        ("BatEntry", BAT),
        ("Header.Checksum", HEADERS[1] + 4),
        ("RegionTable.Checksum", REGIONS[0] + 4),
    ];
    assert_eq!(actual, expected);
    // 4 to 6 MB, and behind the block at 6 MB.
    assert_eq!((report.unused_bytes, report.present_blocks), (4 * MB, 1));
    let many = 3000;
    let mut bytes = image_bytes(&dynamic(many * MB));
    for number in 0..many {
        put(&mut bytes, BAT + 8 * number, &[4]);
    }
    let report = check(&MemoryFile::new(bytes));
    assert_eq!((report.faults.len(), report.faults_omitted), (1000, many - 1000));
}

/// File whose operations fail after a number of calls.
struct Failing {
    file: MemoryFile,
    left: Cell<usize>,
}

impl Failing {
    fn call(&self) -> Result<(), FileError> {
        let remaining = self.left.get().checked_sub(1);
        self.left.set(remaining.ok_or_else(|| std::io::Error::other("broken"))?);
        Ok(())
    }
}

impl ImageFile for Failing {
    fn len(&self) -> Result<u64, FileError> {
        self.call()?;
        self.file.len()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.call()?;
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.call()?;
        self.file.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        self.call()?;
        self.file.set_len(len)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        self.call()?;
        self.file.zero(offset, len)
    }

    fn flush(&self) -> Result<(), FileError> {
        self.call()?;
        self.file.flush()
    }
}

#[test]
fn io_failures_leave_a_valid_image() {
    let base_file = created(&child(4 * MB));
    let mut first = disk(Vhdx::open(&base_file, &guids(1)).unwrap(), &base_file);
    first.write(512, &[1; 512]).unwrap();
    first.flush().unwrap();
    let mut finished = false;
    for calls in 0..100 {
        let file = Failing { file: MemoryFile::new(base_file.bytes()), left: Cell::new(calls) };
        let result = Vhdx::open(&file, &guids(2)).and_then(|image| image.close(&file));
        finished = result.is_ok();
        let actual = content(Vhdx::open_read_only(&file.file).unwrap(), &file.file);
        assert_eq!(actual[512..1024], [1; 512], "after {calls} calls");
        if finished {
            break;
        }
    }
    assert!(finished, "100 calls are enough");
}
