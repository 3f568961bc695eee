use proptest::prelude::*;

use super::*;

fn slot(number: u8) -> MemberSlot {
    MemberSlot::from_number(number)
}

/// Returns rules for members with these speeds in Mbit/s, all of generation 1; a member with speed
/// 0 carries no frames.
fn rules(speeds: &[u32]) -> FlowletRules {
    let mut slots = PerSlot::<FlowletMember>::default();
    for (number, speed) in (0..).zip(speeds) {
        if *speed > 0 {
            *slots.at_mut(slot(number)) =
                FlowletMember { generation: 1, ns_per_kib: ns_per_kib(*speed) };
        }
    }
    FlowletRules::new(slots)
}

fn at_us(us: u64) -> Time {
    Time::from_ns(1_000_000_000 + us * 1000)
}

#[test]
fn the_gap_covers_the_slowest_members_queue() {
    for (speeds, gap_us) in [
        (&[100_000, 100_000][..], 520),
        (&[10_000, 10_000], 709),
        (&[10_000, 1000], 2597),
        (&[10_000, 0, 100], 21_471),
        (&[], 500),
    ] {
        let gap = rules(speeds).gap();
        assert_eq!(gap.as_micros(), gap_us, "{speeds:?}");
    }
}

#[test]
fn a_flowlet_keeps_its_member_until_a_pause() {
    let rules = rules(&[10_000, 10_000]);
    let (first, state) = rules.choose_member(FlowletState::default(), slot(0), at_us(0), 1500);
    assert_eq!((first, state.member()), (slot(0), Some(slot(0))));
    let mut state = state;
    for us in [0, 0, 700, 1400, 2100] {
        let (next, after) = rules.choose_member(state, slot(1), at_us(us), 1500);
        assert_eq!(next, slot(0));
        state = after;
    }
    let (next, state) = rules.choose_member(state, slot(1), at_us(2100 + 715), 1500);
    assert_eq!((next, state.member()), (slot(1), Some(slot(1))));
}

#[test]
fn a_large_frame_lasts_until_it_has_left() {
    // 64 KiB take 5.2 ms at 100 Mbit/s; the gap of 21.5 ms starts after that.
    let rules = rules(&[100, 100]);
    let (_, state) = rules.choose_member(FlowletState::default(), slot(0), at_us(0), 65_536);
    assert_eq!(rules.choose_member(state, slot(1), at_us(26_700), 1).0, slot(0));
    assert_eq!(rules.choose_member(state, slot(1), at_us(26_720), 1).0, slot(1));
    // A small frame after it does not shorten the time.
    let (_, state) = rules.choose_member(state, slot(1), at_us(1), 1);
    assert_eq!(rules.choose_member(state, slot(1), at_us(26_700), 1).0, slot(0));
}

#[test]
fn a_member_that_is_lost_or_replaced_is_left_at_once() {
    let both = rules(&[1000, 1000]);
    let (_, state) = both.choose_member(FlowletState::default(), slot(0), at_us(0), 100);
    assert_eq!(rules(&[0, 1000]).choose_member(state, slot(1), at_us(0), 100).0, slot(1));
    let mut slots = both.slots.clone();
    slots.at_mut(slot(0)).generation = 2;
    let replaced = FlowletRules::new(slots);
    assert_eq!(replaced.choose_member(state, slot(1), at_us(0), 100).0, slot(1));
}

#[test]
fn a_late_clock_keeps_the_member_and_the_later_time() {
    let rules = rules(&[10_000, 10_000]);
    let (_, state) = rules.choose_member(FlowletState::default(), slot(0), at_us(5000), 100);
    let (next, after) = rules.choose_member(state, slot(1), at_us(0), 100);
    assert_eq!((next, after), (slot(0), state));
}

#[test]
fn frames_of_one_batch_leave_the_state_as_it_is() {
    let rules = rules(&[10_000, 10_000]);
    let (_, state) = rules.choose_member(FlowletState::default(), slot(0), at_us(9), 1500);
    for bytes in [60, 900, 1500] {
        assert_eq!(rules.choose_member(state, slot(1), at_us(9), bytes), (slot(0), state));
    }
}

/// The state of an idle bucket ages; its time must not appear to be in the future.
#[test]
fn old_states_have_ended_until_the_time_wraps() {
    let rules = rules(&[10_000, 10_000]);
    let (_, state) = rules.choose_member(FlowletState::default(), slot(0), at_us(0), 1500);
    for years in [1, 4, 5, 8] {
        let later = at_us(years * 365 * 86_400 * 1_000_000);
        let (next, state) = rules.choose_member(state, slot(1), later, 1500);
        assert_eq!(next, slot(1), "{years} years");
        assert_eq!(rules.choose_member(state, slot(0), later, 1500).0, slot(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With members' queues up to the assumed limit and paths that differ by the assumed delay, the
    /// frames of a bucket arrive in order.
    #[test]
    fn no_frame_overtakes_another(
        frames in prop::collection::vec((0u64..3_000_000, 60u32..65_536, 0u8..3), 1..200),
        queued in prop::collection::vec(0u64..QUEUED_BYTES_MAX, 200),
        delays in prop::collection::vec(0u64..=500_000, 200),
        speeds in prop::collection::vec(prop::sample::select(vec![100u32, 1000, 10_000, 40_000]), 3),
    ) {
        let rules = rules(&speeds);
        let mut state = FlowletState::default();
        let mut now = 1_000_000_000;
        let (mut busy_until, mut last_on) = ([0; 3], [0; 3]);
        let mut last = 0;
        for (index, (pause, bytes, preferred)) in frames.into_iter().enumerate() {
            now += pause;
            let (member, after) = rules.choose_member(state, slot(preferred), Time::from_ns(now), bytes);
            state = after;
            let member = member.index();
            let per_kib = ns_per_kib(speeds[member]);
            // The frame follows other traffic and frames of this bucket in the queue; it is dropped
            // if the queue is full.
            let starts = (now + queued[index] * per_kib / 1024).max(busy_until[member]);
            if starts > now + QUEUED_BYTES_MAX * per_kib / 1024 {
                continue;
            }
            busy_until[member] = starts + u64::from(bytes) * per_kib / 1024;
            // The path behind a member is a queue too; it preserves order.
            last_on[member] = (busy_until[member] + delays[index]).max(last_on[member]);
            prop_assert!(last_on[member] >= last, "frame {} overtakes", index);
            last = last_on[member];
        }
    }
}
