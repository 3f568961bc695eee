//! Recording of the inputs and decisions of a team's LACP state machines.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;
use suimon_teaming::MemberId;
use suimon_teaming::lacp::{
    Lacp, LacpAction, LacpPortSpec, LacpSpec, LacpSpecError, Link, PduError, ReceivedPdu,
};

use crate::{Policy, PolicyKind, RecordSink, Recorded};

/// Recorded input of a team's LACP policy ([`Lacp`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LacpInput {
    /// Call of [`Lacp::set_spec`].
    Spec(LacpSpec),
    /// Call of [`Lacp::add_member`].
    #[serde(rename = "add")]
    AddMember {
        /// Identifier of the new member.
        member: MemberId,
        /// Configuration of the member's port.
        spec: LacpPortSpec,
    },
    /// Call of [`Lacp::set_member`].
    #[serde(rename = "set")]
    SetMember {
        /// Member that the change concerns.
        member: MemberId,
        /// New configuration of the member's port.
        spec: LacpPortSpec,
    },
    /// Call of [`Lacp::remove_member`].
    #[serde(rename = "remove")]
    RemoveMember(MemberId),
    /// Call of [`Lacp::handle_link`].
    Link {
        /// Member that the link belongs to.
        member: MemberId,
        /// Link state; `None` if the link is down.
        link: Option<Link>,
    },
    /// Call of [`Lacp::handle_frame`].
    Frame {
        /// Member that received the frame.
        member: MemberId,
        /// Complete frame without FCS, as received on the member.
        frame: Vec<u8>,
    },
    /// Call of [`Lacp::poll`] at or after a deadline.
    Poll,
}

/// Decision of the LACP policy.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LacpDecision {
    /// Reason for which the policy rejected the input (invalid configuration or malformed frame);
    /// `None` if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refused")]
    pub refusal_reason: Option<String>,
    /// Classification of the received frame; `None` for other inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "received")]
    pub frame_classification: Option<ReceivedPdu>,
    /// Actions to carry out, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<LacpAction>,
}

fn change_decision(result: &Result<(), LacpSpecError>) -> LacpDecision {
    let refused = result.as_ref().err().map(ToString::to_string);
    LacpDecision { refusal_reason: refused, ..LacpDecision::default() }
}

fn frame_decision(result: &Result<ReceivedPdu, PduError>) -> LacpDecision {
    let refused = result.as_ref().err().map(ToString::to_string);
    LacpDecision {
        refusal_reason: refused,
        frame_classification: result.ok(),
        ..LacpDecision::default()
    }
}

impl Policy for Lacp {
    const KIND: PolicyKind = PolicyKind::Lacp;
    type InitialState = LacpSpec;
    type Input = LacpInput;
    type Decision = LacpDecision;

    fn begin(_at: Time, birth: LacpSpec) -> Result<Self, String> {
        Self::new(birth).map_err(|error| error.to_string())
    }

    fn step(&mut self, now: Time, input: &LacpInput) -> LacpDecision {
        match input {
            LacpInput::Spec(spec) => change_decision(&self.set_spec(spec.clone(), now)),
            LacpInput::AddMember { member, spec } => {
                change_decision(&self.add_member(*member, *spec, now))
            }
            LacpInput::SetMember { member, spec } => {
                change_decision(&self.set_member(*member, *spec, now))
            }
            LacpInput::RemoveMember(member) => change_decision(&self.remove_member(*member, now)),
            LacpInput::Link { member, link } => {
                change_decision(&self.handle_link(*member, *link, now))
            }
            LacpInput::Frame { member, frame } => {
                frame_decision(&self.handle_frame(*member, frame, now))
            }
            LacpInput::Poll => {
                let mut actions = Vec::new();
                self.poll(now, &mut actions);
                LacpDecision { actions, ..LacpDecision::default() }
            }
        }
    }
}

impl Recorded<Lacp> {
    /// Creates the policy as [`Lacp::new`] does, and starts recording if there is a `sink`; `name`
    /// is that of the stream.
    ///
    /// # Errors
    ///
    /// As [`Lacp::new`].
    pub fn record_lacp(
        sink: Option<&Arc<dyn RecordSink>>,
        (now, name): (Time, &str),
        spec: LacpSpec,
    ) -> Result<Self, LacpSpecError> {
        let policy = Lacp::new(spec.clone())?;
        Ok(Self::start(policy, sink, (now, name), || spec))
    }

    fn change(
        &mut self,
        now: Time,
        input: LacpInput,
        change: impl FnOnce(&mut Lacp) -> Result<(), LacpSpecError>,
    ) -> Result<(), LacpSpecError> {
        let result = change(&mut self.policy);
        self.record(now, || (input, change_decision(&result)));
        result
    }

    /// As [`Lacp::set_spec`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Lacp::set_spec`].
    pub fn set_spec(&mut self, now: Time, spec: LacpSpec) -> Result<(), LacpSpecError> {
        self.change(now, LacpInput::Spec(spec.clone()), |lacp| lacp.set_spec(spec, now))
    }

    /// As [`Lacp::add_member`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Lacp::add_member`].
    pub fn add_member(
        &mut self,
        now: Time,
        member: MemberId,
        spec: LacpPortSpec,
    ) -> Result<(), LacpSpecError> {
        let input = LacpInput::AddMember { member, spec };
        self.change(now, input, |lacp| lacp.add_member(member, spec, now))
    }

    /// As [`Lacp::set_member`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Lacp::set_member`].
    pub fn set_member(
        &mut self,
        now: Time,
        member: MemberId,
        spec: LacpPortSpec,
    ) -> Result<(), LacpSpecError> {
        let input = LacpInput::SetMember { member, spec };
        self.change(now, input, |lacp| lacp.set_member(member, spec, now))
    }

    /// As [`Lacp::remove_member`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Lacp::remove_member`].
    pub fn remove_member(&mut self, now: Time, member: MemberId) -> Result<(), LacpSpecError> {
        self.change(now, LacpInput::RemoveMember(member), |lacp| lacp.remove_member(member, now))
    }

    /// As [`Lacp::handle_link`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Lacp::handle_link`].
    pub fn handle_link(
        &mut self,
        now: Time,
        member: MemberId,
        link: Option<Link>,
    ) -> Result<(), LacpSpecError> {
        let input = LacpInput::Link { member, link };
        self.change(now, input, |lacp| lacp.handle_link(member, link, now))
    }

    /// As [`Lacp::handle_frame`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Lacp::handle_frame`].
    pub fn handle_frame(
        &mut self,
        now: Time,
        member: MemberId,
        frame: &[u8],
    ) -> Result<ReceivedPdu, PduError> {
        let result = self.policy.handle_frame(member, frame, now);
        self.record(now, || {
            (LacpInput::Frame { member, frame: frame.to_vec() }, frame_decision(&result))
        });
        result
    }

    /// As [`Lacp::poll`]; records the call. Calls before the deadline are not recorded, because
    /// they change nothing.
    pub fn poll(&mut self, now: Time, out: &mut Vec<LacpAction>) {
        let is_due = self.policy.next_deadline().is_some_and(|due| due <= now);
        let before = out.len();
        self.policy.poll(now, out);
        if is_due {
            self.record(now, || {
                let actions = out.get(before..).unwrap_or_default().to_vec();
                (LacpInput::Poll, LacpDecision { actions, ..LacpDecision::default() })
            });
        }
    }
}
