//! Block device requests as built by a driver (virtio 1.3, section 5.2.6), and a disk in memory
//! that executes them.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::collections::VecDeque;
use std::sync::Arc;

use suimon_ports::{DiskOp, DiskOutcome, DiskQueue, DiskRequest};
use suimon_ring::{DiskDescription, DiskProperties, DiskRing, RingSetup};
use suimon_uring::PayloadTable;
use vm_memory::{Bytes, GuestAddress};

use crate::rig::Vm;
use crate::rig::any::AnyDriver;

pub const T_IN: u32 = 0;
pub const T_OUT: u32 = 1;
pub const T_FLUSH: u32 = 4;
pub const T_GET_ID: u32 = 8;
pub const T_DISCARD: u32 = 11;
pub const T_WRITE_ZEROES: u32 = 13;

pub const S_OK: u8 = 0;
pub const S_IOERR: u8 = 1;
pub const S_UNSUPP: u8 = 2;

/// Features of a disk: `FLUSH`, `DISCARD`, `WRITE_ZEROES`, `VERSION_1`, `INDIRECT_DESC`.
pub const DISK_FEATURES: u64 = 1 << 9 | 1 << 13 | 1 << 14 | 1 << 32 | 1 << 28;

/// Request of a driver before it is split into buffers.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub kind: u32,
    pub sector: u64,
    /// Device-readable bytes after the header.
    pub payload: Vec<u8>,
    /// Number of device-writable bytes before the status.
    pub capacity: usize,
}

impl Wanted {
    pub fn read(sector: u64, bytes: usize) -> Self {
        Self { kind: T_IN, sector, payload: Vec::new(), capacity: bytes }
    }

    pub fn write(sector: u64, payload: Vec<u8>) -> Self {
        Self { kind: T_OUT, sector, payload, capacity: 0 }
    }

    pub fn flush() -> Self {
        Self { kind: T_FLUSH, sector: 0, payload: Vec::new(), capacity: 0 }
    }

    pub fn range(kind: u32, sector: u64, sectors: u32, flags: u32) -> Self {
        let words = [sector.to_le_bytes().to_vec(), sectors.to_le_bytes().to_vec()];
        let payload = [words.concat(), flags.to_le_bytes().to_vec()].concat();
        Self { kind, sector: 0, payload, capacity: 0 }
    }

    pub fn readable(&self) -> Vec<u8> {
        let header = [self.kind.to_le_bytes(), [0; 4]].concat();
        [header, self.sector.to_le_bytes().to_vec(), self.payload.clone()].concat()
    }

    /// Returns the lengths of the request's buffers if it is split at the positions `cuts`, and the
    /// number of readable buffers.
    pub fn cut(&self, cuts: &[u16]) -> (Vec<u32>, usize) {
        let part = |total: usize| {
            let mut offsets: Vec<_> =
                cuts.iter().map(|cut| usize::from(*cut) % (total + 1)).collect();
            offsets.extend([0, total]);
            offsets.sort_unstable();
            offsets.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect::<Vec<_>>()
        };
        let (readable, writable) = (part(self.readable().len()), part(self.capacity + 1));
        ([readable.clone(), writable].concat(), readable.len())
    }

    /// Returns the lengths of the buffers as Linux's driver splits a request (header, payload,
    /// status), and the number of readable buffers.
    pub fn usual(&self) -> (Vec<u32>, usize) {
        let mut lens = vec![16];
        lens.extend(Some(self.payload.len() as u32).filter(|len| *len > 0));
        let readable = lens.len();
        lens.extend(Some(self.capacity as u32).filter(|len| *len > 0));
        lens.push(1);
        (lens, readable)
    }
}

/// Disk in memory, and the requests that it has received and not completed.
pub struct MemoryDisk {
    pub bytes: Vec<u8>,
    pub under_way: VecDeque<DiskRequest>,
}

impl MemoryDisk {
    pub fn new(bytes: usize) -> Self {
        let bytes = (0..bytes).map(|index| (index / 512 * 7 + index) as u8).collect();
        Self { bytes, under_way: VecDeque::new() }
    }

    /// Receives at most `max` requests from the queue. Returns their number.
    pub fn receive(&mut self, queue: &mut dyn DiskQueue, max: usize) -> usize {
        let mut requests = Vec::new();
        let count = queue.receive(max, &mut requests).unwrap();
        assert_eq!(count, requests.len());
        assert!(count <= max);
        for request in requests {
            assert!(request.tag < queue.in_flight_max());
            assert!(self.under_way.iter().all(|other| other.tag != request.tag), "a tag in use");
            self.under_way.push_back(request);
        }
        count
    }

    /// Executes and completes the request at position `index` of those in flight.
    pub fn carry_out(&mut self, queue: &mut dyn DiskQueue, index: usize) -> DiskRequest {
        let request = self.under_way.remove(index).unwrap();
        let DiskRequest { tag, op, range } = request;
        let bytes = &mut self.bytes[range.offset() as usize..range.end() as usize];
        let table: &PayloadTable = queue.payloads().downcast_ref().unwrap();
        match op {
            DiskOp::Read => {
                assert_eq!(table.bytes(tag), range.len());
                assert!(table.copy_in(tag, 0, bytes));
            }
            DiskOp::Write { .. } => {
                assert_eq!(table.bytes(tag), range.len());
                assert!(table.copy_out(tag, 0, bytes));
            }
            DiskOp::WriteZeroes { .. } => bytes.fill(0),
            DiskOp::Flush | DiskOp::Discard | DiskOp::AllocationStatus { .. } => {
                assert_eq!(table.bytes(tag), 0);
            }
        }
        queue.complete(tag, DiskOutcome::Done);
        request
    }
}

pub const DISK_BYTES: usize = 0x8000;
pub const SERIAL: &str = "a serial number";

pub fn facts() -> Arc<DiskProperties> {
    facts_of(512, false)
}

pub fn facts_of(sector_bytes: u32, is_read_only: bool) -> Arc<DiskProperties> {
    let visible = DiskDescription {
        bytes: DISK_BYTES as u64,
        sector_bytes,
        is_read_only,
        serial: SERIAL.into(),
    };
    Arc::new(DiskProperties::new(&visible))
}

pub fn queue(vm: &Vm, setup: &RingSetup, facts: Arc<DiskProperties>) -> Box<dyn DiskQueue> {
    DiskRing::new(vm.map(), setup, facts).unwrap().into_queue()
}

/// Request in flight, as its driver sees it.
#[derive(Clone, Debug)]
pub struct Offered {
    pub head: u16,
    pub wanted: Wanted,
    pub readable: usize,
}

pub fn offer(
    driver: &mut AnyDriver<'_>,
    (request, cuts, indirect): &(Wanted, Vec<u16>, bool),
) -> Option<Offered> {
    let (lens, readable) = if cuts.is_empty() { request.usual() } else { request.cut(cuts) };
    // Bytes that the device does not write keep their value.
    let bytes = [request.readable(), vec![0xee; request.capacity + 1]].concat();
    let head = driver.add_request(&lens, readable, *indirect, &bytes)?;
    Some(Offered { head, wanted: request.clone(), readable })
}

pub fn writable_bytes(vm: &Vm, driver: &AnyDriver<'_>, offered: &Offered) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in &driver.pieces(offered.head)[offered.readable..] {
        let mut part = vec![0; piece.len as usize];
        vm.memory.read_slice(&mut part, GuestAddress(piece.addr)).unwrap();
        bytes.extend(part);
    }
    bytes
}
