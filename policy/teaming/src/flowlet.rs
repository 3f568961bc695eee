//! Flowlets: parts of a flow between pauses long enough that the next part may take
//! another way without overtaking (Kandula, Katabi, Sinha, Berger: "Dynamic load
//! balancing without packet reordering", 2007).

use core::time::Duration;

use serde::Serialize;
use suimon_quantity::Time;

use crate::MemberSlot;
use crate::slots::PerSlot;

/// By how much the ways behind two members may differ in delay. Within a data centre
/// that is what queues in switches hold; CONGA (Alizadeh et al., 2014, section 3.2.3)
/// measured 500 µs to be enough.
const PATH_DIFFERENCE_MAX: Duration = Duration::from_micros(500);

/// Bytes that stand in a member's own queue at most when more are handed to it: what
/// the kernel's byte queue limits let into a NIC's ring, and four of the largest
/// frames.
const QUEUED_BYTES_MAX: u64 = 256 * 1024;

/// Time is kept in units of 2 to this power of nanoseconds, about a microsecond.
const TICK_SHIFT: u32 = 10;
/// Bits of the time: 2^58 ns, nine years, until it wraps.
const TICK_BITS: u32 = 48;
const TICK_MASK: u64 = (1 << TICK_BITS) - 1;
/// A state's time may be this far ahead of a clock: what a large frame takes on a
/// slow member, and what another thread's clock lags. Any further, it is very old.
const AHEAD_MAX: u64 = 8_000_000_000 >> TICK_SHIFT;

/// Which flowlets share a state. Counts from 0 and is below
/// [`BUCKETS`](crate::BUCKETS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket(pub(crate) u16);

impl Bucket {
    /// For tables of the caller's.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is remembered of a bucket's last frame: by which member it left, and until
/// when that took. Starts as the default. Its number may be kept in an `AtomicU64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowletState(u64);

impl FlowletState {
    /// The state that was kept as this number.
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number to keep.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// By which member the last frame left; `None` if there was none.
    pub const fn member(self) -> Option<MemberSlot> {
        if self.generation() == 0 { None } else { Some(self.slot()) }
    }

    #[inline]
    fn new(until: u64, slot: MemberSlot, generation: u8) -> Self {
        Self((until & TICK_MASK) << 16 | u64::from(slot.number()) << 8 | u64::from(generation))
    }

    #[inline]
    const fn until(self) -> u64 {
        self.0 >> 16
    }

    #[inline]
    const fn slot(self) -> MemberSlot {
        MemberSlot::from_number((self.0 >> 8) as u8)
    }

    #[inline]
    const fn generation(self) -> u8 {
        self.0 as u8
    }
}

/// What a flowlet's course depends on at a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FlowletSeat {
    /// 0 for a member that carries nothing.
    pub(crate) generation: u8,
    /// What 1024 bytes take.
    pub(crate) ns_per_kib: u64,
}

/// The rules that one distribution has for flowlets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FlowletRules {
    gap: Duration,
    gap_ticks: u64,
    seats: PerSlot<FlowletSeat>,
}

/// What 1024 bytes take at this speed.
pub(crate) fn ns_per_kib(speed_mbps: u32) -> u64 {
    (1024 * 8 * 1000u64).div_ceil(u64::from(speed_mbps.max(1)))
}

impl FlowletRules {
    /// The gap is as long as the difference in delay that two members may have: the
    /// slowest one's queue is full and the way behind it the longest, the other's is
    /// empty.
    pub(crate) fn new(seats: PerSlot<FlowletSeat>) -> Self {
        let slowest = seats.iter().filter(|(_, seat)| seat.generation != 0);
        let slowest = slowest.map(|(_, seat)| seat.ns_per_kib).max().unwrap_or_default();
        let gap = PATH_DIFFERENCE_MAX + Duration::from_nanos(slowest * (QUEUED_BYTES_MAX / 1024));
        let gap_ns = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
        Self { gap, gap_ticks: gap_ns.div_ceil(1 << TICK_SHIFT), seats }
    }

    pub(crate) const fn gap(&self) -> Duration {
        self.gap
    }

    /// The member for a frame of `bytes` that leaves at `now`, and the new state.
    /// A flowlet that still runs keeps its member if that carries frames; otherwise
    /// the frame begins one on the wanted member.
    #[inline]
    pub(crate) fn step(
        &self,
        state: FlowletState,
        wanted: MemberSlot,
        now: Time,
        bytes: u32,
    ) -> (MemberSlot, FlowletState) {
        let tick = (now.as_ns() >> TICK_SHIFT) & TICK_MASK;
        let ahead = state.until().wrapping_sub(tick) & TICK_MASK;
        let since = tick.wrapping_sub(state.until()) & TICK_MASK;
        let runs = since < self.gap_ticks || ahead <= AHEAD_MAX;
        let current = state.slot();
        let generation = self.seats.at(current).generation;
        let stays = runs && generation != 0 && generation == state.generation();
        let slot = if stays { current } else { wanted };
        let seat = self.seats.at(slot);
        // One more, because both times were rounded down.
        let takes = (u64::from(bytes) * seat.ns_per_kib >> (10 + TICK_SHIFT)) + 1;
        let takes = takes.min(AHEAD_MAX);
        let until = if stays && ahead <= AHEAD_MAX && ahead > takes { ahead } else { takes };
        (slot, FlowletState::new(tick + until, slot, seat.generation))
    }
}

#[cfg(test)]
#[path = "flowlet_tests.rs"]
mod tests;
