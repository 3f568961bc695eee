//! Systems and links between them in virtual time. Frames sent on one end of a link arrive at the
//! other late, duplicated, reordered, corrupted or never, until the links are made reliable.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use suimon_frame::MacAddr;
use suimon_quantity::Time;
use suimon_teaming::MemberId;
use suimon_teaming::lacp::{
    Lacp, LacpAction, LacpPortSpec, LacpSpec, Link, MarkerKind, MemberState, MuxState, PortState,
    Selected, SlowPdu, parse, parse_exact,
};

/// One end of a link: index of a System, and one of its members.
pub(crate) type End = (usize, MemberId);

/// Fault rates while links are unreliable, in percent of the frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) forged: u64,
    /// Maximum delay of a frame in ms; frames with shorter delays overtake it.
    pub(crate) delay_ms_max: u64,
}

/// Pseudo-random generator (splitmix64), so that a case is determined by one number.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) systems: Vec<Lacp>,
    pub(crate) links: Vec<(End, End)>,
    pub(crate) up: Vec<bool>,
    pub(crate) dice: Dice,
    /// Fault rates; `None` once the links are reliable.
    pub(crate) faults: Option<Faults>,
    /// True if any frame has been forged.
    is_forged: bool,
    in_flight: BTreeMap<(Time, u64), (End, Vec<u8>)>,
    frames: u64,
    sent: BTreeMap<End, VecDeque<Time>>,
    used: BTreeMap<End, bool>,
}

impl World {
    pub(crate) fn new(
        specs: Vec<LacpSpec>,
        pairs: &[(usize, usize)],
        seed: u64,
        faults: Faults,
    ) -> Self {
        let now = Time::from_ns(50_000_000_000);
        let mut world = Self {
            now,
            systems: specs.into_iter().map(|spec| Lacp::new(spec).unwrap()).collect(),
            links: Vec::new(),
            up: vec![false; pairs.len()],
            dice: Dice(seed),
            faults: Some(faults),
            is_forged: false,
            in_flight: BTreeMap::new(),
            frames: 0,
            sent: BTreeMap::new(),
            used: BTreeMap::new(),
        };
        for (a, b) in pairs {
            let ends = (world.add_port(*a), world.add_port(*b));
            world.links.push(ends);
        }
        world
    }

    fn add_port(&mut self, system: usize) -> End {
        let number = self.systems[system].members().count() as u16 + 1;
        let member = MemberId(number.into());
        let mac = MacAddr::new([2, 0, 1, system as u8, 0, number as u8]);
        let priority = 1 + self.dice.below(3) as u16;
        let spec = LacpPortSpec { port: number, priority, mac };
        self.systems[system].add_member(member, spec, self.now).unwrap();
        (system, member)
    }

    pub(crate) fn set_link(&mut self, link: usize, up: bool) {
        let speed = Link { speed_mbps: 10_000, full_duplex: true };
        self.up[link] = up;
        let (a, b) = self.links[link];
        for (system, member) in [a, b] {
            let state = up.then_some(speed);
            self.systems[system].handle_link(member, state, self.now).unwrap();
            self.poll(system);
        }
    }

    pub(crate) fn set_spec(&mut self, system: usize, change: impl FnOnce(&mut LacpSpec)) {
        let mut spec = self.systems[system].spec().clone();
        change(&mut spec);
        self.systems[system].set_spec(spec, self.now).unwrap();
        self.poll(system);
    }

    pub(crate) fn state(&self, (system, member): End) -> MemberState {
        self.systems[system].member_state(member).unwrap()
    }

    /// Processes all events until `end`.
    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            let arrival = self.in_flight.keys().next().map(|(time, _)| *time);
            let deadlines = self.systems.iter().filter_map(Lacp::next_deadline);
            let Some(next) = deadlines.chain(arrival).min().filter(|time| *time <= end) else {
                break;
            };
            assert!(next >= self.now, "time does not stand still");
            self.now = next;
            while let Some(entry) = self.in_flight.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let ((system, member), frame) = entry.remove();
                let _ = self.systems[system].handle_frame(member, &frame, self.now);
                self.poll(system);
            }
            for system in 0..self.systems.len() {
                self.poll(system);
            }
        }
        self.now = end;
    }

    fn poll(&mut self, system: usize) {
        let mut actions = Vec::new();
        self.systems[system].poll(self.now, &mut actions);
        let deadline = self.systems[system].next_deadline();
        assert!(deadline.is_none_or(|at| at > self.now), "something was left to do");
        for action in actions {
            match action {
                LacpAction::SetMemberUse { member, collecting, distributing, .. } => {
                    assert_eq!(collecting, distributing, "coupled control");
                    let before = self.used.insert((system, member), distributing);
                    assert_ne!(before.unwrap_or(false), distributing, "only changes are reported");
                }
                LacpAction::Send { member, frame } => self.send((system, member), frame.bytes()),
                LacpAction::ReportChurn { .. } | LacpAction::ReportLoopback { .. } => {}
            }
        }
        self.check(system);
    }

    /// Checks the invariants of a System.
    fn check(&self, system: usize) {
        let team = &self.systems[system];
        let states: Vec<_> = team.members().map(|member| self.state((system, member))).collect();
        let mut partners = states.iter().filter(|state| state.is_distributing).map(|state| {
            assert!(state.partner.state.has(PortState::SYNCHRONIZATION), "{state:?}");
            assert_eq!(state.selected, Selected::Selected, "{state:?}");
            assert_eq!(state.mux, MuxState::CollectingDistributing, "{state:?}");
            assert!(state.link.is_some(), "{state:?}");
            assert_ne!(state.partner.system, state.actor.system, "{state:?}");
            (state.partner.system_priority, state.partner.system, state.partner.key)
        });
        let first = partners.next();
        assert!(partners.all(|other| Some(other) == first), "one Aggregator, one Partner");
        let in_use = states.iter().filter(|state| state.is_distributing).count();
        assert!(in_use <= usize::from(team.spec().max_active));
        assert_eq!(team.team_state().members_in_use, in_use);
        for state in &states {
            let reported = self.used.get(&(system, state.member)).copied().unwrap_or(false);
            assert_eq!(reported, state.is_distributing, "the owner knows: {state:?}");
        }
    }

    fn send(&mut self, from: End, frame: &[u8]) {
        match parse(frame) {
            // A forged LACPDU may be a Marker, which is echoed unchanged.
            Ok(SlowPdu::Marker(marker)) if self.is_forged => {
                assert_eq!(marker.kind, MarkerKind::Response);
            }
            _ => self.check_sent(from, frame),
        }
        let link = self.links.iter().position(|(a, b)| *a == from || *b == from).unwrap();
        if !self.up[link] {
            return;
        }
        let (a, b) = self.links[link];
        let to = if a == from { b } else { a };
        let Some(faults) = self.faults else {
            self.deliver(to, frame.to_vec(), 1);
            return;
        };
        let copies = 1 + u64::from(self.dice.percent(faults.doubled));
        for _ in 0..copies {
            if self.dice.percent(faults.lost) {
                continue;
            }
            let mut bytes = frame.to_vec();
            if self.dice.percent(faults.forged) {
                self.is_forged = true;
                for _ in 0..1 + self.dice.below(4) {
                    let index = 14 + self.dice.below(46) as usize;
                    bytes[index] = self.dice.below(256) as u8;
                }
            }
            let delay = 1 + self.dice.below(faults.delay_ms_max);
            self.deliver(to, bytes, delay);
        }
    }

    fn check_sent(&mut self, from: End, frame: &[u8]) {
        let Ok(SlowPdu::Lacp(pdu)) = parse_exact(frame) else { panic!("{:?}", parse(frame)) };
        assert_eq!(pdu.actor, self.state(from).actor, "what is sent is what is so");
        let sent = self.sent.entry(from).or_default();
        sent.push_back(self.now);
        if sent.len() > 3 {
            let first = sent.pop_front().unwrap();
            assert!(self.now.since(first) > Duration::from_secs(1), "four in a second: {from:?}");
        }
    }

    fn deliver(&mut self, to: End, frame: Vec<u8>, delay_ms: u64) {
        self.frames += 1;
        let now = self.now + Duration::from_millis(delay_ms);
        self.in_flight.insert((now, self.frames), (to, frame));
    }
}
