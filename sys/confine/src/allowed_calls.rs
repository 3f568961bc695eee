//! Lists of the system calls that confined threads may make; all others are rejected.
//!
//! Each group of calls names its users. No call opens a file, device or address by its name, starts
//! a process, or makes memory executable.

use crate::filter::{ArgumentCondition, Call};

const PROT_EXEC: u64 = libc::PROT_EXEC as u64;
const MAP_ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;

/// ioctl `SIOCGIFNAME` (`linux/sockios.h`): returns a device's name by its index. Distinguishes a
/// device that is down from one that was removed.
const SIOCGIFNAME: u32 = 0x8910;

/// Opcode of `linux/io_uring.h`.
const IORING_REGISTER_FILES_UPDATE: u32 = 6;

/// Returns the calls that every thread of a Rust program needs, for memory, locks, clocks and exit.
fn thread_calls() -> Vec<Call> {
    let mut calls = [
        // Locks, channels, parking.
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_restart_syscall,
        // The allocator returns memory and moves growing blocks.
        libc::SYS_munmap,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_brk,
        // The allocator determines the number of its arenas from the number of CPUs.
        libc::SYS_sched_getaffinity,
        // Clocks that the vDSO does not provide.
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_gettimeofday,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        // Seeds of hash maps.
        libc::SYS_getrandom,
        // Returns from the handlers of SIGBUS and SIGSYS; masks at the end of a thread.
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_sigaltstack,
        libc::SYS_getpid,
        libc::SYS_gettid,
        // End of a thread, of the process, and of a descriptor.
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_close,
        // Open descriptors, and the log on stderr.
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
    ]
    .map(Call::always)
    .to_vec();
    // `abort` may signal its own process only.
    let process_id = std::process::id();
    let abort =
        vec![ArgumentCondition::Is(0, process_id), ArgumentCondition::Is(2, libc::SIGABRT as u32)];
    calls.push(Call::when(libc::SYS_tgkill, vec![abort]));
    // The standard library, with debug assertions, checks that the descriptors it closes are open.
    let condition = vec![ArgumentCondition::Is(1, libc::F_GETFD as u32)];
    calls.push(Call::when(libc::SYS_fcntl, vec![condition]));
    calls.push(Call::when(
        libc::SYS_mprotect,
        vec![vec![ArgumentCondition::HasNoBits(2, PROT_EXEC)]],
    ));
    calls
}

/// Returns the calls of a worker: I/O on open descriptors, and waiting.
pub(crate) fn worker_calls() -> Vec<Call> {
    let mut calls = thread_calls();
    calls.extend(
        [
            // Waiting: descriptors are registered and polled; a timer on kernels without
            // epoll_pwait2.
            libc::SYS_epoll_ctl,
            libc::SYS_epoll_pwait,
            libc::SYS_epoll_pwait2,
            libc::SYS_timerfd_settime,
            // I/O on files of disks. The control plane created the ring, which is restricted to
            // registered files (`sys/uring`).
            libc::SYS_io_uring_enter,
            // Kicks and interrupts of VMs, without blocking (`sys/eventfd`).
            libc::SYS_preadv2,
            libc::SYS_io_submit,
            libc::SYS_io_getevents,
            // Files in memory, length of a file, and its holes.
            libc::SYS_pread64,
            libc::SYS_preadv,
            libc::SYS_pwritev2,
            libc::SYS_fdatasync,
            libc::SYS_lseek,
            libc::SYS_fstat,
            // Packet sockets, and sockets of NBD clients.
            libc::SYS_recvmsg,
            libc::SYS_recvmmsg,
            libc::SYS_sendmsg,
            libc::SYS_sendmmsg,
            libc::SYS_sendto,
            libc::SYS_recvfrom,
        ]
        .map(Call::always),
    );
    #[cfg(target_arch = "x86_64")]
    calls.push(Call::always(libc::SYS_epoll_wait));
    // Bytes of its replies that an NBD client has read.
    let requests =
        [SIOCGIFNAME, libc::TIOCOUTQ as u32].map(|request| vec![ArgumentCondition::Is(1, request)]);
    calls.push(Call::when(libc::SYS_ioctl, requests.into()));
    // Registers an open file of a disk with the ring, or removes it.
    let files = vec![ArgumentCondition::Is(1, IORING_REGISTER_FILES_UPDATE)];
    calls.push(Call::when(libc::SYS_io_uring_register, vec![files]));
    // Anonymous memory only: files of open descriptors cannot be mapped. The handler of SIGBUS maps
    // such memory where a guest's file was truncated.
    let conditions = vec![
        ArgumentCondition::HasNoBits(2, PROT_EXEC),
        ArgumentCondition::HasAllBits(3, MAP_ANONYMOUS),
    ];
    calls.push(Call::when(libc::SYS_mmap, vec![conditions]));
    calls
}

/// Returns the calls of a thread of a socket runtime (`sys/socket-runtime`): it waits for
/// descriptors with epoll, and starts threads for blocking calls.
fn socket_runtime_calls() -> Vec<Call> {
    let mut calls = thread_calls();
    calls.extend(
        [
            libc::SYS_epoll_ctl,
            libc::SYS_epoll_pwait,
            // A new thread registers with the C library.
            libc::SYS_set_robust_list,
            libc::SYS_rseq,
            // The second filter makes this call fail with ENOSYS, so that threads are created by
            // `clone`, whose flags a filter can read.
            libc::SYS_clone3,
        ]
        .map(Call::always),
    );
    #[cfg(target_arch = "x86_64")]
    calls.push(Call::always(libc::SYS_epoll_wait));
    let thread = vec![ArgumentCondition::HasAllBits(0, libc::CLONE_THREAD as u64)];
    calls.push(Call::when(libc::SYS_clone, vec![thread]));
    calls.push(Call::when(libc::SYS_prctl, vec![vec![ArgumentCondition::Is(0, PR_SET_NAME)]]));
    calls
}

/// Returns the calls of a thread that reads messages of VM monitors: their sockets, and descriptors
/// received on them.
pub(crate) fn front_end_calls() -> Vec<Call> {
    let mut calls = socket_runtime_calls();
    calls.extend(
        [
            libc::SYS_ppoll,
            libc::SYS_accept4,
            libc::SYS_recvmsg,
            libc::SYS_recvfrom,
            libc::SYS_sendmsg,
            libc::SYS_sendto,
            libc::SYS_shutdown,
            // Detects that the process of a front-end has exited.
            libc::SYS_pidfd_open,
            // Checks of received descriptors: file type, length, eventfd, flags.
            libc::SYS_fstat,
            libc::SYS_fstatfs,
            libc::SYS_fcntl,
            // Kicks and interrupts of VMs, without blocking (`sys/eventfd`).
            libc::SYS_preadv2,
            libc::SYS_io_submit,
            libc::SYS_io_getevents,
            // Shared memory for in-flight records.
            libc::SYS_memfd_create,
            libc::SYS_ftruncate,
            libc::SYS_eventfd2,
        ]
        .map(Call::always),
    );
    #[cfg(target_arch = "x86_64")]
    calls.push(Call::always(libc::SYS_poll));
    // Received descriptors: whether they are Unix sockets. Connections: the peer's process.
    let option = |name: u32| {
        vec![ArgumentCondition::Is(1, libc::SOL_SOCKET as u32), ArgumentCondition::Is(2, name)]
    };
    let options = [SO_DOMAIN, SO_PEERCRED, SO_ACCEPTCONN].map(option);
    calls.push(Call::when(libc::SYS_getsockopt, options.into()));
    // Makes the kernel refuse descriptors that a peer attaches.
    calls.push(Call::when(libc::SYS_setsockopt, vec![option(SO_PASSRIGHTS)]));
    // Maps a VM's memory from files received on the socket, and stacks of threads.
    calls.push(Call::when(libc::SYS_mmap, vec![vec![ArgumentCondition::HasNoBits(2, PROT_EXEC)]]));
    calls
}

/// Socket options that are set, with the numbers of 64-bit machines (`asm-generic/socket.h`).
const SO_SNDBUF: u32 = 7;
const SO_KEEPALIVE: u32 = 9;
const SO_PEERCRED: u32 = 17;
const SO_RCVTIMEO: u32 = 20;
const SO_ACCEPTCONN: u32 = 30;
const SO_DOMAIN: u32 = 39;
const SO_SNDTIMEO: u32 = 21;
/// Socket option `SO_RCVTIMEO` with a 64-bit time, available since Linux 5.1.
const SO_RCVTIMEO_NEW: u32 = 66;
/// Socket option `SO_SNDTIMEO` with a 64-bit time, available since Linux 5.1.
const SO_SNDTIMEO_NEW: u32 = 67;
/// Socket option that makes the kernel refuse descriptors, available since Linux 6.16.
const SO_PASSRIGHTS: u32 = 83;
const FIONBIO: u32 = 0x5421;
const PR_SET_NAME: u32 = 15;

/// Returns the calls of a thread that accepts NBD clients, negotiates with them and carries their
/// TLS. Sockets come from `accept`, or are a pair within the process.
pub(crate) fn nbd_server_calls() -> Vec<Call> {
    let mut calls = socket_runtime_calls();
    calls.extend(
        [
            libc::SYS_ppoll,
            libc::SYS_accept4,
            libc::SYS_getpeername,
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_shutdown,
            // A connection's queue watches its socket through a separate epoll instance.
            libc::SYS_epoll_create1,
            libc::SYS_eventfd2,
        ]
        .map(Call::always),
    );
    #[cfg(target_arch = "x86_64")]
    calls.push(Call::always(libc::SYS_poll));
    let option = |level: libc::c_int, name: u32| {
        vec![ArgumentCondition::Is(1, level as u32), ArgumentCondition::Is(2, name)]
    };
    let set = [
        SO_SNDBUF,
        SO_KEEPALIVE,
        SO_RCVTIMEO,
        SO_SNDTIMEO,
        SO_RCVTIMEO_NEW,
        SO_SNDTIMEO_NEW,
        SO_PASSRIGHTS,
    ];
    let set = set.map(|name| option(libc::SOL_SOCKET, name));
    // Delays, and detection of vanished clients.
    let tcp = [
        libc::TCP_NODELAY,
        libc::TCP_KEEPIDLE,
        libc::TCP_KEEPINTVL,
        libc::TCP_KEEPCNT,
        libc::TCP_USER_TIMEOUT,
    ];
    let tcp = tcp.map(|name| option(libc::IPPROTO_TCP, name as u32));
    calls.push(Call::when(libc::SYS_setsockopt, [&set[..], &tcp].concat()));
    let options = [SO_PEERCRED, SO_DOMAIN].map(|name| option(libc::SOL_SOCKET, name));
    calls.push(Call::when(libc::SYS_getsockopt, options.into()));
    calls.push(Call::when(libc::SYS_ioctl, vec![vec![ArgumentCondition::Is(1, FIONBIO)]]));
    // With debug assertions Tokio checks that sockets are non-blocking, in addition to the checks
    // of any thread. The socket of a client is duplicated if the kernel cannot refuse descriptors.
    let commands = [libc::F_GETFD, libc::F_GETFL, libc::F_DUPFD_CLOEXEC];
    let commands = commands.map(|command| vec![ArgumentCondition::Is(1, command as u32)]);
    calls.push(Call::when(libc::SYS_fcntl, commands.into()));
    // TLS passes data to a connection's queue through a socket pair.
    let local = vec![ArgumentCondition::Is(0, libc::AF_UNIX as u32)];
    calls.push(Call::when(libc::SYS_socketpair, vec![local]));
    // Stacks of threads and memory for payloads.
    let conditions = vec![
        ArgumentCondition::HasNoBits(2, PROT_EXEC),
        ArgumentCondition::HasAllBits(3, MAP_ANONYMOUS),
    ];
    calls.push(Call::when(libc::SYS_mmap, vec![conditions]));
    calls
}
