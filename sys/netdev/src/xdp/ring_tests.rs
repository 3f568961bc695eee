//! Tests of rings whose other end is operated by the test: by another thread, and in all
//! interleavings of both sides. The simulated kernel follows `net/xdp/xsk_queue.h`, the simulated
//! driver `include/net/xdp_sock_drv.h`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::*;
use crate::xdp::interleaving::{CELLS, SimulatedCpu, check, explore};

/// Ring that two threads may share.
#[derive(Clone)]
struct Shared(Arc<Cells>);

struct Cells {
    producer: AtomicU32,
    consumer: AtomicU32,
    is_asleep: AtomicU32,
    entries: Vec<AtomicU64>,
}

impl Shared {
    fn new(len: usize, start: u32) -> Self {
        Self(Arc::new(Cells {
            producer: start.into(),
            consumer: start.into(),
            is_asleep: 0.into(),
            entries: (0..len).map(|_| AtomicU64::new(0)).collect(),
        }))
    }

    fn entry(&self, index: u32) -> &AtomicU64 {
        &self.0.entries[index as usize % self.0.entries.len()]
    }
}

impl RingCells<u64> for Shared {
    fn len(&self) -> u32 {
        self.0.entries.len() as u32
    }
    fn producer_index(&self) -> u32 {
        self.0.producer.load(Ordering::Acquire)
    }
    fn set_producer_index(&self, index: u32) {
        self.0.producer.store(index, Ordering::Release);
    }
    fn consumer_index(&self) -> u32 {
        self.0.consumer.load(Ordering::Acquire)
    }
    fn set_consumer_index(&self, index: u32) {
        self.0.consumer.store(index, Ordering::Release);
    }
    fn is_wakeup_required(&self) -> bool {
        self.0.is_asleep.load(Ordering::Relaxed) != 0
    }
    fn full_barrier(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
    }
    fn read(&self, index: u32) -> u64 {
        self.entry(index).load(Ordering::Relaxed)
    }
    fn write(&mut self, index: u32, entry: u64) {
        self.entry(index).store(entry, Ordering::Relaxed);
    }
}

const ENTRIES: u32 = 8;

#[test]
fn a_full_ring_takes_nothing_and_indices_run_over() {
    let start = u32::MAX - 3;
    let cells = Shared::new(ENTRIES as usize, start);
    let mut ring = Producer::new(cells.clone());
    for entry in 0..u64::from(ENTRIES) {
        assert!(ring.push(entry));
    }
    assert!(!ring.push(99));
    assert_eq!(cells.producer_index(), start, "nothing was submitted");
    ring.submit();
    assert_eq!(cells.producer_index(), 4);
    // The kernel takes three entries.
    cells.set_consumer_index(start.wrapping_add(3));
    assert_eq!((ring.unconsumed_count(), ring.free_slots()), (5, 3));
    assert!(!ring.requires_wakeup());
    cells.0.is_asleep.store(1, Ordering::Relaxed);
    assert!(ring.requires_wakeup());
}

#[test]
fn entries_are_seen_once_they_are_counted_and_no_more_than_a_ring_holds() {
    let mut cells = Shared::new(ENTRIES as usize, u32::MAX);
    let mut ring = Consumer::new(cells.clone());
    for index in 0..ENTRIES {
        cells.write(u32::MAX.wrapping_add(index), index.into());
    }
    cells.set_producer_index(4);
    assert_eq!((ring.peek(0), ring.available()), (None, 5));
    let entries: Vec<_> = (0..6).map_while(|index| ring.peek(index)).collect();
    assert_eq!(entries, [0, 1, 2, 3, 4]);
    ring.release(2);
    assert_eq!((ring.peek(0), ring.peek(3)), (Some(2), None));
    ring.release(100);
    assert_eq!(cells.consumer_index(), 4);
    // An index that a conforming kernel does not write.
    cells.set_producer_index(4_000_000);
    assert_eq!(ring.available(), ENTRIES);
}

/// One thread produces and another one consumes, on the memory model of this machine.
#[test]
fn all_entries_pass_between_two_threads_in_order() {
    const COUNT: u64 = 200_000;
    let cells = Shared::new(64, u32::MAX - 1000);
    let (mut producer, mut consumer) = (Producer::new(cells.clone()), Consumer::new(cells));
    let pushes = std::thread::spawn(move || {
        let mut next = 0;
        while next < COUNT {
            while next < COUNT && producer.push(next.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                next += 1;
            }
            producer.submit();
            std::thread::yield_now();
        }
    });
    let mut count = 0_u64;
    while count < COUNT {
        let available = consumer.available();
        for index in 0..available {
            let expected = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert_eq!(consumer.peek(index), Some(expected), "{count}");
            count += 1;
        }
        consumer.release(available);
        std::thread::yield_now();
    }
    pushes.join().unwrap();
}

const PRODUCER: usize = 0;
const CONSUMER: usize = 1;
const ASLEEP: usize = 2;
const ENTRY: usize = 3;

/// Ring of one entry, in the memory of the simulated machine.
impl RingCells<u32> for &SimulatedCpu {
    fn len(&self) -> u32 {
        1
    }
    fn producer_index(&self) -> u32 {
        self.load(PRODUCER)
    }
    fn set_producer_index(&self, index: u32) {
        self.store(PRODUCER, index);
    }
    fn consumer_index(&self) -> u32 {
        self.load(CONSUMER)
    }
    fn set_consumer_index(&self, index: u32) {
        self.store(CONSUMER, index);
    }
    fn is_wakeup_required(&self) -> bool {
        self.load(ASLEEP) != 0
    }
    fn full_barrier(&self) {
        self.barrier();
    }
    fn read(&self, _index: u32) -> u32 {
        self.load(ENTRY)
    }
    fn write(&mut self, _index: u32, entry: u32) {
        self.store(ENTRY, entry);
    }
}

/// Initial memory: empty ring, which the kernel is processing.
const EMPTY: [u32; CELLS] = [0; CELLS];

/// Submits an entry on a simulated CPU. Returns true if the kernel must be woken.
fn submits(processor: &SimulatedCpu) -> bool {
    let mut ring = Producer::<u32, _>::new(processor);
    ring.push(7);
    ring.submit();
    ring.requires_wakeup()
}

/// Acts as `xsk_set_tx_need_wakeup` followed by a read: a driver reads the ring once more after it
/// has set the flag. Returns true if it found the entry.
fn kernel_goes_to_sleep(processor: &SimulatedCpu) -> bool {
    processor.store(ASLEEP, 1);
    processor.barrier();
    processor.load(PRODUCER) != 0
}

#[test]
fn no_interleaving_leaves_an_entry_to_a_kernel_that_sleeps() {
    check(EMPTY, submits, kernel_goes_to_sleep, |wakes, is_found| !wakes && !is_found);
}

/// Initial memory: full ring, with the entry 11.
const FULL: [u32; CELLS] = [1, 0, 0, 11, 0, 0];

/// Pushes the entry 22, if there is space. Returns true if there was.
fn pushes(processor: &SimulatedCpu) -> bool {
    let mut ring = Producer::<u32, _>::new(processor);
    let has_room = ring.push(22);
    ring.submit();
    has_room
}

/// Takes the available entry, twice. Returns true if the values are those that were pushed.
fn takes_two(processor: &SimulatedCpu) -> bool {
    let mut ring = Consumer::<u32, _>::new(processor);
    let mut expected = [11, 22].into_iter();
    (0..2).all(|_| {
        let available = ring.available();
        let is_right = (0..available).all(|index| ring.peek(index) == expected.next());
        ring.release(available);
        is_right
    })
}

/// As [`takes_two`], but releases an entry before it reads it, which the test must detect.
fn takes_two_wrongly(processor: &SimulatedCpu) -> bool {
    let mut ring = Consumer::<u32, _>::new(processor);
    let mut expected = [11, 22].into_iter();
    (0..2).all(|_| {
        let available = ring.available();
        ring.cells.set_consumer_index(ring.next.wrapping_add(available));
        let is_right = (0..available).all(|index| ring.peek(index) == expected.next());
        ring.release(available);
        is_right
    })
}

#[test]
fn no_interleaving_shows_an_entry_before_it_is_written_or_after_it_is_given_back() {
    let is_wrong = |_pushed, is_right: bool| !is_right;
    let outcome = explore(FULL, true, pushes, takes_two, is_wrong);
    assert!(outcome.executions > 500, "{outcome:?}");
    assert_eq!(outcome.losses, 0, "{outcome:?}");
    let outcome = explore(FULL, true, pushes, takes_two_wrongly, is_wrong);
    assert!(outcome.losses > 0, "the search does not find the defect: {outcome:?}");
}
