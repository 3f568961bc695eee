//! Many devices: their threads, and what one device may cost the others.

use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use suimon_ports::{
    DeviceNotice, FrameSink, FrameSource, OffloadSwitches, QueueHost, VhostUserMode,
    VhostUserPromise, VhostUserSpec,
};
use suimon_quantity::{PortId, QueueId};
use suimon_vhost_user::{VhostUserNic, VhostUserThreads};

use crate::bench::rig::{Driver, GUEST_BASE, Vm, event};
use crate::bench::{BYTES, Ear, FrontEnd, Loopback, VERSION_1, wait_for};

/// Devices of the tests.
const MANY: u32 = 150;

/// Threads that may be there beside those of one device: one that has executed a message may not be
/// back when the next message arrives, which then has another one.
const BACK_SOON: usize = 4;

fn spec(folder: &std::path::Path, port: u32) -> VhostUserSpec {
    VhostUserSpec {
        socket: folder.join(format!("{port}.sock")),
        mode: VhostUserMode::Server,
        queue_pairs: 1,
        mac: None,
        mtu: 1500,
        offload: OffloadSwitches::default(),
        promise: VhostUserPromise::default(),
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn open(folder: &std::path::Path, port: u32, threads: &VhostUserThreads) -> VhostUserNic {
    let (sender, _notices) = channel();
    let ear = Arc::new(Ear(Mutex::new(sender)));
    let host = Arc::new(Loopback::default());
    VhostUserNic::open(PortId(port), &spec(folder, port), host, ear, threads).unwrap()
}

#[test]
fn the_number_of_threads_does_not_depend_on_the_number_of_devices() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = VhostUserThreads::unconfined().unwrap();
    let one = open(folder.path(), 0, &runtime);
    let mut first = FrontEnd::connect(&folder.path().join("0.sock"));
    assert_eq!(first.get_number(17), 1);
    let most = threads() + BACK_SOON;
    let nics: Vec<_> = (1..MANY).map(|port| open(folder.path(), port, &runtime)).collect();
    let mut front_ends: Vec<_> = (1..MANY)
        .map(|port| FrontEnd::connect(&folder.path().join(format!("{port}.sock"))))
        .collect();
    for front_end in &mut front_ends {
        assert_eq!(front_end.get_number(17), 1);
    }
    assert!(threads() <= most, "{} threads, at most {most} are permitted", threads());
    // Connections that send nothing have none either.
    let silent: Vec<_> = (0..MANY)
        .map(|port| UnixStream::connect(folder.path().join(format!("{port}.sock"))).unwrap())
        .collect();
    assert_eq!(first.get_number(17), 1);
    assert!(threads() <= most, "{} threads, at most {most} are permitted", threads());
    drop((silent, one, nics, front_ends));
}

/// A host whose workers do not give a queue back before they are told to.
#[derive(Default)]
struct Stalled {
    is_over: Mutex<bool>,
    over: Condvar,
}

impl QueueHost for Stalled {
    fn attach_source(&self, _id: QueueId, _source: Box<dyn FrameSource>) {}

    fn attach_sink(&self, _id: QueueId, _sink: Box<dyn FrameSink>) {}

    fn detach(&self, _id: QueueId) {
        let is_over = self.is_over.lock().unwrap();
        drop(self.over.wait_while(is_over, |is_over| !*is_over).unwrap());
    }

    fn detach_port(&self, _port: PortId) {}
}

#[test]
fn devices_that_stall_do_not_hold_up_others() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = VhostUserThreads::unconfined().unwrap();
    let stalled = Arc::new(Stalled::default());
    let vm = Vm::with_regions(vec![BYTES]);
    let mut nics = Vec::new();
    let mut stuck = Vec::new();
    for port in 0..40 {
        let (sender, notices) = channel();
        let ear = Arc::new(Ear(Mutex::new(sender)));
        let spec = spec(folder.path(), port);
        let host = Arc::clone(&stalled);
        nics.push(VhostUserNic::open(PortId(port), &spec, host, ear, &runtime).unwrap());
        let rx = Driver::placed(&vm, 16, 0, GUEST_BASE);
        let mut front_end = FrontEnd::connect(&spec.socket);
        front_end.negotiate(VERSION_1);
        assert!(front_end.share_memory(&vm, BYTES));
        front_end.start_ring(0, &rx, &event(), &event());
        // GET_VRING_BASE, which is not replied to before the queue is back.
        front_end.send_raw(&FrontEnd::message(11, 1, &FrontEnd::state(0, 0)), &[]);
        stuck.push((front_end, notices));
    }
    let healthy = open(folder.path(), 1000, &runtime);
    let mut front_end = FrontEnd::connect(&folder.path().join("1000.sock"));
    for _ in 0..10 {
        assert_eq!(front_end.get_number(17), 1);
    }
    drop(healthy);
    *stalled.is_over.lock().unwrap() = true;
    stalled.over.notify_all();
    for (mut front_end, notices) in stuck {
        assert_eq!(front_end.reply(11).len(), 8);
        drop(front_end);
        wait_for("the end of the connection", || {
            notices
                .recv_timeout(Duration::from_secs(60))
                .is_ok_and(|notice| matches!(notice, DeviceNotice::LinkDown { .. }))
        });
    }
}
