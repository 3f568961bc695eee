//! Tests with a kernel that returns a sent chunk more than once.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;
use crate::xdp::XdpOnMemory as Layout;

#[test]
fn chunks_that_are_returned_repeatedly_are_counted_once() {
    let file = memfd_create("umem", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, Layout::BYTES).unwrap();
    let fd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let (_source, mut sink) = Layout::parts(file.as_fd(), fd, 1500).unwrap();
    let file = File::from(file);
    let chunk = u64::from(Layout::CHUNKS) * Layout::CHUNK_BYTES as u64;
    for entry in 0..u64::from(Layout::CHUNKS) {
        let offset = Layout::COMPLETION_AT + Layout::ENTRIES_AT + 8 * entry;
        file.write_all_at(&chunk.to_ne_bytes(), offset).unwrap();
    }
    for round in 1..100_u32 {
        let producer = (round * Layout::CHUNKS).to_ne_bytes();
        file.write_all_at(&producer, Layout::COMPLETION_AT + Layout::PRODUCER_AT).unwrap();
        sink.flush().unwrap();
    }
    assert_eq!(sink.free.len(), Layout::CHUNKS as usize);
}
