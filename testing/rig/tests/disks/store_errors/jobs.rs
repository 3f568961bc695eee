//! Jobs on disks and changes of images while one operation of the store fails. Each operation of a
//! job fails once; the job then ends with an error, and the disk is as before.

use std::os::unix::fs::FileExt;

use suimon_rig::{StoreOperation, run};

use super::trial::{EXPECTED, Job, LARGER, fail_operations};
use super::*;

fn nothing(_: &mut Host) {}

fn no_preparation(_: &mut Host, _: &mut Content) {}

fn remove_copy(host: &mut Host) {
    let files = host.files();
    let copy = files.iter().find(|file| file.starts_with("copy.")).expect("no copy");
    let format = match copy.rsplit_once('.') {
        Some((_, "vhd")) => "vpc",
        Some((_, format)) => format,
        None => "raw",
    };
    let copy = format!("{}/{copy}", host.store.files());
    let expected = host.rig.path(EXPECTED);
    run(&["qemu-img", "compare", "-f", "raw", "-F", format, &expected, &copy]).unwrap();
    fs::remove_file(copy).unwrap();
}

fn delete_new(host: &mut Host) {
    host.daemon.ok(&["disk", "delete", "new", "--with-file"]).unwrap();
}

fn merge(host: &mut Host) {
    host.wait_unused("d");
    host.daemon.ok(&["disk", "merge", "d"]).unwrap();
}

/// Creates an image without its first region table (MS-VHDX, 2.2.3).
fn have_damaged_image(host: &mut Host, _: &mut Content) {
    remove_damaged_image(host);
    let file = format!("{}/broken.vhdx", host.store.files());
    run(&["qemu-img", "create", "-q", "-f", "vhdx", &file, "16M"]).unwrap();
    let image = fs::OpenOptions::new().write(true).open(file).unwrap();
    image.write_all_at(&[0xff; 64 << 10], 192 << 10).unwrap();
}

/// Removes the image and the backups of its metadata.
fn remove_damaged_image(host: &mut Host) {
    host.remove_files("broken.");
}

/// Takes a snapshot with some data unless there is one.
fn have_snapshot(host: &mut Host, content: &mut Content) {
    if host.get("d").get("parent").is_some_and(|parent| !parent.is_null()) {
        return;
    }
    let file = host.get("d")["config"]["format"].as_str().unwrap().to_owned();
    host.daemon.ok(&["disk", "snapshot", "d", &format!("d-2.{file}")]).unwrap();
    let mut client = host.connect("d");
    let value = content.next();
    for chunk in [1, 40, 200] {
        client.write(chunk * CHUNK, &vec![value; CHUNK as usize], false).unwrap();
        content.handle(chunk * CHUNK, CHUNK, value, true);
    }
    client.flush().unwrap();
}

const VHDX: Format = format("d", "vhdx", "dynamic");
const VHD: Format = format("d", "vhd", "dynamic");
const RAW: Format = format("d", "raw", "dynamic");

const fn job(name: &'static str, format: Format, words: &'static [&'static str]) -> Job {
    Job { name, format, prepare: no_preparation, words, undo: nothing, file: "d." }
}

const fn create(name: &'static str, words: &'static [&'static str]) -> Job {
    Job { undo: delete_new, file: "new.", ..job(name, RAW, words) }
}

const fn convert(name: &'static str, format: Format, words: &'static [&'static str]) -> Job {
    Job { undo: remove_copy, file: "", ..job(name, format, words) }
}

const COMPACT_VHDX: Job = job("compact vhdx", VHDX, &["disk", "compact", "d"]);
const COMPACT_VHD: Job = job("compact vhd", VHD, &["disk", "compact", "d"]);

const VHDX_TO_VHD: Job =
    convert("convert vhdx to vhd", VHDX, &["disk", "convert", "d", "copy.vhd", "--format=vhd"]);
const VHD_TO_RAW: Job =
    convert("convert vhd to raw", VHD, &["disk", "convert", "d", "copy.raw", "--format=raw"]);
const RAW_TO_VHDX: Job = convert(
    "convert raw to vhdx",
    RAW,
    &["disk", "convert", "d", "copy.vhdx", "--format=vhdx", "--kind=fixed"],
);

const MERGE_VHD: Job =
    Job { prepare: have_snapshot, file: "", ..job("merge vhd", VHD, &["disk", "merge", "d"]) };
const MERGE_VHDX: Job =
    Job { prepare: have_snapshot, file: "", ..job("merge vhdx", VHDX, &["disk", "merge", "d"]) };

const SNAPSHOT_VHDX: Job = Job {
    undo: merge,
    file: "",
    ..job("snapshot vhdx", VHDX, &["disk", "snapshot", "d", "d-2.vhdx"])
};
const SNAPSHOT_VHD: Job = Job {
    undo: merge,
    file: "",
    ..job("snapshot vhd", VHD, &["disk", "snapshot", "d", "d-2.vhd"])
};

const CREATE: [Job; 4] = [
    create(
        "create vhdx",
        &["disk", "add", "new", "--store=s", "--format=vhdx", "--size-bytes=16MiB"],
    ),
    create(
        "create vhd",
        &["disk", "add", "new", "--store=s", "--format=vhd", "--size-bytes=16MiB"],
    ),
    create(
        "create fixed vhd",
        &["disk", "add", "new", "--store=s", "--format=vhd", "--kind=fixed", "--size-bytes=16MiB"],
    ),
    create(
        "create raw",
        &["disk", "add", "new", "--store=s", "--format=raw", "--size-bytes=16MiB"],
    ),
];

const RESIZE: [Job; 3] = [
    job("resize vhdx", VHDX, &["disk", "resize", "d", LARGER]),
    job("resize vhd", VHD, &["disk", "resize", "d", LARGER]),
    job("resize raw", RAW, &["disk", "resize", "d", LARGER]),
];

const CHECK: [Job; 2] = [
    job("check vhdx", VHDX, &["disk", "check", "d"]),
    job("check vhd", VHD, &["disk", "check", "d"]),
];

const REPAIR: Job = Job {
    prepare: have_damaged_image,
    undo: remove_damaged_image,
    file: "broken.vhdx",
    ..job("repair vhdx", RAW, &["image", "repair", "--store=s", "broken.vhdx"])
};

const MEASURE: Job =
    Job { file: "", ..job("measure", RAW, &["store", "measure", "s", "--seconds", "1"]) };

/// Selects some operations of the kinds that change something.
fn few(operation: StoreOperation, count: u64) -> Vec<u64> {
    let changes = [
        StoreOperation::Create,
        StoreOperation::Write,
        StoreOperation::Flush,
        StoreOperation::FlushFolder,
        StoreOperation::Rename,
    ];
    match count {
        0 => Vec::new(),
        _ if !changes.contains(&operation) => Vec::new(),
        1 => vec![1],
        // The first and the last operations are those of closing and opening the disk.
        _ => vec![1, count / 2, count * 3 / 4],
    }
}

/// Selects every operation, but only some of the many queries of attributes.
fn all(operation: StoreOperation, count: u64) -> Vec<u64> {
    let most = if operation == StoreOperation::Attributes { 10 } else { 40 };
    let step = usize::try_from(count / most).unwrap().max(1);
    (1..=count).step_by(step).collect()
}

#[test]
fn a_job_whose_store_fails_ends_with_an_error_and_leaves_the_disk_as_it_was() {
    for job in [COMPACT_VHDX, VHDX_TO_VHD, MERGE_VHD] {
        fail_operations(job, few);
    }
}

mod full {
    use super::*;

    fn fail_each(jobs: &[Job]) {
        for job in jobs {
            fail_operations(*job, all);
        }
    }

    #[test]
    fn a_compaction_whose_store_fails_leaves_the_disk_as_it_was() {
        fail_each(&[COMPACT_VHDX, COMPACT_VHD]);
    }

    #[test]
    fn a_conversion_whose_store_fails_leaves_no_file() {
        fail_each(&[VHDX_TO_VHD, VHD_TO_RAW, RAW_TO_VHDX]);
    }

    #[test]
    fn a_merge_whose_store_fails_leaves_the_disk_as_it_was() {
        fail_each(&[MERGE_VHD, MERGE_VHDX]);
    }

    #[test]
    fn a_snapshot_whose_store_fails_is_taken_or_leaves_no_file() {
        fail_each(&[SNAPSHOT_VHD, SNAPSHOT_VHDX]);
    }

    #[test]
    fn a_creation_of_an_image_whose_store_fails_leaves_no_file() {
        fail_each(&CREATE);
    }

    #[test]
    fn a_resize_whose_store_fails_keeps_the_content_of_the_disk() {
        fail_each(&RESIZE);
    }

    #[test]
    fn a_check_whose_store_fails_ends_with_an_error() {
        fail_each(&CHECK);
    }

    #[test]
    fn a_repair_whose_store_fails_is_completed_by_another_one() {
        fail_each(&[REPAIR]);
    }

    #[test]
    fn a_measurement_whose_store_fails_leaves_no_file() {
        fail_operations(MEASURE, few);
    }
}
