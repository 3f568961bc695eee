//! Tests the process layer, and the front-ends' layer on top of it.
//!
//! A separate program: it confines itself, then checks which system calls succeed.
#![allow(unsafe_code, reason = "makes system calls that nothing would make by mistake")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use suimon_confine::{ConfineError, Confinement, RETAINED_CAPABILITIES, ThreadRole};

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

macro_rules! refused {
    ($number:ident $(, $argument:expr)*) => {{
        // SAFETY: calls that are rejected, or would fail without harm.
        let result = unsafe { libc::syscall(libc::$number $(, $argument)*) };
        assert_eq!((result, errno()), (-1, libc::EPERM), stringify!($number));
    }};
}

macro_rules! works {
    ($number:ident $(, $argument:expr)*) => {{
        // SAFETY: calls with valid arguments that do not affect other processes.
        let result = unsafe { libc::syscall(libc::$number $(, $argument)*) };
        assert!(result >= 0, concat!(stringify!($number), ": errno {}"), errno());
        result
    }};
}

fn main() {
    // Test runners ask programs with a custom harness for their list of tests (cargo-nextest,
    // "Custom test harnesses").
    if std::env::args().any(|argument| argument == "--list") {
        if !std::env::args().any(|argument| argument == "--ignored") {
            println!("a_confined_process_does_its_work_and_nothing_else: test");
        }
        return;
    }
    check_confined_process();
}

fn check_confined_process() {
    let confinement = Confinement::new().expect("filters");
    requires_single_thread(&confinement);
    let namespace = File::open("/proc/self/ns/net").expect("our namespace");
    assert!(Command::new("/bin/true").status().is_ok_and(|status| status.success()));

    confinement.confine_process(&[PathBuf::from(ALLOWED)]).expect("the process is confined");
    let before = confinement.report().rejected_calls;
    has_dropped_privileges(&confinement);
    cannot_leave(&namespace);
    assert!(confinement.report().rejected_calls > before + 20);
    assert_eq!(confinement.rejected_calls().expect("refusals").thread_kind, "control plane");
    cannot_write_to_sysfs();
    cannot_write_to_proc();
    can_do_its_work(&namespace, &confinement);
    front_ends_read_their_socket_and_nothing_else(&confinement);
    nbd_servers_take_clients_in_and_start_threads_like_themselves(&confinement);
    many_confined_threads_have_memory(&confinement);
}

/// Starts more confined threads than the number of arenas that the allocator creates without
/// counting CPUs.
fn many_confined_threads_have_memory(confinement: &Confinement) {
    const THREADS: usize = 64;
    let before = confinement.report().rejected_calls;
    let thread_confinement = confinement.clone();
    let started = Arc::new(Barrier::new(THREADS));
    let parent = std::thread::spawn(move || {
        thread_confinement.confine_thread(ThreadRole::NbdServer).expect("the thread is confined");
        let threads: Vec<_> = std::iter::repeat_with(|| {
            let started = Arc::clone(&started);
            std::thread::spawn(move || {
                let memory = std::hint::black_box(vec![1_u8; 4096]);
                started.wait();
                drop(memory);
            })
        })
        .take(THREADS)
        .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("the thread"));
    });
    parent.join().expect("the thread");
    assert_eq!(confinement.report().rejected_calls, before, "{:?}", confinement.rejected_calls());
}

/// File that remains writable. Root can write it on any host; the test writes its current contents.
const ALLOWED: &str = "/sys/class/net/lo/mtu";
/// File that does not remain writable. Root can write it on any host.
const OTHER: &str = "/sys/class/net/lo/tx_queue_len";

fn cannot_write_to_sysfs() {
    let open = |path| File::options().write(true).open(path).map(drop);
    match open(OTHER) {
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(libc::EACCES), "{error}");
            open(ALLOWED).expect("the permitted file");
            let file = std::env::temp_dir().join("suimon-confine");
            std::fs::write(&file, b"elsewhere").expect("files outside of /sys");
            let _ = std::fs::remove_file(file);
        }
        Ok(()) => println!("SKIPPED: this kernel has no Landlock, so /sys can be written to"),
    }
}

/// Files in procfs cannot be opened for writing: `/proc/self/mem` would permit writes to read-only
/// memory.
fn cannot_write_to_proc() {
    for path in ["/proc/self/mem", "/proc/thread-self/mem", "/proc/self/oom_score_adj"] {
        match File::options().write(true).open(path) {
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EACCES), "{path}: {error}"),
            Ok(_) => println!("SKIPPED: this kernel has no Landlock, so {path} can be written to"),
        }
    }
    std::fs::read("/proc/self/status").expect("reading");
}

fn requires_single_thread(confinement: &Confinement) {
    let (end, wait) = channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let error = confinement.confine_process(&[]).expect_err("there are two threads");
    assert!(matches!(error, ConfineError::MultipleThreads { threads: 2 }), "{error}");
    drop(end);
    let _ = other.join();
    // The kernel removes a thread from the list a moment after it was joined.
    while std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        std::thread::yield_now();
    }
}

fn status(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with(&format!("{key}:"))).expect("a line");
    u64::from_str_radix(line.split_whitespace().nth(1).expect("a value"), 16).expect("a number")
}

fn has_dropped_privileges(confinement: &Confinement) {
    let layer = confinement.report().process.expect("the layer");
    assert!(
        layer.capabilities.len() <= RETAINED_CAPABILITIES.len()
            && !layer.capabilities.contains(&"others")
    );
    let retained = 1 << 1 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 21;
    assert_eq!(status("CapPrm") & !retained, 0);
    assert_eq!((status("CapInh"), status("CapAmb"), status("NoNewPrivs")), (0, 0, 1));
    assert_eq!(status("Seccomp"), 2);
    if layer.is_bounding_set_empty {
        assert_eq!(status("CapBnd"), 0);
    }
}

fn cannot_leave(namespace: &File) {
    let fd = namespace.as_raw_fd();
    refused!(SYS_execve, c"/bin/true".as_ptr(), 0, 0);
    refused!(SYS_execveat, fd, c"".as_ptr(), 0, 0, 0);
    refused!(SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
    refused!(SYS_clone, libc::CLONE_THREAD | libc::CLONE_NEWNET, 0, 0, 0, 0);
    refused!(SYS_unshare, libc::CLONE_NEWNET);
    refused!(SYS_setns, fd, 0);
    refused!(SYS_setns, fd, libc::CLONE_NEWNS);
    refused!(SYS_kill, 1, 0);
    refused!(SYS_tgkill, 1, 1, 0);
    refused!(SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0);
    refused!(SYS_process_vm_writev, 1, 0, 0, 0, 0, 0);
    refused!(SYS_setuid, 0);
    refused!(SYS_mount, 0, 0, 0, 0, 0);
    refused!(SYS_chroot, c"/".as_ptr());
    refused!(SYS_mknodat, libc::AT_FDCWD, c"/tmp/x".as_ptr(), libc::S_IFREG, 0);
    // Commands that inspect or pin objects of other processes.
    for command in [4, 6, 7, 8, 11, 13, 14, 30] {
        refused!(SYS_bpf, command, 0, 0);
    }
    refused!(SYS_perf_event_open, 0, 0, 0, 0, 0);
    refused!(SYS_init_module, 0, 0, 0);
    refused!(SYS_keyctl, 0, 0, 0, 0, 0);
    refused!(SYS_reboot, 0, 0, 0, 0);
    refused!(SYS_personality, 0xffff_ffff_u32);
    refused!(SYS_ioctl, 0, libc::TIOCSTI, 0);
    for family in [libc::AF_BLUETOOTH, libc::AF_VSOCK, libc::AF_ALG] {
        refused!(SYS_socket, family, libc::SOCK_STREAM, 0);
    }
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let run = libc::PROT_READ | libc::PROT_EXEC;
    refused!(SYS_mmap, 0, 4096, run, anonymous, -1, 0);
    let page = works!(SYS_mmap, 0, 4096, libc::PROT_READ, anonymous, -1, 0);
    refused!(SYS_mprotect, page, 4096, run);
    #[cfg(target_arch = "x86_64")]
    {
        refused!(SYS_fork);
        refused!(SYS_vfork);
    }
}

fn can_do_its_work(namespace: &File, confinement: &Confinement) {
    let before = confinement.report().rejected_calls;
    for (family, kind) in [
        (libc::AF_UNIX, libc::SOCK_STREAM),
        (libc::AF_INET, libc::SOCK_STREAM),
        (libc::AF_INET6, libc::SOCK_STREAM),
        (libc::AF_NETLINK, libc::SOCK_RAW),
    ] {
        works!(SYS_socket, family, kind, 0);
    }
    // Without the capability the kernel itself rejects the call, which is not counted.
    if status("CapEff") & 1 << 13 != 0 {
        control_sockets_are_opened_and_queried();
    }
    let directory = std::env::temp_dir().join(format!("suimon-confine-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory");
    let path = directory.join("state");
    File::create(&path).and_then(|mut file| file.write_all(b"kept")).expect("a file");
    std::fs::rename(&path, directory.join("state.new")).expect("renaming");
    std::fs::remove_dir_all(&directory).expect("removing");
    let descriptor = namespace.try_clone().expect("a descriptor");
    let thread = std::thread::spawn(move || {
        let may_enter = status("CapEff") & 1 << 21 != 0;
        if may_enter {
            works!(SYS_setns, descriptor.as_raw_fd(), libc::CLONE_NEWNET);
        }
    });
    thread.join().expect("threads can be started and can enter a network namespace");
    assert_eq!(confinement.report().rejected_calls, before);
}

/// Members of a team open sockets for LACPDUs when a team is created or a device returns, long
/// after the process was confined.
fn control_sockets_are_opened_and_queried() {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let socket = works!(SYS_socket, libc::AF_PACKET, kind, 0);
    let word = size_of::<libc::c_int>();
    // A filter of one instruction that drops all packets.
    let mut refuse = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut refuse };
    let size = size_of_val(&program);
    works!(
        SYS_setsockopt,
        socket,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_FILTER,
        &raw const program,
        size
    );
    let enabled: libc::c_int = 1;
    let ignore = libc::PACKET_IGNORE_OUTGOING;
    works!(SYS_setsockopt, socket, libc::SOL_PACKET, ignore, &raw const enabled, word);
    // Loopback exists and has index 1 in every namespace. SAFETY: all zeros are a valid
    // sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_SLOW as u16).to_be();
    address.sll_ifindex = 1;
    let mut len = size_of_val(&address) as libc::socklen_t;
    works!(SYS_bind, socket, &raw const address, len);
    let mut group = libc::packet_mreq {
        mr_ifindex: 1,
        mr_type: libc::PACKET_MR_MULTICAST as u16,
        mr_alen: 6,
        mr_address: [0x01, 0x80, 0xc2, 0, 0, 0x02, 0, 0],
    };
    let size = size_of_val(&group);
    let add = libc::PACKET_ADD_MEMBERSHIP;
    works!(SYS_setsockopt, socket, libc::SOL_PACKET, add, &raw mut group, size);
    works!(SYS_getsockname, socket, &raw mut address, &raw mut len);
    let (mut values, mut len) = ([0_u32; 2], 8 as libc::socklen_t);
    let statistics = libc::PACKET_STATISTICS;
    works!(SYS_getsockopt, socket, libc::SOL_PACKET, statistics, &raw mut values, &raw mut len);
    // SAFETY: writes nothing, because the buffer is empty.
    let received = unsafe { libc::syscall(libc::SYS_recvfrom, socket, 0, 0, 0, 0, 0) };
    // A loopback device that is down returns ENETDOWN.
    assert!(received == -1 && [libc::EAGAIN, libc::ENETDOWN].contains(&errno()));
    works!(SYS_close, socket);
}

fn front_ends_read_their_socket_and_nothing_else(confinement: &Confinement) {
    let (mut near, far) = UnixStream::pair().expect("a pair");
    let before = confinement.report().rejected_calls;
    let thread_confinement = confinement.clone();
    let thread = std::thread::spawn(move || {
        thread_confinement.confine_thread(ThreadRole::FrontEnd).expect("the thread is confined");
        let mut word = [0; 5];
        (&far).read_exact(&mut word).expect("a word");
        // Memory of a VM, from a descriptor.
        let file = works!(SYS_memfd_create, c"vm".as_ptr(), 0);
        works!(SYS_ftruncate, file, 8192);
        let shared = libc::PROT_READ | libc::PROT_WRITE;
        let address = works!(SYS_mmap, 0, 8192, shared, libc::MAP_SHARED, file, 0);
        works!(SYS_munmap, address, 8192);
        assert_eq!(
            thread_confinement.report().rejected_calls,
            before,
            "the permitted calls succeed"
        );
        refused!(SYS_mmap, 0, 4096, shared | libc::PROT_EXEC, libc::MAP_SHARED, file, 0);
        refused!(SYS_openat, libc::AT_FDCWD, c"/etc/passwd".as_ptr(), libc::O_RDONLY);
        refused!(SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0);
        refused!(SYS_connect, far.as_raw_fd(), 0, 0);
        refused!(SYS_bind, far.as_raw_fd(), 0, 0);
        refused!(SYS_setns, far.as_raw_fd(), libc::CLONE_NEWNET);
        refused!(SYS_ioctl, far.as_raw_fd(), libc::FIONREAD, 0);
        refused!(SYS_pwrite64, file, 0, 0, 0);
        refused!(SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
        assert_eq!(thread_confinement.rejected_calls().expect("refusals").thread_kind, "front-end");
        let child = std::thread::spawn(|| {
            refused!(SYS_openat, libc::AT_FDCWD, c"/etc/passwd".as_ptr(), libc::O_RDONLY);
        });
        child.join().expect("it may start threads, which are confined likewise");
        (&far).write_all(&word).expect("an answer");
    });
    near.write_all(b"hello").expect("a word");
    let mut answer = [0; 5];
    near.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"hello");
    thread.join().expect("the thread");
    let layer = confinement.report().front_ends.expect("the layer");
    assert!(layer.is_filtered && layer.capabilities.is_empty());
}

fn nbd_servers_take_clients_in_and_start_threads_like_themselves(confinement: &Confinement) {
    let folder = std::env::temp_dir().join(format!("suimon-nbd-{}", std::process::id()));
    let _ = std::fs::remove_file(&folder);
    let listener = UnixListener::bind(&folder).expect("a socket");
    let before = confinement.report().rejected_calls;
    let thread_confinement = confinement.clone();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a TCP socket");
    let thread = std::thread::spawn(move || {
        thread_confinement.confine_thread(ThreadRole::NbdServer).expect("the thread is confined");
        let (client, _) = listener.accept().expect("a client");
        let (mut user, mut len) = ([0_u32; 3], 12 as libc::socklen_t);
        let option = (libc::SOL_SOCKET, libc::SO_PEERCRED, &raw mut user, &raw mut len);
        works!(SYS_getsockopt, client.as_raw_fd(), option.0, option.1, option.2, option.3);
        let child = thread_confinement.clone();
        let serve = std::thread::Builder::new().name("child".to_owned()).spawn(move || {
            child.label_inheriting_thread(ThreadRole::NbdServer);
            let (mut local, mut remote) = UnixStream::pair().expect("a pair");
            remote.set_nonblocking(true).expect("not blocking");
            let mut word = [0; 5];
            (&client).read_exact(&mut word).expect("a word");
            local.write_all(&word).expect("the client's socket is passed on");
            remote.read_exact(&mut word).expect("taken");
            let one: libc::c_int = 1;
            let of_tcp = [libc::TCP_NODELAY, libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL];
            for name in of_tcp.into_iter().chain([libc::TCP_KEEPCNT, libc::TCP_USER_TIMEOUT]) {
                works!(SYS_setsockopt, tcp.as_raw_fd(), libc::IPPROTO_TCP, name, &raw const one, 4);
            }
            let alive = (libc::SOL_SOCKET, libc::SO_KEEPALIVE);
            works!(SYS_setsockopt, tcp.as_raw_fd(), alive.0, alive.1, &raw const one, 4);
            assert_eq!(child.report().rejected_calls, before, "the permitted calls succeed");
            refused!(SYS_openat, libc::AT_FDCWD, c"/etc/passwd".as_ptr(), libc::O_RDONLY);
            refused!(SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0);
            refused!(SYS_socketpair, libc::AF_INET, libc::SOCK_STREAM, 0, 0);
            refused!(SYS_connect, client.as_raw_fd(), 0, 0);
            refused!(SYS_bind, client.as_raw_fd(), 0, 0);
            refused!(SYS_listen, client.as_raw_fd(), 1);
            refused!(SYS_setsockopt, client.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MARK, 0, 4);
            refused!(SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
            refused!(SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
            refused!(SYS_pwrite64, client.as_raw_fd(), 0, 0, 0);
            assert_eq!(child.rejected_calls().expect("refusals").thread_kind, "NBD server");
            (&client).write_all(&word).expect("an answer");
        });
        serve.expect("a thread is started").join().expect("the thread");
    });
    let mut client = UnixStream::connect(&folder).expect("a server");
    std::fs::remove_file(&folder).expect("the socket");
    client.write_all(b"hello").expect("a word");
    let mut answer = [0; 5];
    client.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"hello");
    thread.join().expect("the thread");
    let layer = confinement.report().nbd_servers.expect("the layer");
    assert!(layer.is_filtered && layer.capabilities.is_empty());
}
