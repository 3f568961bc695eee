//! Replays the VHD fuzzing corpus, unmodified and corrupted, with the fuzz target's oracle.

use crate::replay;
use std::path::Path;

use crate::support::{SECTOR, created, open, parent, payload};
use crate::vhd_oracle::{Outcome, check};
use proptest::prelude::*;
use suimon_image::testing::{MemoryFile, TestDisk};
use suimon_vhd::{Access, CreateParameters, DiskType};

/// Environment variable that rewrites the seeds after a change to them.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

/// Option of a fuzz input: checksums are corrected, so that wrong values of the covered fields are
/// detected in other ways.
const MEND: u8 = 1;
/// Requests of a fuzz input: writes, a flush, a discard, reopening, and more writes.
const SCRIPT: [u8; 21] = [0, 10, 9, 2, 200, 30, 6, 0, 0, 4, 0, 47, 7, 0, 0, 1, 90, 20, 3, 0, 3];

fn input(options: u8, image: &[u8]) -> Vec<u8> {
    [&[options, SCRIPT.len() as u8], SCRIPT.as_slice(), image].concat()
}

/// Returns an image in which several sectors were written.
fn image(disk: CreateParameters) -> Vec<u8> {
    let file = created(disk, 40 * SECTOR);
    let image = open(&file, Access::Write).unwrap();
    let mut disk = TestDisk { image, file: &file, parent: None };
    for (number, (sector, sectors)) in (1..).zip([(1, 2), (17, 6), (39, 1)]) {
        disk.write(sector * SECTOR, &payload(number, sector, sectors)).unwrap();
    }
    disk.flush().unwrap();
    file.bytes()
}

fn changed(mut image: Vec<u8>, offset: usize, bytes: &[u8]) -> Vec<u8> {
    image[offset..offset + bytes.len()].copy_from_slice(bytes);
    image
}

/// Returns name, input and expected result of each seed; `None`: the image is rejected.
fn seeds() -> Vec<(&'static str, Vec<u8>, Option<DiskType>)> {
    let dynamic = || image(CreateParameters::Dynamic { block_size: 2048 });
    let differencing =
        || image(CreateParameters::Differencing { block_size: 2048, parent: parent() });
    let without_end = |image: Vec<u8>| {
        let end = image.len() - 512;
        changed(image, end, &[0; 512])
    };
    // Locators follow the 1024-byte header and the table, which has 4 bytes per entry.
    let table = 1536;
    let same_block = {
        let image = dynamic();
        let entry: [u8; 4] = image[table..table + 4].try_into().unwrap();
        changed(image, table + 16, &entry)
    };
    vec![
        ("fixed", input(0, &image(CreateParameters::Fixed)), Some(DiskType::Fixed)),
        ("dynamic", input(MEND, &dynamic()), Some(DiskType::Dynamic)),
        ("differencing", input(MEND, &differencing()), Some(DiskType::Differencing)),
        ("footer-lost", input(0, &without_end(dynamic())), Some(DiskType::Dynamic)),
        ("copy-lost", input(0, &changed(dynamic(), 0, &[0; 512])), Some(DiskType::Dynamic)),
        (
            "old-footer",
            {
                let mut image = dynamic();
                image.pop();
                input(0, &image)
            },
            Some(DiskType::Dynamic),
        ),
        ("cut-off", input(0, &dynamic()[..2048]), None),
        ("same-block", input(MEND, &same_block), None),
        ("block-on-header", input(MEND, &changed(dynamic(), table, &1_u32.to_be_bytes())), None),
        (
            "block-behind-end",
            input(MEND, &changed(dynamic(), table, &[0xff, 0xff, 0xff, 0xfe])),
            None,
        ),
        ("large-table", input(MEND, &changed(dynamic(), 512 + 28, &[0, 0x40, 0, 0])), None),
        ("table-at-end-of-numbers", input(MEND, &changed(dynamic(), 512 + 16, &[0xff; 8])), None),
        ("odd-blocks", input(MEND, &changed(dynamic(), 512 + 32, &[0, 0, 8, 1])), None),
        ("nothing", input(0, &[0; 4096]), None),
    ]
}

#[test]
fn corpus_contains_each_image_type_and_its_expected_result() {
    for (name, seed, opened) in seeds() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/vhd");
        let path = path.join(format!("seed-{name}"));
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &seed).unwrap();
        }
        let stored = std::fs::read(&path).unwrap_or_default();
        assert!(stored == seed, "{} is stale; run with {WRITE_SEEDS}=1", path.display());
        let Outcome { opened: actual, in_file, writes, discarded } = check(&seed);
        assert_eq!(actual, opened, "{name}");
        assert_eq!((in_file > 0, writes), (actual.is_some(), if actual.is_some() { 4 } else { 0 }));
        assert_eq!(discarded > 0, opened == Some(DiskType::Dynamic), "{name}");
    }
}

#[test]
fn corpus_passes_unmodified_and_corrupted() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("vhd", check);
    replay::damaged_corpus_passes("vhd", check);
    replay::any_bytes_pass(check);
}

/// Generates numbers for invalid field values.
fn number() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        (0_u32..64).prop_map(|number| number.to_be_bytes().to_vec()),
        (0_u64..64).prop_map(|sector| (sector * 512).to_be_bytes().to_vec()),
        (0_u32..64).prop_map(|shift| (1_u64 << shift).to_be_bytes().to_vec()),
        any::<u32>().prop_map(|number| number.to_be_bytes().to_vec()),
        Just(vec![0xff; 8]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Structures with invalid fields and correct checksums pass the oracle.
    #[test]
    fn structures_with_wrong_fields_pass_the_oracle(
        seed_index in 0_usize..3,
        options in 0_u8..8,
        changes in proptest::collection::vec((0_usize..4, 0_usize..512, number()), 1..5),
    ) {
        let (_, seed, _) = &seeds()[seed_index];
        let (start, mut image) = (2 + SCRIPT.len(), seed.clone());
        let end = image.len() - 512;
        for (structure, position, bytes) in changes {
            // Footer copy, header, table, footer; fields are chosen more often than other bytes.
            let (from, fields) = [(start, 84), (start + 512, 64), (start + 1536, 40), (end, 84)][structure];
            let offset = from + if position % 4 == 0 { position } else { position % fields / 4 * 4 };
            let len = bytes.len().min(image.len() - offset);
            image[offset..offset + len].copy_from_slice(&bytes[..len]);
        }
        image[0] = options | MEND;
        check(&image);
    }
}

/// Errors contain the field's name in the specification, and its offset.
#[test]
fn errors_name_the_field_and_its_offset() {
    let with_field = |offset: usize, bytes: &[u8]| {
        let mut image = image(CreateParameters::Dynamic { block_size: 2048 });
        image = changed(image, offset, bytes);
        MemoryFile::new(image)
    };
    let len = with_field(0, &[]).bytes().len();
    let end = len - 512;
    let with_both = |offset: usize, bytes: &[u8]| {
        let image = with_field(offset, bytes).bytes();
        MemoryFile::new(changed(image, end + offset, bytes))
    };
    for (file, field, offset) in [
        (with_both(0, b"conectiy"), "Cookie", end),
        (with_both(63, &[9]), "Checksum", end + 64),
        (with_field(512, b"cxsparsf"), "Cookie", 512),
        (with_field(600, b"x"), "Checksum", 512 + 36),
        (with_field(1536, &[0, 0, 0, 2]), "BAT entry", 1536),
        (with_field(1540, &[0x7f, 0, 0, 0]), "BAT entry", 1540),
        (MemoryFile::new(vec![1; 100]), "footer", 0),
    ] {
        for access in [Access::Read, Access::Write] {
            let error = open(&file, access).unwrap_err();
            assert_eq!((error.field, error.offset), (field, offset as u64), "{error}");
        }
        assert!(file.log().is_empty(), "{field}: a damaged image is changed");
    }
}
