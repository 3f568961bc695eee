//! `scripts/isolated`, by which the test runner starts tests: however a test ends, nothing that it
//! made stays; only the folder of a failed test does, and what it printed shows why it failed.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use suimon_rig::{Rig, run, run_any, wait_until};

const ISOLATED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/isolated");
const LIMIT: Duration = Duration::from_secs(120);
/// For how long a test is waited for after Ctrl-C.
const SIGNAL_LIMIT: Duration = Duration::from_secs(5);

/// Makes one of everything that a test makes, a process that has left its process group among them,
/// and writes the folder's name into the file `$1`.
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

/// A test under way, with everything made.
struct Made {
    child: Child,
    folder: String,
    /// The loop device on a file of its own mount, and its sequence number.
    device: (String, String),
    /// Argument by which its process is found.
    seconds: String,
    _rig: Rig,
}

impl Made {
    /// Starts a command that makes everything and then runs `suffix`. The number is the test's own.
    fn start(number: u8, suffix: &str) -> Self {
        let rig = Rig::new().unwrap();
        let file = rig.path("folder");
        let seconds = format!("36000.{}{number}", std::process::id());
        let mut command = Command::new(ISOLATED);
        command.args(["sh", "-euc", &format!("{MAKE}{suffix}"), "sh", &file, &seconds]);
        command.env("NEXTEST_BINARY_ID", "isolation").env("NEXTEST_TEST_NAME", &seconds);
        command.env_remove("SUIMON_TEST_FOLDER").process_group(0);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        wait_until("everything to be made", LIMIT, || Ok(Path::new(&file).exists())).unwrap();
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

    /// Its process is gone, and with it its namespaces and what was mounted in them.
    fn check_process(&self) {
        let arguments = ["pgrep", "--full", &format!("^sleep {}", self.seconds)];
        // 1: no process matches (pgrep(1)).
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

/// The device is not attached any more, or to something else.
fn check_detached((device, number): &(String, String)) {
    let name = device.trim_start_matches("/dev/");
    wait_until("the loop device to be detached", LIMIT, || {
        let is_attached = Path::new(&format!("/sys/block/{name}/loop/backing_file")).exists();
        let now = fs::read_to_string(format!("/sys/block/{name}/diskseq"))?;
        Ok(!is_attached || now.trim() != number)
    })
    .unwrap();
}

/// No loop device is on a file in the folder. The kernel detaches one only when nobody has it open,
/// and who looks for a free loop device opens them.
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
    let mut test_process = Made::start(1, "");
    assert!(test_process.child.wait().unwrap().success());
    test_process.check_process();
    test_process.check_folder();
}

#[test]
fn nothing_stays_of_a_test_that_ctrl_c_ends() {
    let mut test_process = Made::start(2, "exec sleep 36000");
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
fn nothing_stays_at_whatever_moment_ctrl_c_comes() {
    let rig = Rig::new().unwrap();
    let parent = rig.path("parent");
    fs::create_dir(&parent).unwrap();
    // Beside other tests a start takes from 25 ms to some hundred.
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
    let mut test_process = Made::start(3, "exec sleep 36000");
    test_process.signal(Signal::KILL);
    test_process.child.wait().unwrap();
    test_process.check_process();
    // Its folder is locked until the last of its processes is gone.
    wait_until("its folder to be removed", LIMIT, || {
        run(&[ISOLATED, "--sweep", &test_process.folder])?;
        Ok(!Path::new(&test_process.folder).exists())
    })
    .unwrap();
    test_process.check_folder();
}

#[test]
fn of_a_failed_test_the_folder_stays_and_its_logs_are_printed() {
    let test_process = Made::start(4, "echo 'what it found' >&2; exit 3");
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
    // Only failed tests leave their folders there.
    fs::remove_dir_all(&kept_folder).unwrap();
}
