//! Flowlets: bursts of a flow separated by pauses long enough that the next burst can take another
//! path without reordering (Kandula, Katabi, Sinha, Berger: "Dynamic load balancing without packet
//! reordering", 2007).

use core::time::Duration;

use serde::Serialize;
use suimon_quantity::Time;

use crate::MemberSlot;
use crate::slots::PerSlot;

/// Largest assumed difference in delay between the paths behind two members. Within a data centre
/// it is caused by switch queues; CONGA (Alizadeh et al., 2014, section 3.2.3) found 500 µs to be
/// sufficient.
const PATH_DIFFERENCE_MAX: Duration = Duration::from_micros(500);

/// Largest number of bytes assumed in a member's own queue when more are submitted: the byte queue
/// limit of the kernel for a NIC's ring plus four of the largest frames.
const QUEUED_BYTES_MAX: u64 = 256 * 1024;

/// Base-2 logarithm of the nanoseconds per tick; a tick is about a microsecond.
const TICK_SHIFT: u32 = 10;
/// Number of bits of a time in ticks. It wraps after 2^58 ns, nine years.
const TICK_BITS: u32 = 48;
const TICK_MASK: u64 = (1 << TICK_BITS) - 1;
/// Largest amount by which the time of a state may be ahead of a clock, in ticks: transmission of a
/// large frame on a slow member plus clock differences between threads. A larger difference means a
/// very old state.
const AHEAD_MAX: u64 = 8_000_000_000 >> TICK_SHIFT;

/// Index of the bucket of flows that share one flowlet state: at least 0 and below
/// [`BUCKETS`](crate::BUCKETS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket(pub(crate) u16);

impl Bucket {
    /// Returns the bucket as an index into tables of the caller.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// State of a bucket: the member by which its last frame left, and the time at which that member
/// will have transmitted the frame. The default is the state before the first frame. The number can
/// be kept in an `AtomicU64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowletState(u64);

impl FlowletState {
    /// Decodes the state from a number returned by [`FlowletState::to_u64`].
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// Encodes the state as a number.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// Returns the member by which the last frame left; `None` before the first frame.
    pub const fn member(self) -> Option<MemberSlot> {
        if self.generation() == 0 { None } else { Some(self.slot()) }
    }

    #[inline]
    fn new(expires_tick: u64, slot: MemberSlot, generation: u8) -> Self {
        Self(
            (expires_tick & TICK_MASK) << 16
                | u64::from(slot.number()) << 8
                | u64::from(generation),
        )
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

/// Generation and speed of one team member, as far as flowlets depend on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FlowletMember {
    /// Generation of the member's slot, which changes when flowlets recorded for it end; 0 for a
    /// member that carries no frames.
    pub(crate) generation: u8,
    /// Transmission time of 1024 bytes, in ns.
    pub(crate) ns_per_kib: u64,
}

/// Flowlet gap and members of one distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FlowletRules {
    gap: Duration,
    gap_ticks: u64,
    #[serde(rename = "seats")]
    slots: PerSlot<FlowletMember>,
}

/// Returns the transmission time of 1024 bytes at `speed_mbps` Mbit/s, in ns.
pub(crate) fn ns_per_kib(speed_mbps: u32) -> u64 {
    (1024 * 8 * 1000u64).div_ceil(u64::from(speed_mbps.max(1)))
}

impl FlowletRules {
    /// Creates the parameters from the members by slot. The gap equals the largest difference in
    /// delay between two members: the queue of the slowest is full and its path is the longest, the
    /// queue of the other is empty.
    pub(crate) fn new(slots: PerSlot<FlowletMember>) -> Self {
        let slowest = slots.iter().filter(|(_, member)| member.generation != 0);
        let slowest = slowest.map(|(_, member)| member.ns_per_kib).max().unwrap_or_default();
        let gap = PATH_DIFFERENCE_MAX + Duration::from_nanos(slowest * (QUEUED_BYTES_MAX / 1024));
        let gap_ns = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
        Self { gap, gap_ticks: gap_ns.div_ceil(1 << TICK_SHIFT), slots }
    }

    pub(crate) const fn gap(&self) -> Duration {
        self.gap
    }

    /// Returns the member for a frame of `bytes` bytes that leaves at `now`, and the new state of
    /// its bucket. A flowlet in progress stays on its member while that carries frames; otherwise
    /// the frame starts a new flowlet on `assigned`, the target member.
    #[inline]
    pub(crate) fn choose_member(
        &self,
        state: FlowletState,
        assigned: MemberSlot,
        now: Time,
        bytes: u32,
    ) -> (MemberSlot, FlowletState) {
        let tick = (now.as_ns() >> TICK_SHIFT) & TICK_MASK;
        let ahead = state.until().wrapping_sub(tick) & TICK_MASK;
        let elapsed = tick.wrapping_sub(state.until()) & TICK_MASK;
        let runs = elapsed < self.gap_ticks || ahead <= AHEAD_MAX;
        let current = state.slot();
        let generation = self.slots.at(current).generation;
        let keeps_member = runs && generation != 0 && generation == state.generation();
        let slot = if keeps_member { current } else { assigned };
        let member = self.slots.at(slot);
        // One tick more, because both times were rounded down.
        let cost = (u64::from(bytes) * member.ns_per_kib >> (10 + TICK_SHIFT)) + 1;
        let cost = cost.min(AHEAD_MAX);
        let busy_ticks =
            if keeps_member && ahead <= AHEAD_MAX && ahead > cost { ahead } else { cost };
        (slot, FlowletState::new(tick + busy_ticks, slot, member.generation))
    }
}

#[cfg(test)]
#[path = "flowlet_tests.rs"]
mod tests;
