//! Disks on a store whose operations fail, are delayed or are truncated: requests of clients, jobs
//! and changes. No flushed write is lost, every failure is reported, and no temporary file remains.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, FaultyStore, NbdClient, NbdFailure, Rig, wait_for_value, wait_until};

mod jobs;
mod requests;
mod trial;

const PATIENCE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;
const DISK_BYTES: u64 = 32 * MIB;
/// Unit in which the contents of disks are compared. Writes are whole units.
const CHUNK: u64 = 64 << 10;
const EIO: u32 = 5;
const ENOSPC: u32 = 28;

/// Disk of one format and kind; its name is that of its image file without extension.
#[derive(Clone, Copy, Debug)]
struct Format {
    name: &'static str,
    format: &'static str,
    kind: &'static str,
    /// True if the image is a child of another one.
    has_parent: bool,
    /// Sector size in bytes. With 4096 the daemon could use direct I/O, which it must not do on
    /// FUSE.
    sector: u32,
}

const fn format(name: &'static str, format: &'static str, kind: &'static str) -> Format {
    Format { name, format, kind, has_parent: false, sector: 512 }
}

/// Every format and kind of image, with both sector sizes.
const FORMATS: [Format; 8] = [
    format("raw", "raw", "dynamic"),
    Format { sector: 4096, ..format("raw-4k", "raw", "dynamic") },
    format("vhd-fixed", "vhd", "fixed"),
    format("vhd", "vhd", "dynamic"),
    Format { has_parent: true, ..format("vhd-child", "vhd", "dynamic") },
    format("vhdx-fixed", "vhdx", "fixed"),
    format("vhdx", "vhdx", "dynamic"),
    Format { has_parent: true, sector: 4096, ..format("vhdx-child", "vhdx", "dynamic") },
];

impl Format {
    fn toml(&self, socket: &str) -> String {
        let Self { name, format, kind, sector, .. } = self;
        let block = if *format == "vhdx" { "block_bytes = \"1 MiB\"\n" } else { "" };
        format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"s\"\nformat = \"{format}\"\nkind = \"{kind}\"\n\
             {block}size_bytes = {DISK_BYTES}\nlogical_sector = {sector}\n\
             on_full = \"error\"\nnbd = {{ socket = \"{socket}\" }}\n"
        )
    }

    /// Returns the name of the file that the disk writes to.
    fn file(&self) -> String {
        let suffix = if self.has_parent { "-2" } else { "" };
        format!("{}{suffix}.{}", self.name, self.format)
    }
}

/// Possible contents of a disk according to the results that its clients received.
#[derive(Clone, Debug)]
struct Content {
    chunks: Vec<Chunk>,
    /// Byte value of the last write.
    last: u8,
}

/// Byte values that each sector of a chunk may have.
#[derive(Clone, Debug)]
struct Chunk {
    /// Possible values if the daemon is killed now.
    now: BTreeSet<u8>,
    /// Possible values at the last successful flush, and those written since.
    since_flush: BTreeSet<u8>,
}

impl Content {
    /// Returns the content of a new disk.
    fn zeros() -> Self {
        let zero = Chunk { now: [0].into(), since_flush: [0].into() };
        Self { chunks: vec![zero; (DISK_BYTES / CHUNK) as usize], last: 0 }
    }

    /// Returns a byte value that differs from those of the last 254 writes.
    fn next(&mut self) -> u8 {
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.last
    }

    /// Records the result of a request that sets a range to a value. `is_defined` is true for a
    /// completed request, after which the whole range has the value.
    fn handle(&mut self, offset: u64, len: u64, value: u8, is_defined: bool) {
        for chunk in &mut self.chunks[(offset / CHUNK) as usize..((offset + len) / CHUNK) as usize]
        {
            if is_defined {
                chunk.now.clear();
            }
            chunk.now.insert(value);
            chunk.since_flush.insert(value);
        }
    }

    fn handle_flush(&mut self) {
        for chunk in &mut self.chunks {
            chunk.since_flush.clone_from(&chunk.now);
        }
    }

    /// Records a failed flush: each unflushed write may be lost, or read as zeros.
    fn handle_failed_flush(&mut self) {
        for chunk in &mut self.chunks {
            if chunk.since_flush.len() > 1 {
                chunk.since_flush.insert(0);
            }
            chunk.now.clone_from(&chunk.since_flush);
        }
    }

    /// Returns the content of a disk in which each chunk has exactly one possible value.
    ///
    /// # Panics
    ///
    /// A chunk has several possible values.
    fn bytes(&self) -> Vec<u8> {
        let value = |chunk: &Chunk| match chunk.now.iter().collect::<Vec<_>>()[..] {
            [value] => *value,
            _ => panic!("unknown content: {chunk:?}"),
        };
        self.chunks.iter().flat_map(|chunk| vec![value(chunk); CHUNK as usize]).collect()
    }

    /// Asserts that the disk has a possible content, and records it as the only possible one.
    fn check(&mut self, client: &mut NbdClient, disk: &str) {
        let mut bytes = vec![0; MIB as usize];
        for offset in (0..DISK_BYTES).step_by(MIB as usize) {
            client.read(offset, &mut bytes).unwrap_or_else(|error| panic!("{disk}: {error}"));
            for (nth, found) in bytes.chunks(CHUNK as usize).enumerate() {
                let at = (offset / CHUNK) as usize + nth;
                let values = sector_values(found);
                let possible = &self.chunks[at].now;
                let is_possible = values.as_ref().is_some_and(|values| values.is_subset(possible));
                assert!(
                    is_possible,
                    "{disk}: 64 KiB at {offset} + {nth} read as {values:?} instead of {possible:?}"
                );
                self.chunks[at].now = values.unwrap_or_default();
            }
        }
    }
}

/// Returns the values of all sectors; `None` if a sector contains different bytes.
fn sector_values(bytes: &[u8]) -> Option<BTreeSet<u8>> {
    bytes.chunks(512).map(|sector| (*sector == [sector[0]; 512]).then_some(sector[0])).collect()
}

/// Daemon with disks on a store with injected faults.
struct Host {
    daemon: Daemon,
    store: FaultyStore,
    socket: String,
    rig: Rig,
}

impl Host {
    /// Starts a daemon with new disks. Disks with parents have a snapshot.
    fn start(formats: &[Format]) -> Self {
        let rig = Rig::new().unwrap();
        let store = FaultyStore::new(&rig).unwrap();
        let socket = rig.path("nbd.sock");
        let mut toml = format!("[[store]]\nname = \"s\"\npath = \"{}\"\n", store.path());
        for format in formats {
            toml += &format.toml(&socket);
        }
        let daemon = Daemon::start(&rig, &toml).unwrap();
        let host = Self { daemon, store, socket, rig };
        for format in formats {
            host.wait_ready(format.name);
        }
        host
    }

    fn connect(&self, disk: &str) -> NbdClient {
        wait_for_value("a connection to the disk", PATIENCE, || {
            NbdClient::connect(&self.socket, disk).map(Some)
        })
        .unwrap()
    }

    fn shown(&self, disk: &str) -> Value {
        self.daemon.json(&["disk", "show", disk]).unwrap()
    }

    fn wait_ready(&self, disk: &str) {
        let mut shown = Value::Null;
        let ready = wait_until("the disk ready", PATIENCE, || {
            shown = self.daemon.json(&["disk", "show", disk])?;
            Ok(shown["state"] == "ready")
        });
        ready.unwrap_or_else(|error| panic!("{error:#}: {shown}"));
    }

    /// Returns the events with this id about a disk, oldest first.
    fn events(&self, disk: &str, id: u32) -> Vec<Value> {
        let events = self.daemon.json(&["event", "list", "--id", &id.to_string()]).unwrap();
        let events = events.as_array().unwrap().iter();
        events.filter(|event| event["subject"] == format!("disk/{disk}")).cloned().collect()
    }

    /// Waits for the `nth` event with this id about a disk, counted from 1.
    fn wait_event(&self, disk: &str, id: u32, nth: usize) -> Value {
        wait_for_value("the event", PATIENCE, || Ok(self.events(disk, id).get(nth - 1).cloned()))
            .unwrap_or_else(|error| panic!("{disk}, event {id}: {error:#}"))
    }

    /// Takes a snapshot.
    fn snapshot(&self, disk: &str, file: &str) {
        self.daemon.ok(&["disk", "snapshot", disk, file]).unwrap();
        self.daemon.ok(&["export", "--output", self.daemon.file()]).unwrap();
    }

    /// Kills the daemon and starts it again.
    fn restart(&mut self) {
        self.daemon.kill();
        self.daemon.restart(&self.rig).unwrap();
    }

    /// Returns the names of all files in the store in ascending order.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store.files()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }
}

fn is_refused(result: &Result<(), NbdFailure>) -> Option<u32> {
    match result {
        Ok(()) => None,
        Err(NbdFailure::Refused(code)) => Some(*code),
        Err(NbdFailure::Gone(error)) => panic!("the connection ended: {error}"),
    }
}
