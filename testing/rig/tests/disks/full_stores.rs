//! Disks of every format on a store that becomes full, over NBD.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{Daemon, Mounted, NbdClient, NbdFailure, Rig, run, run_any, wait_until};

mod ext4;
mod vhost_user;

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
const ENOSPC: u32 = 28;
/// Formats of the disks; each disk has a separate store.
const FORMATS: [&str; 3] = ["raw", "vhd", "vhdx"];
/// Maximum space in bytes that a write of 64 KiB to an empty image occupies, including metadata.
const ONE_WRITE_MAX: u64 = MIB;

struct Disk {
    client: NbdClient,
    file: String,
}

impl Disk {
    fn write(&mut self, offset: u64, byte: u8, len: u64) -> Result<(), NbdFailure> {
        self.client.write(offset, &vec![byte; len as usize], false)
    }

    fn check(&mut self, offset: u64, byte: u8) {
        let mut content = vec![0; 64 << 10];
        self.client.read(offset, &mut content).unwrap();
        assert!(
            content.iter().all(|content_byte| *content_byte == byte),
            "{} at {offset}",
            self.file
        );
    }

    fn allocated(&self) -> u64 {
        fs::metadata(&self.file).unwrap().blocks() * 512
    }
}

/// Starts a daemon with disks whose requests fail immediately if the store is full.
fn start(rig: &Rig) -> (Daemon, Vec<Mounted>) {
    start_with(rig, "on_full = \"error\"")
}

fn start_with(rig: &Rig, keys: &str) -> (Daemon, Vec<Mounted>) {
    let mut host = String::new();
    let mut mounted = Vec::new();
    for format in FORMATS {
        let (store, socket) = (rig.path(&format!("{format}.store")), rig.path("nbd.sock"));
        mounted.push(Mounted::tmpfs("24m", &store).unwrap());
        host += &format!(
            "[[store]]\nname = \"{format}\"\npath = \"{store}\"\n\
             [[disk]]\nname = \"{format}\"\nstore = \"{format}\"\nformat = \"{format}\"\n\
             kind = \"dynamic\"\nsize_bytes = \"128 MiB\"\n{keys}\n\
             nbd = {{ socket = \"{socket}\" }}\n"
        );
    }
    (Daemon::start(rig, &host).unwrap(), mounted)
}

#[test]
fn a_full_store_fails_only_requests_that_need_space() {
    let rig = Rig::new().unwrap();
    let (mut daemon, mounted) = start(&rig);
    for format in FORMATS {
        let file = rig.path(&format!("{format}.store/{format}.{format}"));
        let before = fs::metadata(&file).unwrap().blocks() * 512;
        let client = NbdClient::connect(&rig.path("nbd.sock"), format).unwrap();
        let mut disk = Disk { client, file };
        // The store has 24 MiB, less than a VHDX block of 32 MiB.
        disk.write(0, 1, 64 << 10).unwrap();
        disk.client.flush().unwrap();
        let allocated = disk.allocated() - before;
        assert!(allocated <= ONE_WRITE_MAX, "{format}: a write of 64 KiB takes {allocated} bytes");
        let mut written = 0;
        let error = loop {
            match disk.write((64 + written) * MIB, 2, MIB) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
            assert!(written < 30, "{format}: the store is not full");
        };
        assert!(matches!(error, NbdFailure::Refused(ENOSPC)), "{format}: {error}");
        assert!(written >= 20, "{format}: full after {written} MiB");
        // Requests that need no space succeed.
        disk.write(0, 3, 64 << 10).unwrap();
        disk.client.flush().unwrap();
        disk.check(0, 3);
        disk.check(64 * MIB, 2);
        // Freed space is released after the metadata that refers to it was written, and is then
        // reused.
        disk.client.write_zeroes(64 * MIB, 64 * MIB).unwrap();
        disk.client.flush().unwrap();
        wait_until("space is released", PATIENCE, || {
            Ok(disk.allocated() - before <= ONE_WRITE_MAX + MIB)
        })
        .unwrap();
        disk.write(34 * MIB, 4, 64 << 10).unwrap();
        disk.write(100 * MIB, 5, 8 * MIB).unwrap();
        disk.client.flush().unwrap();
        for (offset, byte) in [(0, 3), (64 * MIB, 0), (34 * MIB, 4), (107 * MIB, 5)] {
            disk.check(offset, byte);
        }
    }
    assert!(daemon.stop().unwrap().success());
    run(&["qemu-img", "check", "-f", "vhdx", &rig.path("vhdx.store/vhdx.vhdx")]).unwrap();
    drop(mounted);
}

/// Writes of different sizes to unallocated offsets until 300 of them have failed.
fn fill(disk: &mut Disk, seed: u64) {
    let mut random = seed;
    let mut next = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % limit
    };
    let mut failed = 0;
    while failed < 300 {
        let offset = next(60_000) * 512;
        let len = (1 + next(128)) * 512;
        match disk.client.write(offset, &vec![offset as u8; len as usize], false) {
            Ok(()) => {}
            Err(NbdFailure::Refused(ENOSPC)) => failed += 1,
            Err(error) => panic!("{}: {error}", disk.file),
        }
    }
}

#[test]
fn disks_of_a_daemon_that_is_killed_on_a_full_store_are_opened_again() {
    let rig = Rig::new().unwrap();
    let (mut daemon, mounted) = start(&rig);
    for seed in 1..4 {
        for format in FORMATS {
            let file = rig.path(&format!("{format}.store/{format}.{format}"));
            let client = NbdClient::connect(&rig.path("nbd.sock"), format).unwrap();
            fill(&mut Disk { client, file }, seed);
        }
        daemon.kill();
        daemon.restart(&rig).unwrap();
        let show_disk = |format: &str| daemon.json(&["disk", "show", format]);
        for format in ["raw", "vhdx"] {
            wait_until(format, PATIENCE, || Ok(show_disk(format)?["state"] == "ready")).unwrap();
        }
        // To open a VHD, the daemon may need a page for each bitmap and one for the footer.
        let larger = format!("remount,size={}m", 24 + seed);
        run(&["mount", "-o", &larger, &rig.path("vhd.store")]).unwrap();
        wait_until("the VHD is opened", PATIENCE, || Ok(show_disk("vhd")?["state"] == "ready"))
            .unwrap();
        for format in FORMATS {
            // Discards whole blocks of every format, so that the client can free space.
            let mut client = NbdClient::connect(&rig.path("nbd.sock"), format).unwrap();
            let freed = client.write_zeroes(0, 32 * MIB);
            assert!(freed.is_ok(), "{format}: {freed:?}");
        }
    }
    drop(mounted);
}

/// File that fills a store up to a given number of bytes, until it is removed.
struct FillerFile(String);

impl FillerFile {
    fn new(store: &str, remaining_bytes: u64) -> Self {
        let free = free_bytes(store);
        let path = format!("{store}/ballast");
        fs::write(&path, vec![1; usize::try_from(free.saturating_sub(remaining_bytes)).unwrap()])
            .unwrap();
        Self(path)
    }

    fn remove(self) {
        fs::remove_file(self.0).unwrap();
    }
}

/// Returns the free bytes of a file system.
fn free_bytes(path: &str) -> u64 {
    let output = run(&["stat", "--file-system", "--format=%a %S", path]).unwrap();
    output.split_whitespace().map(|number| number.parse::<u64>().unwrap()).product()
}

/// Writes in a separate thread, because the writes wait for space. Returns the first failure.
fn write_behind(
    socket: &str,
    disk: &str,
    (first, count, byte): (u64, u64, u8),
) -> std::thread::JoinHandle<Result<(), NbdFailure>> {
    let mut client = NbdClient::connect(socket, disk).unwrap().patient();
    std::thread::spawn(move || {
        for position in first..first + count {
            client.write(position * MIB, &vec![byte; MIB as usize], false)?;
        }
        client.flush()
    })
}

fn wait_queued(daemon: &Daemon, disk: &str) -> Value {
    let mut disk_status = Value::Null;
    let queued = wait_until("a queued write", PATIENCE, || {
        disk_status = daemon.json(&["disk", "show", disk]).unwrap();
        Ok(disk_status["full"]["queued_requests"].as_u64() > Some(0))
    });
    queued.unwrap_or_else(|error| panic!("{error:#}: {disk_status}"));
    disk_status
}

fn check_mib(client: &mut NbdClient, position: u64, byte: u8) {
    let mut content = vec![0; MIB as usize];
    client.read(position * MIB, &mut content).unwrap();
    assert!(content.iter().all(|content_byte| *content_byte == byte), "MiB {position}");
}

/// Writes, takes a snapshot, resizes and merges a disk of each format, each time on a store that is
/// full for `hold_time`.
fn clients_wait(hold_time: Duration) {
    let rig = Rig::new().unwrap();
    let (mut daemon, mounted) = start_with(&rig, "full_wait_s = 3600");
    let socket = rig.path("nbd.sock");
    for (format, store) in FORMATS.iter().zip(&mounted) {
        let mut client = NbdClient::connect(&socket, format).unwrap();
        client.write(0, &vec![1; MIB as usize], false).unwrap();
        client.flush().unwrap();
        interrupted(&daemon, (format, store.path()), (&socket, &mut client), (64, 2), hold_time);
        daemon.ok(&["disk", "resize", format, "160MiB"]).unwrap();
        // A client receives the size when it connects.
        drop(client);
        let mut client = NbdClient::connect(&socket, format).unwrap();
        interrupted(&daemon, (format, store.path()), (&socket, &mut client), (140, 3), hold_time);
        if *format != "raw" {
            let file = format!("child.{format}");
            daemon.ok(&["disk", "snapshot", format, &file]).unwrap();
            interrupted(
                &daemon,
                (format, store.path()),
                (&socket, &mut client),
                (64, 4),
                hold_time,
            );
            // The parent has no data in this range.
            client.write(100 * MIB, &vec![5; 2 * MIB as usize], false).unwrap();
            client.flush().unwrap();
            // A merge requires that the disk is not in use.
            drop(client);
            wait_until("closed connections of clients", PATIENCE, || {
                Ok(daemon.json(&["disk", "show", format])?["nbd"]["clients"] == 0)
            })
            .unwrap();
            let filler = FillerFile::new(store.path(), MIB);
            held_up(&daemon, &["disk", "merge", format], filler, hold_time);
            let mut client = NbdClient::connect(&socket, format).unwrap();
            for (position, byte) in [(0, 1), (64, 4), (67, 4), (100, 5), (101, 5), (140, 3)] {
                check_mib(&mut client, position, byte);
            }
        }
        let disk_status = daemon.json(&["disk", "show", format]).unwrap();
        assert_eq!(disk_status["counters"]["writes"]["errors"], 0, "{disk_status}");
    }
    assert!(daemon.stop().unwrap().success());
    run(&["qemu-img", "check", "-f", "vhdx", &rig.path("vhdx.store/vhdx.vhdx")]).unwrap();
    drop(mounted);
}

/// Writes four MiB to a full store while requests that need no space succeed. The writes complete
/// when there is space.
fn interrupted(
    daemon: &Daemon,
    (disk, store): (&str, &str),
    (socket, client): (&str, &mut NbdClient),
    (first, byte): (u64, u8),
    hold_time: Duration,
) {
    let filler = FillerFile::new(store, MIB + MIB / 2);
    let writing = write_behind(socket, disk, (first, 4, byte));
    let disk_status = wait_queued(daemon, disk);
    assert_eq!(disk_status["state"], "full", "{disk_status}");
    std::thread::sleep(hold_time);
    check_mib(client, 0, 1);
    // The first MiB was written before the store was full, possibly to the parent image. A commit
    // of an image with metadata may need space itself.
    if disk == "raw" {
        client.flush().unwrap();
    }
    check_mib(client, 0, 1);
    wait_queued(daemon, disk);
    filler.remove();
    writing.join().unwrap().unwrap();
    for position in first..first + 4 {
        check_mib(client, position, byte);
    }
    wait_until("space to be reported", PATIENCE, || {
        Ok(daemon.json(&["disk", "show", disk]).unwrap()["state"] == "ready")
    })
    .unwrap();
}

/// Checks that an operation on a full store waits for space and then succeeds.
fn held_up(daemon: &Daemon, arguments: &[&str], filler: FillerFile, hold_time: Duration) {
    let started = daemon.json(&[arguments, &["--no-wait"]].concat()).unwrap();
    let id = started["id"].to_string();
    let show_operation = || daemon.json(&["operation", "show", &id]);
    let wait_held_up = || {
        let mut operation = Value::Null;
        let held_up = wait_until("an operation that waits for space", PATIENCE, || {
            operation = show_operation()?;
            Ok(operation["step"].as_str().is_some_and(|step| step.contains("is full")))
        });
        held_up.unwrap_or_else(|error| panic!("{error:#}: {operation}"));
    };
    wait_held_up();
    std::thread::sleep(hold_time);
    wait_held_up();
    filler.remove();
    let mut operation = Value::Null;
    let result = wait_until("the operation to end", PATIENCE, || {
        operation = show_operation()?;
        Ok(operation["state"] != "running")
    });
    result.unwrap_or_else(|error| panic!("{error:#}: {operation}"));
    assert_eq!(operation["state"], "succeeded", "{operation}");
}

#[test]
fn clients_wait_for_space_in_every_format() {
    clients_wait(Duration::from_secs(3));
}

#[test]
fn a_client_waits_no_longer_than_it_is_to() {
    let rig = Rig::new().unwrap();
    let (daemon, mounted) = start_with(&rig, "full_wait_s = 2");
    let socket = rig.path("nbd.sock");
    let filler = FillerFile::new(mounted[0].path(), 0);
    let started = Instant::now();
    let result = write_behind(&socket, "raw", (0, 1, 1)).join().unwrap();
    assert!(matches!(result, Err(NbdFailure::Refused(ENOSPC))), "{result:?}");
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    // The waiting time is changed while a request waits.
    daemon.ok(&["disk", "set", "raw", "--full-wait-s", "3600"]).unwrap();
    let writing = write_behind(&socket, "raw", (0, 1, 1));
    wait_queued(&daemon, "raw");
    daemon.ok(&["disk", "set", "raw", "--on-full", "error"]).unwrap();
    let result = writing.join().unwrap();
    assert!(matches!(result, Err(NbdFailure::Refused(ENOSPC))), "{result:?}");
    let events = daemon.ok(&["event", "list"]).unwrap();
    assert!(events.contains("6150"), "{events}");
    filler.remove();
    write_behind(&socket, "raw", (0, 1, 1)).join().unwrap().unwrap();
}

/// Tests independent clients.
#[test]
fn qemu_io_and_nbdcopy_wait_for_space() {
    let rig = Rig::new().unwrap();
    let (daemon, mounted) = start_with(&rig, "full_wait_s = 3600");
    let (socket, file) = (rig.path("nbd.sock"), rig.path("payload"));
    fs::write(&file, vec![7; 4 * MIB as usize]).unwrap();
    for (format, store) in FORMATS.iter().zip(&mounted) {
        let uri = format!("nbd+unix:///{format}?socket={socket}");
        let filler = FillerFile::new(store.path(), MIB);
        let commands = ["write -P 9 16M 4M", "flush", "read -P 9 16M 4M"];
        let arguments =
            ["qemu-io", "-f", "raw", "-c", commands[0], "-c", commands[1], "-c", commands[2]];
        let arguments: Vec<String> =
            arguments.iter().map(|argument| (*argument).to_owned()).chain([uri.clone()]).collect();
        let qemu = std::thread::spawn(move || {
            run_any(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), PATIENCE * 4)
        });
        wait_queued(&daemon, format);
        filler.remove();
        let output = qemu.join().unwrap().unwrap();
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(output.is_ok() && !text.contains("failed") && !text.contains("error"), "{text}");
        let filler = FillerFile::new(store.path(), MIB);
        let arguments = ["nbdcopy".to_owned(), file.clone(), uri];
        let copy = std::thread::spawn(move || {
            run_any(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), PATIENCE * 4)
        });
        wait_queued(&daemon, format);
        filler.remove();
        let output = copy.join().unwrap().unwrap();
        assert!(output.is_ok(), "{output:?}");
        check_mib(&mut NbdClient::connect(&socket, format).unwrap(), 3, 7);
    }
}

mod full {
    use super::*;

    #[test]
    fn clients_wait_for_space_for_minutes() {
        clients_wait(Duration::from_secs(300));
    }
}
