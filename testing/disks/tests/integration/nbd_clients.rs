//! Tests of NBD exports with independent clients: fio, nbdcopy, nbdfuse, nbdinfo, qemu-img,
//! qemu-io.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use crate::bench::{Bench, SIZE, run, run_ok, sample};
use suimon_rig::wait_until;

#[test]
fn a_disk_is_copied_in_and_out_over_several_connections() {
    let bench = Bench::start();
    let (source, returned) = (bench.path("source"), bench.path("back"));
    sample(&source);
    let uri = bench.uri("disk");
    let info: serde_json::Value =
        serde_json::from_str(&run_ok("nbdinfo", &["--json", &uri])).unwrap();
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], SIZE);
    assert_eq!((&export["can_multi_conn"], &export["can_fua"]), (&true.into(), &true.into()));
    run_ok("nbdcopy", &["--flush", "--connections=4", source.to_str().unwrap(), &uri]);
    assert!(std::fs::read(bench.path("disk.raw")).unwrap() == std::fs::read(&source).unwrap());
    run_ok("nbdcopy", &["--connections=4", &uri, returned.to_str().unwrap()]);
    assert!(std::fs::read(&returned).unwrap() == std::fs::read(&source).unwrap());
    let url = format!("nbd:unix:{}:exportname=disk", bench.path("nbd").display());
    run_ok("qemu-img", &["compare", "-f", "raw", "-F", "raw", source.to_str().unwrap(), &url]);
    let counters = bench.exports.worker().counters(bench.disk).unwrap();
    assert_eq!((counters.writes.bytes, counters.failed()), (SIZE, 0), "{counters:?}");
    assert!(counters.reads.bytes >= 2 * SIZE && counters.flushes.requests >= 1, "{counters:?}");
}

/// The disk as a file in a file system of nbdfuse. Dropping it unmounts the file system.
struct ShownFile {
    process: Child,
    path: PathBuf,
}

impl ShownFile {
    fn new(bench: &Bench) -> Self {
        let path = bench.path("shown");
        std::fs::File::create(&path).unwrap();
        let process = Command::new("nbdfuse").arg(&path).arg(bench.uri("disk")).spawn().unwrap();
        let of_disk = || Ok(std::fs::metadata(&path)?.len() == SIZE);
        wait_until("file of nbdfuse", Duration::from_secs(120), of_disk).unwrap();
        Self { process, path }
    }
}

impl Drop for ShownFile {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
        let _ = self.process.wait();
    }
}

#[test]
fn a_disk_is_used_as_a_file_that_nbdfuse_shows() {
    let bench = Bench::start();
    let source = bench.path("source");
    sample(&source);
    let mount = ShownFile::new(&bench);
    let (from, to) = (source.to_str().unwrap(), mount.path.to_str().unwrap());
    run_ok("dd", &[&format!("if={from}"), &format!("of={to}"), "bs=1M", "conv=notrunc,fsync"]);
    run_ok("cmp", &[from, to]);
    run_ok("mkfs.ext4", &["-q", "-F", to]);
    run_ok("e2fsck", &["-fn", to]);
    // A hole punched in the file becomes a hole in the disk.
    run_ok("fallocate", &["--punch-hole", "--offset", "16M", "--length", "16M", to]);
    drop(mount);
    let bytes = std::fs::read(bench.path("disk.raw")).unwrap();
    assert!(bytes[16 << 20..32 << 20].iter().all(|&byte| byte == 0));
    assert!(bytes[40 << 20..41 << 20].iter().any(|&byte| byte != 0));
}

#[test]
fn fio_writes_at_any_depth_and_finds_what_it_wrote() {
    let bench = Bench::start();
    let uri = format!("--uri={}", bench.uri("disk"));
    // fio's verification state files are removed with the directory.
    let aux_path = format!("--aux-path={}", bench.folder.path().display());
    let common = ["--name=verify", "--ioengine=nbd", "--size=64m", "--verify=crc32c", &aux_path];
    let jobs: [&[&str]; 3] = [
        &["--rw=randwrite", "--bssplit=512/30:4k/40:64k/20:1m/10", "--iodepth=64"],
        &["--rw=randrw", "--bs=4k", "--iodepth=1", "--fsync=7", "--io_size=8m"],
        &["--rw=write", "--bs=2m", "--iodepth=32"],
    ];
    for job in jobs {
        let arguments: Vec<&str> = common
            .iter()
            .chain(job)
            .copied()
            .chain([uri.as_str(), "--output-format=terse"])
            .collect();
        run_ok("fio", &arguments);
    }
    assert_eq!(bench.exports.worker().counters(bench.disk).unwrap().failed(), 0);
}

#[test]
fn zeros_trims_and_rejections_are_as_the_client_expects() {
    let bench = Bench::start();
    sample(&bench.path("disk.raw"));
    let url = format!("nbd:unix:{}:exportname=disk", bench.path("nbd").display());
    let arguments = [
        "-f",
        "raw",
        "-c",
        "write -z 1M 1M",
        "-c",
        "write -z -u 3M 1M",
        "-c",
        "discard 5M 1M",
        "-c",
        "write -f -P 0x5a 7M 512",
        "-c",
        "flush",
        "-c",
        "read -P 0 1M 1M",
        "-c",
        "read -P 0 3M 1M",
        "-c",
        "read -P 0x5a 7M 512",
        &url,
    ];
    let output = run_ok("qemu-io", &arguments);
    assert!(!output.contains("failed"), "{output}");
    let bytes = std::fs::read(bench.path("disk.raw")).unwrap();
    assert!(bytes[1 << 20..2 << 20].iter().all(|&byte| byte == 0));
    assert!(bytes[(7 << 20) + 512..][..512].iter().any(|&byte| byte != 0));
    let fixed = format!("nbd:unix:{}:exportname=fixed", bench.path("nbd").display());
    let result = run("qemu-io", &["-f", "raw", "-c", "write 0 4k", &fixed]);
    assert!(
        !result.status.success() || String::from_utf8_lossy(&result.stdout).contains("ead-only")
    );
    let result = run("nbdinfo", &[&bench.uri("nothing")]);
    assert!(!result.status.success());
}

/// An image created by QEMU, filled through the export by nbdcopy and written at random offsets by
/// fio, has the same content for QEMU afterwards.
fn filled_and_compared(format: &str, ending: &str) {
    let bench = Bench::start();
    let (source, image) = (bench.path("source"), bench.path(&format!("image.{ending}")));
    let (source, image) = (source.to_str().unwrap(), image.to_str().unwrap());
    sample(Path::new(source));
    let size = SIZE.to_string();
    let extra =
        if ending == "vhd" { "force_size=on,subformat=dynamic" } else { "subformat=dynamic" };
    run_ok("qemu-img", &["create", "-q", "-f", format, "-o", extra, image, &size]);
    let disk = bench.exports.add_image("image", Path::new(image)).unwrap();
    let uri = bench.uri("image");
    run_ok("nbdcopy", &["--flush", "--connections=4", source, &uri]);
    let url = format!("nbd:unix:{}:exportname=image", bench.path("nbd").display());
    run_ok("qemu-img", &["compare", "-f", "raw", "-F", "raw", source, &url]);
    let uri = format!("--uri={uri}");
    let verify_state = "--verify_state_save=0";
    let arguments =
        ["--name=verify", "--ioengine=nbd", "--size=32m", "--verify=crc32c", verify_state, &uri];
    let job = ["--rw=randwrite", "--bssplit=512/30:4k/40:64k/30", "--iodepth=32", "--fsync=50"];
    run_ok("fio", &[&arguments[..], &job].concat());
    // The content of the disk through the export, compared with the file as QEMU reads it.
    run_ok("nbdcopy", &[&bench.uri("image"), source]);
    bench.exports.worker().close_disk(disk).unwrap();
    run_ok("qemu-img", &["compare", "-f", "raw", "-F", format, source, image]);
    if format == "vhdx" {
        run_ok("qemu-img", &["check", "-f", format, image]);
    }
}

#[test]
fn a_vhd_of_qemu_is_written_by_us_and_read_by_qemu() {
    filled_and_compared("vpc", "vhd");
}

#[test]
fn a_vhdx_of_qemu_is_written_by_us_and_read_by_qemu() {
    filled_and_compared("vhdx", "vhdx");
}

#[test]
fn a_closed_disk_ends_its_connections_and_has_everything() {
    let bench = Bench::start();
    let source = bench.path("source");
    sample(&source);
    run_ok("nbdcopy", &[source.to_str().unwrap(), &bench.uri("disk")]);
    bench.exports.worker().close_disk(bench.disk).unwrap();
    assert!(std::fs::read(bench.path("disk.raw")).unwrap() == std::fs::read(&source).unwrap());
}
