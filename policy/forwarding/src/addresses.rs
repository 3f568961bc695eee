//! The table of learned addresses of one replica.
//!
//! Set-associative: an address may stand in one of two buckets of four, each one
//! cache line, and nearly always stands in the first. Removing frees the place
//! at once; there are no tombstones. At most half of the places are ever used,
//! and an address that finds both its buckets full moves one neighbour to that
//! one's other bucket, so that honest addresses always find a place.
//!
//! The hash is fixed, so somebody who may use any source address can construct
//! addresses that fill two buckets. What that costs: another address of those
//! buckets is not learned, and frames to it are flooded within its VLAN.
//! Configured addresses do not stand here and are not concerned.

use core::time::Duration;

use suimon_quantity::Time;

use crate::hash;
use crate::tables::Key;

const WAYS: usize = 4;
const KEY_BITS: u64 = (1 << 60) - 1;
/// No other replica has been told of this one yet.
const UNANNOUNCED: u64 = 1 << 62;
const OCCUPIED: u64 = 1 << 63;
/// A tick is 2^24 ns, about 17 ms: ages of up to a year fit 32 bits.
const TICK_SHIFT: u32 = 24;

/// A span in ticks, rounded down.
pub(crate) fn ticks(span: Duration) -> u32 {
    u32::try_from(span.as_nanos() >> TICK_SHIFT).unwrap_or(u32::MAX)
}

/// A point in time in ticks; wraps.
#[inline]
pub(crate) fn tick(at: Time) -> u32 {
    (at.as_ns() >> TICK_SHIFT) as u32
}

/// Ticks from `stamp` to `now`; 0 if `stamp` is later, as another processor's
/// clock reading may be.
#[inline]
pub(crate) fn age(now: u32, stamp: u32) -> u32 {
    (now.wrapping_sub(stamp) as i32).max(0) as u32
}

/// A number of ticks as a span.
pub(crate) fn span(ticks: u32) -> Duration {
    Duration::from_nanos(u64::from(ticks) << TICK_SHIFT)
}

/// One learned address: a quarter of a cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Note {
    word: u64,
    /// Which of `Tables::switches`.
    pub(crate) switch: u16,
    /// Which of `Tables::ports`.
    pub(crate) slot: u16,
    /// When it was noted, in ticks.
    pub(crate) stamp: u32,
}

impl Note {
    pub(crate) fn new(key: &Key, slot: u16, stamp: u32) -> Self {
        Self { word: key.word | OCCUPIED, switch: key.switch, slot, stamp }
    }

    pub(crate) fn is_occupied(&self) -> bool {
        self.word & OCCUPIED != 0
    }

    #[inline]
    pub(crate) fn is_unannounced(&self) -> bool {
        self.word & UNANNOUNCED != 0
    }

    pub(crate) fn set_unannounced(&mut self, unannounced: bool) {
        self.word = if unannounced { self.word | UNANNOUNCED } else { self.word & !UNANNOUNCED };
    }

    pub(crate) fn mac(&self) -> u64 {
        self.word & ((1 << 48) - 1)
    }

    pub(crate) fn vlan(&self) -> u16 {
        (self.word >> 48) as u16 & 0x0fff
    }

    #[inline]
    fn is_of(&self, key: &Key) -> bool {
        self.word & (OCCUPIED | KEY_BITS) == key.word | OCCUPIED && self.switch == key.switch
    }
}

#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Bucket([Note; WAYS]);

/// Where a note stands; good until the next change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    bucket: usize,
    way: usize,
}

#[derive(Debug)]
pub(crate) struct Addresses {
    buckets: Box<[Bucket]>,
    mask: usize,
    len: usize,
    capacity: usize,
}

impl Addresses {
    /// An empty table for up to `capacity` addresses.
    pub(crate) fn new(capacity: usize) -> Self {
        let count = (capacity.max(1) * 2).div_ceil(WAYS).next_power_of_two();
        Self { buckets: vec![Bucket::default(); count].into(), mask: count - 1, len: 0, capacity }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    #[inline]
    fn bucket_pair(&self, hash: u64) -> [usize; 2] {
        let first = hash as usize & self.mask;
        let second = (hash >> 32) as usize & self.mask;
        // Two different buckets, if there are two.
        [first, if first == second { (second + 1) & self.mask } else { second }]
    }

    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<(Place, Note)> {
        for at in self.bucket_pair(key.hash) {
            let bucket = self.buckets.get(at)?;
            for (way, note) in bucket.0.iter().enumerate() {
                if note.is_of(key) {
                    return Some((Place { bucket: at, way }, *note));
                }
            }
        }
        None
    }

    /// Loads where a key with this hash nearly always stands. What a later
    /// [`Addresses::find`] would wait for is then already on its way.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) -> u64 {
        self.buckets.get(hash as usize & self.mask).map_or(0, |bucket| bucket.0[0].word)
    }

    pub(crate) fn note_mut(&mut self, place: Place) -> Option<&mut Note> {
        self.buckets.get_mut(place.bucket)?.0.get_mut(place.way)
    }

    /// Adds an address that is not in the table. `false` if there is no place.
    /// `salts` are those of `Tables::switches`.
    pub(crate) fn insert(&mut self, key: &Key, note: Note, salts: &[u64]) -> bool {
        if self.len >= self.capacity {
            return false;
        }
        let place = self.free_place(key.hash).or_else(|| self.made_place(key.hash, salts));
        match place.and_then(|place| self.note_mut(place)) {
            Some(free) => {
                *free = note;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    fn free_place(&self, hash: u64) -> Option<Place> {
        self.bucket_pair(hash).into_iter().find_map(|at| self.free_way(at))
    }

    fn free_way(&self, at: usize) -> Option<Place> {
        let bucket = self.buckets.get(at)?;
        let way = bucket.0.iter().position(|note| !note.is_occupied())?;
        Some(Place { bucket: at, way })
    }

    /// A place made free by moving one note to its other bucket.
    fn made_place(&mut self, hash: u64, salts: &[u64]) -> Option<Place> {
        for at in self.bucket_pair(hash) {
            for way in 0..WAYS {
                let place = Place { bucket: at, way };
                let note = *self.note_mut(place)?;
                let salt = *salts.get(usize::from(note.switch))?;
                let pair = self.bucket_pair(hash::mix(note.word & KEY_BITS, salt));
                let other = pair.into_iter().find(|other| *other != at);
                let Some(free) = other.and_then(|other| self.free_way(other)) else {
                    continue;
                };
                *self.note_mut(free)? = note;
                *self.note_mut(place)? = Note::default();
                return Some(place);
            }
        }
        None
    }

    /// The notes of `count` buckets from bucket `first` on, for looking.
    pub(crate) fn notes(&self, first: usize, count: usize) -> impl Iterator<Item = &Note> + '_ {
        let buckets = self.buckets.iter().skip(first).take(count);
        buckets.flat_map(|bucket| &bucket.0).filter(|note| note.is_occupied())
    }

    /// Keeps or removes the notes of `count` buckets from bucket `first` on.
    pub(crate) fn retain(
        &mut self,
        first: usize,
        count: usize,
        mut keep: impl FnMut(&mut Note) -> bool,
    ) {
        let buckets = self.buckets.iter_mut().skip(first).take(count);
        for note in buckets.flat_map(|bucket| &mut bucket.0).filter(|note| note.is_occupied()) {
            if !keep(note) {
                *note = Note::default();
                self.len -= 1;
            }
        }
    }
}
