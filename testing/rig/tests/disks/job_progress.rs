//! Long jobs on a disk's file, started from the command line: they report progress, can be
//! cancelled without a change of the disk, and continue after a crash of the daemon.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, Rig, SlowDisk, run, run_any, wait_for_value, wait_until};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(240);
/// Throughput of the device while no progress has to be observed.
const BYTES_PER_S: u64 = 48 * MIB;
/// Throughput while progress is observed: a job then takes at least 12 s, so that a test with
/// little CPU time still observes it in progress.
const SLOW_BYTES_PER_S: u64 = 2 * MIB;
/// Throughput after progress was observed, so that the job hardly proceeds during the checks.
const STALLED_BYTES_PER_S: u64 = MIB / 16;
const DATA_MIB: u64 = 24;
/// Time after which a file that was read cannot change without a change of its modification time.
const SAME_TIME: Duration = Duration::from_millis(3100);

/// Daemon with one disk on a slow device.
struct Host {
    daemon: Daemon,
    disk: SlowDisk,
    socket: String,
    /// Path of a file with the expected content of the disk.
    content: String,
    rig: Rig,
}

impl Host {
    fn start() -> Self {
        let rig = Rig::new().unwrap();
        let disk = SlowDisk::new(&rig, rig.folder(), 192 * MIB, BYTES_PER_S).unwrap();
        let socket = rig.path("nbd.sock");
        let toml = format!(
            "[[store]]\nname = \"slow\"\npath = \"{}\"\n[[disk]]\nname = \"d\"\nstore = \"slow\"\n\
             format = \"vhdx\"\nsize_bytes = \"64 MiB\"\nblock_bytes = \"1 MiB\"\n\
             nbd = {{ socket = \"{socket}\" }}\n",
            disk.path().display()
        );
        let daemon = Daemon::start(&rig, &toml).unwrap();
        let content = rig.path("content");
        let mut host = Self { daemon, disk, socket, content, rig };
        host.write(0);
        host
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///d?socket={}", self.socket)
    }

    /// Writes data that a job has to read or to copy, and updates the expected content.
    fn write(&mut self, from_mib: u64) {
        let url = format!("nbd:unix:{}:exportname=d", self.socket);
        let write = format!("write -P {} {from_mib}M {DATA_MIB}M", 0x11 + from_mib);
        let output = run(&["qemu-io", "-f", "raw", "-c", &write, "-c", "flush", &url]).unwrap();
        assert!(!output.contains("failed"), "{output}");
        self.wait_unused();
        run(&["nbdcopy", &self.uri(), &self.content]).unwrap();
        self.wait_unused();
    }

    fn disk_status(&self) -> Value {
        self.daemon.json(&["disk", "show", "d"]).unwrap()
    }

    /// Waits until the daemon has noticed that the clients' connections have ended.
    fn wait_unused(&self) {
        wait_until("closed connections of clients", PATIENCE, || {
            Ok(self.disk_status()["nbd"]["clients"] == 0)
        })
        .unwrap();
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.disk.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != "lost+found").collect();
        names.sort();
        names
    }

    fn operation(&self, id: &str) -> Value {
        self.daemon.json(&["operation", "show", id]).unwrap()
    }

    /// Starts a job and waits until it has made some progress. Then slows the device, so that the
    /// job hardly proceeds until [`Host::remove_rate_limit`]. Returns the operation's id.
    fn begin(&self, arguments: &[&str]) -> String {
        self.begin_then_at(arguments, STALLED_BYTES_PER_S)
    }

    /// As [`Host::begin`], with the device's throughput after progress was observed.
    fn begin_then_at(&self, arguments: &[&str], bytes_per_s: u64) -> String {
        self.disk.set_rate(SLOW_BYTES_PER_S).unwrap();
        let started = self.daemon.json(&[arguments, &["--no-wait"]].concat()).unwrap();
        let id = started["id"].as_u64().unwrap().to_string();
        let now = wait_for_value("progress", PATIENCE, || {
            let now = self.daemon.json(&["operation", "show", &id])?;
            assert_eq!(now["state"], "running", "the job ended too early: {now}");
            Ok((now["steps_done"].as_u64() > Some(0)).then_some(now))
        })
        .unwrap();
        self.disk.set_rate(bytes_per_s).unwrap();
        let (completed, total) =
            (now["steps_done"].as_u64().unwrap(), now["steps"].as_u64().unwrap());
        assert!(completed < total, "{now}");
        assert_eq!(now["kind"], format!("disk {}", arguments[1]));
        assert!(now["step"].as_str().unwrap().contains(&format!("of {total} MiB")), "{now}");
        let text = self.daemon.ok(&["operation", "show", &id]).unwrap();
        assert!(text.contains(" MiB"), "{text}");
        assert_eq!(self.disk_status()["state"], "working");
        id
    }

    /// Restores the device's full throughput.
    fn remove_rate_limit(&self) {
        self.disk.set_rate(BYTES_PER_S).unwrap();
    }

    /// Kills the daemon. Its process ends only after its pending requests to the device.
    fn kill(&mut self) {
        self.disk.set_rate(SLOW_BYTES_PER_S).unwrap();
        self.daemon.kill();
    }

    /// Asserts that the disk is ready with its content, and that the store contains exactly these
    /// files.
    fn assert_as_before(&self, names: &[&str]) {
        wait_until("the disk ready", PATIENCE, || Ok(self.disk_status()["state"] == "ready"))
            .unwrap();
        assert_eq!(self.names(), names);
        let content = ["qemu-img", "compare", "-f", "raw", "-F", "raw", &self.content];
        let url = format!("nbd:unix:{}:exportname=d", self.socket);
        run(&[&content[..], &[&url]].concat()).unwrap();
        self.wait_unused();
    }

    /// Starts the next daemon, which must complete the interrupted job and record the `nth` event
    /// about it. Returns the offset in bytes from which the job continued.
    fn restart(&mut self, verb: &str, nth: usize) -> u64 {
        self.remove_rate_limit();
        self.daemon.restart(&self.rig).unwrap();
        wait_until("the disk ready", PATIENCE, || Ok(self.disk_status()["state"] == "ready"))
            .unwrap();
        // The disk is ready shortly before the end of the job is recorded.
        let mut operation = Value::Null;
        let result = wait_until("the end of the job", PATIENCE, || {
            operation = self.operation("1");
            Ok(operation["state"] != "running")
        });
        result.unwrap_or_else(|error| panic!("{error:#}: {operation}"));
        assert_eq!(operation["kind"], format!("disk {verb}"));
        assert_eq!(operation["state"], "succeeded", "{operation}");
        let events = self.daemon.json(&["event", "list"]).unwrap();
        let event_list = events["events"].as_array().or(events.as_array()).unwrap();
        let resumed: Vec<&Value> = event_list.iter().filter(|event| event["id"] == 6120).collect();
        assert_eq!(resumed.len(), nth, "{events}");
        let fields = &resumed[nth - 1]["fields"];
        assert_eq!(fields["work"], verb);
        fields["from_bytes"].as_str().unwrap().parse().unwrap()
    }

    /// Cancels a job in progress, and then runs it again to its end. `before` and `after` are the
    /// files in the store.
    fn cancel_and_begin_again(&self, arguments: &[&str], before: &[&str], after: &[&str]) {
        let id = self.begin(arguments);
        self.daemon.ok(&["operation", "cancel", &id]).unwrap();
        self.remove_rate_limit();
        wait_until("the end of the job", PATIENCE, || {
            Ok(self.operation(&id)["state"] == "cancelled")
        })
        .unwrap();
        self.assert_as_before(before);
        let output = self.daemon.cli(&["operation", "watch", &id]).unwrap();
        assert!(!output.is_ok() && output.stderr.contains("cancelled"), "{}", output.stderr);
        self.daemon.ok(arguments).unwrap();
        self.assert_as_before(after);
    }
}

#[test]
fn work_is_cancelled_in_the_middle_and_done_when_it_is_begun_again() {
    cancel_work(false);
}

mod full {
    #[test]
    fn work_is_cancelled_in_the_middle_and_done_when_it_is_begun_again() {
        super::cancel_work(true);
    }
}

/// Cancels a check and a merge; in the full tier all kinds of jobs on a disk's file.
fn cancel_work(is_full: bool) {
    let mut host = Host::start();
    host.cancel_and_begin_again(&["disk", "check", "d"], &["d.vhdx"], &["d.vhdx"]);
    if is_full {
        host.cancel_and_begin_again(&["disk", "compact", "d"], &["d.vhdx"], &["d.vhdx"]);
        let convert = ["disk", "convert", "d", "copy.vhd", "--format", "vhd"];
        host.cancel_and_begin_again(&convert, &["d.vhdx"], &["copy.vhd", "d.vhdx"]);
        let copy = format!("{}/copy.vhd", host.disk.path().display());
        run(&["qemu-img", "compare", "-f", "raw", "-F", "vpc", &host.content, &copy]).unwrap();
        fs::remove_file(copy).unwrap();
    }

    host.daemon.ok(&["disk", "snapshot", "d", "child.vhdx"]).unwrap();
    host.write(DATA_MIB / 2);
    host.cancel_and_begin_again(&["disk", "merge", "d"], &["child.vhdx", "d.vhdx"], &["d.vhdx"]);
    assert!(host.daemon.stop().unwrap().success());
    run(&["qemu-img", "check", "-f", "vhdx", &format!("{}/d.vhdx", host.disk.path().display())])
        .unwrap();
}

#[test]
fn a_job_interrupted_by_a_kill_continues_automatically() {
    let mut host = Host::start();
    host.begin(&["disk", "compact", "d"]);
    host.kill();
    host.restart("compact", 1);
    host.assert_as_before(&["d.vhdx"]);

    host.daemon.ok(&["disk", "snapshot", "d", "child.vhdx"]).unwrap();
    host.write(DATA_MIB / 2);
    host.begin(&["disk", "merge", "d"]);
    host.kill();
    host.restart("merge", 2);
    host.assert_as_before(&["d.vhdx"]);
    let disk = host.disk_status();
    assert!(disk.get("parent").is_none(), "{disk}");
    assert!(host.daemon.stop().unwrap().success());
    let image = format!("{}/d.vhdx", host.disk.path().display());
    run(&["qemu-img", "check", "-f", "vhdx", &image]).unwrap();
}

#[test]
fn a_job_continues_where_it_was_when_the_daemon_ended() {
    let mut host = Host::start();
    host.write(DATA_MIB);
    let convert = ["disk", "convert", "d", "copy.vhd", "--format", "vhd"];
    let id = host.begin_then_at(&convert, SLOW_BYTES_PER_S);
    // A file that was just changed, for example by closing it, could change again without a new
    // modification time.
    std::thread::sleep(SAME_TIME);
    assert_eq!(host.operation(&id)["state"], "running");
    // Writing back what was written already may take long at the slow rate. At this rate the rest
    // of the job takes at least 5 s, and the daemon is requested to stop immediately.
    host.disk.set_rate(8 * MIB).unwrap();
    assert!(host.daemon.stop().unwrap().success());
    assert_eq!(host.names(), [".copy.vhd.suimon-new", "d.vhdx"]);
    let start_mib = host.restart("convert", 1);
    assert!(start_mib > 0, "the job began from the start");
    host.assert_as_before(&["copy.vhd", "d.vhdx"]);
    assert!(host.daemon.stop().unwrap().success());
    let copy = format!("{}/copy.vhd", host.disk.path().display());
    run(&["qemu-img", "compare", "-f", "raw", "-F", "vpc", &host.content, &copy]).unwrap();
    run(&["qemu-img", "info", "-f", "vpc", &copy]).unwrap();
}

#[test]
fn progress_is_shown_as_a_bar() {
    let host = Host::start();
    // The job takes at least 6 s, so that the progress bar is drawn in between.
    host.disk.set_rate(4 * MIB).unwrap();
    let suimon = suimon_rig::program("suimon").unwrap();
    assert!(Path::new(&suimon).exists());
    // `script` provides a terminal.
    let command = format!("{suimon} --socket {} disk compact d", host.daemon.socket());
    let typescript = host.rig.path("typescript");
    let output = run_any(&["script", "-qec", &command, &typescript], PATIENCE).unwrap();
    assert!(output.is_ok(), "{}", output.stderr);
    let screen = fs::read_to_string(typescript).unwrap();
    assert!(screen.contains("disk compact disk/d") && screen.contains("MiB"), "{screen}");
    let shares: Vec<u32> = screen
        .split('%')
        .filter_map(|before| before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect();
    assert!(shares.iter().any(|share| (1..100).contains(share)), "{shares:?} of {screen}");
    assert!(shares.is_sorted(), "{shares:?}");
}
