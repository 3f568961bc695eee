//! What happens, as checkers and the trace hear it.

use crate::kernel::Note;

/// Something happened. A train is what a sender sends of a session at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    /// A train was sent.
    Sent { vm: u32, session: u32, number: u64 },
    /// A train reached its VM.
    Received { vm: u32, session: u32, number: u64, bytes: u64 },
    /// A train did not come to the host's queues: its link was down, or the team does not take
    /// what comes there.
    Lost { vm: u32, session: u32, number: u64, link_was_down: bool },
    /// A queue has another owner.
    Moved { vm: u32, from: u16, to: u16 },
    /// So many processors may be used from now on.
    Limit { max_processors: u16 },
    /// So many have queues that do not move.
    Used { processors: u16, moving: u16 },
    /// A member's link has come up or gone down.
    Link { member: u32, is_up: bool },
}

impl Note for Fact {
    fn word(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "sent",
            Self::Received { .. } => "received",
            Self::Lost { .. } => "lost",
            Self::Moved { .. } => "moved",
            Self::Limit { .. } => "limit",
            Self::Used { .. } => "used",
            Self::Link { .. } => "link",
        }
    }

    fn figures(&self) -> Vec<u64> {
        match *self {
            Self::Sent { vm, session, number } => vec![vm.into(), session.into(), number],
            Self::Received { vm, session, number, bytes } => {
                vec![vm.into(), session.into(), number, bytes]
            }
            Self::Lost { vm, session, number, link_was_down } => {
                vec![vm.into(), session.into(), number, link_was_down.into()]
            }
            Self::Moved { vm, from, to } => vec![vm.into(), from.into(), to.into()],
            Self::Limit { max_processors } => vec![max_processors.into()],
            Self::Used { processors, moving } => vec![processors.into(), moving.into()],
            Self::Link { member, is_up } => vec![member.into(), is_up.into()],
        }
    }
}
