//! `scripts/isolated`, with which the test runner starts tests: regardless of how a test ends,
//! everything that it created is removed. Only the folder of a failed test is kept, and its output
//! shows why it failed.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use suimon_rig::{Rig, run, run_any, wait_until};

const ISOLATED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/isolated");
const LIMIT: Duration = Duration::from_secs(120);
/// Time limit for a test to end after Ctrl-C.
const SIGNAL_LIMIT: Duration = Duration::from_secs(5);

/// Creates one object of each kind that tests create, including a process that has left its process
/// group, and writes the folder's name to the file `$1`.
const MAKE: &str = r#"
    ip netns add isolated-test
    mount -t tmpfs tmpfs /mnt
    truncate -s 1M "$TMPDIR/disk"
    losetup --find "$TMPDIR/disk"
    # As the rig does it: on a file system that only the test has, and listed.
    truncate -s 1M /mnt/disk
    device=$(losetup --find --show /mnt/disk)
    number=$(cat "/sys/block/${device#/dev/}/diskseq")
    echo "$device $number" >"$TMPDIR/loop-devices"
    echo 'the daemon said this' >"$TMPDIR/suimond-1.log"
    setsid sleep "$2" &
    echo "$TMPDIR $device $number" >"$1.new"
    mv "$1.new" "$1"
"#;

/// Running test that has created all objects.
struct TestProcess {
    child: Child,
    folder: String,
    /// Path and sequence number of the loop device on a file of the test's own mount.
    device: (String, String),
    /// Argument of its process, by which the process is identified.
    seconds: String,
    _rig: Rig,
}

impl TestProcess {
    /// Starts a command that creates all objects and then runs `suffix`. `number` must be unique to
    /// the test.
    fn start(number: u8, suffix: &str) -> Self {
        let rig = Rig::new().unwrap();
        let file = rig.path("folder");
        let seconds = format!("36000.{}{number}", std::process::id());
        let mut command = Command::new(ISOLATED);
        command.args(["sh", "-euc", &format!("{MAKE}{suffix}"), "sh", &file, &seconds]);
        command.env("NEXTEST_BINARY_ID", "isolation").env("NEXTEST_TEST_NAME", &seconds);
        command.env_remove("SUIMON_TEST_FOLDER").process_group(0);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        wait_until("all objects to be created", LIMIT, || Ok(Path::new(&file).exists())).unwrap();
        let fields = fs::read_to_string(&file).unwrap();
        let fields: Vec<String> = fields.split_whitespace().map(str::to_owned).collect();
        let [folder, device, number] = <[String; 3]>::try_from(fields).unwrap();
        assert!(folder.starts_with("/var/tmp/smt-"), "{folder}");
        Self { child, folder, device: (device, number), seconds, _rig: rig }
    }

    fn signal(&self, signal: Signal) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process_group(group, signal).unwrap();
    }

    /// Checks that the process has ended, and with it its namespaces and mounts.
    fn check_process(&self) {
        let arguments = ["pgrep", "--full", &format!("^sleep {}", self.seconds)];
        // Exit code 1: no process matches (pgrep(1)).
        wait_until("the end of its process", LIMIT, || Ok(run_any(&arguments, LIMIT)?.code == 1))
            .unwrap();
        assert!(!Path::new("/run/netns/isolated-test").exists());
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        assert!(!mounts.contains(" /mnt "), "{mounts}");
    }

    fn check_folder(&self) {
        assert!(!Path::new(&self.folder).exists(), "{}", self.folder);
        check_loop_devices(&self.folder);
        check_detached(&self.device);
    }
}

/// Checks that the device is detached, or attached to something else.
fn check_detached((device, number): &(String, String)) {
    let name = device.trim_start_matches("/dev/");
    wait_until("the loop device to be detached", LIMIT, || {
        let is_attached = Path::new(&format!("/sys/block/{name}/loop/backing_file")).exists();
        let now = fs::read_to_string(format!("/sys/block/{name}/diskseq"))?;
        Ok(!is_attached || now.trim() != number)
    })
    .unwrap();
}

/// Checks that no loop device is attached to a file in the folder. The kernel detaches a device
/// only once it is not open, and programs that search for a free loop device open all.
fn check_loop_devices(folder: &str) {
    let name = Path::new(folder).file_name().unwrap().to_str().unwrap();
    wait_until("the loop device to be detached", LIMIT, || {
        let list = ["losetup", "--list", "--noheadings", "--output", "BACK-FILE"];
        Ok(!run(&list)?.contains(name))
    })
    .unwrap();
}

#[test]
fn nothing_stays_of_a_test_that_passes() {
    let mut test_process = TestProcess::start(1, "");
    assert!(test_process.child.wait().unwrap().success());
    test_process.check_process();
    test_process.check_folder();
}

#[test]
fn nothing_stays_of_a_test_that_ctrl_c_ends() {
    let mut test_process = TestProcess::start(2, "exec sleep 36000");
    test_process.signal(Signal::INT);
    assert_eq!(test_process.child.wait().unwrap().code(), Some(130));
    test_process.check_process();
    test_process.check_folder();
}

/// Runs a script whose isolated tests have their folders in `parent` instead of /var/tmp.
fn with_parent(parent: &str, script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount --bind \"$1\" /var/tmp; exec {ISOLATED} {script}");
    command.args(["--mount", "sh", "-euc", &script, "sh", parent]);
    command
}

#[test]
fn nothing_remains_whenever_ctrl_c_is_pressed() {
    let rig = Rig::new().unwrap();
    let parent = rig.path("parent");
    fs::create_dir(&parent).unwrap();
    // Beside other tests a start takes between 25 ms and several hundred.
    for ms in (0..80).step_by(4).chain((80..400).step_by(40)) {
        let mut child = with_parent(&parent, "sleep 36000").process_group(0).spawn().unwrap();
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        kill_process_group(group, Signal::INT).unwrap();
        // The first process of a PID namespace does not receive a signal that comes before it has a
        // handler (pid_namespaces(7)). The test runner then kills the group and sweeps.
        let ends = wait_until("the end", SIGNAL_LIMIT, || Ok(child.try_wait()?.is_some()));
        if ends.is_err() {
            kill_process_group(group, Signal::KILL).unwrap();
            child.wait().unwrap();
            wait_until("the folder to be swept", LIMIT, || {
                with_parent(&parent, "--sweep").status()?;
                Ok(fs::read_dir(&parent)?.next().is_none())
            })
            .unwrap();
        }
        let remaining: Vec<_> = fs::read_dir(&parent).unwrap().flatten().collect();
        assert!(remaining.is_empty(), "{ms} ms: {remaining:?}");
    }
}

#[test]
fn nothing_stays_of_a_killed_test_after_the_next_run() {
    let mut test_process = TestProcess::start(3, "exec sleep 36000");
    test_process.signal(Signal::KILL);
    test_process.child.wait().unwrap();
    test_process.check_process();
    // The folder is locked until its last process has ended.
    wait_until("its folder to be removed", LIMIT, || {
        run(&[ISOLATED, "--sweep", &test_process.folder])?;
        Ok(!Path::new(&test_process.folder).exists())
    })
    .unwrap();
    test_process.check_folder();
}

#[test]
fn of_a_failed_test_the_folder_stays_and_its_logs_are_printed() {
    let test_process = TestProcess::start(4, "echo 'what it found' >&2; exit 3");
    let (folder, seconds) = (test_process.folder.clone(), test_process.seconds.clone());
    let device = test_process.device.clone();
    test_process.check_process();
    let output = test_process.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let printed = String::from_utf8(output.stdout).unwrap();
    let kept_folder = format!("/var/tmp/suimon-failed/isolation-{seconds}");
    for line in [
        "the daemon said this",
        &format!("--- folder of the failed test: {kept_folder}"),
        &format!("make test CRATE=isolation TEST='{seconds}'"),
    ] {
        assert!(printed.contains(line), "no line `{line}` in\n{printed}");
    }
    assert!(Path::new(&kept_folder).join("suimond-1.log").exists());
    assert!(!Path::new(&folder).exists());
    check_loop_devices(&folder);
    check_loop_devices(&kept_folder);
    check_detached(&device);
    // Only failed tests leave their folders.
    fs::remove_dir_all(&kept_folder).unwrap();
}
