//! TCP listeners that failed at the start of the daemon, and follow the configuration.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::process::{Running, answers, suimond, text};

/// Deadline of conditions that hold within ten seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(90);
const SWITCH: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Directory of a daemon.
struct Host(TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, toml: &str) {
        fs::write(self.path("host.toml"), toml).unwrap();
    }

    /// Starts a daemon with the host file, and waits until it responds.
    fn start(&self) -> Running {
        let (config, state, socket) =
            (self.path("host.toml"), self.path("state"), self.path("a.sock"));
        let arguments =
            ["--config", text(&config), "--socket", text(&socket), "--state-dir", text(&state)];
        let log = File::create(self.path("log")).unwrap();
        let child = suimond(&arguments).stderr(Stdio::from(log)).spawn().unwrap();
        let running = Running(child);
        wait_until("the daemon responds", || answers(&socket));
        running
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }
}

fn reload(daemon: &Running) {
    kill_process(Pid::from_child(&daemon.0), Signal::HUP).unwrap();
}

fn console(address: SocketAddr) -> String {
    format!("{SWITCH}[console]\nlisten = \"{address}\"\n")
}

/// Returns an address that no other process of the test uses.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn with_lab(toml: &str, results: &Path) -> String {
    format!("{toml}[lab]\nresults = \"{}\"\n", results.display())
}

#[test]
fn a_failed_console_follows_the_configuration_and_no_restart_is_requested() {
    let host = Host::new();
    host.write(SWITCH);
    // At a first start, a listener that cannot be used ends the daemon.
    drop(host.start());
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    host.write(&console(holder.local_addr().unwrap()));
    let daemon = host.start();
    assert!(host.log().contains("cannot listen on"), "{}", host.log());

    let address = free_address();
    let corrected = console(address);
    host.write(&corrected);
    reload(&daemon);
    wait_until("the console listens", || TcpStream::connect(address).is_ok());
    // Changed settings of the lab are reported last.
    host.write(&with_lab(&corrected, &host.path("lab")));
    reload(&daemon);
    wait_until("the reload ends", || host.log().contains("[lab] has changed"));
    assert!(!host.log().contains("[console] has changed"), "{}", host.log());

    // The listener is in service now, so later changes of its settings require a restart.
    host.write(&with_lab(&console(free_address()), &host.path("lab")));
    reload(&daemon);
    wait_until("the change is reported", || host.log().contains("[console] has changed"));
}
