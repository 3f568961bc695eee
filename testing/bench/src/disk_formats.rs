//! Benchmark of a fully allocated dynamic image: 4 KB requests on VHD and VHDX compared with the
//! fixed image of the same format and with a raw file, per second of CPU time. The files are in
//! memory, so that no device hides the difference.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_disk_tests::{ClientSpec, RequestPattern, StoreFolder, new_disk};
use suimon_image_files::{DiskFormat, DiskKind};
use suimon_rig::{Rig, fill_disk};

use crate::disk_engine::{CPU, DISK_BYTES, IN_MEMORY, REQUEST_BYTES, rates};
use crate::report::{Bar, Pair, Sample, Work};

const DEPTH: u32 = 32;
const WINDOW: Duration = Duration::from_secs(1);

/// Image format, and whether it is fixed or dynamic.
type Image = (DiskFormat, DiskKind);

const RAW: Image = (DiskFormat::Raw, DiskKind::Fixed);
const IMAGES: [Image; 5] = [
    RAW,
    (DiskFormat::Vhd, DiskKind::Fixed),
    (DiskFormat::Vhd, DiskKind::Dynamic),
    (DiskFormat::Vhdx, DiskKind::Fixed),
    (DiskFormat::Vhdx, DiskKind::Dynamic),
];
const WAYS: [(RequestPattern, &str); 2] =
    [(RequestPattern::RandomReads, "reads"), (RequestPattern::RandomWrites, "writes")];

/// Comparison of two images.
struct Comparison {
    work: Work,
    pattern: &'static str,
    suimon: Image,
    peer: Image,
}

/// Measures `pairs` pairs of each comparison. Each measurement of an image is compared with all
/// others of its round.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let rig = Rig::new_in(Path::new(IN_MEMORY))?;
    let store = StoreFolder::open(rig.folder())?;
    for (format, kind) in IMAGES {
        store.make(&new_disk(format, kind, Some(DISK_BYTES)))?;
        let plan = new_disk(format, kind, None);
        fill_disk(CPU, store.disk(&plan)?, DISK_BYTES)?;
        let allocated = store.allocated_bytes(&plan)?;
        ensure!(allocated >= DISK_BYTES, "{}: {allocated} bytes are allocated", plan.label());
    }
    let mut comparisons = comparisons();
    for _ in 0..pairs {
        let samples = round(&store)?;
        for Comparison { work, pattern, suimon, peer } in &mut comparisons {
            let sample_of = |image: &Image| samples.get(&(*pattern, names(*image))).copied();
            let (suimon, peer) =
                sample_of(suimon).zip(sample_of(peer)).context("it was measured")?;
            work.push(Pair { peer, suimon });
        }
    }
    Ok(comparisons.into_iter().map(|comparison| comparison.work).collect())
}

fn comparisons() -> Vec<Comparison> {
    let mut comparisons_all = Vec::new();
    for format in [DiskFormat::Vhdx, DiskFormat::Vhd] {
        for (_, pattern) in WAYS {
            for peer in [(format, DiskKind::Fixed), RAW] {
                let suimon = (format, DiskKind::Dynamic);
                let [format_name, kind] = names(peer);
                let name = format!("disk-formats-{}-{pattern}-{format_name}", format.as_str());
                let title = format!(
                    "4 KB random {pattern}, dynamic {}, all of it allocated, in memory, depth \
                     {DEPTH}, for each second of CPU time",
                    format.as_str()
                );
                let peer_label = format!("Suimon, {kind} {format_name}");
                let work =
                    Work::new(&name, &title, &peer_label, "thousand").with_bar(Bar::Ratio(0.95));
                comparisons_all.push(Comparison { work, pattern, suimon, peer });
            }
        }
    }
    comparisons_all
}

const fn names((format, kind): Image) -> [&'static str; 2] {
    [format.as_str(), kind.as_str()]
}

/// Measures each image with each kind of request, in thousand requests per second of CPU time.
fn round(store: &StoreFolder) -> Result<BTreeMap<(&'static str, [&'static str; 2]), Sample>> {
    let mut samples = BTreeMap::new();
    for (pattern, name) in WAYS {
        for image in IMAGES {
            let disk = store.disk(&new_disk(image.0, image.1, None))?;
            let client =
                ClientSpec { pattern, depth: DEPTH, bytes: REQUEST_BYTES, disk_bytes: DISK_BYTES };
            let rate = rates(disk, None, client, WINDOW)?.per_cpu_second / 1e3;
            samples.insert((name, names(image)), Sample::without_distance(rate));
        }
    }
    Ok(samples)
}
