//! What all processors share of one team, over all generations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use suimon_frame::MacAddr;
use suimon_quantity::{ProcessorId, Time};
use suimon_teaming::{BUCKETS, Bucket, BucketLoad, FlowletState};

use crate::registry::PROCESSORS_MAX;
use crate::tally::OwnTally;

/// What one processor carried, by bucket, in bytes.
pub(crate) type BucketTallies = Arc<[OwnTally]>;

/// See the module.
#[derive(Debug)]
pub(crate) struct TeamShared {
    /// By bucket.
    flowlets: Box<[AtomicU64]>,
    /// By processor; made when one first has the team. Each adds to its own, so that
    /// counting takes no locked instruction.
    carried: Box<[OnceLock<BucketTallies>]>,
    pub sent: SentLately,
}

impl TeamShared {
    pub(crate) fn new() -> Self {
        Self {
            flowlets: (0..BUCKETS).map(|_| AtomicU64::default()).collect(),
            carried: (0..PROCESSORS_MAX).map(|_| OnceLock::new()).collect(),
            sent: SentLately::default(),
        }
    }

    /// The state of a bucket's flowlet.
    #[inline]
    pub(crate) fn flowlet(&self, bucket: Bucket) -> Option<&AtomicU64> {
        self.flowlets.get(bucket.index())
    }

    /// Where this processor counts.
    pub(crate) fn tallies_of(&self, processor: ProcessorId) -> BucketTallies {
        let new = || (0..BUCKETS).map(|_| OwnTally::default()).collect();
        // There are no more processors than that.
        self.carried
            .get(usize::from(processor.0))
            .map_or_else(new, |tallies| Arc::clone(tallies.get_or_init(new)))
    }

    /// For each bucket the bytes since the team began, and where its last frame left.
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

/// So long may a frame take to come back.
const LATELY_TICKS: u64 = 1_000_000_000 >> TICK_SHIFT;
/// A tick is 2^26 ns, about 67 ms.
const TICK_SHIFT: u32 = 26;
/// Bits of the time: 208 days, until it wraps.
const TICK_BITS: u32 = 28;
const TICK_MASK: u64 = (1 << TICK_BITS) - 1;

const MAC_BITS: u32 = 48;
const PLACE_BITS: u32 = 12;
/// Bits of a mixed address that its place does not tell.
const REST_BITS: u32 = MAC_BITS - PLACE_BITS;
/// Odd, so that different addresses stay different, and well spread.
const SPREAD: u64 = 0x9e37_79b9_7f4b;

/// Which source addresses left by a team within the last second, so that such a frame
/// is known when the switch on the other side gives it back. The forwarding table does
/// not tell: it notes an address anew once in a quarter of its ageing.
///
/// Direct-mapped: of two addresses with the same place the later one is known. Then a
/// frame of the other that comes back in that moment is taken for a stranger's, until
/// its station speaks again. Addresses that stations have by configuration are known
/// without this.
#[derive(Debug)]
pub(crate) struct SentLately(Box<[AtomicU64]>);

impl Default for SentLately {
    fn default() -> Self {
        Self((0..1 << PLACE_BITS).map(|_| AtomicU64::default()).collect())
    }
}

impl SentLately {
    /// A frame with this source leaves.
    #[inline]
    pub(crate) fn note(&self, source: MacAddr, now: Time) {
        let (place, rest) = place(source);
        let entry = rest << TICK_BITS | tick(now);
        if let Some(known) = self.0.get(place) {
            // A line that others read is not written without need.
            if known.load(Relaxed) != entry {
                known.store(entry, Relaxed);
            }
        }
    }

    /// Whether a frame with this source left within the last second.
    #[inline]
    pub(crate) fn holds(&self, source: MacAddr, now: Time) -> bool {
        let (place, rest) = place(source);
        let entry = self.0.get(place).map_or(0, |entry| entry.load(Relaxed));
        let age = tick(now).wrapping_sub(entry & TICK_MASK) & TICK_MASK;
        // Another processor's clock may be a tick ahead.
        let is_late = age <= LATELY_TICKS || age == TICK_MASK;
        entry != 0 && entry >> TICK_BITS == rest && is_late
    }
}

#[inline]
fn tick(now: Time) -> u64 {
    now.as_ns() >> TICK_SHIFT & TICK_MASK
}

#[inline]
fn place(source: MacAddr) -> (usize, u64) {
    let mixed = source.to_u64().wrapping_mul(SPREAD) & ((1 << MAC_BITS) - 1);
    ((mixed >> REST_BITS) as usize, mixed & ((1 << REST_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_source_is_known_for_a_second_and_no_other_is() {
        let sent = SentLately::default();
        let mac = |last| MacAddr::new([2, 0, 0, 0, 0, last]);
        let at = |ns| Time::from_ns(ns);
        for start in [0, 40 * SECOND, (TICK_MASK << TICK_SHIFT) + 5] {
            sent.note(mac(1), at(start));
            for after in [0, SECOND / 2, SECOND - (1 << TICK_SHIFT)] {
                assert!(sent.holds(mac(1), at(start + after)), "{start} + {after}");
            }
            assert!(!sent.holds(mac(1), at(start + SECOND + (1 << TICK_SHIFT))));
            assert!(!sent.holds(mac(2), at(start)));
        }
    }

    #[test]
    fn of_two_addresses_with_one_place_neither_is_taken_for_the_other() {
        let sent = SentLately::default();
        let macs = (0..=u16::MAX).map(|n| MacAddr::new([2, 0, 0, 0, (n >> 8) as u8, n as u8]));
        let first = MacAddr::new([2, 0, 0, 0, 0, 0]);
        let other = macs.skip(1).find(|mac| place(*mac).0 == place(first).0).unwrap();
        sent.note(first, Time::from_ns(SECOND));
        assert!(!sent.holds(other, Time::from_ns(SECOND)));
        sent.note(other, Time::from_ns(SECOND));
        assert!(sent.holds(other, Time::from_ns(SECOND)));
        assert!(!sent.holds(first, Time::from_ns(SECOND)));
    }

    #[test]
    fn what_processors_carried_is_summed() {
        let shared = TeamShared::new();
        for processor in [0, 1, 1] {
            shared.tallies_of(ProcessorId(processor))[7].add(100);
        }
        let loads = shared.loads();
        assert_eq!(loads[7], BucketLoad { bytes: 300, member: None });
        assert_eq!(loads.iter().map(|load| load.bytes).sum::<u64>(), 300);
    }
}
