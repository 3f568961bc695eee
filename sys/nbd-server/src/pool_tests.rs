use super::*;
use crate::{NbdAccounting, RESERVED_BYTES};
use suimon_ports::NbdLimits;

const CHUNK: u64 = CHUNK_BYTES as u64;
const SMALL: u64 = SMALL_CHUNK_BYTES as u64;

/// Returns a pool, and the accounts of a host with `surplus` bytes beyond the pool's reservation.
fn pool(surplus: u64) -> (Pool, NbdAccounting) {
    let budgets = NbdAccounting::default();
    let limits = |bytes| NbdLimits { connections_max: 0, buffer_bytes_max: bytes };
    budgets.set_limits(limits(RESERVED_BYTES + surplus), limits(u64::MAX));
    (Pool::new(Arc::new(budgets.admit_daemon())), budgets)
}

fn take(pool: &mut Pool, bytes: u64) -> Option<Vec<u32>> {
    let has_room = pool.fits(bytes);
    let chunks = pool.take(bytes, &mut |_| {});
    assert_eq!(has_room, chunks.is_some(), "{bytes}");
    chunks
}

/// Releases unused chunks until none remains. Returns the lists of released chunks.
fn release(pool: &mut Pool) -> Vec<Vec<u32>> {
    let mut released = Vec::new();
    while pool.release_unused(&mut |chunks| released.push(chunks.collect())) {}
    released
}

#[test]
fn chunks_are_given_out_once_and_none_if_there_are_too_few() {
    let (mut pool, _) = pool(1 << 30);
    let first_chunks = take(&mut pool, CHUNK * 1000 + 1).unwrap();
    assert_eq!(take(&mut pool, CHUNK * 24), None);
    let other_chunks = take(&mut pool, CHUNK * 23).unwrap();
    let mut all_chunks = [first_chunks.clone(), other_chunks].concat();
    all_chunks.sort_unstable();
    assert!(all_chunks.into_iter().eq(0..CHUNKS));
    pool.release(first_chunks);
    assert!(take(&mut pool, CHUNK * 1001).is_some());
}

#[test]
fn small_payloads_get_small_chunks_and_others_when_there_are_none() {
    let (mut pool, _) = pool(1 << 30);
    assert_eq!(take(&mut pool, 0), Some(Vec::new()));
    let small_chunks: Vec<_> = (0..SMALL_CHUNKS).map(|_| take(&mut pool, SMALL).unwrap()).collect();
    assert!(small_chunks.iter().flatten().all(|&chunk| chunk >= CHUNKS));
    assert!(take(&mut pool, 1).unwrap()[0] < CHUNKS);
    let hot = small_chunks.last().unwrap().clone();
    small_chunks.into_iter().for_each(|chunks| pool.release(chunks));
    assert_eq!(take(&mut pool, 512).unwrap(), hot);
    assert!(take(&mut pool, SMALL + 1).unwrap()[0] < CHUNKS);
}

#[test]
fn returned_lists_are_reused_and_bounded() {
    let (mut pool, _) = pool(1 << 30);
    let many: Vec<_> = (0..3 * SPARE_LISTS_MAX).map(|_| take(&mut pool, 1).unwrap()).collect();
    many.into_iter().for_each(|chunks| pool.release(chunks));
    for _ in 0..100 {
        pool.release(Vec::new());
    }
    assert_eq!(pool.spare_lists(), SPARE_LISTS_MAX);
    let chunks = take(&mut pool, 1);
    assert_eq!(pool.spare_lists(), SPARE_LISTS_MAX - 1);
    drop(chunks);
}

#[test]
fn chunks_count_while_they_have_memory_and_unused_ones_are_released() {
    let (mut pool, budgets) = pool(8 * CHUNK);
    let used = || budgets.usage().host.buffer_bytes - RESERVED_BYTES;
    // The first four chunks are covered by the reservation.
    let chunks = take(&mut pool, 12 * CHUNK).unwrap();
    assert_eq!((used(), take(&mut pool, CHUNK)), (8 * CHUNK, None));
    pool.release(chunks);
    assert_eq!(used(), 8 * CHUNK, "they have memory");
    // Two chunks remain in use until they are released, and are used again then.
    let busy = take(&mut pool, 2 * CHUNK).unwrap();
    let mut released = 0;
    assert!(pool.release_unused(&mut |_| released += 1), "all were in use since the last call");
    assert_eq!(released, 0);
    assert!(!pool.release_unused(&mut |chunks| released += chunks.len()));
    assert_eq!((released, used()), (10, 0));
    pool.release(busy);
    assert_eq!(release(&mut pool).concat().len(), 2);
    assert_eq!(take(&mut pool, 12 * CHUNK).map(|chunks| chunks.len()), Some(12));
}

#[test]
fn spare_small_chunks_make_room_for_a_large_payload() {
    let (mut pool, budgets) = pool(0);
    let small: Vec<_> = (0..64).map(|_| take(&mut pool, SMALL).unwrap()).collect();
    assert!(take(&mut pool, SMALL).is_none(), "they have all memory of the reservation");
    small.into_iter().for_each(|chunks| pool.release(chunks));
    let mut released = 0;
    let taken_chunks =
        pool.take(PAYLOAD_RESERVED_BYTES, &mut |chunks| released += chunks.len()).unwrap();
    assert_eq!((released, taken_chunks.len()), (64, 4));
    assert!(take(&mut pool, 1).is_none());
    assert_eq!(budgets.usage().host.buffer_bytes, RESERVED_BYTES);
    // A warm free chunk serves a small payload for which no small chunk has memory.
    pool.release(taken_chunks);
    assert!(take(&mut pool, 1).unwrap()[0] < CHUNKS);
}

#[test]
fn a_dropped_pool_returns_its_buffers() {
    let (mut pool, budgets) = pool(1 << 20);
    let _held = take(&mut pool, 1 << 20).unwrap();
    assert!(budgets.usage().host.buffer_bytes > RESERVED_BYTES);
    drop(pool);
    assert_eq!(budgets.usage().host.buffer_bytes, 0);
}
