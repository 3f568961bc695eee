//! Disks of every format on a store that becomes full, over NBD.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use suimon_rig::{Daemon, Mounted, NbdClient, NbdFailure, Rig, run, until};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
const ENOSPC: u32 = 28;
/// One disk and one store of each.
const FORMATS: [&str; 3] = ["raw", "vhd", "vhdx"];
/// Bytes that a write of 64 KiB may take of a store: metadata of an empty image included.
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
        let mut found = vec![0; 64 << 10];
        self.client.read(offset, &mut found).unwrap();
        assert!(found.iter().all(|found| *found == byte), "{} at {offset}", self.file);
    }

    fn allocated(&self) -> u64 {
        fs::metadata(&self.file).unwrap().blocks() * 512
    }
}

fn start(rig: &Rig) -> (Daemon, Vec<Mounted>) {
    let mut host = String::new();
    let mut mounted = Vec::new();
    for format in FORMATS {
        let (store, socket) = (rig.path(&format!("{format}.store")), rig.path("nbd.sock"));
        mounted.push(Mounted::tmpfs("24m", &store).unwrap());
        host += &format!(
            "[[store]]\nname = \"{format}\"\npath = \"{store}\"\n\
             [[disk]]\nname = \"{format}\"\nstore = \"{format}\"\nformat = \"{format}\"\n\
             kind = \"dynamic\"\nsize_bytes = \"128 MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
        );
    }
    (Daemon::start(rig, &host).unwrap(), mounted)
}

#[test]
fn a_full_store_fails_what_needs_space_and_nothing_else() {
    let rig = Rig::new().unwrap();
    let (mut daemon, mounted) = start(&rig);
    for format in FORMATS {
        let file = rig.path(&format!("{format}.store/{format}.{format}"));
        let before = fs::metadata(&file).unwrap().blocks() * 512;
        let client = NbdClient::connect(&rig.path("nbd.sock"), format).unwrap();
        let mut disk = Disk { client, file };
        // The store has 24 MiB, and blocks of VHDX have 32.
        disk.write(0, 1, 64 << 10).unwrap();
        disk.client.flush().unwrap();
        let taken = disk.allocated() - before;
        assert!(taken <= ONE_WRITE_MAX, "{format}: a write of 64 KiB takes {taken} bytes");
        let mut written = 0;
        let refused = loop {
            match disk.write((64 + written) * MIB, 2, MIB) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
            assert!(written < 30, "{format}: the store is not full");
        };
        assert!(matches!(refused, NbdFailure::Refused(ENOSPC)), "{format}: {refused}");
        assert!(written >= 20, "{format}: full after {written} MiB");
        // What needs no space goes on.
        disk.write(0, 3, 64 << 10).unwrap();
        disk.client.flush().unwrap();
        disk.check(0, 3);
        disk.check(64 * MIB, 2);
        // Freed space is released after the metadata that refers to it, and then used again.
        disk.client.write_zeroes(64 * MIB, 64 * MIB).unwrap();
        disk.client.flush().unwrap();
        until("space is released", PATIENCE, || {
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

/// Writes of all sizes to new places until many of them have failed.
fn fill(disk: &mut Disk, seed: u64) {
    let mut chance = seed;
    let mut next = |below: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (chance >> 33) % below
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
        let shown = |format: &str| daemon.json(&["disk", "show", format]);
        for format in ["raw", "vhdx"] {
            until(format, PATIENCE, || Ok(shown(format)?["state"] == "ready")).unwrap();
        }
        // To open a VHD the daemon may need a page for each bitmap, and one for the footer.
        let larger = format!("remount,size={}m", 24 + seed);
        run(&["mount", "-o", &larger, &rig.path("vhd.store")]).unwrap();
        until("the VHD is opened", PATIENCE, || Ok(shown("vhd")?["state"] == "ready")).unwrap();
        for format in FORMATS {
            // Whole blocks of every format: the client can free space.
            let mut client = NbdClient::connect(&rig.path("nbd.sock"), format).unwrap();
            let freed = client.write_zeroes(0, 32 * MIB);
            assert!(freed.is_ok(), "{format}: {freed:?}");
        }
    }
    drop(mounted);
}
