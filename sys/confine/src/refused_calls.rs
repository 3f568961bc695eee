//! System calls that are rejected for the whole process, because the daemon never makes them.
//!
//! The control plane opens files and sockets chosen by the operator, so that it cannot use a short
//! allow list, but it does not need these calls.

use crate::filter::{ArgumentCondition, Call};

const PROT_EXEC: u64 = libc::PROT_EXEC as u64;

/// Flags of `clone` that create a namespace of any kind.
const CLONE_NEW: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP) as u64;

/// Socket families that the control plane may use: for the API, requests about devices,
/// notifications of links, and both kinds of uplinks.
const FAMILIES: [libc::c_int; 6] =
    [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_XDP];

/// Commands of `bpf` (linux/bpf.h) with which the control plane offloads forwarding to the kernel
/// and directs frames to AF_XDP sockets: maps are created, read and written; programs are loaded,
/// attached to devices, and replaced.
const BPF_COMMANDS: [u32; 7] = [0, 1, 2, 3, 5, 28, 29];

/// Calls that are rejected regardless of their arguments.
const ALWAYS: &[i64] = &[
    // Other programs and other processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    // Other users.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    // Other namespaces and mounts. Entering a network namespace is handled below.
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_mknodat,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine as a whole.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Large parts of the kernel that are not needed.
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_personality,
    libc::SYS_pkey_mprotect,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_vmsplice,
];

#[cfg(target_arch = "x86_64")]
const ALWAYS_HERE: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_mknod,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const ALWAYS_HERE: &[i64] = &[];

/// Returns the calls that are rejected for the whole process.
pub(crate) fn process_calls() -> Vec<Call> {
    let mut calls: Vec<Call> =
        ALWAYS.iter().chain(ALWAYS_HERE).map(|number| Call::always(*number)).collect();
    // Threads may be created; processes and namespaces may not.
    let process = vec![ArgumentCondition::HasNoBits(0, libc::CLONE_THREAD as u64)];
    let namespace = vec![ArgumentCondition::HasAnyBit(0, CLONE_NEW)];
    calls.push(Call::when(libc::SYS_clone, vec![process, namespace]));
    // Only network namespaces may be entered, by their name under /run/netns.
    let other_kind = vec![ArgumentCondition::IsNot(1, libc::CLONE_NEWNET as u32)];
    calls.push(Call::when(libc::SYS_setns, vec![other_kind]));
    let other_family = FAMILIES
        .iter()
        .map(|family| ArgumentCondition::IsNot(0, *family as u32))
        .collect::<Vec<_>>();
    calls.push(Call::when(libc::SYS_socket, vec![other_family]));
    let other_command =
        BPF_COMMANDS.iter().map(|command| ArgumentCondition::IsNot(0, *command)).collect();
    calls.push(Call::when(libc::SYS_bpf, vec![other_command]));
    for number in [libc::SYS_mmap, libc::SYS_mprotect] {
        calls.push(Call::when(number, vec![vec![ArgumentCondition::HasAllBits(2, PROT_EXEC)]]));
    }
    // Simulates terminal input.
    calls.push(Call::when(
        libc::SYS_ioctl,
        vec![vec![ArgumentCondition::Is(1, libc::TIOCSTI as u32)]],
    ));
    // Threads of this process only.
    let other_process = vec![ArgumentCondition::IsNot(0, std::process::id())];
    calls.push(Call::when(libc::SYS_tgkill, vec![other_process]));
    calls
}

/// Returns the calls that fail with `ENOSYS`: `clone3`, whose flags are in memory, where a filter
/// cannot read them. The C library then uses `clone`.
pub(crate) fn calls_failing_as_missing() -> Vec<Call> {
    vec![Call::always(libc::SYS_clone3)]
}
