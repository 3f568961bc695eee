//! Facts about a host, for checkers and the trace.

use suimon_sim_kernel::TraceFact;

/// Fact about a host in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    /// A worker starts or stops running on a CPU.
    WorkerStarted {
        cpu: u16,
        worker: u32,
    },
    WorkerStopped {
        cpu: u16,
        worker: u32,
    },
    /// A worker with work has no CPU and waits for one.
    WorkerWaiting {
        worker: u32,
    },
    /// A session starts a request, which has this number of legs.
    RequestStarted {
        session: u32,
        vm: u32,
        legs: u32,
    },
    /// A request has completed a leg. `is_queue_leg` is true if the VM's queue executed it.
    LegCompleted {
        session: u32,
        leg: u32,
        is_queue_leg: bool,
    },
    /// A request of a session is complete.
    RequestCompleted {
        session: u32,
    },
    /// A virtual function is assigned to a VM.
    VfAssigned {
        vm: u32,
        vf: u16,
    },
    /// A VM sent a frame to another VM, or a broadcast, for which `to` is the sender. `out` is true
    /// if the frame left the host.
    Forwarded {
        vm: u32,
        to: u32,
        receivers: u32,
        has_left_host: bool,
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
            Self::WorkerStarted { .. } => "began",
            Self::WorkerStopped { .. } => "stopped",
            Self::WorkerWaiting { .. } => "waits",
            Self::RequestStarted { .. } => "asked",
            Self::LegCompleted { .. } => "passed",
            Self::RequestCompleted { .. } => "done",
            Self::VfAssigned { .. } => "vf",
            Self::Forwarded { .. } => "went",
            Self::Clock { .. } => "clock",
        }
    }

    fn values(&self) -> Vec<u64> {
        match *self {
            Self::WorkerStarted { cpu, worker } | Self::WorkerStopped { cpu, worker } => {
                vec![cpu.into(), worker.into()]
            }
            Self::WorkerWaiting { worker } => vec![worker.into()],
            Self::RequestStarted { session, vm, legs } => {
                vec![session.into(), vm.into(), legs.into()]
            }
            Self::LegCompleted { session, leg, is_queue_leg: by_queue } => {
                vec![session.into(), leg.into(), by_queue.into()]
            }
            Self::RequestCompleted { session } => vec![session.into()],
            Self::VfAssigned { vm, vf } => vec![vm.into(), vf.into()],
            Self::Forwarded { vm, to: target_vm, receivers, has_left_host: out } => {
                vec![vm.into(), target_vm.into(), receivers.into(), out.into()]
            }
            Self::Clock { cpu, mhz } => vec![cpu.into(), mhz],
        }
    }
}
