use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::*;

fn create_log(bytes: u64, offset: u64) -> (File, DirtyLog) {
    let fd = rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(fd);
    file.set_len(bytes + offset + 32).unwrap();
    let log = DirtyLog::map(file.as_fd(), offset, bytes).unwrap();
    (file, log)
}

fn bits(file: &File, bytes: u64, offset: u64) -> Vec<u64> {
    let mut content = vec![0; (bytes + offset + 32) as usize];
    file.read_exact_at(&mut content, 0).unwrap();
    let (before, rest) = content.split_at(offset as usize);
    let (log, after) = rest.split_at(bytes as usize);
    assert!(before.iter().chain(after).all(|byte| *byte == 0), "outside the log");
    (0..bytes * 8).filter(|page| log[(page / 8) as usize] >> (page % 8) & 1 != 0).collect()
}

proptest! {
    #[test]
    fn exactly_the_pages_written_are_marked(
        writes in prop::collection::vec((0..700_000_u64, 0..20_000_u64), 0..8),
        offset in prop_oneof![Just(0_u64), Just(4096), Just(24)],
    ) {
        // 20 bytes have 160 bits, for 160 pages or 655 360 bytes.
        let (file, log) = create_log(20, offset);
        let mut expected = std::collections::BTreeSet::new();
        let mut out_of_range = 0;
        for (addr, bytes) in writes {
            log.mark(addr, bytes);
            let pages = (addr..addr + bytes).map(|byte_addr| byte_addr / 4096);
            let (in_range, outside): (Vec<_>, Vec<_>) = pages.partition(|page| *page < 160);
            expected.extend(in_range);
            out_of_range += u64::from(!outside.is_empty());
        }
        prop_assert_eq!(bits(&file, 20, offset), expected.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(log.out_of_range_writes(), out_of_range);
    }
}

#[test]
fn ranges_at_the_end_of_the_address_space_are_tolerated() {
    let (file, log) = create_log(1, 0);
    log.mark(u64::MAX, 1);
    log.mark(u64::MAX, u64::MAX);
    log.mark(0, 0);
    assert_eq!(bits(&file, 1, 0), Vec::<u64>::new());
    assert_eq!(log.out_of_range_writes(), 2);
    log.mark(0, u64::MAX);
    assert_eq!(bits(&file, 1, 0), (0..8).collect::<Vec<_>>());
}

#[test]
fn marks_survive_a_reader_that_takes_them_out() {
    // Two threads mark neighbouring pages while a third clears marks, as a front-end does. No mark
    // is lost.
    use std::sync::atomic::AtomicU8;
    let (file, log) = create_log(8, 0);
    let reader = SharedMap::new(file.as_fd(), 0, 8).unwrap();
    let counts: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
    let running = AtomicU8::new(2);
    const ROUNDS: u64 = 20_000;
    std::thread::scope(|scope| {
        for page in 0..2_u64 {
            let (log, counts, running) = (&log, &counts, &running);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    log.mark(page * 4096, 1);
                    // The mark stays set until the reader clears it.
                    while counts[page as usize].load(Ordering::Acquire) == round {
                        std::thread::yield_now();
                    }
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) != 0 {
            let bits = reader.take_8(0);
            for (page, count) in counts.iter().enumerate() {
                count.fetch_add(u64::from(bits >> page & 1), Ordering::Release);
            }
            std::thread::yield_now();
        }
    });
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == ROUNDS));
}

#[test]
fn a_log_that_cannot_be_used_is_refused() {
    let (file, _log) = create_log(8, 0);
    let error = DirtyLog::map(file.as_fd(), 0, 1 << 20).unwrap_err().to_string();
    assert!(error.contains("log of dirty pages") && error.contains("0x28"), "{error}");
    assert!(DirtyLog::map(file.as_fd(), 0, 0).is_err());
    assert!(DirtyLog::map(file.as_fd(), u64::MAX, 8).is_err());
}
