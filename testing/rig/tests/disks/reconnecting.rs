//! Independent clients reconnect after the daemon was killed, and every acknowledged write
//! persists: QEMU with `reconnect-delay`, as used for emulated IDE and SATA disks, and libnbd.
//!
//! `SUIMON_DISK_DEATHS` sets the number of kills in the full tier.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::ChildStdin;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use suimon_rig::{Daemon, Process, Random, Rig, run, wait_for_value};

const PATIENCE: Duration = Duration::from_secs(120);
const DISK_BYTES: u64 = 1 << 30;
/// Distance of written blocks, less than the allocation unit of any image, so that most writes
/// allocate space.
const STRIDE: u64 = 1 << 20;
const LEN: u64 = 4096;
const FORMATS: [&str; 2] = ["vhd", "vhdx"];
const DEATHS: u64 = 2;
const FULL_DEATHS: u64 = 200;
/// Number of requests between two kills.
const REQUESTS: u64 = 6;

const LIBNBD_CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/disks/libnbd_client.py");

const QEMU_PROMPT: &str = "qemu-io> ";

/// Request of [`LEN`] bytes to a disk.
#[derive(Clone, Copy, Debug)]
enum Request {
    Write { offset: u64, byte: u8 },
    Zero { offset: u64 },
    Trim { offset: u64 },
    Read { offset: u64, byte: u8 },
    Flush,
}

/// Client process that runs for the whole test.
struct Client {
    process: Process,
    stdin: ChildStdin,
    /// Number of bytes of the client's output that were evaluated.
    seen: usize,
    /// Text that the client prints when it is ready for a request, after the result of the previous
    /// one.
    prompt: &'static str,
    command: fn(Request) -> (String, String),
}

impl Client {
    fn qemu(rig: &Rig, disk: &str) -> Self {
        let options = format!(
            "driver=nbd,server.type=unix,server.path={},export={disk},reconnect-delay=120,\
             discard=unmap",
            rig.path("nbd.sock")
        );
        // Line buffering, so that results are visible immediately although the output is not a
        // terminal.
        let arguments = ["stdbuf", "-oL", "qemu-io", "-d", "unmap", "-t", "writeback"];
        let arguments = [&arguments[..], &["--image-opts", &options]].concat();
        Self::start(rig, "qemu-io", &arguments, QEMU_PROMPT, |request| match request {
            Request::Write { offset, byte } => (
                format!("write -P {byte} {offset} {LEN}"),
                format!("wrote {LEN}/{LEN} bytes at offset {offset}\n"),
            ),
            Request::Zero { offset } => (
                format!("write -z {offset} {LEN}"),
                format!("wrote {LEN}/{LEN} bytes at offset {offset}\n"),
            ),
            Request::Trim { offset } => (
                format!("discard {offset} {LEN}"),
                format!("discard {LEN}/{LEN} bytes at offset {offset}\n"),
            ),
            Request::Read { offset, byte } => (
                format!("read -P {byte} {offset} {LEN}"),
                format!("read {LEN}/{LEN} bytes at offset {offset}\n"),
            ),
            // qemu-io prints nothing for a flush except the prompt.
            Request::Flush => ("flush".to_owned(), String::new()),
        })
    }

    fn libnbd(rig: &Rig, disk: &str) -> Self {
        let uri = format!("nbd+unix:///{disk}?socket={}", rig.path("nbd.sock"));
        Self::start(rig, "libnbd", &["/usr/bin/python3", LIBNBD_CLIENT, &uri], "", |request| {
            let request_text = match request {
                Request::Write { offset, byte } => format!("write {offset} {LEN} {byte}"),
                Request::Zero { offset } => format!("zero {offset} {LEN}"),
                Request::Trim { offset } => format!("trim {offset} {LEN}"),
                Request::Read { offset, byte } => format!("read {offset} {LEN} {byte}"),
                Request::Flush => "flush".to_owned(),
            };
            let answer = format!("{request_text} done\n");
            (request_text, answer)
        })
    }

    fn start(
        rig: &Rig,
        name: &str,
        arguments: &[&str],
        prompt: &'static str,
        command_of: fn(Request) -> (String, String),
    ) -> Self {
        let mut process = Process::start(rig, name, arguments).unwrap();
        let stdin = process.take_stdin().unwrap();
        let mut client = Self { process, stdin, seen: 0, prompt, command: command_of };
        client.wait_for("").unwrap();
        client
    }

    fn send(&mut self, request: Request) {
        let (request_text, _) = (self.command)(request);
        writeln!(self.stdin, "{request_text}").unwrap();
    }

    /// Waits for the result of the request that was sent.
    fn wait(&mut self, request: Request) -> Result<()> {
        let (_, answer) = (self.command)(request);
        self.wait_for(&answer).with_context(|| format!("{request:?}"))
    }

    fn wait_for(&mut self, answer: &str) -> Result<()> {
        let answered = wait_for_value("a result", PATIENCE, || {
            self.process.check_running()?;
            let log = self.process.log();
            let new = log.get(self.seen..).unwrap_or_default();
            for error_word in ["failed", "differs", "error", "No such", "invalid"] {
                if new.contains(error_word) {
                    bail!("{new}");
                }
            }
            let Some(answer_start) = new.find(answer) else { return Ok(None) };
            let answer_end = answer_start + answer.len();
            let ready = new[answer_end..].find(self.prompt);
            Ok(ready.map(|prompt_start| self.seen + answer_end + prompt_start + self.prompt.len()))
        });
        self.seen = answered?;
        Ok(())
    }

    fn carry_out(&mut self, request: Request) {
        self.send(request);
        self.wait(request).unwrap();
    }
}

fn host(rig: &Rig) -> String {
    let store = rig.path("store");
    std::fs::create_dir_all(&store).unwrap();
    let disks = FORMATS.map(|format| {
        format!(
            "[[disk]]\nname = \"{format}\"\nstore = \"s\"\nformat = \"{format}\"\n\
             kind = \"dynamic\"\nsize_bytes = {DISK_BYTES}\nnbd = {{ socket = \"{}\" }}\n",
            rig.path("nbd.sock")
        )
    });
    format!("[[store]]\nname = \"s\"\npath = \"{store}\"\n{}", disks.concat())
}

/// Disk with its client, and the acknowledged content: the byte at each written offset.
struct Disk {
    client: Client,
    content: BTreeMap<u64, u8>,
    /// Offsets written since they were last read.
    unread: BTreeSet<u64>,
    random: Random,
}

impl Disk {
    fn new(client: Client, seed: u64) -> Self {
        Self {
            client,
            content: BTreeMap::new(),
            unread: BTreeSet::new(),
            random: Random::new(seed),
        }
    }

    /// Returns the next random request that changes the disk, and records its effect.
    fn next(&mut self) -> Request {
        let offset = self.random.below(DISK_BYTES / STRIDE) * STRIDE;
        let byte = 1 + self.random.below(255) as u8;
        let (request, becomes) = match self.random.below(16) {
            0 => (Request::Zero { offset }, 0),
            1 => {
                // The content after a trim is undefined (`NBD_CMD_TRIM`).
                self.content.remove(&offset);
                self.unread.remove(&offset);
                return Request::Trim { offset };
            }
            2 => return Request::Flush,
            _ => (Request::Write { offset, byte }, byte),
        };
        self.content.insert(offset, becomes);
        self.unread.insert(offset);
        request
    }

    /// Reads all blocks that were written since the last call.
    fn verify_new(&mut self) {
        for offset in std::mem::take(&mut self.unread) {
            self.client.carry_out(Request::Read { offset, byte: self.content[&offset] });
        }
    }
}

/// Kills the daemon directly after replies, or with a request in flight, which the client repeats.
fn kill_repeatedly(deaths: u64, start: fn(&Rig, &str) -> Client) {
    let rig = Rig::new().unwrap();
    let mut daemon = Daemon::start(&rig, &host(&rig)).unwrap();
    let mut disks: Vec<Disk> =
        (1..).zip(FORMATS).map(|(seed, format)| Disk::new(start(&rig, format), seed)).collect();
    for death in 0..deaths {
        let under_way = |nth| death % 2 == 1 && nth + 1 == REQUESTS;
        let mut open = Vec::new();
        for nth in 0..REQUESTS {
            for (number, disk) in disks.iter_mut().enumerate() {
                let request = disk.next();
                disk.client.send(request);
                if under_way(nth) {
                    open.push((number, request));
                } else {
                    disk.client.wait(request).unwrap();
                }
            }
        }
        daemon.kill();
        daemon.restart(&rig).unwrap();
        for (number, request) in open {
            disks[number].client.wait(request).unwrap();
        }
        for disk in &mut disks {
            disk.client.carry_out(Request::Flush);
            disk.verify_new();
        }
    }
    for mut disk in disks {
        disk.unread = disk.content.keys().copied().collect();
        disk.verify_new();
    }
    for format in FORMATS {
        let result = suimon_rig::wait_until("no clients", PATIENCE, || {
            Ok(daemon.json(&["disk", "show", format])?["nbd"]["clients"] == 0)
        });
        result.unwrap();
        let output = daemon.ok(&["disk", "check", format]).unwrap();
        assert!(output.contains("no damage was found"), "{format}: {output}");
    }
    assert!(daemon.stop().unwrap().success());
    run(&["qemu-img", "check", "-f", "vhdx", &rig.path("store/vhdx.vhdx")]).unwrap();
}

#[test]
fn qemu_finds_all_writes_completed_before_a_kill() {
    kill_repeatedly(DEATHS, Client::qemu);
}

#[test]
fn libnbd_finds_all_writes_completed_before_a_kill() {
    kill_repeatedly(DEATHS, Client::libnbd);
}

mod full {
    use super::{Client, FULL_DEATHS, kill_repeatedly};

    fn deaths() -> u64 {
        std::env::var("SUIMON_DISK_DEATHS").map_or(FULL_DEATHS, |text| text.parse().unwrap())
    }

    #[test]
    fn qemu_finds_all_writes_completed_before_a_kill() {
        kill_repeatedly(deaths(), Client::qemu);
    }

    #[test]
    fn libnbd_finds_all_writes_completed_before_a_kill() {
        kill_repeatedly(deaths(), Client::libnbd);
    }
}
