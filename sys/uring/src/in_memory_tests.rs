//! Tests that files in memory behave as arrays of bytes with several writers, and occupy space only
//! for written data.

use proptest::prelude::*;
use rustix::io::pwrite;
use suimon_image::{ByteRange, ImageFile};
use suimon_ports::{FileRequest, PayloadRange};

use crate::file_io_tests::Bench;
use crate::{HostFile, PayloadTable, PayloadUse};

#[derive(Clone, Debug)]
enum Change {
    Write {
        at: u64,
        len: usize,
        byte: u8,
    },
    Zero {
        at: u64,
        len: u64,
        may_unmap: bool,
    },
    SetLen(u64),
    /// Write by another process, of which this process is not notified.
    External {
        at: u64,
        len: usize,
        byte: u8,
    },
}

const END: u64 = 96 << 10;

fn change() -> impl Strategy<Value = Change> {
    let write = || (0..END, 1..20_000_usize, 1..=u8::MAX);
    prop_oneof![
        4 => write().prop_map(|(at, len, byte)| Change::Write { at, len, byte }),
        1 => write().prop_map(|(at, len, byte)| Change::External { at, len, byte }),
        2 => (0..END, 1..40_000_u64, any::<bool>())
            .prop_map(|(at, len, may_unmap)| Change::Zero { at, len, may_unmap }),
        1 => (0..END).prop_map(Change::SetLen),
    ]
}

fn write_model(model: &mut Vec<u8>, offset: u64, len: usize, byte: u8) {
    let end = offset as usize + len;
    model.resize(model.len().max(end), 0);
    model[offset as usize..end].fill(byte);
}

fn part(payloads: &PayloadTable, tag: u32, len: u64) -> PayloadRange<'_> {
    PayloadRange { payloads, tag, offset: 0, len }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn it_is_an_array_of_bytes(changes in proptest::collection::vec(change(), 1..24)) {
        let mut bench = Bench::in_memory(8, 1);
        let mut model = Vec::new();
        for change in changes {
            match change {
                Change::Write { at: offset, len, byte } => {
                    bench.payload(0, PayloadUse::Source, &[(0, len)]);
                    bench.memory.fill(0, &vec![byte; len]);
                    let completion = bench.run(|table| {
                        let from = part(table, 0, len as u64);
                        FileRequest::Write { offset, source: from, is_durable: false }
                    });
                    prop_assert!(completion.result.is_ok());
                    write_model(&mut model, offset, len, byte);
                }
                Change::External { at: offset, len, byte } => {
                    pwrite(&*bench.file, &vec![byte; len], offset).unwrap();
                    write_model(&mut model, offset, len, byte);
                }
                Change::Zero { at: offset, len, may_unmap } => {
                    // Disks discard only within the file.
                    let len = len.min((model.len() as u64).saturating_sub(offset));
                    if len > 0 {
                        let range = ByteRange::new(offset, len).unwrap();
                        let completion = bench.run(|_| FileRequest::Zero { range, may_unmap, only_if_fast: false });
                        prop_assert!(completion.result.is_ok());
                        model[offset as usize..(offset + len) as usize].fill(0);
                    }
                }
                Change::SetLen(len) => {
                    bench.file.set_len(len).unwrap();
                    model.resize(len as usize, 0);
                }
            }
            prop_assert_eq!(ImageFile::len(&*bench.file).unwrap(), model.len() as u64);
            let len = model.len();
            if len > 0 {
                bench.payload(1, PayloadUse::Destination, &[(0, len)]);
                let completion = bench.run(|table| {
                    FileRequest::Read { offset: 0, destination: part(table, 1, len as u64) }
                });
                prop_assert!(completion.result.is_ok());
                prop_assert!(bench.memory.bytes(0, len) == model);
            }
        }
    }
}

/// Returns the space in bytes that a file occupies.
fn space(file: &HostFile) -> u64 {
    rustix::fs::fstat(file).unwrap().st_blocks as u64 * 512
}

#[test]
fn a_hole_in_memory_stays_one_when_it_is_read() {
    let mut bench = Bench::in_memory(8, 4096);
    bench.file.set_len(16 << 20).unwrap();
    bench.file.write_at(8 << 20, &[7; 4096]).unwrap();
    let before = space(&bench.file);
    bench.payload(0, PayloadUse::Destination, &[(0, 64 << 10)]);
    for index in (0..16 << 20).step_by(64 << 10) {
        let completion = bench.run(|table| FileRequest::Read {
            offset: index,
            destination: part(table, 0, 64 << 10),
        });
        assert!(completion.result.is_ok());
        let first = if index == 8 << 20 { 7 } else { 0 };
        assert_eq!(bench.memory.bytes(0, 1), [first]);
    }
    assert_eq!(space(&bench.file), before);
}

#[test]
fn discarded_ranges_in_memory_free_their_space_and_read_as_zeros() {
    let mut bench = Bench::in_memory(8, 4096);
    bench.payload(0, PayloadUse::Source, &[(0, 256 << 10)]);
    bench.memory.fill(0, &[9; 256 << 10]);
    bench.run(|table| {
        let from = part(table, 0, 256 << 10);
        FileRequest::Write { offset: 0, source: from, is_durable: false }
    });
    assert_eq!(space(&bench.file), 256 << 10);
    let range = ByteRange::new(64 << 10, 64 << 10).unwrap();
    bench.run(|_| FileRequest::Zero { range, may_unmap: true, only_if_fast: false });
    bench.payload(1, PayloadUse::Destination, &[(0, 256 << 10)]);
    bench.run(|table| FileRequest::Read { offset: 0, destination: part(table, 1, 256 << 10) });
    let actual = bench.memory.bytes(0, 256 << 10);
    assert!(actual.iter().enumerate().all(|(offset, byte)| {
        *byte == if (64 << 10..128 << 10).contains(&offset) { 0 } else { 9 }
    }));
    assert_eq!(space(&bench.file), 192 << 10);
}

/// Creates a bench whose file had 64 KiB of the byte 5 when it was opened, and was then truncated
/// to 16 KiB by another process.
fn truncated_bench() -> Bench {
    let mut bench = Bench::in_memory(8, 4096);
    bench.payload(0, PayloadUse::Source, &[(0, 64 << 10)]);
    bench.payload(1, PayloadUse::Destination, &[(64 << 10, 64 << 10)]);
    bench.memory.fill(0, &[5; 64 << 10]);
    bench.memory.fill(64 << 10, &[1; 64 << 10]);
    bench.run(|table| {
        let from = part(table, 0, 64 << 10);
        FileRequest::Write { offset: 0, source: from, is_durable: false }
    });
    let other = std::fs::OpenOptions::new().write(true).open(bench.folder.path().join("image"));
    other.unwrap().set_len(16 << 10).unwrap();
    bench
}

#[test]
fn ranges_truncated_by_others_read_as_zeros() {
    let mut bench = truncated_bench();
    let completion =
        bench.run(|table| FileRequest::Read { offset: 0, destination: part(table, 1, 64 << 10) });
    assert!(completion.result.is_ok());
    let actual = bench.memory.bytes(64 << 10, 64 << 10);
    assert!(actual[..16 << 10].iter().all(|byte| *byte == 5));
    assert!(actual[16 << 10..].iter().all(|byte| *byte == 0));
}

#[test]
fn writes_to_ranges_truncated_by_others_extend_the_file() {
    let mut bench = truncated_bench();
    let completion = bench.run(|table| {
        let from = part(table, 0, 4096);
        FileRequest::Write { offset: 32 << 10, source: from, is_durable: true }
    });
    assert!(completion.result.is_ok());
    let content = std::fs::read(bench.folder.path().join("image")).unwrap();
    assert_eq!(content.len(), (32 << 10) + 4096);
    assert!(content[32 << 10..].iter().all(|byte| *byte == 5));
}

#[test]
fn a_file_in_memory_grows_as_it_is_written() {
    let mut bench = Bench::in_memory(8, 512);
    bench.payload(0, PayloadUse::Source, &[(0, 4096)]);
    bench.memory.fill(0, &[3; 4096]);
    for index in 0..20_u64 {
        // The last page of the file exists, and part of it is beyond the end.
        bench.run(|table| FileRequest::Write {
            offset: index * 1536,
            source: part(table, 0, 1536),
            is_durable: false,
        });
        assert_eq!(ImageFile::len(&*bench.file).unwrap(), (index + 1) * 1536);
    }
    let content = std::fs::read(bench.folder.path().join("image")).unwrap();
    assert!(content.len() == 20 * 1536 && content.iter().all(|byte| *byte == 3));
}
