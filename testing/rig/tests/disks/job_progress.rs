//! Work on a disk's file that takes its time, by the command line: it shows how far it is, is
//! cancelled in the middle and leaves the disk as it was, or is cut off and goes on by itself.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, Rig, SlowDisk, run, run_any, wait_for_value, wait_until};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(240);
/// Rate of the device while nothing has to be seen in the middle.
const BYTES_PER_S: u64 = 48 * MIB;
/// Rate while work is looked at: it takes 12 s and more, so that a test that gets little CPU time
/// still sees it in the middle.
const SLOW_BYTES_PER_S: u64 = 2 * MIB;
/// Rate after progress was seen: the work stays in the middle while it is looked at.
const STALLED_BYTES_PER_S: u64 = MIB / 16;
const DATA_MIB: u64 = 24;
/// After that, nothing that was read can change and have the same time.
const SAME_TIME: Duration = Duration::from_millis(3100);

/// A daemon with one disk on a slow device.
struct Host {
    daemon: Daemon,
    disk: SlowDisk,
    socket: String,
    /// What the disk holds.
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

    /// Writes data, which work on the disk has to read or to write.
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

    /// Connections end a little after the programs that had them.
    fn wait_unused(&self) {
        wait_until("clients gone", PATIENCE, || Ok(self.disk_status()["nbd"]["clients"] == 0))
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

    /// Begins work and waits until some of it is done, and not all. The device hardly proceeds from
    /// then on, until [`Host::hurry`].
    fn begin(&self, arguments: &[&str]) -> String {
        self.begin_then_at(arguments, STALLED_BYTES_PER_S)
    }

    /// As [`Host::begin`], with this rate of the device after progress was seen.
    fn begin_then_at(&self, arguments: &[&str], bytes_per_s: u64) -> String {
        self.disk.set_rate(SLOW_BYTES_PER_S).unwrap();
        let started = self.daemon.json(&[arguments, &["--no-wait"]].concat()).unwrap();
        let id = started["id"].as_u64().unwrap().to_string();
        let now = wait_for_value("progress", PATIENCE, || {
            let now = self.daemon.json(&["operation", "show", &id])?;
            assert_eq!(now["state"], "running", "it was too fast: {now}");
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

    /// The device is as fast again as it was before [`Host::begin`].
    fn hurry(&self) {
        self.disk.set_rate(BYTES_PER_S).unwrap();
    }

    /// Kills the daemon. Its end waits for the requests that are in the device.
    fn kill(&mut self) {
        self.disk.set_rate(SLOW_BYTES_PER_S).unwrap();
        self.daemon.kill();
    }

    /// The disk serves what it has held.
    fn assert_as_before(&self, names: &[&str]) {
        wait_until("the disk ready", PATIENCE, || Ok(self.disk_status()["state"] == "ready"))
            .unwrap();
        assert_eq!(self.names(), names);
        let content = ["qemu-img", "compare", "-f", "raw", "-F", "raw", &self.content];
        let url = format!("nbd:unix:{}:exportname=d", self.socket);
        run(&[&content[..], &[&url]].concat()).unwrap();
        self.wait_unused();
    }

    /// The next daemon goes on with the work that the one before was in, and ends it: from which byte
    /// on. `nth` such event.
    fn restart(&mut self, verb: &str, nth: usize) -> u64 {
        self.hurry();
        self.daemon.restart(&self.rig).unwrap();
        wait_until("the disk ready", PATIENCE, || Ok(self.disk_status()["state"] == "ready"))
            .unwrap();
        // The disk is ready a moment before what was done is recorded.
        let mut operation = Value::Null;
        let result = wait_until("the end of the work", PATIENCE, || {
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

    /// Work is cancelled in the middle, and done when it is begun again.
    fn cancel_and_begin_again(&self, arguments: &[&str], before: &[&str], after: &[&str]) {
        let id = self.begin(arguments);
        self.daemon.ok(&["operation", "cancel", &id]).unwrap();
        self.hurry();
        wait_until("its end", PATIENCE, || Ok(self.operation(&id)["state"] == "cancelled"))
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

/// A check and a merge; in the full tier everything that is done to a disk's files.
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
fn work_that_a_death_cuts_off_goes_on_by_itself() {
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
fn work_goes_on_where_it_was_when_the_daemon_ended() {
    let mut host = Host::start();
    host.write(DATA_MIB);
    let convert = ["disk", "convert", "d", "copy.vhd", "--format", "vhd"];
    let id = host.begin_then_at(&convert, SLOW_BYTES_PER_S);
    // A file that was changed a moment ago, as by closing it, may change again unnoticed.
    std::thread::sleep(SAME_TIME);
    assert_eq!(host.operation(&id)["state"], "running");
    // What is written already may take its time at the slow rate. At this one the rest of the
    // work takes 5 s and more, and the daemon is told to stop at once.
    host.disk.set_rate(8 * MIB).unwrap();
    assert!(host.daemon.stop().unwrap().success());
    assert_eq!(host.names(), [".copy.vhd.suimon-new", "d.vhdx"]);
    let start_mib = host.restart("convert", 1);
    assert!(start_mib > 0, "nothing was kept of it");
    host.assert_as_before(&["copy.vhd", "d.vhdx"]);
    assert!(host.daemon.stop().unwrap().success());
    let copy = format!("{}/copy.vhd", host.disk.path().display());
    run(&["qemu-img", "compare", "-f", "raw", "-F", "vpc", &host.content, &copy]).unwrap();
    run(&["qemu-img", "info", "-f", "vpc", &copy]).unwrap();
}

#[test]
fn who_watches_sees_a_bar() {
    let host = Host::start();
    // It takes 6 s and more, so that the bar is drawn in the middle of it.
    host.disk.set_rate(4 * MIB).unwrap();
    let suimon = suimon_rig::program("suimon").unwrap();
    assert!(Path::new(&suimon).exists());
    // `script` gives it a terminal.
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
