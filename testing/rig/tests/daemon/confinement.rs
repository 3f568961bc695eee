//! Privileges and system calls of a running daemon, and the reaction to a compromised worker.

use std::fs;
use std::thread;
use std::time::Duration;

#[cfg(target_arch = "x86_64")]
use crate::support::hijack::TracedThread;
use suimon_rig::{
    Daemon, DaemonOptions, NamespaceGuest, Rig, Testpmd, TestpmdSpec, iperf, private_lan,
    wait_until,
};

/// Deadline of conditions that take less than a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(90);

/// CAP_DAC_OVERRIDE, CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK,
/// CAP_SYS_ADMIN.
const KEPT: u64 = 1 << 1 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 21;

/// Returns id, name and contents of `/proc/…/status` of each thread of a process.
fn threads(process: u32) -> Vec<(u32, String, String)> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten() {
        // A thread may end meanwhile.
        let read = |file| fs::read_to_string(entry.path().join(file)).ok();
        let number = entry.file_name().to_string_lossy().parse().unwrap();
        if let (Some(name), Some(status)) = (read("comm"), read("status")) {
            threads.push((number, name.trim().to_owned(), status));
        }
    }
    threads
}

fn field<'s>(status: &'s str, key: &str) -> &'s str {
    let line = status.lines().find(|line| line.starts_with(&format!("{key}:"))).unwrap();
    line.split_whitespace().nth(1).unwrap()
}

fn set(status: &str, key: &str) -> u64 {
    u64::from_str_radix(field(status, key), 16).unwrap()
}

#[test]
fn workers_and_front_ends_have_no_privilege_under_traffic() {
    let rig = Rig::new().unwrap();
    let guests =
        [("a", 1), ("b", 2)].map(|(name, nth)| NamespaceGuest::new(&rig, name, nth).unwrap());
    let sockets = [rig.path("0.sock"), rig.path("1.sock")];
    let mut host =
        "[host]\nworker_cpus = [0]\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n".to_owned();
    for guest in &guests {
        host += &guest.nic_toml("lan", "");
    }
    for (number, socket) in sockets.iter().enumerate() {
        host += &format!(
            "[[nic]]\nname = \"vm{number}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\nsocket = \"{socket}\"\n"
        );
    }
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    let [a, b] = &guests;
    a.bring_up().unwrap();
    b.bring_up().unwrap();
    let macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(str::to_owned);
    let mut vms = Testpmd::start(&rig, &TestpmdSpec::new(sockets, macs)).unwrap();
    daemon.wait_up("nic", "vm0").unwrap();
    vms.start_circulating().unwrap();
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    thread::scope(|scope| {
        let transfer = scope.spawn(|| iperf::measure(&a.namespace, &b.address(), 3, &[]).unwrap());
        wait_until("traffic through all of them", LIMIT, || {
            let frames_of = |nic| {
                let counters = daemon.json(&["nic", "show", nic])?["counters"].clone();
                anyhow::Ok(counters["rx_frames"].as_u64().unwrap_or(0))
            };
            Ok(frames_of("a")? > 1000 && frames_of("vm0")? > 1000 && frames_of("vm1")? > 1000)
        })
        .unwrap();
        let mut kinds = (0, 0);
        for (_, name, status) in threads(daemon.process().id()) {
            assert_eq!(field(&status, "Seccomp"), "2", "{name}");
            assert_eq!(field(&status, "NoNewPrivs"), "1", "{name}");
            for key in ["CapBnd", "CapAmb", "CapInh"] {
                assert_eq!(set(&status, key), 0, "{name}: {key}");
            }
            let filters: u32 = field(&status, "Seccomp_filters").parse().unwrap();
            let is_processor = name.starts_with("processor-");
            let serves_sockets = ["front-ends", "nbd"].contains(&name.as_str());
            if is_processor || serves_sockets {
                kinds.0 += u32::from(is_processor);
                kinds.1 += u32::from(serves_sockets);
                assert_eq!((set(&status, "CapEff"), set(&status, "CapPrm")), (0, 0), "{name}");
                // Two filters of the process, one of the thread, and for threads that start others
                // one that hides `clone3`.
                assert_eq!(filters, 3 + u32::from(serves_sockets), "{name}");
            } else {
                assert_eq!(set(&status, "CapPrm") & !KEPT, 0, "{name}");
                assert_eq!(filters, 2, "{name}");
            }
        }
        assert!(kinds.0 >= 1 && kinds.1 >= 2, "{kinds:?}");
        assert!(transfer.join().unwrap().bits_per_second > 0.0);
    });
    let confinement = daemon.json(&["host", "show"]).unwrap()["confinement"].clone();
    assert_ne!(confinement["mode"], "off");
    assert_eq!(confinement["refused_calls"], 0);
    let layers: Vec<_> = confinement["layers"].as_array().unwrap().iter().collect();
    assert_eq!(layers.len(), 4, "{confinement}");
    assert_eq!(layers[1]["threads"], "processors");
    assert_eq!(layers[1]["capabilities"].as_array().unwrap().len(), 0);
    assert!(daemon.ok(&["host", "show"]).unwrap().contains("workers: capabilities none"));
    let metrics = daemon.http("GET", "/metrics", None).unwrap().text;
    assert!(metrics.contains("suimon_refused_system_calls_total 0"), "{metrics}");
    let events = daemon.json(&["event", "list"]).unwrap();
    let is_denial = |event: &serde_json::Value| event["id"] == 1010 || event["id"] == 1011;
    assert!(events.as_array().unwrap().iter().any(is_denial), "{events}");
}

/// Returns the process of the launcher that a daemon has started.
fn launcher_of(daemon: &Daemon) -> u32 {
    let socket = std::path::Path::new(daemon.socket()).with_file_name("launcher.sock");
    let socket = socket.to_str().unwrap().to_owned();
    let is_launcher = |process: u32| {
        let command_line =
            fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        command_line.contains("--vm-launcher") && command_line.contains(&socket)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|process| is_launcher(*process)).expect("a launcher")
}

#[test]
fn a_launcher_that_the_daemon_starts_has_the_capabilities_that_it_needs_and_no_others() {
    let rig = Rig::new().unwrap();
    let daemon = Daemon::start(&rig, "").unwrap();
    let launcher = launcher_of(&daemon);
    // CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID,
    // CAP_SETPCAP, CAP_SYS_RESOURCE.
    let needed: u64 = [0, 1, 3, 4, 5, 6, 7, 8, 24].into_iter().map(|number| 1 << number).sum();
    for (_, name, status) in threads(launcher) {
        assert_eq!(field(&status, "NoNewPrivs"), "1", "{name}");
        for key in ["CapBnd", "CapPrm", "CapEff"] {
            assert_eq!(set(&status, key) & !needed, 0, "{name}: {key}");
        }
        assert_eq!((set(&status, "CapInh"), set(&status, "CapAmb")), (0, 0), "{name}");
    }
}

#[test]
fn a_daemon_that_is_not_confined_reports_it() {
    let rig = Rig::new().unwrap();
    let options =
        DaemonOptions { arguments: vec!["--no-confine".to_owned()], ..DaemonOptions::default() };
    let mut daemon = Daemon::start_with(&rig, "", &options).unwrap();
    assert_eq!(daemon.json(&["host", "show"]).unwrap()["confinement"]["mode"], "off");
    let events = daemon.json(&["event", "list", "--severity", "warning"]).unwrap();
    assert!(events.as_array().unwrap().iter().any(|event| event["id"] == 1011), "{events}");
    for (_, name, status) in threads(daemon.process().id()) {
        assert_eq!(field(&status, "Seccomp"), "0", "{name}");
    }
}

/// The test makes calls that an attacker would make first. Paths are addresses on the thread's
/// stack; their contents are irrelevant.
#[cfg(target_arch = "x86_64")]
#[test]
fn system_calls_of_a_compromised_worker_are_rejected_and_reported() {
    let rig = Rig::new().unwrap();
    let (mut daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&b.address()));
    let process = daemon.process().id();
    let processors = || {
        let mut worker_threads = threads(process);
        worker_threads.retain(|(_, name, _)| name.starts_with("processor-"));
        worker_threads
    };
    wait_until("the worker to sleep", LIMIT, || Ok(field(&processors()[0].2, "State") == "S"))
        .unwrap();
    let worker = processors()[0].0;
    let hijacked = TracedThread::take(worker);
    let stack = hijacked.stack();
    for (name, call, arguments) in [
        ("openat", libc::SYS_openat, [libc::AT_FDCWD as u64, stack, 0, 0]),
        ("socket", libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0]),
        ("execve", libc::SYS_execve, [stack, 0, 0, 0]),
        ("ptrace", libc::SYS_ptrace, [libc::PTRACE_ATTACH as u64, u64::from(process), 0, 0]),
        ("mprotect", libc::SYS_mprotect, [stack & !0xfff, 4096, 7, 0]),
    ] {
        assert_eq!(hijacked.call(call, arguments), -i64::from(libc::EPERM), "{name}");
    }
    // A permitted call succeeds in the same way, so the filter rejected the others.
    assert_eq!(hijacked.call(libc::SYS_gettid, [0; 4]), i64::from(worker));
    drop(hijacked);
    wait_until("event of the rejected calls", LIMIT, || {
        let events = daemon.json(&["event", "list", "--severity", "error"])?;
        let mut events = events.as_array().cloned().unwrap_or_default();
        events.retain(|event| event["id"] == 1012);
        let fields = events.last().map(|event| event["fields"].clone()).unwrap_or_default();
        Ok(fields["by"] == "processor" && fields["thread"].as_str() == Some(&*worker.to_string()))
    })
    .unwrap();
    let host_status = daemon.json(&["host", "show"]).unwrap();
    assert_eq!(host_status["confinement"]["refused_calls"], 5);
    // The thread continues its work.
    assert!(a.namespace.reaches(&b.address()));
    daemon.expect_refusals();
}
