//! Fuzz oracle of LACP: a team of two members with an arbitrary partner, link changes and clock.
//!
//! The input is a script of link changes, time steps, and frames: valid LACPDUs of a partner,
//! invalid frames, and the team's own frames. After each step the oracle parses the transmitted
//! frames (IEEE 802.1AX-2014, 6.4.2.3 and 6.5.3.3) and compares the reported state of the team with
//! the actions that it emitted.

use core::time::Duration;

use suimon_frame::MacAddr;
use suimon_quantity::Time;
use suimon_teaming::MemberId;
use suimon_teaming::lacp::{Activity, Lacp, LacpAction, LacpPortSpec, LacpSpec, Link, Timer};

const MEMBERS: usize = 2;
const SYSTEM: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FRAME_BYTES: usize = 124;
/// Maximum number of frames of one kind that a member may transmit in one second (IEEE
/// 802.1AX-2014, 6.4.16).
const SENT_MAX: usize = 3;
const SECOND: Duration = Duration::from_secs(1);
/// Number of polls at one time after which no deadline may be due.
const POLLS_MAX: usize = 8;
/// Maximum number of steps executed of a script.
const STEPS_MAX: usize = 400;

/// Statistics of a script, with which tests verify that seeds reach the intended states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// LACPDUs transmitted.
    pub lacpdus: usize,
    /// Marker Responses transmitted.
    pub marker_responses: usize,
    /// True if both members distributed frames at the same time.
    pub used_both: bool,
    /// True if a distributing member was stopped.
    pub was_stopped: bool,
}

struct Member {
    id: MemberId,
    has_link: bool,
    collecting: bool,
    distributing: bool,
    /// Last LACPDU that the member transmitted.
    sent: Option<[u8; FRAME_BYTES]>,
    /// Transmission times of LACPDUs, and of Marker Responses.
    times: [Vec<Time>; 2],
}

struct World {
    lacp: Lacp,
    spec: LacpSpec,
    now: Time,
    members: Vec<Member>,
    outcome: Outcome,
}

/// Executes the script and checks the team after each step.
///
/// # Panics
///
/// The team violates the standard, or its reported state differs from its actions.
pub fn check(input: &[u8]) -> Outcome {
    let mut script = input.iter().copied();
    let mut world = World::new(script.next().unwrap_or(0));
    for _ in 0..STEPS_MAX {
        let Some(step) = script.next() else { break };
        world.step(step, &mut script);
        world.settle();
    }
    world.outcome
}

impl World {
    fn new(options: u8) -> Self {
        let spec = LacpSpec {
            system: MacAddr::new(SYSTEM),
            system_priority: 0x8000,
            admin_key: 1,
            activity: if options & 1 == 0 { Activity::Active } else { Activity::Passive },
            timer: if options & 2 == 0 { Timer::Fast } else { Timer::Slow },
            individual_allowed: options & 4 != 0,
            max_active: if options & 8 == 0 { 32 } else { 1 },
            mixed_speeds_allowed: options & 16 != 0,
        };
        let now = Time::ZERO + SECOND;
        let mut lacp = Lacp::new(spec.clone()).expect("the specification can be");
        let members = (0..MEMBERS).map(|index| {
            let id = MemberId(index as u32);
            let port = index as u16 + 1;
            let mac = MacAddr::new([2, 0, 0, 0, 1, port as u8]);
            lacp.add_member(id, LacpPortSpec { port, priority: 0x8000, mac }, now)
                .expect("it can be");
            Member {
                id,
                has_link: false,
                collecting: false,
                distributing: false,
                sent: None,
                times: [Vec::new(), Vec::new()],
            }
        });
        Self { members: members.collect(), lacp, spec, now, outcome: Outcome::default() }
    }

    fn step(&mut self, step: u8, script: &mut impl Iterator<Item = u8>) {
        let mut next = || script.next().unwrap_or(0);
        let index = usize::from(step >> 3) % MEMBERS;
        match step % 8 {
            0 => self.now = self.now + Duration::from_millis(10 * u64::from(next())),
            1 => self.set_link(index, next()),
            2 => {
                let options = next();
                let frame = self.partner_frame(index, options, &mut next);
                self.arrive(index, &frame);
            }
            3 => {
                let len = usize::from(next());
                let frame: Vec<u8> = (0..len).map(|_| next()).collect();
                self.arrive(index, &frame);
            }
            4 => {
                let frame = marker_frame(next());
                self.arrive(index, &frame);
            }
            5 => {
                let sender = usize::from(next()) % MEMBERS;
                if let Some(frame) = self.members[sender].sent {
                    self.arrive(index, &frame);
                }
            }
            6 => {
                let options = next();
                self.spec.activity =
                    if options & 1 == 0 { Activity::Active } else { Activity::Passive };
                self.spec.timer = if options & 2 == 0 { Timer::Fast } else { Timer::Slow };
                self.spec.max_active = 1 + options % 32;
                self.lacp.set_spec(self.spec.clone(), self.now).expect("it can be");
            }
            _ => {
                let mut frame = self.partner_frame(index, 7, &mut next);
                let len = frame.len();
                frame[usize::from(next()) % len] = next();
                frame.truncate(len - usize::from(next() % 8));
                self.arrive(index, &frame);
            }
        }
    }

    fn set_link(&mut self, index: usize, options: u8) {
        let speed_mbps = if options & 2 == 0 { 10_000 } else { 1000 };
        let link = (options & 1 != 0).then_some(Link { speed_mbps, full_duplex: options & 4 == 0 });
        self.members[index].has_link = link.is_some();
        self.lacp.handle_link(self.members[index].id, link, self.now).expect("the member exists");
    }

    fn arrive(&mut self, index: usize, frame: &[u8]) {
        let before = self.lacp.member_state(self.members[index].id).expect("the member exists");
        let answer = self.lacp.handle_frame(self.members[index].id, frame, self.now);
        let after = self.lacp.member_state(self.members[index].id).expect("the member exists");
        if answer.is_err() {
            // An invalid frame is counted and changes no other state.
            let count = |state: &suimon_teaming::lacp::MemberState| {
                state.counters.illegal_rx + state.counters.unknown_rx
            };
            assert_eq!(count(&after), count(&before) + 1);
            assert_eq!((after.receive, after.mux), (before.receive, before.mux));
            assert_eq!(after.partner, before.partner);
        }
    }

    /// Returns a LACPDU of a partner: `options` selects its system, its state and whether it
    /// contains the team's information.
    fn partner_frame(&self, index: usize, options: u8, next: &mut impl FnMut() -> u8) -> Vec<u8> {
        let mut frame =
            vec![0x01, 0x80, 0xc2, 0, 0, 2, 2, 0, 0, 0, 9, index as u8, 0x88, 0x09, 1, 1];
        let system = if options & 0x40 == 0 { 9 } else { next() };
        frame.extend([1, 20, 0x80, 0, 2, 0, 0, 0, 0, system, 0, 7, 0x80, 0, 0, 10 + index as u8]);
        let state = if options & 0x80 == 0 {
            0x05 | (options & 1) << 3 | (options & 6) << 3
        } else {
            next()
        };
        frame.extend([state | options & 2, 0, 0, 0]);
        frame.extend([2, 20]);
        match self.members[index].sent {
            Some(sent) if options & 8 == 0 => frame.extend(&sent[18..36]),
            _ => frame.extend([0; 18]),
        }
        frame.extend([3, 16]);
        frame.resize(FRAME_BYTES, 0);
        frame
    }

    /// Executes all due actions and then checks the reported state.
    fn settle(&mut self) {
        let mut actions = Vec::new();
        for _ in 0..POLLS_MAX {
            self.lacp.poll(self.now, &mut actions);
            for action in actions.drain(..) {
                self.carry_out(&action);
            }
            if self.lacp.next_deadline().is_none_or(|deadline| deadline > self.now) {
                return self.compare();
            }
        }
        panic!("the deadline never advances");
    }

    fn carry_out(&mut self, action: &LacpAction) {
        match action {
            LacpAction::SetMemberUse { member, collecting, distributing, .. } => {
                let member = &mut self.members[member.0 as usize];
                assert!(!distributing || (*collecting && member.has_link), "{action:?}");
                self.outcome.was_stopped |= member.distributing && !distributing;
                (member.collecting, member.distributing) = (*collecting, *distributing);
            }
            LacpAction::Send { member, frame } => {
                let member = &mut self.members[member.0 as usize];
                assert!(member.has_link, "a frame leaves a member without link");
                let bytes = frame.bytes();
                let kind = usize::from(judge(bytes, member.id.0 as u8 + 1));
                if kind == 0 {
                    member.sent = Some(*bytes);
                    self.outcome.lacpdus += 1;
                } else {
                    self.outcome.marker_responses += 1;
                }
                let times = &mut member.times[kind];
                times.push(self.now);
                if let Some(first) = times.len().checked_sub(SENT_MAX + 1) {
                    assert!(self.now.since(times[first]) >= SECOND, "too many frames in a second");
                }
            }
            LacpAction::ReportChurn { .. } | LacpAction::ReportLoopback { .. } => {}
        }
    }

    /// Checks that the reported state of each member matches the actions emitted so far.
    fn compare(&mut self) {
        for member in &self.members {
            let state = self.lacp.member_state(member.id).expect("the member exists");
            assert_eq!(
                (state.is_collecting, state.is_distributing, state.link.is_some()),
                (member.collecting, member.distributing, member.has_link)
            );
            assert!(!state.is_distributing || state.looped_port.is_none());
        }
        let in_use = self.members.iter().filter(|member| member.distributing).count();
        assert!(in_use <= usize::from(self.spec.max_active).max(1));
        self.outcome.used_both |= in_use == MEMBERS;
    }
}

/// Checks a transmitted frame. Returns true for a Marker Response, false for a LACPDU.
fn judge(frame: &[u8; FRAME_BYTES], port: u8) -> bool {
    assert_eq!(frame[..6], [0x01, 0x80, 0xc2, 0, 0, 2]);
    assert_eq!(frame[6..12], [2, 0, 0, 0, 1, port]);
    assert_eq!(frame[12..14], [0x88, 0x09]);
    if frame[14] == 2 {
        // Version 1, a Marker Response TLV of 16 octets, the terminator.
        assert_eq!(frame[15..18], [1, 2, 16]);
        assert_eq!(frame[34..], [0; 90]);
        return true;
    }
    assert_eq!(frame[14..18], [1, 1, 1, 20]);
    assert_eq!(frame[20..26], SYSTEM);
    assert_eq!(frame[30..32], [0, port]);
    assert_eq!(frame[33..38], [0, 0, 0, 2, 20]);
    assert_eq!(frame[53..58], [0, 0, 0, 3, 16]);
    assert_eq!(frame[60..], [0; 64]);
    // Distributing without collecting, and collecting without synchronization, are invalid states
    // (6.4.15).
    let state = frame[32];
    assert!(state & 0x20 == 0 || state & 0x10 != 0);
    assert!(state & 0x10 == 0 || state & 0x08 != 0);
    false
}

fn marker_frame(kind: u8) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 2, 2, 0, 0, 0, 9, 1, 0x88, 0x09, 2, 1];
    frame.extend([1 + kind % 2, 16, 0, 1, 2, 0, 0, 0, 0, 9, 0, 0, 0, kind]);
    frame.resize(FRAME_BYTES, 0);
    frame
}
