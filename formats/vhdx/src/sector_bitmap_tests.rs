use proptest::prelude::*;

use super::*;
use crate::bat::{BatEntry, BlockState};
use crate::fields::MB;

/// Number of disk bytes that one page covers.
const PAGE_DISK: u64 = 16 * MB;
const PAGES: u64 = 3 * PAGES_MAX as u64;

fn geometry() -> Geometry {
    let size = PAGES * PAGE_DISK;
    Geometry { size, block_shift: 20, sector_shift: 9, has_parent: true }
}

/// Returns a BAT in which every chunk has a sector bitmap.
fn bat(geometry: &Geometry) -> Bat {
    let mut bat = Bat::empty(ByteRange::new(3 * MB, MB).unwrap(), geometry);
    for chunk in 0..geometry.chunks() {
        let entry = BatEntry::present(BlockState::FullyPresent, 10 + chunk as u32);
        bat.set_bitmap_entry(chunk, entry, geometry);
    }
    bat
}

fn page_range(page: u64) -> ByteRange {
    ByteRange::new(page * PAGE_DISK, 512).unwrap()
}

/// Loads a page; if it must be read, its first byte is `byte`. Returns true if it was read.
fn load(bitmaps: &mut SectorBitmaps, page: u64, byte: u8, geometry: &Geometry, bat: &Bat) -> bool {
    let Some(required) = bitmaps.load(page_range(page), geometry, bat) else { return false };
    let expected = bat.bitmap_entry(page / CHUNK_PAGES).offset() + page % CHUNK_PAGES * PAGE_BYTES;
    assert_eq!((required.offset(), required.len()), (expected, PAGE_BYTES));
    let mut bytes = [0; PAGE_LEN];
    bytes[0] = byte;
    bitmaps.handle_page(required, &bytes, geometry).unwrap();
    assert_eq!(bitmaps.load(page_range(page), geometry, bat), None);
    true
}

#[test]
fn cache_is_bounded_and_keeps_needed_pages() {
    let geometry = geometry();
    let bat = bat(&geometry);
    let mut bitmaps = SectorBitmaps::default();
    for page in [0, 1, 2] {
        load(&mut bitmaps, page, 0, &geometry, &bat);
    }
    bitmaps.set(page_range(0), true, &geometry);
    bitmaps.pin((page_range(1).offset() + PAGE_DISK - MB) >> geometry.block_shift);
    for page in 3..PAGES {
        assert!(load(&mut bitmaps, page, 0, &geometry, &bat));
        assert!(bitmaps.pages.len() <= PAGES_MAX);
    }
    assert!(bitmaps.is_loaded(page_range(0), &geometry), "it is not written");
    assert!(bitmaps.is_loaded(page_range(1), &geometry), "a write is under way");
    assert!(!bitmaps.is_loaded(page_range(2), &geometry));
    assert_eq!(bitmaps.first_run(page_range(0), &geometry), (true, 512));
    assert!(
        bitmaps.is_loaded(page_range(PAGES - PAGES_PER_REQUEST_MAX), &geometry),
        "a question's"
    );
    // Repeated insertion of a page has no effect.
    let again = ByteRange::new(bat.bitmap_entry(0).offset(), PAGE_BYTES).unwrap();
    bitmaps.handle_page(again, &[0; PAGE_LEN], &geometry).unwrap();
    assert_eq!(bitmaps.first_run(page_range(0), &geometry), (true, 512));
    assert!(bitmaps.handle_page(again, &[0; 9], &geometry).is_err());
    bitmaps.unpin((page_range(1).offset() + PAGE_DISK - MB) >> geometry.block_shift);
    bitmaps.dirty_pages.clear();
    assert!(!load(&mut bitmaps, PAGES - 1, 0, &geometry, &bat));
    assert!(load(&mut bitmaps, 2, 8, &geometry, &bat));
}

/// An insertion into a full cache examines few pages, even while a quarter of the pages is in use.
#[test]
fn an_insertion_into_a_full_cache_examines_few_pages() {
    const INSERTED: usize = 2 * PAGES_MAX;
    let geometry = geometry();
    let bat = bat(&geometry);
    let mut bitmaps = SectorBitmaps::default();
    for page in 0..PAGES_MAX as u64 {
        load(&mut bitmaps, page, 0, &geometry, &bat);
        if page % 4 == 0 {
            bitmaps.set(page_range(page), true, &geometry);
        }
    }
    assert_eq!(bitmaps.examined, 0);
    for page in PAGES_MAX as u64..PAGES {
        load(&mut bitmaps, page, 0, &geometry, &bat);
    }
    let examined = bitmaps.examined;
    assert!(examined <= 2 * INSERTED, "{examined} pages for {INSERTED} insertions");
    assert!(
        (0..PAGES_MAX as u64).step_by(4).all(|page| bitmaps.is_loaded(page_range(page), &geometry))
    );
    // With all pages in use, the cache grows, and shrinks again.
    let pages: Vec<u64> = bitmaps.pages.keys().copied().collect();
    bitmaps.dirty_pages.extend(pages);
    let mut loaded = 0;
    for page in (0..PAGES).filter(|page| page % 4 != 0).take(40) {
        loaded += usize::from(load(&mut bitmaps, page, 0, &geometry, &bat));
    }
    assert_eq!(bitmaps.examined - examined, loaded * EXAMINED_MAX);
    assert_eq!(bitmaps.pages.len(), PAGES_MAX + loaded);
    bitmaps.dirty_pages.clear();
    for page in (0..PAGES).filter(|page| page % 4 != 0).skip(40).take(100) {
        load(&mut bitmaps, page, 0, &geometry, &bat);
    }
    assert_eq!(bitmaps.pages.len(), PAGES_MAX);
    assert_eq!(bitmaps.order.len(), PAGES_MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_match_set_bits(
        sets in prop::collection::vec((0..600_u64, 0..300_u64, any::<bool>()), 0..12),
    ) {
        let geometry = geometry();
        let bat = bat(&geometry);
        let mut bitmaps = SectorBitmaps::default();
        // Across the end of a page.
        let first = (PAGE_DISK >> 9) - 450;
        for page in [0, 1] {
            load(&mut bitmaps, page, 0, &geometry, &bat);
        }
        let mut expected = vec![false; 900];
        for (from, len, is_present) in sets {
            let range = ByteRange::new((first + from) << 9, len << 9).unwrap();
            bitmaps.set(range, is_present, &geometry);
            expected[from as usize..(from + len) as usize].fill(is_present);
        }
        let mut runs = Vec::new();
        while runs.len() < 900 {
            let offset = runs.len() as u64;
            let rest = ByteRange::new((first + offset) << 9, (900 - offset) << 9).unwrap();
            let (is_present, len) = bitmaps.first_run(rest, &geometry);
            prop_assert!(len > 0);
            prop_assert_ne!(runs.last(), Some(&is_present), "runs are as long as they can be");
            runs.resize(runs.len() + (len >> 9) as usize, is_present);
        }
        prop_assert_eq!(runs, expected);
    }
}
