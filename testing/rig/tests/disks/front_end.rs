//! `disk_speed`, the front-end that benchmarks use, with back-ends of different features.

use std::fs::File;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Rig, example, program, run_any};

const PATIENCE: Duration = Duration::from_secs(120);
const DISK_BYTES: u64 = 64 << 20;
/// Command of QEMU's back-end, which supports split rings only.
const QEMU: &str = "qemu-storage-daemon --blockdev driver=null-co,node-name=d,size=67108864 \
    --object iothread,id=io --export \
    type=vhost-user-blk,id=e,node-name=d,iothread=io,addr.type=unix,addr.path=SOCKET,writable=on";

/// Runs `disk_speed` for 0.2 s. Returns the requests per second, or its error output.
fn measure(options: &str, back_end: &str) -> Result<f64, String> {
    let speed = example("disk_speed").unwrap();
    let back_end = format!("back-end: {back_end}");
    let mut arguments = vec![speed.as_str(), "--json", "--disk-mib", "64"];
    arguments.extend(options.split_whitespace());
    arguments.extend(["1", "0.2", "16", back_end.as_str()]);
    let output = run_any(&arguments, PATIENCE).unwrap();
    if !output.is_ok() {
        return Err(output.stderr);
    }
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    Ok(result[0]["rounds"][0]["requests_per_second"].as_f64().unwrap())
}

#[test]
fn it_takes_any_form_of_ring_and_any_load() {
    let rig = Rig::new().unwrap();
    let file = rig.path("disk.raw");
    File::create(&file).unwrap().set_len(DISK_BYTES).unwrap();
    let suimon = format!("{} {file} --vhost-user SOCKET", program("serve-disk").unwrap());
    let loads = ["", "--read-percent 50", "--block-kib 64 --read-percent 0 --sequential", "--wait"];
    let split = ["", "--without event-index", "--without indirect"];
    let packed = ["--packed", "--packed --without event-index", "--packed --without indirect"];
    for load in loads {
        for form in split.iter().chain(&packed) {
            let rate = measure(&format!("{load} {form}"), &suimon);
            assert!(rate.as_ref().is_ok_and(|rate| *rate > 0.0), "{load} {form}: {rate:?}");
        }
        for form in split {
            let rate = measure(&format!("{load} {form}"), QEMU);
            assert!(rate.as_ref().is_ok_and(|rate| *rate > 0.0), "QEMU {load} {form}: {rate:?}");
        }
    }
}

#[test]
fn errors_are_one_sentence() {
    let rig = Rig::new().unwrap();
    let file = rig.path("disk.raw");
    File::create(&file).unwrap().set_len(DISK_BYTES).unwrap();
    let suimon = format!("{} {file} --vhost-user SOCKET", program("serve-disk").unwrap());
    let cases = [
        ("--packed", QEMU, "does not offer VIRTIO_F_RING_PACKED"),
        ("--disk-mib 65", suimon.as_str(), "the disk has 67108864 bytes"),
        ("--block-kib 0", suimon.as_str(), "--block-kib is 1 or more"),
        ("--without colour", suimon.as_str(), "is not event-index or indirect"),
        ("", "/bin/false", "ended with exit status: 1 before it listened"),
    ];
    for (options, back_end, expected) in cases {
        let error = measure(options, back_end).unwrap_err();
        assert!(error.contains(expected) && error.starts_with("disk_speed: "), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
