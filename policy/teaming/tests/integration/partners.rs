//! Two and three Partners in virtual time, over links that lose, duplicate, delay, reorder, corrupt
//! and break, until the links are made reliable: then both ends of every link agree within the sum
//! of the standard's timers.

use crate::world;
use core::time::Duration;

use proptest::prelude::*;
use suimon_frame::MacAddr;
use suimon_teaming::MemberId;
use suimon_teaming::lacp::{Activity, LacpReason, LacpSpec, Timer};

use crate::world::{Faults, World};

/// `Fast_Periodic_Time` (802.1AX-2014, 6.4.4) until both ends have received LACPDUs,
/// `Short_Timeout_Time` to expire a previous Partner, `Aggregate_Wait_Time` until they attach, and
/// a second for each of two LACPDUs that the rate limit (6.4.16) may delay.
const FAST_BOUND: Duration = Duration::from_secs(1 + 3 + 2 + 2);
/// Same bound as [`FAST_BOUND`], with `Slow_Periodic_Time` instead of `Fast_Periodic_Time`.
const SLOW_BOUND: Duration = Duration::from_secs(30 + 3 + 2 + 2);
/// Additional time for a team of three Systems, which may first try a System that selected the
/// other.
const RETRY: Duration = Duration::from_secs(2 * (3 + 2 + 2));

fn spec(system: usize) -> impl Strategy<Value = LacpSpec> {
    (any::<(bool, bool, bool)>(), 1u16..4, 1u8..6).prop_map(
        move |((is_active, is_fast, individual_allowed), system_priority, max_active)| LacpSpec {
            system: MacAddr::new([2, 0, 0, 0, 0, system as u8]),
            system_priority,
            admin_key: 1 + system as u16,
            activity: if is_active { Activity::Active } else { Activity::Passive },
            timer: if is_fast { Timer::Fast } else { Timer::Slow },
            individual_allowed,
            max_active,
            mixed_speeds_allowed: false,
        },
    )
}

fn faults() -> impl Strategy<Value = Faults> {
    (0u64..60, 0u64..40, prop_oneof![Just(0), 0u64..30], 1u64..400).prop_map(
        |(lost, doubled, forged, delay_ms_max)| Faults { lost, doubled, forged, delay_ms_max },
    )
}

/// Event while links are unreliable; it concerns a link or a System.
#[derive(Clone, Copy, Debug)]
enum Event {
    Link { link: usize, up: bool },
    Timer { system: usize, is_fast: bool },
    Priority { system: usize, priority: u16 },
    Limit { system: usize, max_active: u8 },
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let event = prop_oneof![
        4 => any::<(prop::sample::Index, bool)>()
            .prop_map(|(link, up)| Event::Link { link: link.index(64), up }),
        1 => (0usize..3, any::<bool>())
            .prop_map(|(system, is_fast)| Event::Timer { system, is_fast }),
        1 => (0usize..3, 1u16..5)
            .prop_map(|(system, priority)| Event::Priority { system, priority }),
        1 => (0usize..3, 1u8..6)
            .prop_map(|(system, max_active)| Event::Limit { system, max_active }),
    ];
    prop::collection::vec((prop_oneof![0u64..50, 0u64..5_000, 0u64..40_000], event), 0..30)
}

/// Applies the events after their delays in ms, makes the links reliable with those in `up` up, and
/// advances the time by `bound`, within which all ends must agree.
fn run(world: &mut World, events: &[(u64, Event)], up: &[bool], bound: Duration) {
    for link in 0..world.links.len() {
        world.set_link(link, true);
    }
    for (after, event) in events {
        world.run_until(world.now + Duration::from_millis(*after));
        let systems = world.systems.len();
        match *event {
            Event::Link { link, up } => world.set_link(link % world.links.len(), up),
            Event::Timer { system, is_fast } => world.set_spec(system % systems, |spec| {
                spec.timer = if is_fast { Timer::Fast } else { Timer::Slow };
            }),
            Event::Priority { system, priority } => {
                world.set_spec(system % systems, |spec| spec.system_priority = priority);
            }
            Event::Limit { system, max_active } => {
                world.set_spec(system % systems, |spec| spec.max_active = max_active);
            }
        }
    }
    // Frames sent before still arrive, late or forged; afterwards the links are reliable.
    let delay = world.faults.map_or(0, |faults| faults.delay_ms_max);
    world.faults = None;
    for (link, up) in up.iter().enumerate().take(world.links.len()) {
        if world.up[link] != *up {
            world.set_link(link, *up);
        }
    }
    world.run_until(world.now + Duration::from_millis(delay) + bound);
}

/// Checks that both ends of every link use it, or neither does. Returns the links in use.
fn agreed(world: &World) -> Result<Vec<bool>, TestCaseError> {
    let used = |link: &(world::End, world::End)| {
        let (a, b) = (world.state(link.0), world.state(link.1));
        prop_assert_eq!(a.is_distributing, b.is_distributing, "\n{:?}\n{:?}", a, b);
        prop_assert_eq!(a.is_collecting, b.is_collecting);
        Ok(a.is_distributing)
    };
    world.links.iter().map(used).collect()
}

fn bound(world: &World, faults: Faults) -> Duration {
    // A System that received a forged slow Partner sends slowly.
    let is_fast = world.systems.iter().all(|system| system.spec().timer == Timer::Fast);
    if is_fast && faults.forged == 0 { FAST_BOUND } else { SLOW_BOUND }
}

fn config() -> ProptestConfig {
    // Failing cases are stored beside this file.
    let source = proptest::test_runner::FileFailurePersistence::WithSource("regressions");
    ProptestConfig { cases: 300, failure_persistence: Some(Box::new(source)), ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn two_partners_agree(
        (a, b) in (spec(1), spec(2)),
        links in 1usize..6,
        (seed, faults, events) in (any::<u64>(), faults(), events()),
        up in prop::collection::vec(prop::bool::weighted(0.8), 6),
    ) {
        let mut specs = vec![a, b];
        specs[0].activity = Activity::Active;
        let all_fast = specs.iter().all(|spec| spec.timer == Timer::Fast)
            && !events.iter().any(|(_, event)| matches!(event, Event::Timer { is_fast: false, .. }));
        let mut world = World::new(specs, &vec![(0, 1); links], seed, faults);
        let bound = if all_fast { bound(&world, faults) } else { SLOW_BOUND };
        run(&mut world, &events, &up, bound);
        let used = agreed(&world)?;
        let limit = world.systems.iter().map(|system| system.spec().max_active).min();
        let present = up.iter().take(links).filter(|up| **up).count();
        let expected = present.min(limit.map_or(0, usize::from));
        let states: Vec<_> = world.links.iter().map(|(a, _)| world.state(*a)).collect();
        prop_assert_eq!(used.iter().filter(|used| **used).count(), expected, "{:#?}", states);
    }

    #[test]
    fn a_team_between_two_partners_uses_the_one_with_more_links(
        (a, b, c) in (spec(1), spec(2), spec(3)),
        (to_b, to_c) in (1usize..4, 1usize..4),
        (seed, faults, events) in (any::<u64>(), faults(), events()),
        up in prop::collection::vec(prop::bool::weighted(0.8), 8),
    ) {
        let mut specs = vec![a, b, c];
        specs[0].activity = Activity::Active;
        let pairs: Vec<_> = [vec![(0, 1); to_b], vec![(0, 2); to_c]].concat();
        let mut world = World::new(specs, &pairs, seed, faults);
        run(&mut world, &events, &up, SLOW_BOUND + RETRY);
        let used = agreed(&world)?;
        let limit = |system: usize| usize::from(world.systems[system].spec().max_active);
        let links = |partner: usize| {
            let links_and_states = pairs.iter().zip(&up);
            links_and_states.filter(|((_, to), up)| *to == partner && **up).count().min(limit(0))
        };
        // Group that the team considers better, by the links it can use itself.
        let chosen: Vec<_> = pairs.iter().zip(&used).filter(|(_, used)| **used).collect();
        let best = links(1).max(links(2));
        let partner = chosen.first().map(|((_, to), _)| *to);
        prop_assert_eq!(partner.is_some(), best > 0);
        if let Some(partner) = partner {
            prop_assert_eq!(links(partner), best);
            prop_assert_eq!(chosen.len(), best.min(limit(partner)));
        }
    }

    #[test]
    fn three_partners_that_choose_each_other_come_to_an_agreement(
        (a, b, c) in (spec(1), spec(2), spec(3)),
        links in (1usize..3, 1usize..3, 1usize..3),
        (seed, faults, events) in (any::<u64>(), faults(), events()),
        up in prop::collection::vec(prop::bool::weighted(0.8), 8),
    ) {
        let mut specs = vec![a, b, c];
        for spec in &mut specs {
            spec.activity = Activity::Active;
            spec.max_active = 5;
        }
        let pairs: Vec<_> =
            [vec![(0, 1); links.0], vec![(1, 2); links.1], vec![(2, 0); links.2]].concat();
        let mut world = World::new(specs, &pairs, seed, faults);
        let events: Vec<_> = events
            .into_iter()
            .filter(|(_, event)| !matches!(event, Event::Limit { .. }))
            .collect();
        run(&mut world, &events, &up, SLOW_BOUND + RETRY);
        let used = agreed(&world)?;
        let present = up.iter().take(pairs.len()).any(|up| *up);
        prop_assert_eq!(used.iter().any(|used| *used), present);
    }

    #[test]
    fn a_system_never_aggregates_with_itself(
        (a, b) in (spec(1), spec(2)),
        (seed, faults, events) in (any::<u64>(), faults(), events()),
    ) {
        let mut specs = vec![a, b];
        for spec in &mut specs {
            spec.activity = Activity::Active;
            spec.max_active = 5;
        }
        let events: Vec<_> = events
            .into_iter()
            .filter(|(_, event)| !matches!(event, Event::Limit { .. }))
            .collect();
        let mut world = World::new(specs, &[(0, 0), (0, 1), (0, 1)], seed, faults);
        run(&mut world, &events, &[true; 3], SLOW_BOUND);
        prop_assert_eq!(agreed(&world)?, vec![false, true, true]);
        for member in [1, 2] {
            let state = world.state((0, MemberId(member)));
            prop_assert_eq!(state.reason, LacpReason::Loopback);
            prop_assert_eq!(state.looped_port, Some(3 - member as u16));
        }
    }

    #[test]
    fn two_passive_partners_never_speak(
        (a, b) in (spec(1), spec(2)),
        (seed, events) in (any::<u64>(), events()),
    ) {
        let mut specs = vec![a, b];
        for spec in &mut specs {
            spec.activity = Activity::Passive;
        }
        let faults = Faults { lost: 0, doubled: 0, forged: 0, delay_ms_max: 1 };
        let mut world = World::new(specs, &[(0, 1), (0, 1)], seed, faults);
        run(&mut world, &events, &[true; 2], SLOW_BOUND);
        for (a, b) in &world.links {
            for end in [a, b] {
                prop_assert_eq!(world.state(*end).counters.lacpdus_tx, 0);
            }
        }
    }
}
