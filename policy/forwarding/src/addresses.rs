//! Hash table of the addresses that one worker has learned (its replica).
//!
//! The table is set-associative: an address is stored in one of two buckets of four entries, each
//! bucket one cache line, nearly always in the first. Removal frees the entry immediately; there
//! are no tombstones. At most half of the entries are used. If both buckets of an address are full,
//! one of their entries is moved to its own other bucket, so that addresses not chosen by an
//! attacker can always be stored.
//!
//! The hash is fixed, so a guest that may use any source address can construct addresses that fill
//! two buckets. The effect is limited: other addresses of these buckets are not learned, and frames
//! to them are flooded within their VLAN. Configured addresses are stored elsewhere and not
//! affected.

use core::time::Duration;

use suimon_quantity::Time;

use crate::hash;
use crate::key::AddressKey;

const WAYS: usize = 4;
const KEY_BITS: u64 = (1 << 60) - 1;
/// Flag: the address has not been announced to the other replicas.
const UNANNOUNCED: u64 = 1 << 62;
const OCCUPIED: u64 = 1 << 63;
/// Base-2 logarithm of the nanoseconds per tick. A tick is about 17 ms: ages of up to a year fit 32
/// bits.
const TICK_SHIFT: u32 = 24;

/// Converts a duration to ticks, rounded down.
pub(crate) fn duration_to_ticks(span: Duration) -> u32 {
    u32::try_from(span.as_nanos() >> TICK_SHIFT).unwrap_or(u32::MAX)
}

/// Converts a time to ticks; the 32-bit result wraps.
#[inline]
pub(crate) fn time_to_tick(time: Time) -> u32 {
    (time.as_ns() >> TICK_SHIFT) as u32
}

/// Returns the number of ticks from `stamp` to `now`; 0 if `stamp` is later, because another
/// worker's clock reading may be ahead.
#[inline]
pub(crate) fn age_in_ticks(now: u32, stamp: u32) -> u32 {
    (now.wrapping_sub(stamp) as i32).max(0) as u32
}

/// Converts ticks to a duration.
pub(crate) fn ticks_to_duration(ticks: u32) -> Duration {
    Duration::from_nanos(u64::from(ticks) << TICK_SHIFT)
}

/// Learned address with its port. Four entries form one cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddressEntry {
    word: u64,
    /// Index into `Tables::switches` of the switch that the address belongs to.
    pub(crate) switch_index: u16,
    /// Index into `Tables::ports` of the port on which the address was learned.
    pub(crate) slot: u16,
    /// Time of the last renewal by a frame or an announcement, in ticks.
    pub(crate) renewed_tick: u32,
}

impl AddressEntry {
    pub(crate) fn new(key: &AddressKey, slot: u16, stamp: u32) -> Self {
        Self {
            word: key.mac_and_vlan | OCCUPIED,
            switch_index: key.switch_index,
            slot,
            renewed_tick: stamp,
        }
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
    fn matches(&self, key: &AddressKey) -> bool {
        self.word & (OCCUPIED | KEY_BITS) == key.mac_and_vlan | OCCUPIED
            && self.switch_index == key.switch_index
    }
}

#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Bucket([AddressEntry; WAYS]);

/// Position of an entry in the table, valid until the next insertion or removal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    bucket: usize,
    way_index: usize,
}

#[derive(Debug)]
pub(crate) struct AddressTable {
    buckets: Box<[Bucket]>,
    mask: usize,
    len: usize,
    capacity: usize,
}

impl AddressTable {
    /// Creates an empty table for up to `capacity` addresses.
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
        // Two different buckets, if there are at least two.
        [first, if first == second { (second + 1) & self.mask } else { second }]
    }

    #[inline]
    pub(crate) fn find(&self, key: &AddressKey) -> Option<(Position, AddressEntry)> {
        for bucket_index in self.bucket_pair(key.hash) {
            let bucket = self.buckets.get(bucket_index)?;
            for (way, note) in bucket.0.iter().enumerate() {
                if note.matches(key) {
                    return Some((Position { bucket: bucket_index, way_index: way }, *note));
                }
            }
        }
        None
    }

    /// Loads the cache line in which a key with this hash nearly always is, so that a later
    /// [`AddressTable::find`] does not stall. Returns data of the line, which the caller must pass
    /// to `black_box` lest the load is optimised away.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) -> u64 {
        self.buckets.get(hash as usize & self.mask).map_or(0, |bucket| bucket.0[0].word)
    }

    pub(crate) fn entry_mut(&mut self, position: Position) -> Option<&mut AddressEntry> {
        self.buckets.get_mut(position.bucket)?.0.get_mut(position.way_index)
    }

    /// Adds the address `key`, which must not be in the table, with the content of `note`. Returns
    /// `false` if the capacity is reached or both buckets are full. `salts` contains the hash salt
    /// of each switch, by index into `Tables::switches`.
    pub(crate) fn insert(&mut self, key: &AddressKey, note: AddressEntry, salts: &[u64]) -> bool {
        if self.len >= self.capacity {
            return false;
        }
        let position = self.free_position(key.hash).or_else(|| self.make_room(key.hash, salts));
        match position.and_then(|position| self.entry_mut(position)) {
            Some(free) => {
                *free = note;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    fn free_position(&self, hash: u64) -> Option<Position> {
        self.bucket_pair(hash)
            .into_iter()
            .find_map(|bucket_index| self.free_position_in(bucket_index))
    }

    fn free_position_in(&self, bucket_index: usize) -> Option<Position> {
        let bucket = self.buckets.get(bucket_index)?;
        let way = bucket.0.iter().position(|note| !note.is_occupied())?;
        Some(Position { bucket: bucket_index, way_index: way })
    }

    /// Frees an entry in the buckets of `hash` by moving its address to that address's other
    /// bucket. Returns the freed position, or `None` if no entry can be moved.
    fn make_room(&mut self, hash: u64, salts: &[u64]) -> Option<Position> {
        for bucket_index in self.bucket_pair(hash) {
            for way in 0..WAYS {
                let position = Position { bucket: bucket_index, way_index: way };
                let note = *self.entry_mut(position)?;
                let salt = *salts.get(usize::from(note.switch_index))?;
                let pair = self.bucket_pair(hash::mix(note.word & KEY_BITS, salt));
                let other = pair.into_iter().find(|other| *other != bucket_index);
                let Some(free) = other.and_then(|other| self.free_position_in(other)) else {
                    continue;
                };
                *self.entry_mut(free)? = note;
                *self.entry_mut(position)? = AddressEntry::default();
                return Some(position);
            }
        }
        None
    }

    /// Returns the occupied entries of `count` buckets, starting with bucket `first`.
    pub(crate) fn entries(
        &self,
        first: usize,
        count: usize,
    ) -> impl Iterator<Item = &AddressEntry> + '_ {
        let buckets = self.buckets.iter().skip(first).take(count);
        buckets.flat_map(|bucket| &bucket.0).filter(|note| note.is_occupied())
    }

    /// Calls `keep` for each occupied entry of `count` buckets, starting with bucket `first`, and
    /// removes the entries for which it returns false. `keep` may change the entry's port and
    /// switch.
    pub(crate) fn retain(
        &mut self,
        first: usize,
        count: usize,
        mut keep: impl FnMut(&mut AddressEntry) -> bool,
    ) {
        let buckets = self.buckets.iter_mut().skip(first).take(count);
        for note in buckets.flat_map(|bucket| &mut bucket.0).filter(|note| note.is_occupied()) {
            if !keep(note) {
                *note = AddressEntry::default();
                self.len -= 1;
            }
        }
    }
}
