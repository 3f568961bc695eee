//! Tests of copies of disks that are in use, with real files, workers and NBD.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use suimon_disk_tests::{
    CopiedDisk, DiskExports, DiskWorker, OpenedDisk, ServedCopy, StoreFolder, new_disk, used,
};
use suimon_image::ByteRange;
use suimon_image::testing::first_difference;
use suimon_image_files::{DiskFormat, DiskKind, DiskPlan};
use suimon_nbd_client::NbdConnection;
use suimon_ports::{DiskClient, FileName};
use suimon_quantity::Iops;
use suimon_rig::wait_until;
use suimon_storage::mirror::MirrorError;
use suimon_storage_qos::Limits;

const SIZE: u64 = 48 << 20;
/// Deadline of every condition, generous because the machine may be loaded.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reproducible pseudorandom numbers (xorshift64, Marsaglia).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }
}

/// Storage workers with disks in a temporary directory.
struct Bench {
    folder: tempfile::TempDir,
    exports: Arc<DiskExports>,
}

impl Bench {
    fn new(workers: usize) -> Self {
        Self::new_in(&std::env::temp_dir(), workers)
    }

    fn new_in(folder: &Path, processors: usize) -> Self {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let exports = DiskExports::new(DiskWorker::start_several(processors).unwrap()).unwrap();
        Self { folder, exports }
    }

    /// Creates a disk in a format, as a child of `parent` if given.
    fn disk(&self, name: &str, format: DiskFormat, parent: Option<&DiskPlan>) -> OpenedDisk {
        let kind = match (format, parent) {
            (_, Some(_)) => DiskKind::Differencing,
            (DiskFormat::Raw, None) => DiskKind::Fixed,
            _ => DiskKind::Dynamic,
        };
        let mut plan = new_disk(format, kind, parent.is_none().then_some(SIZE));
        plan.file = FileName::new(&format!("{name}.{}", format.as_str())).ok();
        plan.parent = parent.and_then(|parent| parent.file.clone());
        let store = StoreFolder::open(self.folder.path()).unwrap();
        store.make(&plan).unwrap();
        self.exports.add(name, store.disk(&plan).unwrap().layers, false).unwrap()
    }

    fn client(&self, disk: OpenedDisk) -> NbdConnection {
        used(&self.exports, disk).unwrap()
    }

    /// Starts to copy one disk to the other. Returns also the connection between both, so that the
    /// test can break it.
    fn copy(&self, from: OpenedDisk, to: OpenedDisk) -> (CopiedDisk, ServedCopy, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let own_end = near.try_clone().unwrap();
        let served_copy = ServedCopy::start(&self.exports, to, far).unwrap();
        let copied = CopiedDisk::start(&self.exports, from, served_copy.name(), near).unwrap();
        (copied, served_copy, own_end)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange::new(offset, len).unwrap()
}

/// Generates a guest's load: writes, zeros and flushes at random offsets in the range `part` of the
/// disk, until `stop` is set. Adds the completed requests to `requests`.
fn guest(
    client: &NbdConnection,
    part: (u64, u64),
    seed: u64,
    (stop, requests): (&AtomicBool, &AtomicU64),
) {
    let mut random = Random(seed | 1);
    while !stop.load(Ordering::Relaxed) {
        let offset = part.0 + random.below((part.1 - part.0) / 512) * 512;
        let len = (512 * (1 + random.below(256))).min(part.1 - offset);
        match random.below(16) {
            0 => client.write_zeroes(range(offset, len * 8).split_at(part.1 - offset).0).unwrap(),
            1 => client.flush().unwrap(),
            _ => {
                let bytes: Vec<u8> =
                    (0..len).map(|byte_index| (byte_index / 512) as u8 ^ random.0 as u8).collect();
                client.write(offset, &bytes).unwrap();
            }
        }
        requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls `run` while guests use the disk, and returns its result after the guests have stopped.
fn while_used<T>(bench: &Bench, disk: OpenedDisk, seed: u64, run: impl FnOnce() -> T) -> T {
    let clients: Vec<NbdConnection> = (0..3).map(|_| bench.client(disk)).collect();
    let (stop, requests) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (stop, requests) = (&stop, &requests);
        let guests: Vec<_> = (0..3_u64)
            .zip(&clients)
            .map(|(number, client)| {
                let part = (SIZE / 3 / 512 * 512 * number, SIZE / 3 / 512 * 512 * (number + 1));
                scope.spawn(move || guest(client, part, seed ^ (number << 40), (stop, requests)))
            })
            .collect();
        let completed = run();
        // On a loaded machine the guests may have done less until now.
        let started = Instant::now();
        while requests.load(Ordering::Relaxed) <= 100 && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        guests.into_iter().for_each(|guest| guest.join().unwrap());
        let requests = requests.load(Ordering::Relaxed);
        assert!(requests > 100, "{requests} requests");
        completed
    })
}

fn wait_for_first_pass(copied: &CopiedDisk) {
    let deadline = Instant::now() + PATIENCE;
    while !copied.progress().has_copied_all {
        assert!(Instant::now() < deadline && copied.progress().failure.is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn assert_same(bench: &Bench, disks: [OpenedDisk; 2]) {
    let clients = disks.map(|disk| bench.client(disk));
    let (mut first, mut right) = (Vec::new(), Vec::new());
    for offset in (0..SIZE).step_by(1 << 20) {
        clients[0].read(range(offset, 1 << 20), &mut first).unwrap();
        clients[1].read(range(offset, 1 << 20), &mut right).unwrap();
        let differs = first_difference(&first, &right);
        assert_eq!(differs.map(|byte| offset + byte as u64), None);
    }
}

fn qemu_img_compares(first_image: (&Path, &str), right: (&Path, &str)) {
    let output = Command::new("timeout")
        .args(["60", "qemu-img", "compare", "-f", first_image.1, "-F", right.1])
        .args([first_image.0, right.0])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Copies between formats while three guests write, on two workers.
#[test]
fn a_disk_is_copied_to_one_of_another_format_while_it_is_written_to() {
    use DiskFormat::{Raw, Vhd, Vhdx};
    for (from, to) in [(Raw, Vhdx), (Vhdx, Vhd), (Vhd, Raw)] {
        let bench = Bench::new(2);
        let disks = [bench.disk("from", from, None), bench.disk("to", to, None)];
        // The disk has data before the copy starts.
        while_used(&bench, disks[0], 7, || std::thread::sleep(Duration::from_millis(200)));
        let (copied, served_copy, _line) = bench.copy(disks[0], disks[1]);
        while_used(&bench, disks[0], 8, || {
            wait_for_first_pass(&copied);
            std::thread::sleep(Duration::from_millis(500));
        });
        let started = Instant::now();
        copied.finish(Instant::now() + PATIENCE).unwrap();
        println!(
            "{from:?} to {to:?}: {:?}, the rest in {:?}",
            copied.progress(),
            started.elapsed()
        );
        assert_same(&bench, disks);
        drop((copied, served_copy));
        for name in ["from", "to"] {
            bench.exports.remove(name).unwrap();
        }
        let peer = |name: &str, format: DiskFormat| {
            let format_name = if format == Vhd { "vpc" } else { format.as_str() };
            (bench.path(&format!("{name}.{}", format.as_str())), format_name)
        };
        let (from, to) = (peer("from", from), peer("to", to));
        qemu_img_compares((&from.0, from.1), (&to.0, to.1));
    }
}

/// The data of the parent is copied too, to a disk without a parent; ranges without data are not
/// copied.
#[test]
fn a_differencing_disk_is_copied_with_the_data_of_its_parent() {
    let bench = Bench::new(1);
    let parent = new_disk(DiskFormat::Vhdx, DiskKind::Dynamic, Some(SIZE));
    let parent = DiskPlan { file: FileName::new("parent.vhdx").ok(), ..parent };
    let old = bench.disk("parent", DiskFormat::Vhdx, None);
    bench.client(old).write(3 << 20, &[5; 1 << 20]).unwrap();
    bench.exports.remove("parent").unwrap();
    let disks = [
        bench.disk("child", DiskFormat::Vhdx, Some(&parent)),
        bench.disk("to", DiskFormat::Vhdx, None),
    ];
    bench.client(disks[0]).write(20 << 20, &[6; 512]).unwrap();
    let (copied, _served, _line) = bench.copy(disks[0], disks[1]);
    copied.finish(Instant::now() + PATIENCE).unwrap();
    assert_same(&bench, disks);
    // Blocks of 32 MiB may be data as a whole.
    let copied_bytes = copied.progress().copied_bytes;
    assert!(copied_bytes >= (1 << 20) + 512, "{copied_bytes}");
    let file = std::fs::metadata(bench.path("to.vhdx")).unwrap();
    println!("{copied_bytes} bytes copied, the file has {}", file.len());
}

/// The connection breaks before, during and after the copy. Guests are not affected, and the disk
/// can be copied again.
#[test]
fn a_connection_that_breaks_ends_the_copy_and_nothing_else() {
    let bench = Bench::new(1);
    let disks =
        [bench.disk("from", DiskFormat::Vhdx, None), bench.disk("to", DiskFormat::Vhdx, None)];
    while_used(&bench, disks[0], 9, || {
        std::thread::sleep(Duration::from_millis(100));
        // The other end is closed, so there is no reply.
        let (near, far) = UnixStream::pair().unwrap();
        drop(far);
        assert!(CopiedDisk::start(&bench.exports, disks[0], "to", near).is_err());
        for has_copied_all in [false, true] {
            let (copied, served_copy, line) = bench.copy(disks[0], disks[1]);
            if has_copied_all {
                wait_for_first_pass(&copied);
            }
            line.shutdown(std::net::Shutdown::Both).unwrap();
            let deadline = Instant::now() + PATIENCE;
            while copied.progress().failure.is_none() {
                assert!(Instant::now() < deadline, "it is noticed");
                std::thread::sleep(Duration::from_millis(5));
            }
            let failure = copied.progress().failure.unwrap();
            assert!(matches!(failure, MirrorError::Write(_)), "{failure}");
            let second_copy = CopiedDisk::start(&bench.exports, disks[0], "to", line);
            assert!(second_copy.is_err(), "two at a time");
            drop((copied, served_copy));
        }
    });
    // The other end closes first, while the remaining data is copied.
    let (copied, served_copy, _line) = bench.copy(disks[0], disks[1]);
    std::thread::sleep(Duration::from_millis(5));
    drop(served_copy);
    // Ensures that data remains to be copied, if the copy has finished already.
    bench.client(disks[0]).write(0, &[3; 512]).unwrap();
    let error = copied.finish(Instant::now() + PATIENCE).unwrap_err();
    assert!(matches!(error, MirrorError::Write(_)), "{error}");
    drop(copied);
    let (copied, _served, _line) = bench.copy(disks[0], disks[1]);
    copied.finish(Instant::now() + PATIENCE).unwrap();
    assert_same(&bench, disks);
}

/// A copy can end in any state without an effect on guests.
#[test]
fn a_copy_is_cancelled_at_any_time() {
    let bench = Bench::new(2);
    let disks =
        [bench.disk("from", DiskFormat::Raw, None), bench.disk("to", DiskFormat::Vhdx, None)];
    while_used(&bench, disks[0], 10, || {
        for wait_ms in [0, 1, 5, 20, 80] {
            let (copied, served_copy, _line) = bench.copy(disks[0], disks[1]);
            std::thread::sleep(Duration::from_millis(wait_ms));
            if wait_ms % 2 == 0 {
                drop((copied, served_copy));
            } else {
                drop((served_copy, copied));
            }
            // Disks move to other workers meanwhile.
            bench.exports.worker().set_workers(1 + usize::from(wait_ms % 2 == 0)).unwrap();
        }
        let (copied, _served, _line) = bench.copy(disks[0], disks[1]);
        wait_for_first_pass(&copied);
        bench.exports.worker().set_workers(1).unwrap();
        bench.exports.worker().set_workers(2).unwrap();
        let finish_result = copied.finish(Instant::now() + Duration::from_millis(30));
        // The disk is in use all the time.
        assert!(matches!(
            finish_result,
            Err(MirrorError::RequestsInFlight(_) | MirrorError::BytesRemaining(_)) | Ok(())
        ));
        assert_eq!(copied.progress().failure, None);
    });
    assert_eq!(bench.exports.worker().counters(disks[0]).unwrap().failed(), 0);
}

/// A guest with a maximum gets its full rate while its disk is copied, and the copy uses the
/// remaining capacity.
#[test]
fn a_maximum_is_the_guests_alone() {
    const MAX: u64 = 500;
    // In memory, so that other use of the machine's disk has no effect.
    let bench = Bench::new_in(Path::new("/dev/shm"), 1);
    let limits = Limits { max_iops: Iops::new(MAX), ..Limits::default() };
    let disks = ["from", "to"].map(|name| {
        let path = bench.path(name);
        std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
        bench.exports.add_limited(name, &path, limits).unwrap()
    });
    let client = bench.client(disks[0]);
    // Each write of 384 KiB counts as 48 operations, so writing the whole disk takes seconds.
    for offset in (0..SIZE).step_by(8 << 20) {
        client.write(offset, &[1; 384 << 10]).unwrap();
    }
    let (stop, completed) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (stop, completed, client) = (&stop, &completed, &client);
            scope.spawn(move || {
                let mut random = Random(number + 77);
                while !stop.load(Ordering::Relaxed) {
                    client.write(random.below(SIZE / 4096) * 4096, &[2; 4096]).unwrap();
                    completed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        wait_until("requests of the guest", PATIENCE, || {
            Ok(completed.load(Ordering::Relaxed) > 100)
        })
        .unwrap();
        let (started, before) = (Instant::now(), completed.load(Ordering::Relaxed));
        // Under the guest's maximum the copy would run at 4 MiB/s. On a loaded machine one copy may
        // be that slow, but not all.
        let mut rates = Vec::new();
        let faster = wait_until("a copy faster than the maximum", PATIENCE, || {
            let (copied, served_copy, _line) = bench.copy(disks[0], disks[1]);
            let started = Instant::now();
            wait_for_first_pass(&copied);
            rates.push(copied.progress().copied_bytes as f64 / started.elapsed().as_secs_f64());
            drop((copied, served_copy));
            Ok(rates.last() > Some(&(8.0 * 1048576.0)))
        });
        std::thread::sleep(Duration::from_secs(2));
        let (count, elapsed) =
            (completed.load(Ordering::Relaxed) - before, started.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
        faster.unwrap_or_else(|error| panic!("{error:#}: {rates:?} bytes a second"));
        println!("{:.1} of {MAX}, copies at {rates:.0?} B/s", count as f64 / elapsed);
        // Load on the machine cannot make the guest exceed its maximum: allowed are the catch-up of
        // 20 ms and one request per thread dispatched before. That a guest reaches its maximum
        // beside a copy is tested in virtual time
        // (`plane/storage_engine/src/scheduling/mirror_tests.rs`).
        let allowed = MAX as f64 * (elapsed * 1.02 + 0.02) + 9.0;
        assert!(count as f64 <= allowed, "{count} requests in {elapsed} s, {allowed} are allowed");
    });
    assert_eq!(bench.exports.worker().counters(disks[1]).unwrap().failed(), 0);
}
