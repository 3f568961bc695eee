//! Tests that disks created, converted, compacted, resized, snapshotted and merged in a directory
//! have the same content for qemu-img and libvhdi. `scripts/setup` installs both.

use std::path::Path;
use std::sync::Arc;

use crate::support::peer_bench::{Bench, run};
use suimon_disk_tests::{new_disk, seeded};
use suimon_image::Image;
use suimon_image::testing::TestDisk;
use suimon_image_files::jobs::{CheckJob, CopyJob, DiskJob, MergeJob, resize, snapshot};
use suimon_image_files::{DiskError, DiskFormat, DiskKind, DiskPlan, create, open};
use suimon_ports::{FileLockMode, FileName, StoreFiles};
use suimon_uring::HostStore;
use suimon_vhd::{Access, OpenOptions, SizeSource, Vhd};
use suimon_vhdx::{Guid, Vhdx, WriteGuids};

const MB: u64 = 1 << 20;

/// A store in the directory of the bench.
struct Store {
    bench: Bench,
    files: Arc<dyn StoreFiles>,
}

fn name(name: &str) -> FileName {
    FileName::new(name).unwrap()
}

fn plan(format: DiskFormat, kind: DiskKind, file: &str) -> DiskPlan {
    DiskPlan {
        file: Some(name(file)),
        block_bytes: (format == DiskFormat::Vhdx).then_some(MB),
        ..new_disk(format, kind, None)
    }
}

fn run_job(job: Result<impl DiskJob, DiskError>) {
    let mut job = job.unwrap();
    while !job.step().unwrap().is_done {}
}

/// Returns QEMU's name of a format.
fn qemu_format(format: DiskFormat) -> &'static str {
    match format {
        DiskFormat::Vhd => "vpc",
        other => other.as_str(),
    }
}

fn kinds() -> Vec<DiskPlan> {
    use DiskFormat::{Raw, Vhd, Vhdx};
    use DiskKind::{Dynamic, Fixed};
    let kinds = [
        (Raw, Fixed),
        (Raw, Dynamic),
        (Vhd, Fixed),
        (Vhd, Dynamic),
        (Vhdx, Fixed),
        (Vhdx, Dynamic),
    ];
    kinds
        .map(|(format, kind)| plan(format, kind, &format!("{}.{}", kind.as_str(), format.as_str())))
        .into()
}

impl Store {
    fn new(size: u64) -> Self {
        let bench = Bench::new(size);
        let files = Arc::new(HostStore::open(bench.folder.path()).unwrap());
        Self { bench, files }
    }

    /// Writes data and zeros to an image and to the expected content: at both ends and across block
    /// boundaries. Eight sectors at a time, because libvhdi considers all sectors of a bitmap byte
    /// as written.
    fn fill(&self, plan: &DiskPlan, first: u8) {
        let size = self.bench.size;
        let pieces = [
            (0, 4096, first),
            (MB - 4096, 8192, first + 1),
            (2 * MB - 4096, 2 * MB + 8192, first + 2),
            (3 * MB, MB, 0),
            (6 * MB, 2 * MB, 0),
            (size - 4096, 4096, first + 3),
        ];
        let file = self.files.open(plan.file.as_ref().unwrap(), FileLockMode::Write, 512).unwrap();
        let write = |write: &mut dyn FnMut(u64, &[u8])| {
            for (offset, len, byte) in pieces {
                let bytes = vec![byte; len as usize];
                write(offset, &bytes);
                self.bench.expect(offset, &bytes);
            }
        };
        match plan.format {
            DiskFormat::Vhd => {
                let options = OpenOptions { access: Access::Write, size: SizeSource::Creator };
                let image = Vhd::open(file.as_ref(), options).unwrap();
                let mut disk = TestDisk { image, file: file.as_ref(), parent: None };
                write(&mut |offset, bytes| disk.write(offset, bytes).unwrap());
                disk.flush().unwrap();
                Image::close(Box::new(disk.image), file.as_ref()).unwrap();
            }
            DiskFormat::Vhdx => {
                let guid = |digits| Guid::new(u128::from(first) << 64 | digits);
                let guids = WriteGuids { file_write: guid(1), data_write: guid(2), log: guid(3) };
                let image = Vhdx::open(file.as_ref(), &guids).unwrap();
                let mut disk = TestDisk { image, file: file.as_ref(), parent: None };
                write(&mut |offset, bytes| disk.write(offset, bytes).unwrap());
                disk.flush().unwrap();
                disk.image.close(file.as_ref()).unwrap();
            }
            _ => write(&mut |offset, bytes| file.write_at(offset, bytes).unwrap()),
        }
    }

    /// Asserts that an image without a parent is valid and has the expected content according to
    /// Suimon, QEMU and libvhdi.
    fn all_programs_agree(&self, plan: &DiskPlan) {
        let file = plan.file.as_ref().unwrap().as_str();
        let (image, raw) = (self.bench.path(file), self.bench.path("raw"));
        let output =
            run("qemu-img", &["info", "--output=json", "-f", qemu_format(plan.format)], &[&image]);
        assert!(output.contains(&format!("\"virtual-size\": {},", self.bench.size)), "{output}");
        run("qemu-img", &["compare", "-f", qemu_format(plan.format), "-F", "raw"], &[&image, &raw]);
        if plan.format == DiskFormat::Vhdx {
            let output = run("qemu-img", &["check", "-f", "vhdx"], &[&image]);
            assert!(output.contains("No errors"), "{output}");
        }
        self.is_sound(plan);
    }

    fn is_sound(&self, plan: &DiskPlan) {
        let mut job = seeded(|seeds| CheckJob::begin(self.files.as_ref(), plan, seeds)).unwrap();
        while !job.step().unwrap().is_done {}
        assert!(job.report().findings.is_empty(), "{}: {:?}", plan.label(), job.report());
    }

    fn allocated(&self, file: &str) -> u64 {
        self.files.status(&name(file)).unwrap().allocated_bytes
    }

    /// Returns the number of data bytes that QEMU finds in an image.
    fn mapped(&self, plan: &DiskPlan) -> u64 {
        let path = self.bench.path(plan.file.as_ref().unwrap().as_str());
        let output =
            run("qemu-img", &["map", "--output=json", "-f", qemu_format(plan.format)], &[&path]);
        let extents: Vec<serde_json::Value> = serde_json::from_str(&output).unwrap();
        let data = extents.iter().filter(|part| part["data"] == true && part["zero"] == false);
        data.map(|part| part["length"].as_u64().unwrap()).sum()
    }
}

#[test]
fn converted_images_are_read_by_other_programs_and_vice_versa() {
    let store = Store::new(20 * MB);
    let raw = plan(DiskFormat::Raw, DiskKind::Dynamic, "raw");
    store.fill(&raw, 1);
    for target_plan in kinds() {
        run_job(seeded(|seeds| CopyJob::convert(&store.files, &raw, &target_plan, None, seeds)));
        store.all_programs_agree(&target_plan);
        let file = target_plan.file.as_ref().unwrap().as_str();
        if target_plan.format != DiskFormat::Raw {
            store.bench.libvhdi_agrees(&[file]);
        }
        // A fixed disk has all its space allocated, even for holes; a dynamic disk has not.
        let allocated = store.allocated(file);
        assert_eq!(
            allocated >= 20 * MB,
            target_plan.creation_kind() == DiskKind::Fixed,
            "{file}: {allocated}"
        );
        let copied_back = plan(DiskFormat::Raw, DiskKind::Dynamic, &format!("{file}.back"));
        let by_qemu = format!("{file}.qemu");
        let subformat = match target_plan.format {
            DiskFormat::Raw => continue,
            DiskFormat::Vhd => {
                format!("subformat={},force_size=on", target_plan.creation_kind().as_str())
            }
            _ => format!("subformat={}", target_plan.creation_kind().as_str()),
        };
        run(
            "qemu-img",
            &["convert", "-f", "raw", "-O", qemu_format(target_plan.format), "-o", &subformat],
            &[&store.bench.path("raw"), &store.bench.path(&by_qemu)],
        );
        let qemu_plan = DiskPlan { file: Some(name(&by_qemu)), block_bytes: None, ..target_plan };
        store.is_sound(&qemu_plan);
        run_job(seeded(|seeds| {
            CopyJob::convert(&store.files, &qemu_plan, &copied_back, None, seeds)
        }));
        store.all_programs_agree(&copied_back);
    }
}

#[test]
fn grown_and_compacted_images_are_read_by_other_programs() {
    for kind_plan in kinds() {
        let store = Store::new(9 * MB);
        let kind_plan = DiskPlan { size_bytes: Some(9 * MB), ..kind_plan };
        seeded(|seeds| create(&store.files, &kind_plan, seeds)).unwrap();
        store.fill(&kind_plan, 1);
        store.all_programs_agree(&kind_plan);
        let size = 270 * MB;
        let grown = seeded(|seeds| resize(store.files.as_ref(), &kind_plan, size, seeds)).unwrap();
        assert_eq!(grown, size);
        std::fs::File::options()
            .write(true)
            .open(store.bench.path("raw"))
            .unwrap()
            .set_len(size)
            .unwrap();
        let store = Store { bench: Bench { size, ..store.bench }, ..store };
        store.all_programs_agree(&kind_plan);
        store.fill(&kind_plan, 9);
        store.all_programs_agree(&kind_plan);
        if kind_plan.creation_kind() == DiskKind::Fixed {
            continue;
        }
        let before =
            (store.mapped(&kind_plan), store.allocated(kind_plan.file.as_ref().unwrap().as_str()));
        run_job(seeded(|seeds| CopyJob::compact(&store.files, &kind_plan, None, seeds)));
        store.all_programs_agree(&kind_plan);
        let after =
            (store.mapped(&kind_plan), store.allocated(kind_plan.file.as_ref().unwrap().as_str()));
        // Minimum gain of the written zeros: whole blocks of 2 MB in VHD; none in VHDX, for which
        // QEMU does not report zeros.
        let gain = match kind_plan.format {
            DiskFormat::Vhd => 2 * MB,
            DiskFormat::Vhdx => 0,
            _ => 3 * MB,
        };
        assert!(after.0 + gain <= before.0, "{}: {before:?} {after:?}", kind_plan.label());
        assert!(after.1 + 3 * MB <= before.1, "{}: {before:?} {after:?}", kind_plan.label());
        let leftover = |path: &Path| path.to_str().unwrap().contains("suimon-new");
        let mut files = std::fs::read_dir(store.bench.folder.path()).unwrap();
        assert!(!files.any(|file| leftover(&file.unwrap().path())));
    }
}

#[test]
fn a_chain_is_read_by_libvhdi_at_every_stage() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let store = Store::new(20 * MB);
        let file = |stem: &str| format!("{stem}.{}", format.as_str());
        let (base, mid, top) = (file("base"), file("mid"), file("top"));
        let base_plan =
            DiskPlan { size_bytes: Some(20 * MB), ..plan(format, DiskKind::Dynamic, &base) };
        seeded(|seeds| create(&store.files, &base_plan, seeds)).unwrap();
        store.fill(&base_plan, 1);
        let mid_plan =
            seeded(|seeds| snapshot(&store.files, &base_plan, name(&mid), seeds)).unwrap();
        // libvhdi identifies a VHDX child without a sector bitmap by the first bytes of the file.
        if format == DiskFormat::Vhd {
            store.bench.libvhdi_agrees(&[&mid, &base]);
        }
        store.fill(&mid_plan, 20);
        store.bench.libvhdi_agrees(&[&mid, &base]);
        let top_plan =
            seeded(|seeds| snapshot(&store.files, &mid_plan, name(&top), seeds)).unwrap();
        let top_disk = seeded(|seeds| open(store.files.as_ref(), &top_plan, seeds)).unwrap();
        assert_eq!(top_disk.layer_files, [name(&top), name(&mid), name(&base)]);
        drop(top_disk);
        store.fill(&top_plan, 40);
        store.bench.libvhdi_agrees(&[&top, &mid, &base]);
        let output = run("vhdiinfo", &[], &[&store.bench.path(&top)]);
        // For VHDX, the program prints only absolute paths.
        let is_named = format == DiskFormat::Vhdx || output.contains(&mid);
        assert!(output.contains("Differential") && is_named, "{output}");
        store.is_sound(&top_plan);

        run_job(seeded(|seeds| CopyJob::compact(&store.files, &top_plan, None, seeds)));
        store.bench.libvhdi_agrees(&[&top, &mid, &base]);
        let whole_plan = plan(format, DiskKind::Dynamic, &file("whole"));
        run_job(seeded(|seeds| {
            CopyJob::convert(&store.files, &top_plan, &whole_plan, None, seeds)
        }));
        store.all_programs_agree(&whole_plan);

        run_job(seeded(|seeds| MergeJob::begin(&store.files, &top_plan, None, seeds)));
        store.bench.libvhdi_agrees(&[&mid, &base]);
        store.bench.libvhdi_agrees(&[&top, &mid, &base]);
        store.files.remove(&name(&top)).unwrap();
        run_job(seeded(|seeds| MergeJob::begin(&store.files, &mid_plan, None, seeds)));
        store.files.remove(&name(&mid)).unwrap();
        store.all_programs_agree(&base_plan);
        store.bench.libvhdi_agrees(&[&base]);
    }
}

#[test]
fn a_fixed_disk_without_sufficient_space_is_not_created() {
    let store = Store::new(MB);
    let space = store.files.space().unwrap();
    let size = Some(space.total_bytes / 4096 * 4096 + 4096);
    let fixed = plan(DiskFormat::Raw, DiskKind::Fixed, "fixed.raw");
    let result = seeded(|seeds| {
        create(&store.files, &DiskPlan { size_bytes: size, ..fixed.clone() }, seeds)
    });
    // The error is not that the store is full: no amount of freed space would suffice.
    let error = result.unwrap_err();
    assert!(!error.is_full() && error.to_string().contains("free"), "{error}");
    seeded(|seeds| create(&store.files, &DiskPlan { size_bytes: Some(MB), ..fixed }, seeds))
        .unwrap();
    let plan = plan(DiskFormat::Raw, DiskKind::Dynamic, "gone/disk.raw");
    let result =
        seeded(|seeds| create(&store.files, &DiskPlan { size_bytes: Some(MB), ..plan }, seeds));
    let error = result.unwrap_err();
    assert!(!error.is_missing() && error.to_string().contains("create the directory"), "{error}");
}
