//! Facts about a host, for checkers and the trace.

use suimon_sim_kernel::TraceFact;

/// Fact about a host in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    /// A worker starts or stops running on a CPU.
    Began {
        cpu: u16,
        worker: u32,
    },
    Stopped {
        cpu: u16,
        worker: u32,
    },
    /// A worker with work has no CPU and waits for one.
    Waits {
        worker: u32,
    },
    /// A session starts a request, which has this number of legs.
    RequestStarted {
        session: u32,
        vm: u32,
        legs: u32,
    },
    /// A request has completed a leg. `by_queue` is true if the VM's queue executed it.
    Passed {
        session: u32,
        leg: u32,
        by_queue: bool,
    },
    /// A request of a session is complete.
    Done {
        session: u32,
    },
    /// A virtual function is assigned to a VM.
    Vf {
        vm: u32,
        vf: u16,
    },
    /// A VM sent a frame to another VM, or a broadcast, for which `to` is the sender. `out` is true
    /// if the frame left the host.
    Forwarded {
        vm: u32,
        to: u32,
        receivers: u32,
        out: bool,
    },
    /// Clock of a CPU that is busy.
    Clock {
        cpu: u16,
        mhz: u64,
    },
}

impl TraceFact for Fact {
    fn kind(&self) -> &'static str {
        match self {
            Self::Began { .. } => "began",
            Self::Stopped { .. } => "stopped",
            Self::Waits { .. } => "waits",
            Self::RequestStarted { .. } => "asked",
            Self::Passed { .. } => "passed",
            Self::Done { .. } => "done",
            Self::Vf { .. } => "vf",
            Self::Forwarded { .. } => "went",
            Self::Clock { .. } => "clock",
        }
    }

    fn figures(&self) -> Vec<u64> {
        match *self {
            Self::Began { cpu, worker } | Self::Stopped { cpu, worker } => {
                vec![cpu.into(), worker.into()]
            }
            Self::Waits { worker } => vec![worker.into()],
            Self::RequestStarted { session, vm, legs } => {
                vec![session.into(), vm.into(), legs.into()]
            }
            Self::Passed { session, leg, by_queue } => {
                vec![session.into(), leg.into(), by_queue.into()]
            }
            Self::Done { session } => vec![session.into()],
            Self::Vf { vm, vf } => vec![vm.into(), vf.into()],
            Self::Forwarded { vm, to: target_vm, receivers, out } => {
                vec![vm.into(), target_vm.into(), receivers.into(), out.into()]
            }
            Self::Clock { cpu, mhz } => vec![cpu.into(), mhz],
        }
    }
}
