//! Shared state that a process leaves if it dies while it uses a ring, at every point of an
//! operation.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use suimon_ring::{InflightLayout, InflightRegion, RingTracking};

use crate::rig::Vm;
use crate::rig::packed::RING_PACKED;
use crate::rig::stepper::{Watched, step_through};

/// Size of the rings in entries.
pub const SIZE: u16 = 16;
/// Length in bytes of the rings, at the start of the VM's memory.
pub const RING_BYTES: usize = 0x400;

/// Shared state that a dead process has left: the VM's memory and the in-flight region.
pub struct Remains {
    pub vm: Vm,
    pub region: Vec<u8>,
}

pub fn shape(features: u64) -> InflightLayout {
    InflightLayout { queues: 2, queue_size: SIZE, is_packed: features & RING_PACKED != 0 }
}

/// Creates a region with these contents, as the front-end passes it to the next process.
pub fn region_of(bytes: &[u8], features: u64) -> (Arc<InflightRegion>, File) {
    let (_, fd) = InflightRegion::create(shape(features)).unwrap();
    let file = File::from(fd);
    file.write_all_at(bytes, 0).unwrap();
    let region =
        InflightRegion::map(file.as_fd(), 0, shape(features).bytes(), shape(features)).unwrap();
    (region, file)
}

pub fn records(region: &Arc<InflightRegion>) -> RingTracking {
    RingTracking { log: None, inflight: region.queue(1) }
}

/// Executes `operation` on `vm` and `region`. Returns the shared state after each of its stores.
pub fn crash_everywhere(vm: &Vm, region: &File, operation: impl FnOnce()) -> Vec<Remains> {
    let region_bytes = region.metadata().unwrap().len() as usize;
    let see = || {
        let mut bytes = vec![0; RING_BYTES + region_bytes];
        vm.file.read_exact_at(&mut bytes[..RING_BYTES], 0).unwrap();
        region.read_exact_at(&mut bytes[RING_BYTES..], 0).unwrap();
        bytes
    };
    let mut previous = see();
    let mut remains = vec![Remains { vm: vm.copy(), region: previous[RING_BYTES..].to_vec() }];
    let watched = [
        Watched { file: &vm.file, bytes: RING_BYTES },
        Watched { file: region, bytes: region_bytes },
    ];
    step_through(&watched, operation, || {
        let now = see();
        if now != previous {
            remains.push(Remains { vm: vm.copy(), region: now[RING_BYTES..].to_vec() });
            previous = now;
        }
    });
    remains
}
