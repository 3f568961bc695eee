//! State of one team that all workers share. It continues when new tables are published.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use suimon_frame::MacAddr;
use suimon_quantity::{Time, WorkerId};
use suimon_teaming::{BUCKETS, Bucket, BucketLoad, FlowletState};

use crate::counters::SingleWriterCounter;
use crate::topology::WORKERS_MAX;

/// Bytes that one worker has transmitted through a team, by bucket of flows.
pub(crate) type BucketCounters = Arc<[SingleWriterCounter]>;

/// Flowlets, loads and recent source addresses of a team.
#[derive(Debug)]
pub(crate) struct SharedTeamState {
    /// Flowlet state of each bucket.
    flowlets: Box<[AtomicU64]>,
    /// Byte counters by worker; created when the worker first has the team. Each worker increments
    /// its own counters, so that no locked instruction is needed.
    carried: Box<[OnceLock<BucketCounters>]>,
    pub recent_sources: RecentSources,
}

impl SharedTeamState {
    pub(crate) fn new() -> Self {
        Self {
            flowlets: (0..BUCKETS).map(|_| AtomicU64::default()).collect(),
            carried: (0..WORKERS_MAX).map(|_| OnceLock::new()).collect(),
            recent_sources: RecentSources::default(),
        }
    }

    /// Returns the state of a bucket's flowlet.
    #[inline]
    pub(crate) fn flowlet(&self, bucket: Bucket) -> Option<&AtomicU64> {
        self.flowlets.get(bucket.index())
    }

    /// Returns the byte counters of the worker numbered `processor`.
    pub(crate) fn bucket_counters(&self, processor: WorkerId) -> BucketCounters {
        let new = || (0..BUCKETS).map(|_| SingleWriterCounter::default()).collect();
        // Worker ids are below WORKERS_MAX.
        self.carried
            .get(usize::from(processor.0))
            .map_or_else(new, |tallies| Arc::clone(tallies.get_or_init(new)))
    }

    /// Returns for each bucket the bytes since the team was created, and the member that
    /// transmitted its last frame.
    pub(crate) fn loads(&self) -> Box<[BucketLoad; BUCKETS]> {
        let mut loads = Box::new([BucketLoad::default(); BUCKETS]);
        for tallies in self.carried.iter().filter_map(OnceLock::get) {
            for (load, tally) in loads.iter_mut().zip(&**tallies) {
                load.bytes = load.bytes.wrapping_add(tally.value());
            }
        }
        for (load, state) in loads.iter_mut().zip(&self.flowlets) {
            load.member = FlowletState::from_u64(state.load(Relaxed)).member();
        }
        loads
    }
}

/// Maximum time in ticks from sending a frame until its reflection is received: one second.
const LATELY_TICKS: u64 = 1_000_000_000 >> TICK_SHIFT;
/// Binary logarithm of the tick in ns: 2^26 ns, about 67 ms.
const TICK_SHIFT: u32 = 26;
/// Bits of the time in an entry; it wraps after 208 days.
const TICK_BITS: u32 = 28;
const TICK_MASK: u64 = (1 << TICK_BITS) - 1;

const MAC_BITS: u32 = 48;
const INDEX_BITS: u32 = 12;
/// Number of bits of a mixed address that are stored in an entry because they are not part of its
/// index.
const TAG_BITS: u32 = MAC_BITS - INDEX_BITS;
/// Odd multiplier, by which distinct addresses remain distinct and are distributed evenly.
const SPREAD: u64 = 0x9e37_79b9_7f4b;

/// Source addresses of frames that a team sent within the last second, to recognise frames that the
/// adjacent switch reflects. The forwarding table cannot be used: it refreshes an address only once
/// in a quarter of its ageing time.
///
/// Direct-mapped: of two addresses with the same index, only the later one is stored. A reflected
/// frame with the other address is then accepted, until its station sends again. Addresses that are
/// configured for stations are recognised without this table.
#[derive(Debug)]
pub(crate) struct RecentSources(Box<[AtomicU64]>);

impl Default for RecentSources {
    fn default() -> Self {
        Self((0..1 << INDEX_BITS).map(|_| AtomicU64::default()).collect())
    }
}

impl RecentSources {
    /// Records that the team sends a frame with this source address.
    #[inline]
    pub(crate) fn record(&self, source: MacAddr, now: Time) {
        let (index, tag) = index_and_tag(source);
        let entry = tag << TICK_BITS | tick(now);
        if let Some(slot) = self.0.get(index) {
            // The cache line is shared: it is only written on a change.
            if slot.load(Relaxed) != entry {
                slot.store(entry, Relaxed);
            }
        }
    }

    /// Returns true if the team sent a frame with this source address within the last second.
    #[inline]
    pub(crate) fn was_sent_recently(&self, source: MacAddr, now: Time) -> bool {
        let (index, tag) = index_and_tag(source);
        let entry = self.0.get(index).map_or(0, |entry| entry.load(Relaxed));
        let age = tick(now).wrapping_sub(entry & TICK_MASK) & TICK_MASK;
        // Another worker's clock may be a tick ahead.
        let is_late = age <= LATELY_TICKS || age == TICK_MASK;
        entry != 0 && entry >> TICK_BITS == tag && is_late
    }
}

#[inline]
fn tick(now: Time) -> u64 {
    now.as_ns() >> TICK_SHIFT & TICK_MASK
}

#[inline]
fn index_and_tag(source: MacAddr) -> (usize, u64) {
    let mixed = source.to_u64().wrapping_mul(SPREAD) & ((1 << MAC_BITS) - 1);
    ((mixed >> TAG_BITS) as usize, mixed & ((1 << TAG_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_source_is_known_for_a_second_and_no_other_is() {
        let recent = RecentSources::default();
        let mac = |last| MacAddr::new([2, 0, 0, 0, 0, last]);
        let time = |ns| Time::from_ns(ns);
        for start in [0, 40 * SECOND, (TICK_MASK << TICK_SHIFT) + 5] {
            recent.record(mac(1), time(start));
            for after in [0, SECOND / 2, SECOND - (1 << TICK_SHIFT)] {
                assert!(recent.was_sent_recently(mac(1), time(start + after)), "{start} + {after}");
            }
            assert!(!recent.was_sent_recently(mac(1), time(start + SECOND + (1 << TICK_SHIFT))));
            assert!(!recent.was_sent_recently(mac(2), time(start)));
        }
    }

    #[test]
    fn addresses_with_the_same_index_are_not_confused() {
        let sent = RecentSources::default();
        let macs = (0..=u16::MAX).map(|n| MacAddr::new([2, 0, 0, 0, (n >> 8) as u8, n as u8]));
        let first = MacAddr::new([2, 0, 0, 0, 0, 0]);
        let other =
            macs.skip(1).find(|mac| index_and_tag(*mac).0 == index_and_tag(first).0).unwrap();
        sent.record(first, Time::from_ns(SECOND));
        assert!(!sent.was_sent_recently(other, Time::from_ns(SECOND)));
        sent.record(other, Time::from_ns(SECOND));
        assert!(sent.was_sent_recently(other, Time::from_ns(SECOND)));
        assert!(!sent.was_sent_recently(first, Time::from_ns(SECOND)));
    }

    #[test]
    fn loads_of_workers_are_summed() {
        let shared = SharedTeamState::new();
        for worker in [0, 1, 1] {
            shared.bucket_counters(WorkerId(worker))[7].add(100);
        }
        let loads = shared.loads();
        assert_eq!(loads[7], BucketLoad { bytes: 300, member: None });
        assert_eq!(loads.iter().map(|load| load.bytes).sum::<u64>(), 300);
    }
}
