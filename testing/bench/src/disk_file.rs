//! Benchmark of random 4 KB reads from a file on a real file system: the engine's io_uring compared
//! with fio's. Both use one thread on the same CPU, the same queue depth, and direct I/O. fio
//! generates its requests itself; the engine gets them from a client on its own thread, because
//! with a ring or a socket the wake-ups by another thread would be measured too.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_disk_tests::{ClientSpec, RequestPattern, StoreFolder, new_disk};
use suimon_image_files::{DiskFormat, DiskKind, DiskPlan};
use suimon_rig::{Rig, fio, system_program};

use crate::disk_engine::{
    CPU, FILE_BYTES, ON_DISK, REQUEST_BYTES, not_on_a_device, rates, write_file,
};
use crate::report::{Bar, Pair, Sample, Work};

const DEPTHS: [u32; 3] = [1, 4, 32];
const WINDOW: Duration = Duration::from_secs(4);

/// Measures `pairs` pairs at each depth.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut benchmarks = DEPTHS.map(|depth| {
        let name = format!("disk-file-depth-{depth}");
        let title = format!("4 KB random reads from a file, past the page cache, depth {depth}");
        Work::new(&name, &title, "fio, io_uring with registered files and buffers", "thousand/s")
            .with_bar(Bar::Ratio(0.95))
    });
    if let Some(missing_reason) = missing()? {
        benchmarks.iter_mut().for_each(|work| work.missing = Some(missing_reason.clone()));
        return Ok(benchmarks.into());
    }
    let rig = Rig::new_in(Path::new(ON_DISK))?;
    let plan = new_disk(DiskFormat::Raw, DiskKind::Fixed, None);
    let file = rig.file(&plan.label());
    write_file(&file, FILE_BYTES)?;
    for _ in 0..pairs {
        for (work, depth) in benchmarks.iter_mut().zip(DEPTHS) {
            let peer = Sample::without_distance(by_fio(&file, depth)?);
            work.push(Pair {
                peer,
                suimon: Sample::without_distance(by_suimon(&rig, &plan, depth)?),
            });
        }
    }
    Ok(benchmarks.into())
}

fn missing() -> Result<Option<String>> {
    if let Err(error) = system_program("fio") {
        return Ok(Some(error.to_string()));
    }
    not_on_a_device()
}

/// Measures fio, in thousand requests per second.
fn by_fio(file: &Path, depth: u32) -> Result<f64> {
    let seconds = WINDOW.as_secs();
    let job = format!(
        "--rw=randread --bs=4k --iodepth={depth} --size={FILE_BYTES} --norandommap --randrepeat=0 \
         --registerfiles --fixedbufs --cpus_allowed={CPU} --time_based --runtime={seconds} \
         --ramp_time=1"
    );
    let folder = file.parent().context("a file is in a directory")?;
    let path = file.to_str().context("its path is text")?;
    let fio_result = fio::run_on(folder, fio::FioTarget::File(path), &job)?;
    ensure!(fio_result.errors == 0, "fio: {} requests failed", fio_result.errors);
    Ok(fio_result.read_iops / 1e3)
}

fn by_suimon(rig: &Rig, plan: &DiskPlan, depth: u32) -> Result<f64> {
    let disk = StoreFolder::open(rig.folder())?.disk(plan)?;
    let (pattern, bytes) = (RequestPattern::RandomReads, REQUEST_BYTES);
    let client = ClientSpec { pattern, depth, bytes, disk_bytes: FILE_BYTES };
    Ok(rates(disk, None, client, WINDOW)?.per_second / 1e3)
}
