//! Results of [`Lacp`](super::Lacp): classification of received frames, and actions for the caller.

use serde::{Deserialize, Serialize};

use super::port::{Port, ReportedState};
use super::{ChurnState, LacpReason, SlowFrame};
use crate::MemberId;

/// Classification of a frame received on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "received")]
pub enum ReceivedPdu {
    /// Valid LACPDU, processed by the Receive machine.
    Lacpdu,
    /// Marker PDU. It is answered at the next poll unless the rate limit is exceeded.
    Marker {
        /// True if a response will be sent.
        is_answered: bool,
    },
    /// Marker Response PDU. Ignored, because this implementation sends no Markers.
    MarkerResponse,
    /// PDU of another slow protocol.
    Other {
        /// Subtype of the slow protocol.
        subtype: u8,
    },
    /// LACPDU received while the link was down or half duplex. Ignored.
    Ignored,
    /// Frame received on a member that is not in the team.
    NotAMember,
}

/// End of a link that does not get in sync (churn).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChurnSide {
    /// The local end does not get in sync.
    Actor,
    /// The Partner does not get in sync.
    Partner,
}

/// Action that the caller of [`Lacp::poll`](super::Lacp::poll) must carry out. Actions are carried
/// out in the order in which they are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum LacpAction {
    /// Start or stop collecting and distributing on this member.
    #[serde(rename = "use")]
    SetMemberUse {
        /// Member that starts or stops.
        member: MemberId,
        /// True if the team must accept received frames.
        collecting: bool,
        /// True if the team may send frames.
        distributing: bool,
        /// Reason for which the member is used or not.
        reason: LacpReason,
    },
    /// Send this frame on this member, ahead of data frames.
    Send {
        /// Member to send the frame on.
        member: MemberId,
        /// Complete Ethernet frame to send, without FCS.
        frame: SlowFrame,
    },
    /// Report that one end of a link has been out of sync for 60 s, or that this state has ended.
    #[serde(rename = "churn")]
    ReportChurn {
        /// Member whose link is concerned.
        member: MemberId,
        /// End of the link that is or was out of sync.
        side: ChurnSide,
        /// True if the end has been out of sync for 60 s, false if this state has ended.
        is_churning: bool,
    },
    /// Report that a link leads back to this System, or that it stopped doing so.
    #[serde(rename = "loopback")]
    ReportLoopback {
        /// Member whose link is concerned.
        member: MemberId,
        /// Port of this System whose LACPDUs were received; `None` if the loop is gone.
        port: Option<u16>,
    },
}

/// Appends a [`LacpAction::SetMemberUse`] to `out` if the port came into use or went out of use
/// since the last report.
pub(crate) fn report_use(port: &mut Port, out: &mut Vec<LacpAction>) {
    let (member, in_use, reason) = (port.member, port.is_in_use(), port.reason());
    if port.reported.in_use != in_use {
        port.reported.in_use = in_use;
        out.push(LacpAction::SetMemberUse {
            member,
            collecting: in_use,
            distributing: in_use,
            reason,
        });
    }
}

/// Appends [`LacpAction::ReportChurn`] and [`LacpAction::ReportLoopback`] to `out` for changes
/// since the last report.
pub(crate) fn report_churn_and_loops(port: &mut Port, out: &mut Vec<LacpAction>) {
    let member = port.member;
    let now = ReportedState {
        in_use: port.reported.in_use,
        actor_churn: port.actor_churn.state == ChurnState::Churn,
        partner_churn: port.partner_churn.state == ChurnState::Churn,
        looped_port: port.looped_port,
    };
    let previous = core::mem::replace(&mut port.reported, now);
    if previous.actor_churn != now.actor_churn {
        let (side, is_churning) = (ChurnSide::Actor, now.actor_churn);
        out.push(LacpAction::ReportChurn { member, side, is_churning });
    }
    if previous.partner_churn != now.partner_churn {
        let (side, is_churning) = (ChurnSide::Partner, now.partner_churn);
        out.push(LacpAction::ReportChurn { member, side, is_churning });
    }
    if previous.looped_port != now.looped_port {
        out.push(LacpAction::ReportLoopback { member, port: now.looped_port });
    }
}
