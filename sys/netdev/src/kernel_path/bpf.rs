//! The kernel's maps and programs: `bpf(2)`.
#![allow(unsafe_code, reason = "bpf has no safe form")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::instructions::Instruction;

// Commands, types and flags of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const PROGRAM_LOAD: libc::c_int = 5;
const NO_PREALLOCATION: u32 = 1;
const PROGRAM_TYPE_CLASSIFIER: u32 = 3;
/// What the program calls may be used by programs under any licence.
const LICENSE: &core::ffi::CStr = c"Apache-2.0";

/// `union bpf_attr` for maps.
#[repr(C)]
#[derive(Default)]
struct MapShape {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
}

/// `union bpf_attr` for what is in a map.
#[repr(C)]
#[derive(Default)]
struct MapEntry {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr` for programs.
#[repr(C)]
#[derive(Default)]
struct ProgramText {
    kind: u32,
    instructions: u32,
    text: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// How a map is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Entries are made and removed.
    Hash = 1,
    /// Keys are numbers from 0 on; entries are always there, zero at first. Programs
    /// reach them without a call.
    Array = 2,
}

/// A table that programs and we share. `K` and `V` are the bytes of its keys and values.
#[derive(Debug)]
pub(super) struct Map<const K: usize, const V: usize>(OwnedFd);

impl<const K: usize, const V: usize> Map<K, V> {
    /// # Errors
    /// The kernel's words; `EPERM` without `CAP_BPF` and `CAP_SYS_ADMIN`.
    pub(super) fn new(kind: Kind, entries_max: u32) -> io::Result<Self> {
        let mut shape = MapShape {
            kind: kind as u32,
            key_bytes: K as u32,
            value_bytes: V as u32,
            entries_max,
            flags: if kind == Kind::Hash { NO_PREALLOCATION } else { 0 },
        };
        // SAFETY: for this command the kernel reads a `MapShape`, which has no pointers.
        let fd = unsafe { bpf(MAP_CREATE, &mut shape) }?;
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// For programs.
    pub(super) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Adds an entry or replaces it.
    ///
    /// # Errors
    /// The map is full (`E2BIG`), or the kernel has no memory.
    pub(super) fn set(&self, key: &[u8; K], value: &[u8; V]) -> io::Result<()> {
        let mut entry = self.entry(key, value.as_ptr().expose_provenance());
        // SAFETY: the kernel reads `K` and `V` bytes where the entry points, as many as
        // the map was made with; both arrays outlive the call.
        unsafe { bpf(MAP_UPDATE, &mut entry) }.map(drop)
    }

    /// The value of a key, if it is there.
    pub(super) fn value(&self, key: &[u8; K]) -> Option<[u8; V]> {
        let mut value = [0; V];
        let mut entry = self.entry(key, value.as_mut_ptr().expose_provenance());
        // SAFETY: the kernel reads `K` bytes of the key and writes `V` bytes of the value;
        // both arrays outlive the call, and nothing else uses `value` meanwhile.
        unsafe { bpf(MAP_LOOKUP, &mut entry) }.ok()?;
        Some(value)
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&self, key: &[u8; K]) {
        let mut entry = self.entry(key, 0);
        // That there was none is the only error.
        // SAFETY: the kernel reads `K` bytes of the key, which outlives the call.
        let _ = unsafe { bpf(MAP_DELETE, &mut entry) };
    }

    fn entry(&self, key: &[u8; K], value: usize) -> MapEntry {
        MapEntry {
            map: self.0.as_raw_fd() as u32,
            key: key.as_ptr().expose_provenance() as u64,
            value: value as u64,
            ..MapEntry::default()
        }
    }
}

/// Loads a program for the hooks of `tc`.
///
/// # Errors
/// The kernel's words; `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN`.
pub(super) fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let mut text = ProgramText {
        kind: PROGRAM_TYPE_CLASSIFIER,
        instructions: instructions.len() as u32,
        text: instructions.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
        ..ProgramText::default()
    };
    // SAFETY: the kernel reads so many instructions, which have its layout, and the
    // license up to its end; both outlive the call. There is no log to write to.
    let fd = unsafe { bpf(PROGRAM_LOAD, &mut text) }?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// `attributes` is what the command takes, and what it points to is valid for it.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let pointer = core::ptr::from_mut(attributes);
    // SAFETY: the kernel reads no more than the size of `attributes`; the rest is the
    // caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as libc::c_int)
}
