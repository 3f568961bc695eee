//! What the owner is told: what a frame was, and what to do.

use serde::{Deserialize, Serialize};

use super::port::{Port, Told};
use super::{ChurnState, Reason, SlowFrame};
use crate::MemberId;

/// What a received frame was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "received")]
pub enum Received {
    /// A LACPDU.
    Lacpdu,
    /// A Marker; it is answered at the next poll, or there were too many.
    Marker {
        /// Whether it is answered.
        is_answered: bool,
    },
    /// A Marker Response; nobody here asks for one.
    MarkerResponse,
    /// Another slow protocol's.
    Other {
        /// Its subtype.
        subtype: u8,
    },
    /// A LACPDU that came when the link was down or could not aggregate.
    Ignored,
    /// From a member that is not in the team.
    NotAMember,
}

/// Whose churn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChurnSide {
    /// We cannot get in sync.
    Actor,
    /// The Partner does not.
    Partner,
}

/// What the owner has to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum Action {
    /// Collect and distribute on this member from now on, or no more.
    Use {
        /// The member.
        member: MemberId,
        /// Whether to take frames from it.
        collecting: bool,
        /// Whether to send frames on it.
        distributing: bool,
        /// Why.
        reason: Reason,
    },
    /// Send this frame on this member, ahead of others.
    Send {
        /// The member.
        member: MemberId,
        /// The frame.
        frame: SlowFrame,
    },
    /// Say that one end has not been in sync for 60 s, or is again.
    Churn {
        /// The member.
        member: MemberId,
        /// Which end.
        side: ChurnSide,
        /// Whether it is out of sync.
        is_churning: bool,
    },
    /// Say that a link leads back to this System, or does no more.
    Loopback {
        /// The member.
        member: MemberId,
        /// The port of this System that was heard.
        port: Option<u16>,
    },
}

/// Tells the owner whether the member is in use, if that changed.
pub(crate) fn report_use(port: &mut Port, out: &mut Vec<Action>) {
    let (member, in_use, reason) = (port.member, port.is_in_use(), port.reason());
    if port.told.in_use != in_use {
        port.told.in_use = in_use;
        out.push(Action::Use { member, collecting: in_use, distributing: in_use, reason });
    }
}

/// Tells the owner of churn and loopback, if they changed.
pub(crate) fn report_trouble(port: &mut Port, out: &mut Vec<Action>) {
    let member = port.member;
    let now = Told {
        in_use: port.told.in_use,
        actor_churn: port.actor_churn.state == ChurnState::Churn,
        partner_churn: port.partner_churn.state == ChurnState::Churn,
        looped: port.looped,
    };
    let was = core::mem::replace(&mut port.told, now);
    if was.actor_churn != now.actor_churn {
        let (side, is_churning) = (ChurnSide::Actor, now.actor_churn);
        out.push(Action::Churn { member, side, is_churning });
    }
    if was.partner_churn != now.partner_churn {
        let (side, is_churning) = (ChurnSide::Partner, now.partner_churn);
        out.push(Action::Churn { member, side, is_churning });
    }
    if was.looped != now.looped {
        out.push(Action::Loopback { member, port: now.looped });
    }
}
