//! Disks of one store on several processors' threads, which come and go under load.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use suimon_disk_tests::{DiskExports, DiskProcessor, OpenedDisk};
use suimon_nbd_server::{NbdServer, UnixAccess};
use suimon_quantity::Iops;
use suimon_storage_qos::Limits;

const SIZE: u64 = 64 << 20;
/// What both disks together may do in a second.
const MAX: u64 = 1000;

fn limits(max: Option<u64>) -> Limits {
    Limits { max_iops: max.and_then(Iops::new), ..Limits::default() }
}

/// fio at work on a disk, which verifies what it wrote.
fn fio(folder: &Path, disk: &str, seconds: u64) -> Child {
    let words = format!(
        "60 fio --name={disk} --ioengine=nbd --uri=nbd+unix:///{disk}?socket={} --rw=randrw \
         --bs=4k --size=64m --iodepth=32 --verify=crc32c --time_based --runtime={seconds} \
         --output-format=json",
        folder.join("nbd").display()
    );
    Command::new("timeout")
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn well(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

struct Bench {
    folder: tempfile::TempDir,
    exports: Arc<DiskExports>,
    disks: [OpenedDisk; 2],
    _server: NbdServer,
}

impl Bench {
    fn start() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let exports = DiskExports::new(DiskProcessor::start_several(2).unwrap());
        let disks = ["a", "b"].map(|name| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
            exports.add_limited(name, &path, limits(None)).unwrap()
        });
        let socket = folder.path().join("nbd");
        let server = NbdServer::listen(&socket, UnixAccess::default(), exports.nbd());
        Self { folder, exports, disks, _server: server.unwrap() }
    }

    fn requests(&self) -> u64 {
        let tallies = self.disks.map(|disk| self.exports.processor().tally(disk).unwrap());
        assert!(tallies.iter().all(|tally| tally.failed() == 0), "{tallies:?}");
        tallies.iter().map(|tally| tally.reads.requests + tally.writes.requests).sum()
    }

    /// How many processors serve the two disks.
    fn spread(&self) -> usize {
        let at = self.disks.map(|disk| self.exports.processor().processor_of(disk).unwrap());
        if at[0] == at[1] { 1 } else { 2 }
    }
}

/// The limit is one, wherever the disks are: each processor dispatches what it was lent.
#[test]
fn disks_on_two_processors_share_one_limit_exactly() {
    const WINDOW: Duration = Duration::from_secs(5);
    let bench = Bench::start();
    assert_eq!(bench.spread(), 2);
    bench.exports.processor().share_limits(&bench.disks, limits(Some(MAX))).unwrap();
    let load = ["a", "b"].map(|disk| fio(bench.folder.path(), disk, 9));
    // Both are at work, and what they might have had when they came is used up.
    while bench.requests() < 2 * MAX {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (before, began) = (bench.requests(), std::time::Instant::now());
    std::thread::sleep(WINDOW);
    let rate = (bench.requests() - before) as f64 / began.elapsed().as_secs_f64();
    println!("{rate:.1} of {MAX}");
    assert!((rate - MAX as f64).abs() <= MAX as f64 * 0.02, "{rate} of {MAX}");
    load.into_iter().for_each(well);
}

/// A processor goes and another comes, again and again: clients find pauses, and nothing of
/// theirs is lost.
#[test]
fn disks_move_with_their_clients_when_processors_come_and_go() {
    let bench = Bench::start();
    bench.exports.processor().share_limits(&bench.disks, limits(Some(4 * MAX))).unwrap();
    let load = ["a", "b"].map(|disk| fio(bench.folder.path(), disk, 6));
    for round in 0..8_u64 {
        let before = bench.requests();
        while bench.requests() < before + 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let processors = 1 + (round % 2) as usize;
        bench.exports.processor().set_processors(processors).unwrap();
        if processors == 1 {
            assert_eq!(bench.spread(), 1);
        }
    }
    load.into_iter().for_each(well);
}
