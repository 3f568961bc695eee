//! Third-party clients against disks in memory: libnbd's `nbdinfo` and `nbdcopy`, QEMU's `qemu-img`
//! and `qemu-io`. `make setup` installs them.
#![allow(clippy::disallowed_methods, reason = "a server for real clients has threads")]

mod server;

use std::fs;
use std::process::{Command as Program, Stdio};

use serde_json::{Value, json};
use server::{Disk, Server, UNIT_BYTES};
use suimon_nbd::{BlockSizes, Export, ExportSpec, Features, Framing, NbdCommand};

const MIB: u64 = 1 << 20;
const DISK_BYTES: u64 = 8 * MIB;
/// Message formats to which the servers are limited; most clients negotiate the maximum.
const FRAMINGS: [Framing; 3] = [Framing::Simple, Framing::Structured, Framing::Extended];
/// Maximum run time of a client in seconds.
const LIMIT: &str = "60";

/// Every feature except read-only and rotational.
const FEATURES: Features = Features {
    read_only: false,
    flush: true,
    fua: true,
    rotational: false,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    multi_conn: true,
    cache: true,
    allocation_status: true,
};

fn export(name: &str, size: u64, min: u32, features: Features) -> (Export, Disk) {
    let spec = ExportSpec {
        name: name.to_owned(),
        description: format!("{name} of the tests"),
        size,
        block_sizes: BlockSizes { min, ..BlockSizes::default() },
        features,
    };
    (Export::new(spec).unwrap(), Disk::new(size))
}

/// Returns pseudo-random bytes, so that misplaced data is detected.
fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Fills parts of the disk: both ends, unaligned ranges, and a range larger than one request reads.
fn fill(disk: &mut Disk) {
    disk.write(0, &noise(1, 4096));
    disk.write(MIB + 700, &noise(2, 3000));
    disk.write(2 * MIB, &noise(3, 3 * MIB as usize));
    disk.write(DISK_BYTES - 512, &noise(4, 512));
}

fn filled() -> (Export, Disk) {
    let (export, mut disk) = export("disk", DISK_BYTES, 1, FEATURES);
    fill(&mut disk);
    (export, disk)
}

/// Runs a program. Returns whether it succeeded, and its output.
fn run_any(arguments: &[&str]) -> (bool, String) {
    let output = Program::new("timeout")
        .args(["--kill-after=1", LIMIT])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(127), "{} is missing: run `make setup`", arguments[0]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Runs a program that must succeed, and returns its output.
fn run(arguments: &[&str]) -> String {
    let (is_ok, output) = run_any(arguments);
    assert!(is_ok, "{arguments:?}: {output}");
    output
}

fn run_json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output}"))
}

/// Asserts that no option or request was rejected, no connection failed, and each client negotiated
/// the best message format that both support.
fn assert_clean(server: &Server) {
    let observed = server.seen();
    assert_eq!(observed.cut, Vec::<String>::new());
    assert_eq!(observed.refused_requests, Vec::<String>::new());
    assert!(server.framings_are_the_most(), "{:?}", observed.framings);
}

/// Returns the allocation map of the disk: (offset, length, true for a hole).
fn expected_map(disk: &Disk) -> Vec<(u64, u64, bool)> {
    let mut map: Vec<(u64, u64, bool)> = Vec::new();
    let mut offset = 0;
    for extent in disk.extents(0) {
        let is_hole = extent.state.bits() != 0;
        match map.last_mut() {
            Some(last) if last.2 == is_hole => last.1 += extent.length,
            _ => map.push((offset, extent.length, is_hole)),
        }
        offset += extent.length;
    }
    map
}

#[test]
fn nbdinfo_reads_export_properties() {
    let server = Server::start(Framing::Extended, vec![filled()]);
    let info = run_json(&["nbdinfo", "--json", &server.uri("disk")]);
    assert_eq!(info["protocol"], "newstyle-fixed");
    assert_eq!(info["TLS"], false);
    assert_eq!(info["structured"], true);
    // libnbd 1.18 and later negotiates extended headers and reports the result.
    let extended = info.get("extended").is_some();
    if extended {
        assert_eq!(info["extended"], true);
    }
    let framing = if extended { Framing::Extended } else { Framing::Structured };
    assert!(server.seen().framings.iter().all(|actual| *actual == framing));
    let disk = &info["exports"][0];
    for (field, expected) in [
        ("export-name", json!("disk")),
        ("description", json!("disk of the tests")),
        ("export-size", json!(DISK_BYTES)),
        ("contexts", json!(["base:allocation"])),
        ("is_rotational", json!(false)),
        ("is_read_only", json!(false)),
        ("can_cache", json!(true)),
        ("can_df", json!(true)),
        ("can_fast_zero", json!(true)),
        ("can_flush", json!(true)),
        ("can_fua", json!(true)),
        ("can_multi_conn", json!(true)),
        ("can_trim", json!(true)),
        ("can_zero", json!(true)),
        ("block_size_minimum", json!(1)),
        ("block_size_preferred", json!(4096)),
        ("block_size_maximum", json!(32 * MIB)),
    ] {
        assert_eq!(disk[field], expected, "{field} of {disk}");
    }
    assert_clean(&server);
}

#[test]
fn nbdinfo_lists_exports_and_missing_features() {
    let read_only = Features { read_only: true, rotational: true, ..Features::default() };
    let server =
        Server::start(Framing::Extended, vec![filled(), export("old", 4 * MIB, 4096, read_only)]);
    let list = run_json(&["nbdinfo", "--list", "--json", &server.uri("")]);
    let exports = list["exports"].as_array().unwrap();
    assert_eq!(exports.len(), 2, "{list}");
    let old = &exports[1];
    assert_eq!(old["export-name"], "old");
    assert_eq!(old["description"], "old of the tests");
    assert_eq!(old["block_size_minimum"], 4096);
    assert_eq!(old["contexts"], json!([]));
    assert_eq!((&old["is_read_only"], &old["is_rotational"]), (&json!(true), &json!(true)));
    for field in ["can_cache", "can_fast_zero", "can_flush", "can_fua", "can_trim", "can_zero"] {
        assert_eq!(old[field], false, "{field}");
    }
    // With two exports there is no default.
    for unknown in ["nowhere", ""] {
        let (is_ok, output) = run_any(&["nbdinfo", &server.uri(unknown)]);
        assert!(!is_ok, "{output}");
        let refused = server.seen().refused_options;
        let expected = format!("there is no export {unknown:?}");
        assert!(refused.iter().any(|message| message.contains(&expected)), "{refused:?}");
    }
}

#[test]
fn nbdinfo_and_qemu_map_the_holes() {
    let server = Server::start(Framing::Extended, vec![filled()]);
    let expected = expected_map(&server.disk(0));
    assert_eq!(expected.len(), 7);
    let map = run_json(&["nbdinfo", "--map", "--json", &server.uri("disk")]);
    let number = |value: &Value| value.as_u64().unwrap();
    let extents = map.as_array().unwrap().iter();
    let extents =
        extents.map(|e| (number(&e["offset"]), number(&e["length"]), number(&e["type"]) == 3));
    assert_eq!(extents.collect::<Vec<_>>(), expected);
    let map = run_json(&["qemu-img", "map", "--output=json", "-f", "raw", &server.uri("disk")]);
    let extents = map.as_array().unwrap().iter();
    let extents = extents.map(|e| (number(&e["start"]), number(&e["length"]), e["zero"] == true));
    assert_eq!(extents.collect::<Vec<_>>(), expected);
    assert_eq!(server.seen().with_allocation, 2);
    assert_clean(&server);
}

#[test]
fn nbdcopy_copies_out_and_in_over_several_connections() {
    for framing in FRAMINGS {
        let empty = |name| export(name, DISK_BYTES, 1, FEATURES);
        let server = Server::start(framing, vec![filled(), empty("copy"), empty("fresh")]);
        let file = server.folder().join("file");
        let file = file.to_str().unwrap();
        run(&["nbdcopy", "--connections=4", &server.uri("disk"), file]);
        let disk = server.disk(0);
        assert!(fs::read(file).unwrap() == disk.bytes, "the copy differs");
        run(&["nbdcopy", "--connections=4", "--flush", file, &server.uri("copy")]);
        assert!(server.disk(1).bytes == disk.bytes, "the copy back differs");
        run(&["nbdcopy", "--destination-is-zero", &server.uri("disk"), &server.uri("fresh")]);
        assert!(server.disk(2).bytes == disk.bytes, "the copy across differs");
        let observed = server.seen();
        assert!(observed.framings.len() >= 6, "{:?}", observed.framings);
        let contains = |predicate: fn(&NbdCommand) -> bool| observed.commands.iter().any(predicate);
        assert!(contains(|command| matches!(command, NbdCommand::Flush)));
        assert!(contains(|c| matches!(
            c,
            NbdCommand::WriteZeroes { .. } | NbdCommand::Trim { .. }
        )));
        let asks = contains(|command| matches!(command, NbdCommand::BlockStatus { .. }));
        assert_eq!(asks, framing.has_chunks());
        assert_clean(&server);
    }
}

#[test]
fn qemu_img_converts_and_compares() {
    let server =
        Server::start(Framing::Extended, vec![filled(), export("copy", DISK_BYTES, 512, FEATURES)]);
    let (disk, copy) = (server.uri("disk"), server.uri("copy"));
    let info = run_json(&["qemu-img", "info", "--output=json", "-f", "raw", &disk]);
    assert_eq!(info["virtual-size"], DISK_BYTES);
    let file = server.folder().join("file.qcow2");
    let file = file.to_str().unwrap();
    run(&["qemu-img", "convert", "-f", "raw", "-O", "qcow2", &disk, file]);
    assert!(fs::metadata(file).unwrap().len() < 5 * MIB, "holes were copied");
    run(&["qemu-img", "compare", "-f", "raw", "-F", "qcow2", &disk, file]);
    run(&["qemu-img", "convert", "-n", "-f", "qcow2", "-O", "raw", file, &copy]);
    run(&["qemu-img", "compare", "-f", "raw", "-F", "raw", &disk, &copy]);
    assert!(server.disk(1).bytes == server.disk(0).bytes, "the copy differs");
    let (is_ok, output) = run_any(&["qemu-img", "compare", "-f", "raw", &disk, &server.uri("no")]);
    assert!(!is_ok && output.contains("no export"), "{output}");
    assert_clean(&server);
}

/// Writes, zeroing and discards of every kind, and reads that verify them.
const SCRIPT: [&str; 19] = [
    "write -P 0x5a 0 1M",
    "write -f -P 0xa5 1000k 96k",
    "read -P 0x5a 0 1000k",
    "read -P 0xa5 1000k 96k",
    "write -z 64k 64k",
    "write -z -u 256k 64k",
    "read -P 0 64k 64k",
    "read -P 0 256k 64k",
    "write -P 0x11 4099 513",
    "read -P 0x11 4099 513",
    "read -P 0x5a 4612 100",
    "discard 512k 128k",
    "read 512k 128k",
    "flush",
    "aio_read -P 0x5a 0 1024",
    "aio_write -P 0x77 3M 2M",
    "aio_flush",
    "read -P 0x77 3M 2M",
    "read -P 0 5M 3M",
];

#[test]
fn qemu_io_reads_writes_and_discards() {
    for framing in FRAMINGS {
        let disk = export("disk", DISK_BYTES, 1, FEATURES);
        let server =
            Server::start(framing, vec![disk, export("blocks", DISK_BYTES, 4096, FEATURES)]);
        for uri in [server.uri("disk"), server.uri("blocks")] {
            let mut arguments = vec!["qemu-io", "-f", "raw"];
            arguments.extend(SCRIPT.iter().flat_map(|command| ["-c", command]));
            arguments.push(&uri);
            let output = run(&arguments);
            let lower = output.to_lowercase();
            assert!(
                !["fail", "error", "wrong"].iter().any(|word| lower.contains(word)),
                "{output}"
            );
        }
        assert!(server.disk(0).bytes == server.disk(1).bytes, "blocks make a difference");
        let disk = server.disk(0);
        assert_eq!(disk.bytes[4099..4612], [0x11; 513]);
        assert_eq!(disk.bytes[MIB as usize..][..72 * 1024], [0xa5; 72 * 1024]);
        // One of the two zeroed ranges had to stay allocated.
        let is_allocated = |kib: u64| disk.allocated[(kib * 1024 / UNIT_BYTES) as usize];
        assert_eq!((is_allocated(64), is_allocated(256), is_allocated(512)), (true, false, false));
        let observed = server.seen();
        assert_eq!(observed.holes_sent > 0, framing.has_chunks(), "holes left out of reads");
        assert!(observed.commands.iter().any(|c| matches!(c, NbdCommand::Write { fua: true, .. })));
        assert!(observed.commands.iter().any(|c| matches!(c, NbdCommand::Trim { .. })));
        assert_clean(&server);
    }
}

#[test]
fn clients_do_not_change_a_read_only_export() {
    let features = Features { read_only: true, ..FEATURES };
    let (export, mut disk) = export("old", DISK_BYTES, 1, features);
    fill(&mut disk);
    let server = Server::start(Framing::Extended, vec![(export, disk.clone())]);
    let uri = server.uri("old");
    let (is_ok, output) = run_any(&["qemu-io", "-f", "raw", "-c", "write 0 4k", &uri]);
    assert!(!is_ok, "{output}");
    run(&["qemu-io", "-r", "-f", "raw", "-c", "read 0 4k", &uri]);
    assert!(server.disk(0).bytes == disk.bytes);
    assert_clean(&server);
}
