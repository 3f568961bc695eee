//! Tests of the system calls that a compromised worker can still make.
//!
//! The thread is started as the daemon starts its workers. Each call has arguments with which it
//! succeeds outside the confinement, which the test verifies first; inside, the call is rejected.
#![allow(unsafe_code, reason = "makes system calls that nothing would make by mistake")]

use std::ffi::{CString, c_long};
use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_confine::{ConfinedWorkers, Confinement, LandlockEffect};
use suimon_ports::{WaitSet, WorkerRuntime};
use suimon_processor_tests::{Receiver, Sender};
use suimon_quantity::Time;
use suimon_wait::WorkerThreads;

/// Name of a forbidden system call, and a function that makes the call with valid arguments.
type Attempt = (&'static str, Box<dyn Fn() -> c_long + Send>);

/// Serializes tests that read the counter of rejected calls, which is global to the process.
fn lock_counter() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` on a worker thread that is started as the daemon starts its workers.
fn on_worker<T: Send + 'static>(
    confinement: &Confinement,
    body: impl FnOnce(Box<dyn WaitSet>) -> T + Send + 'static,
) -> T {
    let runtime = ConfinedWorkers::new(WorkerThreads, confinement.clone());
    let (send, receive) = channel();
    let cpu = runtime.allowed_cpus()[0];
    let body = move |wait| send.send(body(wait)).unwrap();
    let (_waker, join) = runtime.start("processor-0", cpu.into(), Box::new(body)).unwrap();
    join();
    receive.recv().unwrap()
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

macro_rules! attempt {
    ($name:literal, $number:expr $(, $argument:expr)*) => {
        // SAFETY: the arguments have the types that the call takes. Pointers are null or point to
        // memory that the closure owns or that is never freed.
        ($name, Box::new(move || unsafe { libc::syscall($number $(, $argument)*) }) as Box<_>)
    };
}

/// Returns a pointer to a string that is never freed.
fn text(text: &str) -> *const libc::c_char {
    CString::new(text).unwrap().into_raw()
}

/// Returns a pointer to zeroed memory that is never freed.
fn room(bytes: usize) -> *mut u8 {
    vec![0_u8; bytes].leak().as_mut_ptr()
}

fn leaked<T>(value: T) -> *const T {
    Box::leak(Box::new(value))
}

/// Address as an integer, so that closures that capture it are `Send`.
#[derive(Clone, Copy)]
struct Place(usize);

fn files_and_sockets(memory: i32) -> Vec<Attempt> {
    let passwd = Place(text("/etc/passwd") as usize);
    let new = Place(text("/tmp/suimon-made-by-a-worker") as usize);
    let how_to_open = Place(leaked([0_u64; 3]) as usize);
    let statx = Place(room(256) as usize);
    let pair = Place(room(8) as usize);
    let mut address = [0_u8; 110];
    address[0] = libc::AF_UNIX as u8;
    let address = Place(leaked(address) as usize);
    let (read, make) = (libc::O_RDONLY, libc::O_CREAT | libc::O_WRONLY);
    let directory = libc::AT_FDCWD;
    let mut attempts: Vec<Attempt> = vec![
        attempt!("openat", libc::SYS_openat, directory, passwd.0, read),
        attempt!("openat", libc::SYS_openat, directory, new.0, make, 0o600),
        attempt!("openat2", libc::SYS_openat2, directory, passwd.0, how_to_open.0, 24),
        attempt!("statx", libc::SYS_statx, directory, passwd.0, 0, 0x7ff, statx.0),
        attempt!("unlinkat", libc::SYS_unlinkat, directory, new.0, 0),
        attempt!("mknodat", libc::SYS_mknodat, directory, new.0, libc::S_IFREG | 0o600, 0),
        attempt!("memfd_create", libc::SYS_memfd_create, new.0, 0),
        attempt!("ftruncate", libc::SYS_ftruncate, memory, 1),
        attempt!("pwrite64", libc::SYS_pwrite64, memory, statx.0, 1, 0),
        attempt!("mmap", libc::SYS_mmap, 0, 4096, libc::PROT_READ, libc::MAP_SHARED, memory, 0),
        attempt!("dup", libc::SYS_dup, memory),
        attempt!("fcntl", libc::SYS_fcntl, memory, libc::F_DUPFD, 0),
        attempt!("ioctl", libc::SYS_ioctl, memory, libc::FIONREAD, pair.0),
        attempt!("socketpair", libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.0),
        attempt!("connect", libc::SYS_connect, memory, address.0, 20),
        attempt!("bind", libc::SYS_bind, memory, address.0, 20),
        attempt!("listen", libc::SYS_listen, memory, 1),
        attempt!("accept4", libc::SYS_accept4, memory, 0, 0, 0),
        attempt!("pipe2", libc::SYS_pipe2, pair.0, 0),
        attempt!("epoll_create1", libc::SYS_epoll_create1, 0),
        attempt!("eventfd2", libc::SYS_eventfd2, 0, 0),
    ];
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET]
    {
        let kind = if family == libc::AF_NETLINK { libc::SOCK_RAW } else { libc::SOCK_DGRAM };
        attempts.push(attempt!("socket", libc::SYS_socket, family, kind, 0));
    }
    #[cfg(target_arch = "x86_64")]
    attempts.extend([
        attempt!("open", libc::SYS_open, passwd.0, read),
        attempt!("creat", libc::SYS_creat, new.0, 0o600),
        attempt!("x32 openat", libc::SYS_openat | 0x4000_0000, directory, passwd.0, read),
    ]);
    attempts
}

fn processes_and_memory() -> Vec<Attempt> {
    let program = Place(text("/bin/true") as usize);
    let arguments = Place(leaked([program.0, 0]) as usize);
    let nothing = Place(leaked(0_usize) as usize);
    let process_id = std::process::id();
    let write_run = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: creates a new mapping at an address that the kernel chooses, so no existing mapping
    // changes.
    let page = unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, anonymous, -1, 0) as usize
    };
    let parameters = Place(room(256) as usize);
    let mut attempts: Vec<Attempt> = vec![
        attempt!("execve", libc::SYS_execve, program.0, arguments.0, nothing.0),
        attempt!(
            "execveat",
            libc::SYS_execveat,
            libc::AT_FDCWD,
            program.0,
            arguments.0,
            nothing.0,
            0
        ),
        attempt!("clone", libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0),
        attempt!("clone3", libc::SYS_clone3, parameters.0, 64),
        attempt!("unshare", libc::SYS_unshare, libc::CLONE_NEWUSER),
        attempt!("setns", libc::SYS_setns, 0, libc::CLONE_NEWNET),
        attempt!("ptrace", libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0),
        attempt!("process_vm_readv", libc::SYS_process_vm_readv, process_id, 0, 0, 0, 0, 0),
        attempt!("process_vm_writev", libc::SYS_process_vm_writev, process_id, 0, 0, 0, 0, 0),
        attempt!("pidfd_open", libc::SYS_pidfd_open, process_id, 0),
        attempt!("pidfd_getfd", libc::SYS_pidfd_getfd, 0, 0, 0),
        attempt!("kill", libc::SYS_kill, process_id, 0),
        attempt!("tkill", libc::SYS_tkill, process_id, 0),
        attempt!("tgkill", libc::SYS_tgkill, process_id, process_id, 0),
        attempt!("tgkill", libc::SYS_tgkill, 1, 1, libc::SIGABRT),
        attempt!("mmap", libc::SYS_mmap, 0, 4096, write_run, anonymous, -1, 0),
        attempt!("mprotect", libc::SYS_mprotect, page, 4096, libc::PROT_READ | libc::PROT_EXEC),
        attempt!("pkey_mprotect", libc::SYS_pkey_mprotect, page, 4096, libc::PROT_EXEC, -1),
        attempt!("rt_sigaction", libc::SYS_rt_sigaction, libc::SIGSYS, 0, 0, 8),
        attempt!("prctl", libc::SYS_prctl, libc::PR_GET_DUMPABLE, 0, 0, 0, 0),
        attempt!("seccomp", libc::SYS_seccomp, 2, 0, parameters.0),
        attempt!("capset", libc::SYS_capset, 0, 0),
        attempt!("setuid", libc::SYS_setuid, 0),
        attempt!("mount", libc::SYS_mount, program.0, program.0, program.0, libc::MS_BIND, 0),
        attempt!("umount2", libc::SYS_umount2, program.0, 0),
        attempt!("chroot", libc::SYS_chroot, program.0),
        attempt!("bpf", libc::SYS_bpf, 0, parameters.0, 72),
        attempt!("perf_event_open", libc::SYS_perf_event_open, parameters.0, 0, -1, -1, 0),
        attempt!("userfaultfd", libc::SYS_userfaultfd, 0),
        attempt!("io_uring_setup", libc::SYS_io_uring_setup, 4, parameters.0),
        attempt!("io_uring_register", libc::SYS_io_uring_register, 0, 0, 0, 0),
        attempt!("keyctl", libc::SYS_keyctl, 0, 0, 0, 0, 0),
        attempt!("init_module", libc::SYS_init_module, 0, 0, 0),
        attempt!("reboot", libc::SYS_reboot, 0, 0, 0, 0),
        attempt!("personality", libc::SYS_personality, 0xffff_ffff_u32),
    ];
    #[cfg(target_arch = "x86_64")]
    attempts.extend([
        attempt!("fork", libc::SYS_fork),
        attempt!("vfork", libc::SYS_vfork),
        attempt!("modify_ldt", libc::SYS_modify_ldt, 0, parameters.0, 16),
    ]);
    attempts
}

#[test]
fn a_compromised_worker_cannot_open_files_or_sockets_nor_leave_its_thread() {
    let _guard = lock_counter();
    let confinement = Confinement::new().unwrap();
    let memory = tempfile::tempfile().unwrap();
    memory.set_len(8192).unwrap();
    let mut attempts = files_and_sockets(memory.as_raw_fd());
    // These calls succeed here, so a failure inside is caused by the confinement.
    for (name, attempt) in &attempts {
        let is_permitted =
            matches!(*name, "openat" | "openat2" | "statx" | "socket" | "dup" | "pipe2");
        let descriptor = attempt();
        assert!(!is_permitted || descriptor >= 0, "{name} outside: errno {}", errno());
        if matches!(*name, "openat" | "openat2" | "socket" | "dup") {
            // SAFETY: the call above has just returned the descriptor, and nothing else uses it.
            unsafe { libc::close(descriptor as i32) };
        }
    }
    let created_file = std::path::Path::new("/tmp/suimon-made-by-a-worker");
    let _ = std::fs::remove_file(created_file);
    attempts.extend(processes_and_memory());
    let before = confinement.report().rejected_calls;
    let attempt_count = attempts.len() as u64;
    let watched = confinement.clone();
    let outcomes = on_worker(&confinement, move |_wait| {
        let mut outcomes = Vec::new();
        for (name, attempt) in &attempts {
            let result = attempt();
            outcomes.push((
                *name,
                result,
                errno(),
                watched.rejected_calls().map(|last| last.last_call),
            ));
        }
        outcomes
    });
    for (name, result, errno, refused_call) in outcomes {
        assert_eq!((result, errno), (-1, libc::EPERM), "{name}");
        if !name.starts_with("x32") {
            assert_eq!(refused_call.as_deref(), Some(name), "the refusal is remembered by name");
        }
    }
    let last = confinement.rejected_calls().unwrap();
    assert_eq!(last.count - before, attempt_count, "each attempt is counted");
    assert_eq!(last.thread_kind, "processor");
    assert!(!created_file.exists());
    // The other threads of the process are not confined.
    std::fs::read("/etc/passwd").unwrap();
}

#[test]
fn a_worker_has_no_privilege_and_all_layers_that_the_kernel_has() {
    let confinement = Confinement::new().unwrap();
    let (send, receive) = channel();
    let (release, release_receiver) = channel::<()>();
    let runtime = ConfinedWorkers::new(WorkerThreads, confinement.clone());
    let body = move |_wait| {
        // SAFETY: `gettid` has no precondition.
        send.send(unsafe { libc::gettid() }).unwrap();
        release_receiver.recv().unwrap();
    };
    let (_waker, join) =
        runtime.start("processor-0", runtime.allowed_cpus()[0].into(), Box::new(body)).unwrap();
    let thread = receive.recv().unwrap();
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    release.send(()).unwrap();
    join();
    let no_capabilities = "0000000000000000";
    let mut expected = vec![("NoNewPrivs", "1"), ("Seccomp", "2")];
    expected.extend(["CapInh", "CapPrm", "CapEff", "CapAmb"].map(|set| (set, no_capabilities)));
    let layer = confinement.report().workers.unwrap();
    if layer.is_bounding_set_empty {
        expected.push(("CapBnd", no_capabilities));
    }
    for (key, value) in expected {
        let line = status.lines().find(|line| line.starts_with(&format!("{key}:"))).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(value), "{line}");
    }
    assert!(layer.is_filtered && layer.capabilities.is_empty());
    assert!(confinement.report().process.is_none(), "only the thread was confined");
    // Without the filter, Landlock alone rejects access to files, if the kernel supports it.
    assert_ne!(layer.landlock, LandlockEffect::Off, "this machine's kernel has Landlock");
}

#[test]
fn a_confined_worker_does_its_work() {
    let _guard = lock_counter();
    let confinement = Confinement::new().unwrap();
    let before = confinement.report().rejected_calls;
    let (sender, mut source) = Sender::pair();
    let (receiver, mut sink) = Receiver::pair();
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    // SAFETY: creates a new mapping at an address that the kernel chooses, so no existing mapping
    // changes.
    let mapped = unsafe {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 4096, prot, libc::MAP_SHARED, file.as_raw_fd(), 0) as usize
    };
    on_worker(&confinement, move |mut wait| {
        // Allocations that grow far beyond one mapping, with different sizes, and shrink.
        let mut pool: Vec<Vec<u8>> = Vec::new();
        for round in 0..2000 {
            pool.push(vec![1; 64 << (round % 12)]);
        }
        pool.truncate(10);
        drop(pool);
        assert_eq!(std::collections::HashMap::from([(1, 2)])[&1], 2);
        // Waits with a descriptor and with a deadline.
        wait.watch(source.wake_fd(), 7).unwrap();
        source.arm();
        sender.send(&[2; 64]);
        let mut ready = Vec::new();
        wait.wait(Some(Time::NEVER), &mut ready).unwrap();
        assert_eq!(ready, [7]);
        source.disarm();
        let mut batch = suimon_frame::FrameBatch::new();
        assert_eq!(source.receive(&mut batch).unwrap(), 1);
        sink.transmit(&batch.frames()[0]).unwrap();
        sink.flush().unwrap();
        wait.unwatch(source.wake_fd());
        let until = wait.now() + std::time::Duration::from_millis(2);
        wait.wait(Some(until), &mut ready).unwrap();
        assert!(wait.now() >= until && !wait.cpu_time().is_zero());
        // The calls of the SIGBUS handler and of unmapping guest memory. SAFETY: the range is the
        // mapping created above, which nothing else uses.
        unsafe {
            let fixed = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            let remapped = libc::mmap(mapped as *mut _, 4096, prot, fixed, -1, 0);
            assert_eq!(remapped as usize, mapped);
            assert_eq!(libc::munmap(remapped, 4096), 0);
        }
        drop((source, sink, file));
    });
    assert_eq!(receiver.poll(), Some(vec![2; 64]));
    let refused_count = confinement.report().rejected_calls;
    assert_eq!(
        refused_count,
        before,
        "nothing that it needs is refused: {:?}",
        confinement.rejected_calls()
    );
}

#[test]
fn a_panic_on_a_confined_worker_ends_it_as_any_other() {
    // A backtrace, if enabled, tries to open files, and these calls are rejected.
    let _guard = lock_counter();
    let confinement = Confinement::new().unwrap();
    let runtime = ConfinedWorkers::new(WorkerThreads, confinement);
    let (_waker, join) = runtime
        .start("processor-0", runtime.allowed_cpus()[0].into(), Box::new(|_| panic!("a defect")))
        .unwrap();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(join)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a defect"));
}

#[test]
fn disabled_confinement_is_reported_and_confines_nothing() {
    let disabled = Confinement::off();
    on_worker(&disabled, |_wait| std::fs::read("/etc/passwd").unwrap());
    let report = disabled.report();
    assert!(report.is_off && report.layers().next().is_none());
}
