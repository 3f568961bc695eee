use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags};

use super::*;
use crate::memory_view::MemoryView;

fn file(bytes: u64) -> File {
    let fd = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, bytes).unwrap();
    fd.into()
}

fn spec(
    file: &File,
    guest_addr: u64,
    size: u64,
    user_addr: u64,
    mmap_offset: u64,
) -> RegionSpec<'_> {
    RegionSpec { guest_addr, size, user_addr, mmap_offset, fd: file.as_fd() }
}

#[test]
fn copies_cross_regions_that_touch_and_stop_at_holes() {
    let file = file(0x6000);
    // Three regions; the first two are adjacent in guest addresses only. The file contains them in
    // the other order, at unaligned offsets.
    let memory = GuestMemory::map(&[
        spec(&file, 0x1000, 0x1001, 0x70_0000, 0x3000),
        spec(&file, 0x2001, 0xfff, 0x10_0000, 0x123),
        spec(&file, 0x8000, 0x1000, 0x20_0000, 0x5000),
    ])
    .unwrap();
    let mut view = MemoryView::new(Arc::new(memory));
    let bytes: Vec<u8> = (0..0x1800).map(|i| (i % 253) as u8).collect();
    view.write(0x1400, &bytes).unwrap();
    let mut read_back = vec![0; bytes.len()];
    view.read(0x1400, &mut read_back).unwrap();
    assert_eq!(bytes, read_back);
    let mut first = vec![0; 0xc01];
    (&file).seek(SeekFrom::Start(0x3400)).unwrap();
    (&file).read_exact(&mut first).unwrap();
    assert_eq!(first, &bytes[..0xc01]);
    let mut second = vec![0; 0xbff];
    (&file).seek(SeekFrom::Start(0x123)).unwrap();
    (&file).read_exact(&mut second).unwrap();
    assert_eq!(second, &bytes[0xc01..]);

    for (addr, len) in
        [(0, 1), (0xfff, 2), (0x2fff, 2), (0x2fff, 0x6000), (0x7fff, 2), (0x8fff, 2), (u64::MAX, 2)]
    {
        let before = read_back.clone();
        read_back.resize(len.max(read_back.len()), 0);
        assert_eq!(view.read(addr, &mut read_back[..len]), Err(OutOfRange), "{addr:#x}");
        assert_eq!(view.write(addr, &vec![1; len]), Err(OutOfRange), "{addr:#x}");
        assert_eq!(
            read_back[..before.len()],
            before,
            "nothing is copied if a part is outside memory"
        );
    }
    view.read(0x8fff, &mut read_back[..1]).unwrap();
    view.prefetch_read(0x8fff);
    view.prefetch_write(u64::MAX, 12);
}

#[test]
fn a_ring_must_be_inside_one_region() {
    let file = file(0x4000);
    let memory = GuestMemory::map(&[
        spec(&file, 0, 0x1000, 0x10_0000, 0),
        spec(&file, 0x1000, 0x1000, 0x10_1000, 0x1000),
    ])
    .unwrap();
    assert!(memory.user_pointer(0x10_0000, 0x1000).is_some());
    assert!(memory.user_pointer(0x10_0fff, 1).is_some());
    assert!(memory.user_pointer(0x10_0fff, 2).is_none());
    assert!(memory.user_pointer(0x10_1000, 0x1001).is_none());
    assert!(memory.user_pointer(0xf_ffff, 1).is_none());
    assert!(memory.user_pointer(u64::MAX, u64::MAX).is_none());
    assert!(memory.user_pointer(0x10_0001, u64::MAX).is_none());
}

#[test]
fn bad_tables_are_refused_by_name() {
    let file = file(0x4000);
    let error = |specs: &[RegionSpec<'_>]| GuestMemory::map(specs).unwrap_err();
    assert!(matches!(error(&[spec(&file, 0, 0, 0, 0)]), MemoryError::Empty { index: 0 }));
    for (guest, user, offset, name) in [
        (u64::MAX, 0, 0, "guest address"),
        (0, u64::MAX - 5, 0, "user address"),
        (0, 0, u64::MAX - 5, "mmap offset"),
        (0, 0, i64::MAX as u64, "mmap offset"),
    ] {
        match error(&[spec(&file, guest, 0x1000, user, offset)]) {
            MemoryError::Overflow { field, .. } => assert_eq!(field, name),
            other => panic!("{other}"),
        }
    }
    assert!(matches!(
        error(&[spec(&file, 0, 0x4001, 0, 0)]),
        MemoryError::FileTooShort { file_bytes: 0x4000, required: 0x4001, .. }
    ));
    for (first, second, name) in [
        ((0, 0x1000), (0xfff, 0x9000), "guest address"),
        ((0, 0x1000), (0x5000, 0x1fff), "user address"),
    ] {
        let specs = [
            spec(&file, first.0, 0x1000, first.1, 0),
            spec(&file, second.0, 0x1000, second.1, 0x1000),
        ];
        match error(&specs) {
            MemoryError::Overlap { field, .. } => assert_eq!(field, name),
            other => panic!("{other}"),
        }
    }
    let (pipe, _far) = rustix::pipe::pipe().unwrap();
    let spec =
        RegionSpec { guest_addr: 0, size: 1, user_addr: 0, mmap_offset: 0, fd: pipe.as_fd() };
    assert!(matches!(error(&[spec]), MemoryError::NotInMemory { index: 0 }));
    let other_file = File::open("/proc/version").unwrap();
    let spec =
        RegionSpec { guest_addr: 0, size: 1, user_addr: 0, mmap_offset: 0, fd: other_file.as_fd() };
    assert!(matches!(error(&[spec]), MemoryError::NotInMemory { index: 0 }));
    let sparse = self::file(1 << 62);
    let size = crate::mapping_limits::device_bytes_max() + 1;
    let spec = RegionSpec { guest_addr: 0, size, user_addr: 0, mmap_offset: 0, fd: sparse.as_fd() };
    assert!(matches!(error(&[spec]), MemoryError::DeviceLimit { index: 0, .. }));
    let many: Vec<_> = (0..=REGIONS_MAX as u64)
        .map(|i| RegionSpec {
            guest_addr: i << 20,
            size: 1,
            user_addr: i << 20,
            mmap_offset: 0,
            fd: file.as_fd(),
        })
        .collect();
    assert!(matches!(error(&many), MemoryError::TooMany { .. }));
}

#[test]
fn a_truncated_file_is_tolerated_and_reported() {
    let mut file = file(0x4000);
    let memory = Arc::new(GuestMemory::map(&[spec(&file, 0, 0x4000, 0, 0)]).unwrap());
    let mut view = MemoryView::new(Arc::clone(&memory));
    view.write(0, &[7; 0x4000]).unwrap();
    assert!(!memory.is_faulted());
    let faults = suimon_mapping::truncated_access_count();
    ftruncate(&file, 0x1000).unwrap();
    let mut bytes = vec![1; 0x2000];
    view.read(0x800, &mut bytes).unwrap();
    assert!(bytes[..0x800].iter().all(|byte| *byte == 7));
    assert!(bytes[0x800..].iter().all(|byte| *byte == 0));
    view.write(0x3000, &[9]).unwrap();
    assert!(memory.is_faulted());
    assert!(suimon_mapping::truncated_access_count() > faults);
    file.write_all(&[1]).unwrap();
    drop((view, memory));
    // The guard's slot is free again, and another memory is not affected.
    let memory = GuestMemory::map(&[spec(&file, 0, 0x1000, 0, 0)]).unwrap();
    assert!(!memory.is_faulted());
}

/// Each mapping counts towards `vm.max_map_count`, beyond which the process would be killed.
#[test]
fn a_truncated_file_adds_no_mapping_per_page() {
    const PAGES: u64 = 2048;
    let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let file = file(PAGES * 4096);
    let memory = Arc::new(GuestMemory::map(&[spec(&file, 0, PAGES * 4096, 0, 0)]).unwrap());
    let mut view = MemoryView::new(Arc::clone(&memory));
    ftruncate(&file, 0).unwrap();
    let before = mappings();
    // Every second page, so that neighbours cannot be joined.
    for page in (0..PAGES).rev().step_by(2) {
        view.write(page * 4096, &[1]).unwrap();
    }
    assert!(mappings() < before + 100, "{before} mappings became {}", mappings());
    assert!(memory.is_faulted());
}

#[test]
fn a_bus_error_elsewhere_still_ends_the_process() {
    if std::env::var_os("SUIMON_RING_BUS_ERROR").is_some() {
        let file = file(0x2000);
        let _guarded = GuestMemory::map(&[spec(&file, 0, 0x1000, 0, 0)]).unwrap();
        // SAFETY: a mapping of its own, read behind the end of its file to
        // provoke the signal.
        unsafe {
            let map = rustix::mm::mmap(
                core::ptr::null_mut(),
                0x2000,
                ProtFlags::READ,
                MapFlags::SHARED,
                &file,
                0,
            )
            .unwrap();
            ftruncate(&file, 0x1000).unwrap();
            map.cast::<u8>().add(0x1000).read_volatile();
        }
        std::process::exit(0);
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory::tests::a_bus_error_elsewhere_still_ends_the_process"])
        .env("SUIMON_RING_BUS_ERROR", "1")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(libc::SIGBUS));
}

#[test]
fn a_span_inside_one_region_is_located_in_every_region() {
    let file = file(0x8000);
    let specs: Vec<_> = (0..4)
        .map(|index| spec(&file, 0x2000 * index, 0x1000, 0x10_0000 * index, 0x1000 * index))
        .collect();
    let mut view = MemoryView::new(Arc::new(GuestMemory::map(&specs).unwrap()));
    for addr in [0x2010, 0x6fff, 0x10, 0x4000, 0x6000, 0x2fff] {
        assert!(view.pointer(addr, 1).is_some(), "{addr:#x}");
    }
    for (addr, bytes) in [(0xfff, 2), (0x1000, 1), (0x7000, 1), (u64::MAX, 1), (0x6000, 0x1001)] {
        assert!(view.pointer(addr, bytes).is_none(), "{addr:#x}");
    }
}
