//! The kernel's maps, programs and their links to devices: `bpf(2)`.
#![allow(unsafe_code, reason = "bpf has no safe form")]

pub(crate) mod instructions;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use instructions::Instruction;

// Commands, types and flags of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const NO_PREALLOCATION: u32 = 1;
/// `BPF_F_XDP_HAS_FRAGS`.
const TAKES_FRAGMENTS: u32 = 1 << 5;
/// `BPF_XDP`, where a link attaches to.
const ATTACH_XDP: u32 = 37;
/// What is shown of a program by others' tools.
const NAME: [u8; 16] = *b"suimon\0\0\0\0\0\0\0\0\0\0";
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
    name: [u8; 16],
}

/// `union bpf_attr` for links.
#[repr(C)]
struct LinkPlace {
    program: u32,
    device: u32,
    kind: u32,
    flags: u32,
}

/// `union bpf_attr` for another program of a link.
#[repr(C)]
struct LinkProgram {
    link: u32,
    program: u32,
    flags: u32,
    expected_program: u32,
}

/// How a map is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Entries are made and removed.
    Hash = 1,
    /// Keys are numbers from 0 on; entries are always there, zero at first. Programs
    /// reach them without a call.
    Array = 2,
    /// Values are AF_XDP sockets, keys the receive queues they are bound to.
    Sockets = 17,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// At the hooks of `tc` (`BPF_PROG_TYPE_SCHED_CLS`).
    Classifier,
    /// Before a device's frames reach the kernel's stack (`BPF_PROG_TYPE_XDP`). Frames
    /// that lie in several buffers come only if it `takes_fragments`, for which it need
    /// do nothing if it reads no further than the first.
    Xdp {
        /// Linux 5.18.
        takes_fragments: bool,
    },
}

/// Where in the way of a frame an XDP program runs: `XDP_FLAGS_*` of linux/if_link.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XdpHook {
    /// After the kernel has made a packet of it. Any device can.
    Generic = 1 << 1,
    /// In the device's driver.
    Driver = 1 << 2,
}

/// A table that programs and we share. `K` and `V` are the bytes of its keys and values.
#[derive(Debug)]
pub(crate) struct Map<const K: usize, const V: usize>(OwnedFd);

impl<const K: usize, const V: usize> Map<K, V> {
    /// # Errors
    /// The kernel's words; `EPERM` without `CAP_BPF` and `CAP_SYS_ADMIN`.
    pub(crate) fn new(kind: Kind, entries_max: u32) -> io::Result<Self> {
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
    pub(crate) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Adds an entry or replaces it.
    ///
    /// # Errors
    /// The map is full (`E2BIG`), or the kernel has no memory.
    pub(crate) fn set(&self, key: &[u8; K], value: &[u8; V]) -> io::Result<()> {
        let mut entry = self.entry(key, value.as_ptr().expose_provenance());
        // SAFETY: the kernel reads `K` and `V` bytes where the entry points, as many as
        // the map was made with; both arrays outlive the call.
        unsafe { bpf(MAP_UPDATE, &mut entry) }.map(drop)
    }

    /// The value of a key, if it is there.
    pub(crate) fn value(&self, key: &[u8; K]) -> Option<[u8; V]> {
        let mut value = [0; V];
        let mut entry = self.entry(key, value.as_mut_ptr().expose_provenance());
        // SAFETY: the kernel reads `K` bytes of the key and writes `V` bytes of the value;
        // both arrays outlive the call, and nothing else uses `value` meanwhile.
        unsafe { bpf(MAP_LOOKUP, &mut entry) }.ok()?;
        Some(value)
    }

    /// Removes an entry, if it is there.
    pub(crate) fn remove(&self, key: &[u8; K]) {
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

/// Loads a program.
///
/// # Errors
/// The kernel's words; `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN`.
pub(crate) fn load(purpose: Purpose, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let (kind, flags) = match purpose {
        Purpose::Classifier => (3, 0),
        Purpose::Xdp { takes_fragments } => (6, if takes_fragments { TAKES_FRAGMENTS } else { 0 }),
    };
    let mut text = ProgramText {
        kind,
        instructions: instructions.len() as u32,
        text: instructions.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
        flags,
        name: NAME,
        ..ProgramText::default()
    };
    // SAFETY: the kernel reads so many instructions, which have its layout, and the
    // license up to its end; both outlive the call. There is no log to write to.
    let fd = unsafe { bpf(PROGRAM_LOAD, &mut text) }?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches an XDP program to the device of this index in the calling thread's namespace,
/// for as long as the descriptor that is returned is open, also if this process is killed.
///
/// # Errors
/// The kernel's words; `EBUSY` or `EEXIST` if the device has such a program, `EINVAL`
/// before Linux 5.9.
pub(crate) fn attach_xdp(
    program: BorrowedFd<'_>,
    device: u32,
    hook: XdpHook,
) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    let mut place = LinkPlace { program, device, kind: ATTACH_XDP, flags: hook as u32 };
    // SAFETY: for this command the kernel reads a `LinkPlace`, which has no pointers.
    let fd = unsafe { bpf(LINK_CREATE, &mut place) }?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has another program run where that of a link did, from one frame to the next.
///
/// # Errors
/// The kernel's words; `EINVAL` if the programs are of different kinds.
pub(crate) fn replace_program(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (link, program) = (link.as_raw_fd() as u32, program.as_raw_fd() as u32);
    let mut change = LinkProgram { link, program, flags: 0, expected_program: 0 };
    // SAFETY: for this command the kernel reads a `LinkProgram`, which has no pointers.
    unsafe { bpf(LINK_UPDATE, &mut change) }.map(drop)
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
