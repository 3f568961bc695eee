//! One port of the virtual device: a minimal implementation of the Receive, Periodic, Mux and
//! Transmit machines of 802.1AX-2014, 6.4.

use std::time::Duration;

use super::Flaw;
use crate::pdu::{Lacpdu, PortInfo, State};
use crate::setup::{AGGREGATE_WAIT, FAST_PERIODIC, LONG_TIMEOUT, SHORT_TIMEOUT, SLOW_PERIODIC};

const LIMIT: usize = 3;

#[derive(Debug)]
pub(super) struct Port {
    flaw: Flaw,
    pub(super) actor: PortInfo,
    pub(super) partner: PortInfo,
    /// Time at which the partner's information expires, or is replaced by the defaults
    /// (current_while_timer).
    current_until: Option<Duration>,
    /// Time at which the wait for other ports began (wait_while_timer).
    waits_since: Option<Duration>,
    periodic_at: Option<Duration>,
    ntt: bool,
    sent: Vec<Duration>,
    pub(super) is_up: bool,
    /// Number of LACPDUs whose partner differs from the previous one.
    strangers: u32,
}

const FLOWS: State = State(State::COLLECTING.0 | State::DISTRIBUTING.0);

impl Port {
    pub(super) fn new(actor: PortInfo, flaw: Flaw) -> Self {
        Self {
            flaw,
            actor: PortInfo { state: actor.state.with(State::EXPIRED), ..actor },
            partner: PortInfo::default(),
            current_until: Some(SHORT_TIMEOUT),
            waits_since: None,
            periodic_at: None,
            ntt: false,
            sent: Vec::new(),
            is_up: true,
            strangers: 0,
        }
    }

    pub(super) fn set_link(&mut self, up: bool, now: Duration) {
        if up && self.flaw == Flaw::DeadAfterFlap {
            return;
        }
        self.is_up = up;
        self.partner.state = self.partner.state.without(State::SYNCHRONIZATION);
        if up {
            self.expire(now);
        }
    }

    /// Returns whether the port has a partner for Selection Logic.
    pub(super) fn has_partner(&self) -> bool {
        self.is_up && !self.actor.state.has(State::DEFAULTED) && self.partner.system != [0; 6]
    }

    fn expire(&mut self, now: Duration) {
        let state = self.partner.state.without(State::SYNCHRONIZATION).with(State::SHORT_TIMEOUT);
        if self.flaw != Flaw::FlowsWhileExpired {
            self.partner.state = state;
        }
        self.actor.state = self.actor.state.with(State::EXPIRED);
        self.current_until = Some(now + SHORT_TIMEOUT);
        self.ntt = true;
    }

    fn default_partner(&mut self) {
        if self.flaw != Flaw::KeepsPartner {
            self.partner = PortInfo::default();
        }
        self.actor.state = self.actor.state.with(State::DEFAULTED).without(State::EXPIRED);
        self.current_until = None;
        self.unselect();
    }

    pub(super) fn unselect(&mut self) {
        let state = self.actor.state.without(State::IN_USE);
        self.ntt |= state != self.actor.state;
        self.actor.state = state;
        self.waits_since = None;
    }

    /// Processes a valid LACPDU.
    pub(super) fn receive(&mut self, pdu: &Lacpdu, now: Duration) {
        let aggregation = |info: &PortInfo| info.state.has(State::AGGREGATION);
        let is_same = pdu.actor.is_same_port(&self.partner)
            && aggregation(&pdu.actor) == aggregation(&self.partner);
        if !is_same {
            self.strangers += 1;
            if self.flaw != Flaw::StaysSelected {
                self.unselect();
            }
        }
        if self.flaw == Flaw::DeadAfterFlood && self.strangers > 100 {
            self.is_up = false;
        }
        if self.actor.state.has(State::EXPIRED) && self.flaw == Flaw::WaitsAgain {
            self.unselect();
        }
        let mask = State(0x0f);
        let states_match = pdu.partner.state.0 & mask.0 == self.actor.state.0 & mask.0;
        let view = pdu.partner.is_same_port(&self.actor);
        if !(view && states_match) && self.flaw != Flaw::NoNtt {
            self.ntt = true;
        }
        self.partner = pdu.actor;
        let in_sync = (view || self.flaw == Flaw::BelievesAll || !aggregation(&pdu.actor))
            && pdu.actor.state.has(State::SYNCHRONIZATION);
        let ignores = self.flaw == Flaw::IgnoresSync;
        self.partner.state = self.partner.state.put(State::SYNCHRONIZATION, in_sync || ignores);
        let lifetime = match self.flaw {
            Flaw::ShortMemory => Duration::from_secs(2),
            _ if self.actor.state.has(State::SHORT_TIMEOUT) => SHORT_TIMEOUT,
            _ => LONG_TIMEOUT,
        };
        self.current_until = Some(now + lifetime);
        self.actor.state = self.actor.state.without(State::EXPIRED).without(State::DEFAULTED);
    }

    /// Runs the state machines; `selected` is the decision of Selection Logic. Returns whether to
    /// transmit now.
    pub(super) fn tick(&mut self, now: Duration, selected: bool) -> bool {
        if !self.is_up {
            self.unselect();
            return false;
        }
        if self.current_until.is_some_and(|until| now >= until) && self.flaw != Flaw::LongMemory {
            if self.actor.state.has(State::EXPIRED) {
                self.default_partner();
            } else {
                self.expire(now);
            }
        }
        self.mux(now, selected);
        self.periodic(now);
        self.transmit(now)
    }

    fn mux(&mut self, now: Duration, selected: bool) {
        if !selected {
            self.unselect();
            return;
        }
        let before = self.actor.state;
        if !before.has(State::SYNCHRONIZATION) {
            let since = *self.waits_since.get_or_insert(now);
            let has_waited = now >= since + AGGREGATE_WAIT || self.flaw == Flaw::NoWait;
            let is_blocked = self.flaw == Flaw::WaitsForPartner
                && !self.partner.state.has(State::SYNCHRONIZATION);
            if has_waited && !is_blocked {
                self.actor.state = before.with(State::SYNCHRONIZATION);
            }
        } else {
            let flows = self.partner.state.has(State::SYNCHRONIZATION);
            self.actor.state = before.put(FLOWS, flows);
        }
        self.ntt |= self.actor.state != before;
    }

    fn periodic(&mut self, now: Duration) {
        let active = self.actor.state.0 | self.partner.state.0;
        let speaks = match self.flaw {
            Flaw::Dumb => false,
            Flaw::PassiveSpeaks => true,
            Flaw::PassiveToPassive if self.has_partner() => true,
            _ => State(active).has(State::ACTIVITY),
        };
        if !speaks {
            self.periodic_at = None;
            return;
        }
        let short = self.partner.state.has(State::SHORT_TIMEOUT) || self.flaw == Flaw::AlwaysFast;
        let period = match self.flaw {
            Flaw::SlowPace => FAST_PERIODIC * 2,
            _ if short => FAST_PERIODIC,
            _ => SLOW_PERIODIC,
        };
        let transmit_at = self.periodic_at.get_or_insert(now + period);
        *transmit_at = (*transmit_at).min(now + period);
        if now >= *transmit_at {
            self.ntt = true;
            self.periodic_at = Some(now + period);
        }
    }

    fn transmit(&mut self, now: Duration) -> bool {
        if self.flaw == Flaw::Dumb {
            return false;
        }
        self.sent.retain(|sent_at| now < *sent_at + FAST_PERIODIC);
        let free = self.sent.len() < LIMIT || self.flaw == Flaw::Unlimited;
        let sends = self.ntt && free;
        if sends {
            self.ntt = false;
            self.sent.push(now);
        }
        sends
    }
}
