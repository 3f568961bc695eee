//! Disks behind a Unix socket, and helpers that run client programs.
#![allow(dead_code, reason = "no test uses all of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use suimon_disk_tests::{DiskExports, DiskWorker};
use suimon_nbd_server::{NbdServer, UnixAccess};
use suimon_ports::CpuAffinity;

pub(crate) const SIZE: u64 = 64 << 20;

/// A raw disk and a read-only disk, served on a Unix socket.
pub(crate) struct Bench {
    _server: NbdServer,
    pub(crate) exports: Arc<DiskExports>,
    pub(crate) disk: suimon_disk_tests::OpenedDisk,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let exports = DiskExports::new(DiskWorker::start(CpuAffinity::Floating).unwrap()).unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
            path
        };
        let disk = exports.add_raw("disk", &make("disk.raw"), false).unwrap();
        exports.add_raw("fixed", &make("fixed.raw"), true).unwrap();
        let socket = folder.path().join("nbd");
        let server = NbdServer::listen(&socket, UnixAccess::default(), exports.nbd()).unwrap();
        Self { _server: server, exports, disk, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.path("nbd").display())
    }
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new("timeout").arg("300").arg(program).args(arguments).output().unwrap();
    println!("{program} {arguments:?}: {}", output.status);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output
}

pub(crate) fn run_ok(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a file whose bytes do not repeat within its size.
pub(crate) fn sample(path: &Path) {
    let values = (0..SIZE / 8).map(|index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index >> 3);
    let bytes: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
    std::fs::write(path, bytes).unwrap();
}
