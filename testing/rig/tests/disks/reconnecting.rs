//! Clients that nobody here wrote connect again when the daemon was killed, and find everything
//! that was answered: QEMU with `reconnect-delay`, as emulated IDE and SATA disks have it, and
//! libnbd.
//!
//! `SUIMON_DISK_DEATHS` is how often the daemon dies in the full tier.

use std::io::Write as _;
use std::process::ChildStdin;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use suimon_rig::{Chance, Daemon, Process, Rig, run, until_some};

const PATIENCE: Duration = Duration::from_secs(120);
const DISK_BYTES: u64 = 1 << 30;
/// Less than what any image allocates at a time, so that most writes are to new space.
const STRIDE: u64 = 1 << 20;
const LEN: u64 = 4096;
const FORMATS: [&str; 2] = ["vhd", "vhdx"];
const DEATHS: u64 = 2;
const FULL_DEATHS: u64 = 200;
/// Requests from one death to the next.
const REQUESTS: u64 = 6;

const LIBNBD_CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/disks/libnbd_client.py");

/// Something done to a disk, of [`LEN`] bytes.
#[derive(Clone, Copy, Debug)]
enum Request {
    Write { offset: u64, byte: u8 },
    Zero { offset: u64 },
    Trim { offset: u64 },
    Read { offset: u64, byte: u8 },
    Flush,
}

/// A client that runs for as long as the test.
struct Client {
    process: Process,
    stdin: ChildStdin,
    /// Bytes of its output that were looked at.
    seen: usize,
    words: fn(Request) -> (String, String),
}

impl Client {
    fn qemu(rig: &Rig, disk: &str) -> Self {
        let options = format!(
            "driver=nbd,server.type=unix,server.path={},export={disk},reconnect-delay=120,\
             discard=unmap",
            rig.path("nbd.sock")
        );
        // Its answers are wanted when they come, though nobody reads them on a terminal.
        let words = ["stdbuf", "-oL", "qemu-io", "-d", "unmap", "-t", "writeback"];
        let words = [&words[..], &["--image-opts", &options]].concat();
        Self::start(rig, "qemu-io", &words, |request| match request {
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
            // It says nothing of a flush; what comes after it is answered after it.
            Request::Flush => ("flush\nlength".to_owned(), "1 GiB\n".to_owned()),
        })
    }

    fn libnbd(rig: &Rig, disk: &str) -> Self {
        let uri = format!("nbd+unix:///{disk}?socket={}", rig.path("nbd.sock"));
        Self::start(rig, "libnbd", &["/usr/bin/python3", LIBNBD_CLIENT, &uri], |request| {
            let asked = match request {
                Request::Write { offset, byte } => format!("write {offset} {LEN} {byte}"),
                Request::Zero { offset } => format!("zero {offset} {LEN}"),
                Request::Trim { offset } => format!("trim {offset} {LEN}"),
                Request::Read { offset, byte } => format!("read {offset} {LEN} {byte}"),
                Request::Flush => "flush".to_owned(),
            };
            let answer = format!("{asked} done\n");
            (asked, answer)
        })
    }

    fn start(rig: &Rig, name: &str, words: &[&str], of: fn(Request) -> (String, String)) -> Self {
        let mut process = Process::start(rig, name, words).unwrap();
        let stdin = process.take_stdin().unwrap();
        Self { process, stdin, seen: 0, words: of }
    }

    fn ask(&mut self, request: Request) {
        let (asked, _) = (self.words)(request);
        writeln!(self.stdin, "{asked}").unwrap();
    }

    /// Waits for the answer to the request that was asked first of those that have none.
    fn wait(&mut self, request: Request) -> Result<()> {
        let (_, answer) = (self.words)(request);
        let answered = until_some("an answer", PATIENCE, || {
            self.process.check_running()?;
            let log = self.process.log();
            let new = log.get(self.seen..).unwrap_or_default();
            for wrong in ["failed", "differs", "error", "No such", "invalid"] {
                if new.contains(wrong) {
                    bail!("{request:?}: {new}");
                }
            }
            Ok(new.find(&answer).map(|at| self.seen + at + answer.len()))
        });
        self.seen = answered.with_context(|| format!("{request:?}"))?;
        Ok(())
    }

    fn carry_out(&mut self, request: Request) {
        self.ask(request);
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

/// A disk with its client, and what was answered of it: a byte for each place.
struct Disk {
    client: Client,
    content: Vec<u8>,
    chance: Chance,
}

impl Disk {
    fn new(client: Client, seed: u64) -> Self {
        let places = (DISK_BYTES / STRIDE) as usize;
        Self { client, content: vec![0; places], chance: Chance::new(seed) }
    }

    /// A request that changes something, and what is there afterwards.
    fn next(&mut self) -> Request {
        let at = self.chance.below(self.content.len() as u64);
        let (offset, byte) = (at * STRIDE, 1 + self.chance.below(255) as u8);
        let (request, becomes) = match self.chance.below(16) {
            0 => (Request::Zero { offset }, 0),
            // What is trimmed reads as zeros: the disk says so.
            1 => (Request::Trim { offset }, 0),
            2 => (Request::Flush, self.content[at as usize]),
            _ => (Request::Write { offset, byte }, byte),
        };
        self.content[at as usize] = becomes;
        request
    }

    fn verify(&mut self, at: usize) {
        let (offset, byte) = (at as u64 * STRIDE, self.content[at]);
        self.client.carry_out(Request::Read { offset, byte });
    }
}

/// The daemon dies right after answers, or while requests are under way that the client repeats.
fn die_often(deaths: u64, start: fn(&Rig, &str) -> Client) {
    let rig = Rig::new().unwrap();
    let mut daemon = Daemon::start(&rig, &host(&rig)).unwrap();
    let mut disks: Vec<Disk> =
        (1..).zip(FORMATS).map(|(seed, format)| Disk::new(start(&rig, format), seed)).collect();
    for death in 0..deaths {
        let under_way = |nth| death % 2 == 1 && nth + 2 >= REQUESTS;
        let mut open = Vec::new();
        for nth in 0..REQUESTS {
            for (number, disk) in disks.iter_mut().enumerate() {
                let request = disk.next();
                disk.client.ask(request);
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
            for at in 0..disk.content.len() {
                let is_last = death + 1 == deaths;
                if is_last || disk.chance.below(16) == 0 {
                    disk.verify(at);
                }
            }
        }
    }
    drop(disks);
    for format in FORMATS {
        let said = suimon_rig::until("no clients", PATIENCE, || {
            Ok(daemon.json(&["disk", "show", format])?["nbd"]["clients"] == 0)
        });
        said.unwrap();
        let said = daemon.ok(&["disk", "check", format]).unwrap();
        assert!(said.contains("no damage was found"), "{format}: {said}");
    }
    assert!(daemon.stop().unwrap().success());
    run(&["qemu-img", "check", "-f", "vhdx", &rig.path("store/vhdx.vhdx")]).unwrap();
    let left: Vec<_> = std::fs::read_dir(rig.path("daemon-1/redo")).unwrap().collect();
    assert!(left.is_empty(), "records of disks that were closed: {left:?}");
}

#[test]
fn qemu_finds_everything_that_was_answered_before_a_death() {
    die_often(DEATHS, Client::qemu);
}

#[test]
fn libnbd_finds_everything_that_was_answered_before_a_death() {
    die_often(DEATHS, Client::libnbd);
}

mod full {
    use super::{Client, FULL_DEATHS, die_often};

    fn deaths() -> u64 {
        std::env::var("SUIMON_DISK_DEATHS").map_or(FULL_DEATHS, |text| text.parse().unwrap())
    }

    #[test]
    fn qemu_finds_everything_that_was_answered_before_a_death() {
        die_often(deaths(), Client::qemu);
    }

    #[test]
    fn libnbd_finds_everything_that_was_answered_before_a_death() {
        die_often(deaths(), Client::libnbd);
    }
}
