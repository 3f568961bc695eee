//! Launcher and VMs of a test. None of their processes outlives the test.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod backend;
pub(crate) mod firmware;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use suimon_ports::{
    Vm, VmAccelerator, VmBoot, VmCommand, VmDevice, VmIdentity, VmNotice, VmObserver, VmSpec,
};
use suimon_qemu::{Launcher, LauncherSpec, QemuHost, start_launcher};
use tempfile::TempDir;

/// Time limit for every condition that a test waits for; generous, because the machine may be
/// loaded.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);
const ROOT: &str = "SUIMON_TEST_LAUNCHER_ROOT";
const QEMU: &str = "SUIMON_TEST_LAUNCHER_QEMU";
const ENDS: &str = "SUIMON_TEST_LAUNCHER_ENDS";

/// Runs the launcher process that [`Site`] starts: this test program, with the launcher's folder in
/// the environment.
#[test]
#[ignore = "child process of the tests that start VMs"]
fn launcher() {
    let root = PathBuf::from(std::env::var_os(ROOT).unwrap());
    let spec = LauncherSpec {
        socket: root.join("launcher.sock"),
        root: root.join("vms"),
        qemu: std::env::var_os(QEMU).map(PathBuf::from),
        exits_when_unused: std::env::var_os(ENDS).is_some(),
    };
    Launcher::open(&spec).unwrap().serve().unwrap();
}

/// Launcher with a separate folder.
pub(crate) struct Site {
    folder: TempDir,
    launcher: Option<Child>,
    seen: Mutex<Vec<VmIdentity>>,
}

impl Site {
    /// Starts a launcher with the host's QEMU.
    pub(crate) fn new() -> Self {
        let mut site = Self::empty();
        site.start_launcher(None);
        site
    }

    pub(crate) fn empty() -> Self {
        let folder = tempfile::Builder::new().prefix("suimon-vms-").tempdir().unwrap();
        // The users of VMs must be able to search it.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, launcher: None, seen: Mutex::default() }
    }

    /// Returns the command that runs this test program as a launcher, through the ignored test
    /// `launcher`. `qemu` is the QEMU program; `None` searches it.
    pub(crate) fn launcher_command(&self, qemu: Option<&str>) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "support::launcher", "--ignored", "--nocapture"]);
        command.env(ROOT, self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(qemu) = qemu {
            command.env(QEMU, qemu);
        }
        command
    }

    /// Returns the command of a launcher that exits when it is not needed.
    pub(crate) fn passing_launcher(&self) -> Command {
        let mut command = self.launcher_command(None);
        command.env(ENDS, "1");
        command
    }

    pub(crate) fn start_launcher(&mut self, qemu: Option<&str>) {
        let child = self.launcher_command(qemu).spawn().unwrap();
        self.launcher = Some(child);
        let socket = self.socket();
        wait_until("launcher", || QemuHost::connect(&socket, Arc::new(|| Ok(()))).ok());
    }

    pub(crate) fn kill_launcher(&mut self) {
        let mut launcher = self.launcher.take().expect("a launcher");
        launcher.kill().unwrap();
        launcher.wait().unwrap();
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("launcher.sock")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn vm_folder(&self, name: &str) -> PathBuf {
        self.folder.path().join("vms").join(name)
    }

    /// Connects to the launcher as a daemon does.
    pub(crate) fn host(&self) -> QemuHost {
        QemuHost::connect(&self.socket(), Arc::new(|| Ok(()))).unwrap()
    }

    /// Returns the specification of a small VM that boots its BIOS, with a separate user.
    pub(crate) fn spec(&self, name: &str) -> VmSpec {
        static USERS: AtomicU32 = AtomicU32::new(0);
        let user = 3_000_000 + USERS.fetch_add(1, Ordering::Relaxed);
        VmSpec {
            name: name.to_owned(),
            uuid: *b"suimon test vm 1",
            folder: self.vm_folder(name),
            uid: user,
            cpus: 1,
            cpus_max: 1,
            memory_bytes: 64 << 20,
            huge_pages: false,
            accelerator: Some(VmAccelerator::Tcg),
            boot: VmBoot::Bios,
            nics: Vec::new(),
            disks: Vec::new(),
            cdrom: None,
            migration_requirements: None,
        }
    }

    /// Returns the specification of a small VM with a guest that executes commands from its
    /// console.
    pub(crate) fn obedient(&self, name: &str) -> VmSpec {
        let (code, variables) = (self.path("code.bin"), self.path("variables.bin"));
        fs::write(&code, firmware::image()).unwrap();
        fs::write(&variables, vec![0x5a; 64 << 10]).unwrap();
        VmSpec { boot: VmBoot::Uefi { code, variables }, ..self.spec(name) }
    }

    /// Prepares a VM's folder and starts the VM.
    pub(crate) fn start(&self, host: &QemuHost, spec: &VmSpec) -> (Box<dyn Vm>, Notices) {
        use suimon_ports::VmHost;
        let (observer, notices) = Notices::new();
        host.create_folder(&spec.folder, spec.uid).unwrap();
        let vm = host.start(spec, observer).unwrap();
        self.seen.lock().unwrap().push(vm.identity());
        (vm, notices)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for identity in self.seen.lock().unwrap().drain(..) {
            end(&identity);
        }
        if let Some(mut launcher) = self.launcher.take() {
            let _ = launcher.kill();
            let _ = launcher.wait();
        }
    }
}

/// Kills the process of a VM if the process has the recorded start time.
fn end(identity: &VmIdentity) {
    if started(identity.pid) == Some(identity.started_ticks) {
        // The start time was checked directly before, so that reuse of the id is practically
        // impossible.
        let number = rustix::process::Pid::from_raw(identity.pid as i32).unwrap();
        let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
    }
}

/// Returns the start time of a process in clock ticks since boot (`/proc/PID/stat`, field 22);
/// `None` if there is no such process.
pub(crate) fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let rest = text.rsplit_once(')')?.1;
    rest.split_whitespace().nth(19)?.parse().ok()
}

pub(crate) fn is_running(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat"));
    state.is_ok_and(|text| !text.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

/// Starts a launcher as a daemon does. Returns true if it was started.
pub(crate) fn start_passing(site: &Site) -> bool {
    start_launcher(&site.socket(), site.passing_launcher()).unwrap()
}

/// Receiver of a VM's notices.
pub(crate) struct Notices {
    receiver: Receiver<VmNotice>,
}

struct NoticeSender(Mutex<Sender<VmNotice>>);

impl VmObserver for NoticeSender {
    fn handle_notice(&self, notice: VmNotice) {
        let _ = self.0.lock().unwrap().send(notice);
    }
}

impl Notices {
    pub(crate) fn new() -> (Arc<dyn VmObserver>, Self) {
        let (sender, receiver) = channel();
        (Arc::new(NoticeSender(Mutex::new(sender))), Self { receiver })
    }

    /// Returns the next notice that is not one of `earlier`.
    pub(crate) fn next(&self, earlier: &[VmNotice]) -> VmNotice {
        loop {
            let notice = self.receiver.recv_timeout(LIMIT).expect("a notice");
            if !earlier.contains(&notice) {
                return notice;
            }
        }
    }

    /// Waits for this notice. Other notices may arrive before it.
    pub(crate) fn wait(&self, expected: &VmNotice) {
        while self.receiver.recv_timeout(LIMIT).expect("a notice") != *expected {}
    }

    /// Returns true if this notice arrives within 500 ms. Other notices may arrive before it.
    pub(crate) fn has_come(&self, expected: &VmNotice) -> bool {
        let while_ = Duration::from_millis(500);
        while let Ok(notice) = self.receiver.recv_timeout(while_) {
            if notice == *expected {
                return true;
            }
        }
        false
    }

    /// Waits for the notice of the VM's end; other notices may arrive before. Returns whether the
    /// end was orderly, and its reason.
    pub(crate) fn wait_end(&self) -> (bool, String) {
        loop {
            let notice = self.receiver.recv_timeout(LIMIT).expect("the end");
            if let VmNotice::Ended { is_orderly, reason } = notice {
                return (is_orderly, reason);
            }
        }
    }

    /// Returns the notices received so far.
    pub(crate) fn so_far(&self) -> Vec<VmNotice> {
        self.receiver.try_iter().collect()
    }
}

/// Waits until a guest without an operating system has released a device, which it does when the
/// machine is reset.
///
/// QEMU reports a device as deleted once every CPU has left translated code (an RCU grace period).
/// A BIOS that waits for a disk's completion never leaves it, so the machine is paused.
pub(crate) fn complete_unplug(vm: &dyn Vm, notices: &Notices, device: VmDevice) {
    vm.execute(&VmCommand::Reset).unwrap();
    vm.execute(&VmCommand::Pause).unwrap();
    notices.wait(&VmNotice::Unplugged(device));
    vm.execute(&VmCommand::Resume).unwrap();
}

/// Calls `condition` repeatedly until it returns a value. Panics with `subject` after [`LIMIT`].
pub(crate) fn wait_until<T>(subject: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "timeout while waiting for: {subject}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the value of the line `name` of `/proc/PID/status`.
pub(crate) fn status_line(process: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

/// Returns the permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
