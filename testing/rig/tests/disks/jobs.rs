//! Jobs on disks' files while the daemon serves them: resizes and snapshots under load, merges,
//! conversions, checks. QEMU's tools and fio verify the results.

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, Process, Rig, run, wait_for_value, wait_until};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(240);

/// Daemon with one disk for NBD clients.
struct Host {
    daemon: Daemon,
    store: String,
    socket: String,
    rig: Rig,
}

impl Host {
    fn start(disk: &str) -> Self {
        let rig = Rig::new().unwrap();
        let (store, socket) = (rig.path("store"), rig.path("nbd.sock"));
        fs::create_dir(&store).unwrap();
        let toml = format!(
            "[[store]]\nname = \"s\"\npath = \"{store}\"\n\n[[disk]]\nname = \"d\"\nstore = \"s\"\n\
             {disk}\nnbd = {{ socket = \"{socket}\" }}\n"
        );
        let daemon = Daemon::start(&rig, &toml).unwrap();
        let host = Self { daemon, store, socket, rig };
        host.wait_ready();
        host
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///d?socket={}", self.socket)
    }

    fn disk(&self) -> Value {
        self.daemon.json(&["disk", "show", "d"]).unwrap()
    }

    fn wait_ready(&self) {
        wait_until("the disk ready", PATIENCE, || Ok(self.disk()["state"] == "ready")).unwrap();
    }

    /// Waits until the daemon has noticed that the clients' connections have ended.
    fn wait_unused(&self) {
        wait_until("closed connections of clients", PATIENCE, || {
            Ok(self.disk()["nbd"]["clients"] == 0)
        })
        .unwrap();
    }

    /// Copies the disk over NBD to a file and returns its path.
    fn copy_out(&self, name: &str) -> String {
        let copy = self.rig.path(name);
        run(&["nbdcopy", &self.uri(), &copy]).unwrap();
        self.wait_unused();
        copy
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.store).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.store)
    }

    fn start_job(&self, verb: &str, body: Option<&str>) -> Value {
        let path = format!("/1.0/disks/d/{verb}");
        let answer = self.daemon.http("POST", &path, body).unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text);
        answer.json
    }

    /// Waits until an operation has ended, and returns it.
    fn wait_end(&self, operation: &Value) -> Value {
        let path = format!("/1.0/operations/{}/wait?timeout_s=25", operation["id"]);
        wait_for_value("end of the operation", PATIENCE, || {
            let now = self.daemon.http("GET", &path, None)?.json;
            Ok((now["state"] != "running").then_some(now))
        })
        .unwrap()
    }

    /// Starts a conversion and cancels it in progress. Returns false if it ended before; then its
    /// result is removed.
    fn cancel_conversion(&self, body: &str) -> bool {
        let operation = self.start_job("convert", Some(body));
        let path = format!("/1.0/operations/{}", operation["id"]);
        let mut now = Value::Null;
        let wait_result = wait_until("the conversion's progress", PATIENCE, || {
            now = self.daemon.http("GET", &path, None)?.json;
            let is_under_way = now["steps"] == 4096 && now["steps_done"].as_u64() > Some(0);
            Ok(is_under_way || now["state"] != "running")
        });
        wait_result.unwrap_or_else(|error| panic!("{error:#}: {now}"));
        let busy = self.daemon.http("POST", "/1.0/disks/d/check", None).unwrap();
        self.daemon.http("DELETE", &path, None).unwrap();
        let operation = self.wait_end(&operation);
        if operation["state"] == "succeeded" {
            if busy.status == 202 {
                self.wait_end(&busy.json);
            }
            fs::remove_file(self.file("copy.vhdx")).unwrap();
            return false;
        }
        assert_eq!(operation["state"], "cancelled", "{operation}");
        assert_eq!((busy.status, &busy.json["errors"][0]["code"]), (409, &"conflict".into()));
        true
    }
}

fn assert_same_content(first: &str, format: &str, other: &str) {
    run(&["qemu-img", "compare", "-f", "raw", "-F", format, first, other]).unwrap();
}

/// Checks that compaction releases trimmed space and preserves all other data. Returns a copy of
/// the disk.
fn compact_trimmed(host: &Host) -> String {
    let url = format!("nbd:unix:{}:exportname=d", host.socket);
    let trim = ["-d", "unmap", "-c", "discard 0 32M", "-c", "flush"];
    let output = run(&[&["qemu-io", "-f", "raw"][..], &trim, &[&url]].concat()).unwrap();
    assert!(!output.contains("failed"), "{output}");
    host.wait_unused();
    let trimmed = host.copy_out("trimmed.raw");
    let length = || fs::metadata(host.file("d.vhdx")).unwrap().len();
    let before = length();
    let operation = host.wait_end(&host.start_job("compact", None));
    assert_eq!(operation["state"], "succeeded", "{operation}");
    // 32 MiB were trimmed, which are 32 blocks of 1 MiB.
    assert!(length() + 32 * MIB <= before, "{before} bytes became {}", length());
    assert_same_content(&trimmed, "raw", &host.copy_out("compacted.raw"));
    assert_eq!(host.files(), ["d.vhdx"]);
    trimmed
}

#[test]
fn a_disk_grows_and_gets_snapshots_under_load_and_is_merged() {
    let mut host =
        Host::start("format = \"vhdx\"\nsize_bytes = \"64 MiB\"\nblock_bytes = \"1 MiB\"");
    let (uri, aux_path) = (format!("--uri={}", host.uri()), host.rig.path(""));
    let arguments = [
        "fio",
        "--name=verify",
        "--ioengine=nbd",
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=16",
        "--size=64m",
        "--thinktime=100ms",
        "--thinktime_blocks=300",
        "--verify=crc32c",
        &uri,
        &format!("--aux-path={aux_path}"),
    ];
    let mut load = Process::start(&host.rig, "fio", &arguments).unwrap();
    wait_until("fio writes", PATIENCE, || {
        Ok(host.disk()["counters"]["writes"]["requests"].as_u64() > Some(1000))
    })
    .unwrap();
    host.daemon.ok(&["disk", "resize", "d", "96 MiB"]).unwrap();
    assert_eq!(host.disk()["size_bytes"], 96 * MIB);
    let in_use = host.daemon.http("POST", "/1.0/disks/d/compact", None).unwrap();
    assert_eq!((in_use.status, &in_use.json["errors"][0]["code"]), (409, &"in_use".into()));
    host.daemon.ok(&["disk", "snapshot", "d", "one.vhdx"]).unwrap();
    // Other data is written before the next conversion.
    let written = || host.disk()["counters"]["writes"]["requests"].as_u64();
    let at_snapshot = written();
    wait_until("more writes", PATIENCE, || Ok(written() > at_snapshot.map(|count| count + 500)))
        .unwrap();
    host.daemon.ok(&["disk", "snapshot", "d", "two.vhdx"]).unwrap();
    assert!(load.is_running(), "it was too fast: {}", load.log());
    let status = load.wait(PATIENCE).unwrap();
    assert!(status.success(), "{}", load.log());

    let url = format!("nbd:unix:{}:exportname=d", host.socket);
    let output = run(&["qemu-io", "-f", "raw", "-c", "write -P 0x7e 90M 1M", "-c", "flush", &url]);
    assert!(!output.unwrap().contains("failed"));
    let before = host.copy_out("before.raw");
    assert_eq!(fs::metadata(&before).unwrap().len(), 96 * MIB);
    assert_eq!(host.files(), ["d.vhdx", "one.vhdx", "two.vhdx"]);

    host.daemon.ok(&["disk", "merge", "d"]).unwrap();
    assert_eq!(host.files(), ["d.vhdx", "one.vhdx"]);
    assert_same_content(&before, "raw", &host.copy_out("merged.raw"));
    host.daemon.ok(&["disk", "merge", "d"]).unwrap();
    assert_eq!(host.files(), ["d.vhdx"]);
    host.daemon.kill();
    host.daemon.restart(&host.rig).unwrap();
    host.wait_ready();
    assert_same_content(&before, "raw", &host.copy_out("again.raw"));
    let after = compact_trimmed(&host);
    host.daemon.stop().unwrap();
    assert_same_content(&after, "vhdx", &host.file("d.vhdx"));
    run(&["qemu-img", "check", "-f", "vhdx", &host.file("d.vhdx")]).unwrap();
}

fn conversions_have_the_content_of_the_disk_and_can_be_cancelled() {
    let host = Host::start("format = \"raw\"\nkind = \"dynamic\"\nsize_bytes = \"4 GiB\"");
    let url = format!("nbd:unix:{}:exportname=d", host.socket);
    let writes = ["-c", "write -P 0x11 0 1M", "-c", "write -P 0x22 3000M 1M", "-c", "flush"];
    run(&[&["qemu-io", "-f", "raw"][..], &writes, &[&url]].concat()).unwrap();
    host.wait_unused();

    let body = r#"{"file": "copy.vhdx", "format": "vhdx"}"#;
    // A conversion may end before this program is scheduled to cancel it, but not every time.
    wait_until("a conversion cancelled in the middle", PATIENCE, || {
        Ok(host.cancel_conversion(body))
    })
    .unwrap();
    assert_eq!(host.files(), ["d.raw"]);
    host.wait_ready();

    let operation = host.start_job("convert", Some(body));
    let operation = host.wait_end(&operation);
    assert_eq!(operation["state"], "succeeded", "{operation}");
    assert_eq!(host.files(), ["copy.vhdx", "d.raw"]);
    assert_same_content(&url, "vhdx", &host.file("copy.vhdx"));
    let missing = host.daemon.http("POST", "/1.0/disks/none/check", None).unwrap();
    assert_eq!(missing.status, 404, "{}", missing.text);
}

#[test]
fn a_check_reports_the_damage() {
    let mut host = Host::start("format = \"vhdx\"\nsize_bytes = \"64 MiB\"");
    let operation = host.wait_end(&host.start_job("check", None));
    assert_eq!(operation["state"], "succeeded", "{operation}");
    assert!(operation["report"].to_string().contains("no damage was found"), "{operation}");
    host.daemon.stop().unwrap();
    let file = fs::OpenOptions::new().write(true).open(host.file("d.vhdx")).unwrap();
    // Overwrites both region tables (MS-VHDX, 2.2.3).
    file.write_all_at(&[0xff; 128 << 10], 192 << 10).unwrap();
    drop(file);
    host.daemon.restart(&host.rig).unwrap();
    wait_until("the disk failed", PATIENCE, || Ok(host.disk()["state"] == "failed")).unwrap();
    let operation = host.wait_end(&host.start_job("check", None));
    assert!(operation["report"][0].as_str().unwrap().starts_with("damage: d.vhdx"), "{operation}");
    wait_until("events of both checks", PATIENCE, || {
        let events = host.daemon.json(&["event", "list", "--id", "6113"])?;
        Ok(events.as_array().is_some_and(|events| events.len() == 2))
    })
    .unwrap();
}

mod full {
    #[test]
    fn conversions_have_the_content_of_the_disk_and_can_be_cancelled() {
        super::conversions_have_the_content_of_the_disk_and_can_be_cancelled();
    }
}
