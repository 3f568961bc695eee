//! Limiting factors of disks on one worker. Each test causes a factor deliberately, which must then
//! be reported first.

use std::time::Duration;

use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, Location,
    Translation, push_extent,
};
use suimon_ports::DiskOp;
use suimon_quantity::{ByteRate, DiskId};
use suimon_storage_qos::{
    LimitingFactor, Limits, LimitsSource, PolicyId, PolicyKind, PolicySpec, Proposal, StoreSpec,
    TimeShare, WHOLE_WINDOW_PPM,
};

use crate::tests::device_bench::{Bench, Load, MILLISECOND, SECOND, STORE, deep, limits, spec};

/// Metadata reads before each request of a [`ForgetfulImage`].
const METADATA_READS: u32 = 2;

/// Image that reads its metadata before each request.
struct ForgetfulImage {
    reads: u32,
}

impl Image for ForgetfulImage {
    fn disk_geometry(&self) -> DiskGeometry {
        DiskGeometry {
            size_bytes: 1 << 20,
            logical_sector_bytes: 512,
            physical_sector_bytes: 512,
            block_bytes: 4096,
        }
    }
    fn linear_offset(&self) -> Option<u64> {
        None
    }
    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        if self.reads < METADATA_READS {
            return Ok(Translation::NeedsMetadata(range));
        }
        self.reads = 0;
        push_extent(extents, Location::File(range.offset()), range.len());
        Ok(Translation::Ready)
    }
    fn translate_write(
        &mut self,
        _: ByteRange,
        _: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        unreachable!("no request writes")
    }
    fn handle_write_failed(&mut self, _: ByteRange) {}
    fn handle_written(&mut self, _: ByteRange) {}
    fn discard(&mut self, _: ByteRange, _: &mut Vec<ByteRange>) -> Result<Translation, ImageError> {
        unreachable!("no request discards")
    }
    fn handle_metadata(&mut self, _: ByteRange, _: &[u8]) -> Result<(), ImageError> {
        self.reads += 1;
        Ok(())
    }
    fn uncommitted_bytes(&self) -> u64 {
        0
    }
    fn begin_commit(&mut self) -> Option<Commit> {
        None
    }
    fn handle_commit(&mut self, _: CommitOutcome) {}
}

/// Disk under test.
const DISK: u32 = 0;
/// Time in nanoseconds that exceeds the window of 5 s.
const LONG: u64 = 7 * SECOND;
/// Service time of a request on the devices of these tests.
const SERVICE_NS: u64 = 1_000_000;
/// Minimum share of time of the factor that a test has caused, in parts per million.
const LEAST_PPM: u32 = 400_000;

/// Creates one worker on a device with `servers` servers.
fn bench(spec: &StoreSpec, servers: usize) -> Bench {
    Bench::new(1, spec, servers, SERVICE_NS)
}

/// Adds the disk and its client to [`bench`].
fn with_client(spec: &StoreSpec, servers: usize, limits: Limits, depth: u32) -> Bench {
    let mut bench = bench(spec, servers);
    bench.add_disk(0, DISK, limits);
    bench.add_client(DISK, Load::reads(4096, depth));
    bench
}

fn own_maximum() -> Bench {
    let mut bench = with_client(&deep(), 32, limits(0, 300), 16);
    bench.run(LONG);
    bench
}

fn own_bandwidth() -> Bench {
    let limits = Limits { max_bandwidth: ByteRate::new(4096 * 300), ..Limits::default() };
    let mut bench = with_client(&deep(), 32, limits, 16);
    bench.run(LONG);
    bench
}

fn shared_policy() -> Bench {
    let mut bench = bench(&deep(), 32);
    let policy = PolicySpec { kind: PolicyKind::Aggregated, limits: limits(0, 600) };
    bench.propose(&[Proposal::SetPolicy(PolicyId(1), policy)]);
    for disk in [DISK, 1] {
        bench.propose(&[Proposal::SetDisk(DiskId(disk), LimitsSource::Policy(PolicyId(1)))]);
        bench.add_known(0, disk);
        bench.add_client(disk, Load::reads(4096, 8));
    }
    bench.run(LONG);
    bench
}

fn minimum_of_another_disk() -> Bench {
    let mut bench = with_client(&StoreSpec::default(), 4, limits(0, 0), 64);
    // 4 at a time with 1 ms each are 4000 per second.
    bench.add_disk(0, 1, limits(3500, 0));
    bench.add_client(1, Load::reads(4096, 64));
    bench.run(LONG);
    bench
}

fn saturated_device() -> Bench {
    let mut bench = with_client(&StoreSpec::default(), 4, limits(0, 0), 64);
    bench.run(LONG);
    bench
}

/// Creates a bench in which all requests of the client are in the device, which serves four of them
/// at a time.
fn saturated_device_without_a_queue() -> Bench {
    let mut bench = with_client(&deep(), 4, limits(0, 0), 2);
    bench.run(SECOND);
    bench.add_client(DISK, Load::reads(4096, 30));
    bench.run(LONG);
    bench
}

fn slow_device() -> Bench {
    let mut bench = with_client(&deep(), 32, limits(0, 0), 4);
    bench.run(SECOND);
    bench.device().service_ns = 4 * SERVICE_NS;
    bench.run(LONG);
    bench
}

fn starved_worker() -> Bench {
    let mut bench = with_client(&deep(), 32, limits(0, 0), 4);
    bench.run(SECOND);
    bench.run_starved(LONG, 10 * MILLISECOND);
    bench
}

/// Creates a bench in which the client's next request is in its queue while the worker does not
/// run.
fn starved_worker_of_a_client_that_pauses() -> Bench {
    let mut bench = with_client(&deep(), 32, limits(0, 0), 1);
    let load = bench.clients[0].load;
    bench.run(SECOND);
    for _ in 0..500 {
        bench.clients[0].load = None;
        bench.run(2 * MILLISECOND);
        bench.device().now += 12 * MILLISECOND;
        bench.engines[0].handle_unscheduled(Duration::from_millis(12));
        bench.clients[0].load = load;
        bench.run(100_000);
    }
    bench
}

fn idle_client() -> Bench {
    let mut bench = with_client(&deep(), 32, limits(0, 1000), 4);
    let load = bench.clients[0].load;
    for _ in 0..700 {
        bench.clients[0].load = load;
        bench.run(100_000);
        bench.clients[0].load = None;
        bench.run(10 * MILLISECOND);
    }
    bench
}

fn small_queue_depth() -> Bench {
    let mut bench = with_client(&deep(), 32, limits(0, 5000), 2);
    bench.run(LONG);
    bench
}

fn flushes() -> Bench {
    let mut bench = bench(&deep(), 32);
    bench.add_disk(0, DISK, limits(0, 0));
    bench.add_client(DISK, Load { op: DiskOp::Flush, bytes: 0, depth: 1 });
    bench.run(LONG);
    bench
}

fn zeros() -> Bench {
    let mut bench = bench(&deep(), 32);
    bench.add_disk(0, DISK, limits(0, 0));
    let op = DiskOp::WriteZeroes { may_unmap: false, only_if_fast: false, is_durable: false };
    bench.add_client(DISK, Load { op, bytes: 4096, depth: 2 });
    bench.run(LONG);
    bench
}

/// Creates a bench with an image that reads its metadata twice before each request.
fn metadata() -> Bench {
    let mut bench = bench(&deep(), 32);
    bench.set_limits(DISK, limits(0, 0));
    let mut spec = spec(DISK);
    spec.layers[0].image = Box::new(ForgetfulImage { reads: 0 });
    bench.add_of_spec(0, DISK, spec);
    bench.add_client(DISK, Load::reads(4096, 1));
    bench.run(LONG);
    bench
}

#[test]
fn each_cause_is_the_first_limiting_factor() {
    let cases: [(fn() -> Bench, LimitingFactor); 14] = [
        (own_maximum, LimitingFactor::OwnMaximum),
        (own_bandwidth, LimitingFactor::OwnBandwidth),
        (shared_policy, LimitingFactor::SharedPolicy),
        (minimum_of_another_disk, LimitingFactor::OthersMinimums),
        (saturated_device, LimitingFactor::DeviceSaturated),
        (saturated_device_without_a_queue, LimitingFactor::DeviceSaturated),
        (slow_device, LimitingFactor::DeviceSlow),
        (starved_worker, LimitingFactor::WorkerNotScheduled),
        (starved_worker_of_a_client_that_pauses, LimitingFactor::WorkerNotScheduled),
        (idle_client, LimitingFactor::ClientIdle),
        (small_queue_depth, LimitingFactor::QueueDepth),
        (flushes, LimitingFactor::Flushes),
        (zeros, LimitingFactor::Discards),
        (metadata, LimitingFactor::Metadata),
    ];
    for (make, factor) in cases {
        let bench = make();
        let view = bench.engines[0].disk_view(bench.time(), STORE, bench.slot(DISK)).unwrap();
        let shares = view.short.time_shares();
        let TimeShare { factor: first, share_ppm } = shares[0];
        assert_eq!(first, factor, "{shares:?} {:?}", view.short);
        assert!(share_ppm >= LEAST_PPM, "{shares:?} {:?}", view.short);
        assert_eq!(shares.iter().map(|share| share.share_ppm).sum::<u32>(), WHOLE_WINDOW_PPM);
    }
}

/// If another worker has taken over the scheduling of the store, the time in which this worker was
/// not running is reported to the budget.
#[test]
fn unscheduled_time_of_a_worker_is_reported_to_the_shared_budget() {
    let mut bench = Bench::new(2, &deep(), 32, SERVICE_NS);
    bench.add_disk(1, DISK, limits(0, 0));
    bench.add_client(DISK, Load::reads(4096, 4));
    bench.run(SECOND);
    bench.run_starved(LONG, 10 * MILLISECOND);
    let view = bench.engines[0].disk_view(bench.time(), STORE, bench.slot(DISK)).unwrap();
    let shares = view.short.time_shares();
    assert_eq!(shares[0].factor, LimitingFactor::WorkerNotScheduled, "{shares:?} {:?}", view.short);
}

/// By Little's law, all requests of a closed loop are accounted for in some state.
#[test]
fn the_mean_queue_depth_equals_that_of_the_client() {
    for depth in [1, 7, 40] {
        let mut bench = with_client(&StoreSpec::default(), 4, limits(0, 900), depth);
        bench.run(LONG);
        let view = bench.engines[0].disk_view(bench.time(), STORE, bench.slot(DISK)).unwrap();
        let expected = u64::from(depth) * 1000;
        let depth = view.short.queue_depth_milli();
        assert!(depth.abs_diff(expected) <= expected / 100, "{depth} of {expected}");
    }
}

/// Returns the shares of time of the factors in the short window.
fn shares_of(bench: &Bench) -> Vec<TimeShare> {
    let view = bench.engines[0].disk_view(bench.time(), STORE, bench.slot(DISK)).unwrap();
    view.short.time_shares()
}

/// A write cache completes writes in 50 us. Reads that take 5 ms at the same time do not indicate a
/// slow device.
#[test]
fn a_device_with_a_write_cache_is_not_slow_when_the_mix_changes() {
    let mut bench = bench(&deep(), 32);
    bench.add_disk(0, DISK, limits(0, 0));
    bench.device().service_ns = 5 * MILLISECOND;
    bench.device().write_ns = Some(50_000);
    let writes = Load { op: DiskOp::Write { is_durable: false }, bytes: 4096, depth: 2 };
    let client = bench.add_client(DISK, writes);
    bench.run(2 * SECOND);
    bench.clients[client].load = None;
    bench.add_client(DISK, Load::reads(4096, 2));
    bench.run(LONG);
    let shares = shares_of(&bench);
    assert_eq!(shares[0].factor, LimitingFactor::QueueDepth, "{shares:?}");
    // Reads that take longer than earlier reads indicate a slow device.
    bench.device().service_ns = 25 * MILLISECOND;
    bench.run(LONG);
    let shares = shares_of(&bench);
    assert_eq!(shares[0].factor, LimitingFactor::DeviceSlow, "{shares:?}");
}

/// Requests complete until the device stalls within the window.
#[test]
fn a_device_that_stalls_within_the_window_is_slow() {
    for workers in [1, 2] {
        let mut bench = Bench::new(workers, &deep(), 32, SERVICE_NS);
        bench.add_disk(workers - 1, DISK, limits(0, 0));
        bench.add_client(DISK, Load::reads(4096, 4));
        bench.run(LONG);
        bench.device().service_ns = 60 * SECOND;
        bench.run(4 * SECOND);
        let shares = shares_of(&bench);
        assert_eq!(shares[0].factor, LimitingFactor::DeviceSlow, "{workers}: {shares:?}");
        assert!(shares[0].share_ppm >= 600_000, "{workers}: {shares:?}");
    }
}

/// A loan held by a worker is not a request of the client.
#[test]
fn a_pausing_client_counts_as_idle_although_requests_are_borrowed_in_advance() {
    let mut bench = Bench::new(2, &deep(), 32, SERVICE_NS / 10);
    bench.add_disk(1, DISK, limits(0, 0));
    bench.add_client(DISK, Load::reads(4096, 1));
    let load = bench.clients[0].load;
    for _ in 0..7000 {
        bench.clients[0].load = load;
        bench.run(1000);
        bench.clients[0].load = None;
        bench.run(MILLISECOND * 9 / 10);
    }
    let view = bench.engines[0].disk_view(bench.time(), STORE, bench.slot(DISK)).unwrap();
    let shares = view.short.time_shares();
    assert_eq!(shares[0].factor, LimitingFactor::ClientIdle, "{shares:?} {:?}", view.short);
    assert!(shares[0].share_ppm >= 700_000, "{shares:?} {:?}", view.short);
    assert_eq!(view.in_flight, 0, "{view:?}");
    assert_eq!(bench.engines[0].store_status(STORE).unwrap().in_flight_of_all_workers, 0);
}
