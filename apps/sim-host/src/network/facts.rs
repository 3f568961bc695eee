//! Facts about a network, for checkers and the trace.

use suimon_sim_kernel::TraceFact;

/// Fact about a network. A train is the data that a sender transmits at once in a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    /// A sender transmitted a train.
    Sent { vm: u32, session: u32, number: u64 },
    /// A VM received a train.
    Received { vm: u32, session: u32, number: u64, bytes: u64 },
    /// A train was lost before the host's queues: its link was down, or the team did not accept
    /// frames for the VM on that link.
    Lost { vm: u32, session: u32, number: u64, link_was_down: bool },
    /// A queue changed its owner.
    QueueMoved { vm: u32, from: u16, to: u16 },
    /// The limit of the number of workers changed.
    WorkerLimitChanged { max_processors: u16 },
    /// Number of workers that own queues, without those of moving queues, and number of moving
    /// queues.
    WorkersInUse { processors: u16, moving: u16 },
    /// The link of a member changed its state.
    LinkChanged { member: u32, is_up: bool },
}

impl TraceFact for Fact {
    fn kind(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "sent",
            Self::Received { .. } => "received",
            Self::Lost { .. } => "lost",
            Self::QueueMoved { .. } => "moved",
            Self::WorkerLimitChanged { .. } => "limit",
            Self::WorkersInUse { .. } => "used",
            Self::LinkChanged { .. } => "link",
        }
    }

    fn values(&self) -> Vec<u64> {
        match *self {
            Self::Sent { vm, session, number } => vec![vm.into(), session.into(), number],
            Self::Received { vm, session, number, bytes } => {
                vec![vm.into(), session.into(), number, bytes]
            }
            Self::Lost { vm, session, number, link_was_down } => {
                vec![vm.into(), session.into(), number, link_was_down.into()]
            }
            Self::QueueMoved { vm, from, to } => vec![vm.into(), from.into(), to.into()],
            Self::WorkerLimitChanged { max_processors } => vec![max_processors.into()],
            Self::WorkersInUse { processors, moving } => vec![processors.into(), moving.into()],
            Self::LinkChanged { member, is_up } => vec![member.into(), is_up.into()],
        }
    }
}
