//! LACP port of one member: its variables and state machines.

use suimon_quantity::Time;

use super::churn::ChurnMachine;
use super::constants::{COLLECTOR_MAX_DELAY, VERSION};
use super::counters::Counters;
use super::key::operational_key;
use super::lag::{LagClass, LagId};
use super::mux::MuxMachine;
use super::periodic::PeriodicMachine;
use super::receive::ReceiveMachine;
use super::responder::Responder;
use super::transmit::TransmitMachine;
use super::variables::Variables;
use super::{
    Activity, LacpPortSpec, LacpReason, LacpSpec, Lacpdu, Link, MuxState, PortInfo, PortState,
    ReceiveState, Selected, SlowFrame, Timer,
};
use crate::MemberId;

/// Maximum number of transitions in one call of [`Port::run`], above the number that any event
/// causes.
const TRANSITIONS_MAX: usize = 32;

/// Link aggregation group that a port may join according to its Receive machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eligibility {
    /// The port may join this group.
    Group(LagId),
    /// The port may join no group at present but stay in its current one: the Partner's information
    /// has expired or the link is down.
    KeepCurrent,
    /// The port may join no group, for this reason.
    Ineligible(LacpReason),
}

/// State that [`Lacp::poll`](super::Lacp::poll) last reported to its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedState {
    pub(crate) in_use: bool,
    pub(crate) actor_churn: bool,
    pub(crate) partner_churn: bool,
    pub(crate) looped_port: Option<u16>,
}

/// LACP port of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) member: MemberId,
    pub(crate) spec: LacpPortSpec,
    pub(crate) link: Option<Link>,
    /// Properties of the link when it was last up; the operational key depends on them while the
    /// link is down.
    known_link: Option<Link>,
    pub(crate) vars: Variables,
    pub(crate) receive: ReceiveMachine,
    pub(crate) periodic: PeriodicMachine,
    pub(crate) mux: MuxMachine,
    pub(crate) transmit: TransmitMachine,
    pub(crate) actor_churn: ChurnMachine,
    pub(crate) partner_churn: ChurnMachine,
    pub(crate) responder: Responder,
    /// Group for which the port is selected; `None` if it is not selected.
    pub(crate) lag: Option<LagId>,
    /// Reason for the last decision of the Selection Logic.
    verdict: LacpReason,
    /// Number of the port of this System whose LACPDUs were received on the link; `None` without a
    /// loop.
    pub(crate) looped_port: Option<u16>,
    pub(crate) counters: Counters,
    pub(crate) last_pdu: Option<Time>,
    pub(crate) reported: ReportedState,
}

impl Port {
    pub(crate) fn new(member: MemberId, spec: LacpPortSpec, team: &LacpSpec, now: Time) -> Self {
        let mut vars = Variables::new(PortInfo::default());
        let receive = ReceiveMachine::new(&mut vars);
        let mux = MuxMachine::new(&mut vars);
        let mut port = Self {
            member,
            spec,
            link: None,
            known_link: None,
            vars,
            receive,
            periodic: PeriodicMachine::new(),
            mux,
            transmit: TransmitMachine::default(),
            actor_churn: ChurnMachine::new(),
            partner_churn: ChurnMachine::new(),
            responder: Responder::default(),
            lag: None,
            verdict: LacpReason::LinkDown,
            looped_port: None,
            counters: Counters::default(),
            last_pdu: None,
            reported: ReportedState::default(),
        };
        port.configure(team);
        port.run(now);
        port
    }

    /// Applies the team's configuration to the variables, including those that depend on the link.
    pub(crate) fn configure(&mut self, team: &LacpSpec) {
        let before = self.vars.actor;
        let can_aggregate = self.known_link.is_none_or(|link| link.full_duplex);
        let state = before
            .state
            .with(PortState::ACTIVITY, team.activity == Activity::Active)
            .with(PortState::TIMEOUT, team.timer == Timer::Fast)
            .with(PortState::AGGREGATION, can_aggregate);
        self.vars.actor = PortInfo {
            system_priority: team.system_priority,
            system: team.system,
            key: operational_key(team, self.known_link),
            port_priority: self.spec.priority,
            port: self.spec.port,
            state,
        };
        let actor = &self.vars.actor;
        // After a change of System, key or aggregation the port belongs to another group
        // (6.4.14.1).
        let moves = actor.system_id() != before.system_id()
            || !actor.agrees(
                &PortInfo { port: actor.port, port_priority: actor.port_priority, ..before },
                PortState::AGGREGATION,
            );
        if moves {
            self.vars.selected = Selected::Unselected;
        }
        if *actor != before {
            self.vars.ntt = true;
        }
        // The Partner changes to slow transmission as soon as it receives the new Timeout bit, so
        // information received before must remain valid for the longer period.
        if self.receive.state == ReceiveState::Current {
            let valid = self.last_pdu.map(|time| time + self.vars.current_while());
            self.receive.current_while = self.receive.current_while.max(valid);
        }
    }

    pub(crate) fn handle_link(&mut self, link: Option<Link>, team: &LacpSpec, now: Time) {
        let is_full_duplex = link.map(|link| link.full_duplex);
        if is_full_duplex != self.link.map(|link| link.full_duplex) {
            // The state diagrams have no transition from LACP enabled to disabled except through a
            // disabled port.
            self.vars.port_enabled = false;
            self.run(now);
        }
        self.link = link;
        if let Some(link) = link {
            self.known_link = Some(link);
            self.vars.lacp_enabled = link.full_duplex;
        } else {
            self.responder.clear();
        }
        self.configure(team);
        self.run(now);
        self.vars.port_enabled = link.is_some();
        self.run(now);
    }

    /// Processes a received LACPDU. Returns true if the Receive machine accepted it, false if it
    /// ignored it.
    pub(crate) fn handle_pdu(&mut self, pdu: &Lacpdu, now: Time) -> bool {
        self.counters.lacpdus_rx += 1;
        let was_known =
            self.receive.state == ReceiveState::Current && self.vars.selected == Selected::Selected;
        let before = self.vars.partner;
        if !self.receive.handle_pdu(&mut self.vars, pdu, now) {
            return false;
        }
        self.last_pdu = Some(now);
        let is_own = pdu.actor.system == self.vars.actor.system;
        self.looped_port = is_own.then_some(pdu.actor.port);
        self.counters.loopbacks += u64::from(is_own);
        let is_same = pdu.actor.agrees(&before, PortState::default());
        self.counters.partner_changes += u64::from(was_known && !is_same);
        self.run(now);
        true
    }

    /// Makes all transitions that are due, and returns whether it made any.
    pub(crate) fn run(&mut self, now: Time) -> bool {
        for count in 0..TRANSITIONS_MAX {
            if !self.step(now) {
                return count > 0;
            }
        }
        true
    }

    fn step(&mut self, now: Time) -> bool {
        let mut changed = self.receive.transition(&mut self.vars, now);
        if !matches!(self.receive.state, ReceiveState::Current | ReceiveState::Expired) {
            self.looped_port = None;
        }
        changed |= self.mux.tick(&mut self.vars, now);
        changed |= self.mux.transition(&mut self.vars, now);
        changed |= self.periodic.transition(&mut self.vars, now);
        TransmitMachine::clear_ntt_if_disabled(&mut self.vars, self.periodic.state);
        let enabled = self.vars.port_enabled;
        let actor_in_sync = self.vars.actor_has(PortState::SYNCHRONIZATION);
        changed |= self.actor_churn.transition(enabled, actor_in_sync, now);
        let partner_in_sync = self.vars.partner_has(PortState::SYNCHRONIZATION);
        changed | self.partner_churn.transition(enabled, partner_in_sync, now)
    }

    /// Returns which group the port may join (6.4.14.1).
    pub(crate) fn eligibility(&self, team: &LacpSpec) -> Eligibility {
        let is_current = self.receive.state == ReceiveState::Current;
        let class = match self.receive.state {
            ReceiveState::Initialize | ReceiveState::PortDisabled | ReceiveState::Expired => {
                return Eligibility::KeepCurrent;
            }
            ReceiveState::Current if self.looped_port.is_some() => {
                return Eligibility::Ineligible(LacpReason::Loopback);
            }
            ReceiveState::Current if self.vars.partner_has(PortState::AGGREGATION) => {
                LagClass::Aggregate
            }
            ReceiveState::Current => LagClass::Individual,
            ReceiveState::Defaulted | ReceiveState::LacpDisabled => LagClass::Defaulted,
        };
        let is_alone = class != LagClass::Aggregate;
        if is_alone && !team.individual_allowed {
            return Eligibility::Ineligible(match self.receive.state {
                _ if is_current => LacpReason::PartnerIndividual,
                ReceiveState::LacpDisabled => LacpReason::HalfDuplex,
                _ => LacpReason::NoPartner,
            });
        }
        Eligibility::Group(LagId {
            class,
            partner_system_priority: self.vars.partner.system_priority,
            partner_system: self.vars.partner.system,
            partner_key: self.vars.partner.key,
            actor_key: self.vars.actor.key,
            individual: is_alone.then_some(self.member),
        })
    }

    /// Applies a decision of the Selection Logic and returns whether it changed `Selected`. A port
    /// leaves its group and is detached before it joins another (6.4.14, NOTE 2).
    pub(crate) fn apply_selection(
        &mut self,
        desired: Selected,
        lag: Option<LagId>,
        verdict: LacpReason,
    ) -> bool {
        self.verdict = verdict;
        let previous = self.vars.selected;
        let must_leave = previous != Selected::Unselected && self.lag != lag;
        let cannot_join = previous == Selected::Unselected && self.mux.state != MuxState::Detached;
        let next = if must_leave || cannot_join { Selected::Unselected } else { desired };
        if next != desired {
            self.verdict = LacpReason::Detaching;
        }
        self.lag = if next == Selected::Unselected { None } else { lag };
        self.vars.selected = next;
        next != previous
    }

    pub(crate) fn is_attached(&self) -> bool {
        matches!(self.mux.state, MuxState::Attached | MuxState::CollectingDistributing)
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.mux.state == MuxState::CollectingDistributing
    }

    /// Returns the reason for which the port is in use or not.
    pub(crate) fn reason(&self) -> LacpReason {
        match self.vars.selected {
            _ if self.is_in_use() => LacpReason::InUse,
            _ if !self.vars.port_enabled => LacpReason::LinkDown,
            _ if self.receive.state == ReceiveState::Expired => LacpReason::PartnerSilent,
            Selected::Selected if self.is_attached() => LacpReason::PartnerNotInSync,
            Selected::Selected => LacpReason::AggregateWait,
            Selected::Standby | Selected::Unselected => self.verdict,
        }
    }

    /// Returns the LACPDU to send at `now`, or `None` if none is due or the rate limit is exceeded.
    pub(crate) fn poll_lacpdu(&mut self, now: Time) -> Option<SlowFrame> {
        let is_due = self.transmit.transition(&mut self.vars, self.periodic.state, now);
        is_due.then(|| self.lacpdu())
    }

    /// Returns the final LACPDU of a removed member, which makes the Partner stop using the link
    /// immediately instead of after a timeout. `None` if the rate limit is exceeded.
    pub(crate) fn final_lacpdu(&mut self, now: Time) -> Option<SlowFrame> {
        const USE: PortState =
            PortState::SYNCHRONIZATION.or(PortState::COLLECTING).or(PortState::DISTRIBUTING);
        self.vars.actor.state.set(USE, false);
        self.vars.ntt = true;
        self.poll_lacpdu(now)
    }

    fn lacpdu(&mut self) -> SlowFrame {
        self.counters.lacpdus_tx += 1;
        let pdu = Lacpdu {
            version: VERSION,
            actor: self.vars.actor,
            partner: self.vars.partner,
            collector_max_delay: COLLECTOR_MAX_DELAY,
        };
        pdu.to_frame(self.spec.mac)
    }

    /// Returns the earliest time at which a timer expires or a delayed LACPDU may be sent; `None`
    /// if there is none.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let timers = [
            self.receive.current_while,
            self.periodic.timer,
            self.mux.wait_while,
            self.actor_churn.timer,
            self.partner_churn.timer,
            self.transmit.deadline(&self.vars),
        ];
        timers.into_iter().flatten().min()
    }
}
