//! Migration of a disk to another node during writes: two real nodes in this process, with real
//! files and NBD over a socket pair.
#![forbid(unsafe_code)]

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::Server;
use hyper::Method;
use serde_json::json;
use suimon_image::ByteRange;
use suimon_nbd_client::NbdConnection;
use suimon_node::{DiskMirror, Node, ServedDisk};
use suimon_ports::DiskClient;

const SIZE: u64 = 24 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a node with the disk `data` in this format, exported over NBD.
async fn node(format: &str, extra: serde_json::Value) -> Server {
    let server = Server::start().await;
    let folder = server.directory.path().join("store");
    std::fs::create_dir(&folder).unwrap();
    let store = json!({ "name": "fast", "path": folder });
    let mut disk = json!({
        "name": "data", "store": "fast", "format": format, "size_bytes": SIZE,
        "nbd": { "socket": server.directory.path().join("nbd.sock") }
    });
    disk.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    for (path, body) in [("/1.0/stores", store), ("/1.0/disks", disk)] {
        let operation = server.change(Method::POST, path, &body.to_string()).await;
        assert_eq!(operation["state"], "succeeded", "{operation}");
    }
    server
}

fn client(server: &Server) -> NbdConnection {
    let stream = UnixStream::connect(server.directory.path().join("nbd.sock")).unwrap();
    NbdConnection::connect(stream.into(), "data", true, &(Arc::new(|| Ok(())) as _)).unwrap()
}

/// Starts copying on a thread that may block.
async fn begin(from: &Server, to: &Server) -> (DiskMirror, ServedDisk) {
    let (near, far) = UnixStream::pair().unwrap();
    let (from, to): (Arc<Node>, Arc<Node>) = (from.node.clone(), to.node.clone());
    let begin = move || {
        let disk = "data".parse().unwrap();
        let served_disk = to.serve_disk(&disk, far.into()).unwrap();
        (from.mirror_disk(&disk, near.into()).unwrap(), served_disk)
    };
    tokio::task::spawn_blocking(begin).await.unwrap()
}

fn compares(first: &Server, right: &Server) {
    let url = |server: &Server| {
        format!("nbd:unix:{}/nbd.sock:exportname=data", server.directory.path().display())
    };
    let output = Command::new("timeout")
        .args(["60", "qemu-img", "compare", "-f", "raw", "-F", "raw", &url(first), &url(right)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_copied_to_another_node_during_writes() {
    let from = node("raw", json!({})).await;
    // Copies to the destination are not limited by its maximum.
    let to = node("vhdx", json!({ "qos": { "max_iops": 10 } })).await;
    let guest = client(&from);
    guest.write(5 << 20, &[5; 1 << 20]).unwrap();
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (stopped, counted) = (stop.clone(), written.clone());
    let writer = std::thread::spawn(move || {
        let mut requests = 0_u64;
        while !stopped.load(Ordering::Relaxed) {
            let offset = requests.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (SIZE / 4096) * 4096;
            if requests % 7 == 0 {
                let range = ByteRange::new(offset, (64 << 10).min(SIZE - offset)).unwrap();
                guest.write_zeroes(range).unwrap();
            } else {
                guest.write(offset, &[requests as u8; 4096]).unwrap();
            }
            requests += 1;
            counted.store(requests, Ordering::Relaxed);
        }
    });
    let (mirror, served_disk) = begin(&from, &to).await;
    let deadline = Instant::now() + PATIENCE;
    let before = written.load(Ordering::Relaxed);
    let has_written = || written.load(Ordering::Relaxed) > before + 300;
    while !(mirror.progress().has_copied_all && has_written()) {
        assert!(Instant::now() < deadline && mirror.progress().failure.is_none());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (status, rejection) =
        from.call(Method::POST, "/1.0/disks/data/snapshot", r#"{"file": "next.vhdx"}"#).await;
    let message = rejection["errors"][0]["message"].as_str().unwrap();
    assert_eq!(status, 409, "{rejection}");
    assert!(message.contains("is migrating to another node"), "{rejection}");
    let (status, rejection) = to.call(Method::DELETE, "/1.0/disks/data", "").await;
    assert_eq!(status, 409, "{rejection}");
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let mirror = tokio::task::spawn_blocking(move || {
        mirror.finish(Instant::now() + PATIENCE).unwrap();
        mirror
    });
    let mirror = mirror.await.unwrap();
    let copied = mirror.progress();
    assert_eq!((copied.remaining_bytes, &copied.failure), (0, &None));
    // A limit of 10 IOPS of 8 KiB would permit at most 2.4 MiB within the longest duration of the
    // test.
    assert!(copied.copied_bytes > 4 << 20, "{copied:?}");
    tokio::task::spawn_blocking(move || {
        served_disk.end().unwrap();
        drop((mirror, served_disk));
    })
    .await
    .unwrap();
    let operation =
        to.change(Method::PATCH, "/1.0/disks/data", r#"{"qos": {"max_iops": null}}"#).await;
    assert_eq!(operation["state"], "succeeded", "both may be changed again: {operation}");
    compares(&from, &to);
    from.stop().await;
    to.stop().await;
}
