//! Compilation of lists of system calls to seccomp filters.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

/// Bit of the call number that marks the x32 interface, on x86-64 kernels that support it. On other
/// architectures no call has it.
const X32_BIT: u32 = 0x4000_0000;

/// Condition on one argument of a system call: index of the argument (0 to 5), and a value or mask.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentCondition {
    /// The lower 32 bits of the argument equal the value.
    Is(u8, u32),
    /// The lower 32 bits of the argument differ from the value.
    IsNot(u8, u32),
    /// All bits of the mask are set in the argument.
    HasAllBits(u8, u64),
    /// No bit of the mask is set in the argument.
    HasNoBits(u8, u64),
    /// At least one bit of the mask is set in the argument. Compiled to one rule per bit.
    HasAnyBit(u8, u64),
}

/// System call, with alternative rules for its arguments. A call matches if all conditions of at
/// least one rule hold, or if there are no rules.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) number: i64,
    pub(crate) rules: Vec<Vec<ArgumentCondition>>,
}

impl Call {
    pub(crate) fn always(number: i64) -> Self {
        Self { number, rules: Vec::new() }
    }

    pub(crate) fn when(number: i64, rules: Vec<Vec<ArgumentCondition>>) -> Self {
        Self { number, rules }
    }
}

/// How a filter treats the calls of its list, and all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterKind {
    /// Listed calls are permitted, all others rejected.
    Allowed,
    /// Listed calls are rejected, all others permitted.
    Rejected,
    /// Listed calls fail with `ENOSYS`, so that libraries use alternatives.
    FailsAsMissing,
}

/// Compiles the filter for a list.
///
/// # Errors
/// The architecture is not supported, or the list is too long.
pub(crate) fn compile(list: FilterKind, calls: &[Call]) -> Result<BpfProgram, seccompiler::Error> {
    let (listed, default_action) = match list {
        FilterKind::Allowed => (SeccompAction::Allow, SeccompAction::Trap),
        FilterKind::Rejected => (SeccompAction::Trap, SeccompAction::Allow),
        FilterKind::FailsAsMissing => {
            (SeccompAction::Errno(libc::ENOSYS as u32), SeccompAction::Allow)
        }
    };
    let mut rules = BTreeMap::new();
    for call in calls {
        let mut of_call = Vec::new();
        for rule in &call.rules {
            of_call.extend(seccomp_rules(rule)?);
        }
        rules.insert(call.number, of_call);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let program: BpfProgram =
        SeccompFilter::new(rules, default_action, listed, arch)?.try_into()?;
    Ok(guarded(program))
}

/// Installs a filter for the calling thread and threads that it starts.
///
/// # Errors
/// The error of the kernel; `Unsupported` if it has no seccomp filters.
pub(crate) fn install(program: &BpfProgram) -> io::Result<()> {
    apply_filter(program).map_err(|error| match error {
        seccompiler::Error::Prctl(cause) | seccompiler::Error::Seccomp(cause) => {
            match cause.raw_os_error() {
                Some(libc::ENOSYS | libc::EINVAL) => {
                    io::Error::new(io::ErrorKind::Unsupported, cause)
                }
                _ => cause,
            }
        }
        error => io::Error::other(error),
    })
}

/// Returns the filter preceded by a check that rejects the x32 numbers of calls, under which
/// rejected calls could otherwise be made.
fn guarded(program: BpfProgram) -> BpfProgram {
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let mut guarded = vec![
        // The number is the first field of `struct seccomp_data`.
        instruction(load, 0, 0, 0),
        instruction(at_least, 0, 1, X32_BIT),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_TRAP),
    ];
    guarded.extend(program);
    guarded
}

fn seccomp_rules(conditions: &[ArgumentCondition]) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let mut rules: Vec<Vec<SeccompCondition>> = vec![Vec::new()];
    for condition in conditions {
        match *condition {
            ArgumentCondition::HasAnyBit(argument, mask) => {
                let bits = (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| mask & bit != 0);
                let mut split = Vec::new();
                for bit in bits {
                    for rule in &rules {
                        let mut rule = rule.clone();
                        rule.push(masked(argument, bit, bit)?);
                        split.push(rule);
                    }
                }
                rules = split;
            }
            other => {
                let condition = plain(other)?;
                rules.iter_mut().for_each(|rule| rule.push(condition.clone()));
            }
        }
    }
    Ok(rules.into_iter().map(SeccompRule::new).collect::<Result<_, _>>()?)
}

fn plain(condition: ArgumentCondition) -> Result<SeccompCondition, seccompiler::Error> {
    let compare = |argument, op, value: u32| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, u64::from(value))
    };
    Ok(match condition {
        ArgumentCondition::Is(argument, value) => compare(argument, SeccompCmpOp::Eq, value)?,
        ArgumentCondition::IsNot(argument, value) => compare(argument, SeccompCmpOp::Ne, value)?,
        ArgumentCondition::HasAllBits(argument, mask)
        | ArgumentCondition::HasAnyBit(argument, mask) => masked(argument, mask, mask)?,
        ArgumentCondition::HasNoBits(argument, mask) => masked(argument, mask, 0)?,
    })
}

fn masked(argument: u8, mask: u64, bits: u64) -> Result<SeccompCondition, seccompiler::Error> {
    let op = SeccompCmpOp::MaskedEq(mask);
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, op, bits)?)
}
