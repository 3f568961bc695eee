//! Test bench: a team whose Partners the test controls by hand.

use core::time::Duration;

use suimon_frame::MacAddr;
use suimon_quantity::Time;

use super::{
    Activity, Lacp, LacpAction, LacpPortSpec, LacpReason, LacpSpec, Lacpdu, Link, MemberState,
    PortInfo, PortState, SlowPdu, Timer, parse,
};
use crate::MemberId;

pub(crate) const TEN_GIGABIT: Link = Link { speed_mbps: 10_000, full_duplex: true };

pub(crate) fn spec() -> LacpSpec {
    LacpSpec {
        system: MacAddr::new([2, 0, 0, 0, 0, 0x50]),
        system_priority: 0x8000,
        admin_key: 1,
        activity: Activity::Active,
        timer: Timer::Fast,
        individual_allowed: false,
        max_active: 32,
        mixed_speeds_allowed: false,
    }
}

pub(crate) fn port(number: u16) -> LacpPortSpec {
    let mac = MacAddr::new([2, 0, 0, 1, 0, number as u8]);
    LacpPortSpec { port: number, priority: 0x80, mac }
}

/// Returns the Partner's description of its end: System `system`, key 7, same port number as the
/// local end.
pub(crate) fn end(system: u8, port: u16) -> PortInfo {
    PortInfo {
        system_priority: 0x8000,
        system: MacAddr::new([2, 0, 0, 0, 0, system]),
        key: 7,
        port_priority: 0x80,
        port,
        state: PortState::ACTIVITY
            .or(PortState::TIMEOUT)
            .or(PortState::AGGREGATION)
            .or(PortState::SYNCHRONIZATION),
    }
}

/// Team with a virtual clock, and the actions that it has returned.
pub(crate) struct Bench {
    pub(crate) lacp: Lacp,
    pub(crate) now: Time,
    pub(crate) actions: Vec<(Time, LacpAction)>,
}

impl Bench {
    /// Creates a team of members 1 to `members` whose links are up.
    pub(crate) fn new(spec: LacpSpec, members: u16) -> Self {
        let now = Time::from_ns(1_000_000_000_000);
        let mut bench = Self { lacp: Lacp::new(spec).unwrap(), now, actions: Vec::new() };
        for number in 1..=members {
            bench.lacp.add_member(MemberId(number.into()), port(number), now).unwrap();
            bench.link(number, Some(TEN_GIGABIT));
        }
        bench
    }

    pub(crate) fn poll(&mut self) {
        let mut actions = Vec::new();
        self.lacp.poll(self.now, &mut actions);
        self.actions.extend(actions.into_iter().map(|action| (self.now, action)));
        assert!(
            self.lacp.next_deadline().is_none_or(|deadline| deadline > self.now),
            "nothing is left to do"
        );
    }

    /// Advances the time, stopping at each deadline.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(deadline) = self.lacp.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = deadline;
            self.poll();
        }
        self.now = end;
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        self.run_for(Duration::from_millis(ms));
    }

    pub(crate) fn link(&mut self, member: u16, link: Option<Link>) {
        self.lacp.handle_link(MemberId(member.into()), link, self.now).unwrap();
        self.poll();
    }

    pub(crate) fn set_spec(&mut self, change: impl FnOnce(&mut LacpSpec)) {
        let mut spec = self.lacp.spec().clone();
        change(&mut spec);
        self.lacp.set_spec(spec, self.now).unwrap();
        self.poll();
    }

    /// Delivers a LACPDU from `end` that describes the local end correctly.
    pub(crate) fn receive(&mut self, member: u16, end: PortInfo) {
        let partner = self.state(member).actor;
        self.receive_pdu(
            member,
            &Lacpdu { version: 1, actor: end, partner, collector_max_delay: 0 },
        );
    }

    pub(crate) fn receive_pdu(&mut self, member: u16, pdu: &Lacpdu) {
        let frame = pdu.to_frame(MacAddr::new([2, 0, 0, 9, 9, 9]));
        self.lacp.handle_frame(MemberId(member.into()), frame.bytes(), self.now).unwrap();
        self.poll();
    }

    /// Advances the time by `seconds`, with LACPDUs from the ends in `pdus` every half second.
    pub(crate) fn receive_for(&mut self, seconds: u64, pdus: &[(u16, PortInfo)]) {
        for _ in 0..seconds * 2 {
            for (member, end) in pdus {
                self.receive(*member, *end);
            }
            self.run_ms(500);
        }
    }

    pub(crate) fn state(&self, member: u16) -> MemberState {
        self.lacp.member_state(MemberId(member.into())).unwrap()
    }

    pub(crate) fn reasons(&self) -> Vec<LacpReason> {
        let states = self.lacp.members().filter_map(|member| self.lacp.member_state(member));
        states.map(|state| state.reason).collect()
    }

    /// Returns the start (`true`) and end of use of members since the last call: time, member,
    /// start or end, reason.
    pub(crate) fn uses(&mut self) -> Vec<(Time, u32, bool, LacpReason)> {
        let uses = self.actions.drain(..).filter_map(|(time, action)| match action {
            LacpAction::SetMemberUse { member, collecting, distributing, reason } => {
                assert_eq!(collecting, distributing);
                Some((time, member.0, distributing, reason))
            }
            _ => None,
        });
        uses.collect()
    }

    /// Returns the LACPDUs that a member sent.
    pub(crate) fn sent(&self, member: u16) -> Vec<(Time, Lacpdu)> {
        let sent = self.actions.iter().filter_map(|(time, action)| match action {
            LacpAction::Send { member: sender, frame } if sender.0 == u32::from(member) => {
                match parse(frame.bytes()) {
                    Ok(SlowPdu::Lacp(pdu)) => Some((*time, pdu)),
                    _ => None,
                }
            }
            _ => None,
        });
        sent.collect()
    }
}
