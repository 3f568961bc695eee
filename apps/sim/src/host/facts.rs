//! What happens, as checkers and the trace hear it.

use crate::kernel::Note;

/// Something happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    /// A worker works on a processor, or does not any more.
    Began {
        cpu: u16,
        worker: u32,
    },
    Stopped {
        cpu: u16,
        worker: u32,
    },
    /// A worker waits for a processor.
    Waits {
        worker: u32,
    },
    /// A session's request began, with so many legs.
    Asked {
        session: u32,
        vm: u32,
        legs: u32,
    },
    /// It has done a leg, by the VM's queue or elsewhere.
    Passed {
        session: u32,
        leg: u32,
        by_queue: bool,
    },
    /// It is done.
    Done {
        session: u32,
    },
    /// A VM has a virtual function.
    Vf {
        vm: u32,
        vf: u16,
    },
    /// A VM sent to another one, or to all (`to` is itself), and it went out.
    Went {
        vm: u32,
        to: u32,
        came_to: u32,
        out: bool,
    },
    /// A processor that works has this clock.
    Clock {
        cpu: u16,
        mhz: u64,
    },
}

impl Note for Fact {
    fn word(&self) -> &'static str {
        match self {
            Self::Began { .. } => "began",
            Self::Stopped { .. } => "stopped",
            Self::Waits { .. } => "waits",
            Self::Asked { .. } => "asked",
            Self::Passed { .. } => "passed",
            Self::Done { .. } => "done",
            Self::Vf { .. } => "vf",
            Self::Went { .. } => "went",
            Self::Clock { .. } => "clock",
        }
    }

    fn figures(&self) -> Vec<u64> {
        match *self {
            Self::Began { cpu, worker } | Self::Stopped { cpu, worker } => {
                vec![cpu.into(), worker.into()]
            }
            Self::Waits { worker } => vec![worker.into()],
            Self::Asked { session, vm, legs } => vec![session.into(), vm.into(), legs.into()],
            Self::Passed { session, leg, by_queue } => {
                vec![session.into(), leg.into(), by_queue.into()]
            }
            Self::Done { session } => vec![session.into()],
            Self::Vf { vm, vf } => vec![vm.into(), vf.into()],
            Self::Went { vm, to, came_to, out } => {
                vec![vm.into(), to.into(), came_to.into(), out.into()]
            }
            Self::Clock { cpu, mhz } => vec![cpu.into(), mhz],
        }
    }
}
