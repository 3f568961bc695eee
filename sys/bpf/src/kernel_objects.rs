//! eBPF maps, programs and links in the kernel (bpf(2)).

#![allow(unsafe_code, reason = "bpf(2) has no safe form")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::instructions::EbpfInstruction;

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
/// `BPF_XDP`, the attach type of XDP links.
const ATTACH_XDP: u32 = 37;
/// Name of the programs, shown by tools such as bpftool.
const NAME: [u8; 16] = *b"suimon\0\0\0\0\0\0\0\0\0\0";
/// License of the programs. The helper functions they call have no license restriction.
const LICENSE: &core::ffi::CStr = c"Apache-2.0";

/// Arguments in `union bpf_attr` to create a map.
#[repr(C)]
#[derive(Default)]
struct MapShape {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
}

/// Arguments in `union bpf_attr` for a map's entry.
#[repr(C)]
#[derive(Default)]
struct MapEntry {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Arguments in `union bpf_attr` to load a program.
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

/// Arguments in `union bpf_attr` to create a link.
#[repr(C)]
struct LinkCreateArguments {
    program: u32,
    device: u32,
    kind: u32,
    flags: u32,
}

/// Arguments in `union bpf_attr` to replace a link's program.
#[repr(C)]
struct LinkProgram {
    link: u32,
    program: u32,
    flags: u32,
    expected_program: u32,
}

/// Type of a map (`BPF_MAP_TYPE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Hash table: entries are added and removed.
    Hash = 1,
    /// Array: keys are numbers from 0 on; all entries exist and are initially zero. Its value
    /// pointers stay valid for the map's lifetime.
    Array = 2,
    /// Socket map (`BPF_MAP_TYPE_XSKMAP`): keys are numbers of receive queues, values are AF_XDP
    /// sockets.
    XskMap = 17,
}

/// Type of a program (`BPF_PROG_TYPE_*`) and the hook it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramType {
    /// Program at a `tc` hook (`BPF_PROG_TYPE_SCHED_CLS`).
    Classifier,
    /// Program that receives a device's frames before the kernel's network stack
    /// (`BPF_PROG_TYPE_XDP`).
    Xdp {
        /// True if the kernel may pass frames that consist of several buffers to the program (Linux
        /// 5.18). A program that reads only the first buffer needs no other change for this.
        takes_fragments: bool,
    },
}

/// Hook of an XDP program: `XDP_FLAGS_*` of linux/if_link.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpHook {
    /// After the kernel allocated a packet buffer. Supported by every device.
    Generic = 1 << 1,
    /// In the driver of the device, before a packet buffer is allocated.
    Driver = 1 << 2,
}

/// Map shared by programs and this process. `K` and `V` are the sizes in bytes of its keys and
/// values.
#[derive(Debug)]
pub struct Map<const K: usize, const V: usize>(OwnedFd);

impl<const K: usize, const V: usize> Map<K, V> {
    /// Creates a map.
    ///
    /// # Errors
    /// The errno of the call; `EPERM` without `CAP_BPF` and `CAP_SYS_ADMIN`.
    pub fn new(kind: MapType, entries_max: u32) -> io::Result<Self> {
        let mut attributes = MapShape {
            kind: kind as u32,
            key_bytes: K as u32,
            value_bytes: V as u32,
            entries_max,
            flags: if kind == MapType::Hash { NO_PREALLOCATION } else { 0 },
        };
        // SAFETY: for this command the kernel reads a `MapShape`, which has no pointers.
        let fd = unsafe { bpf(MAP_CREATE, &mut attributes) }?;
        // SAFETY: the kernel just created this descriptor, which has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Returns the descriptor, for [`instructions::Assembler::map`].
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Adds or replaces an entry.
    ///
    /// # Errors
    /// The map is full (`E2BIG`), or the kernel has no memory.
    pub fn set(&self, key: &[u8; K], value: &[u8; V]) -> io::Result<()> {
        let mut entry = self.entry(key, value.as_ptr().expose_provenance());
        // SAFETY: the kernel reads `K` and `V` bytes where the entry points, as many as
        // the map was made with; both arrays outlive the call.
        unsafe { bpf(MAP_UPDATE, &mut entry) }.map(drop)
    }

    /// Returns the value of a key, if it exists.
    pub fn value(&self, key: &[u8; K]) -> Option<[u8; V]> {
        let mut value = [0; V];
        let mut entry = self.entry(key, value.as_mut_ptr().expose_provenance());
        // SAFETY: the kernel reads `K` bytes of the key and writes `V` bytes of the value;
        // both arrays outlive the call, and nothing else uses `value` meanwhile.
        unsafe { bpf(MAP_LOOKUP, &mut entry) }.ok()?;
        Some(value)
    }

    /// Removes an entry, if it exists.
    pub fn remove(&self, key: &[u8; K]) {
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
/// The errno of the call; `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN`.
pub fn load_program(purpose: ProgramType, instructions: &[EbpfInstruction]) -> io::Result<OwnedFd> {
    let (kind, flags) = match purpose {
        ProgramType::Classifier => (3, 0),
        ProgramType::Xdp { takes_fragments } => {
            (6, if takes_fragments { TAKES_FRAGMENTS } else { 0 })
        }
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
    // SAFETY: the kernel just created this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches an XDP program to the device with this index in the calling thread's namespace. The
/// program is detached when the returned descriptor is closed, also by the death of the process.
///
/// # Errors
/// The errno of the call; `EBUSY` or `EEXIST` if the device has an XDP program, `EINVAL` before
/// Linux 5.9.
pub fn attach_xdp(program: BorrowedFd<'_>, device: u32, hook: XdpHook) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    let mut attributes =
        LinkCreateArguments { program, device, kind: ATTACH_XDP, flags: hook as u32 };
    // SAFETY: for this command the kernel reads a `LinkCreateArguments`, which has no pointers.
    let fd = unsafe { bpf(LINK_CREATE, &mut attributes) }?;
    // SAFETY: the kernel just created this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Replaces the program of a link atomically between two frames.
///
/// # Errors
/// The errno of the call; `EINVAL` if the programs have different types.
pub fn replace_program(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (link, program) = (link.as_raw_fd() as u32, program.as_raw_fd() as u32);
    let mut change = LinkProgram { link, program, flags: 0, expected_program: 0 };
    // SAFETY: for this command the kernel reads a `LinkProgram`, which has no pointers.
    unsafe { bpf(LINK_UPDATE, &mut change) }.map(drop)
}

/// Executes a `bpf(2)` command.
///
/// # Safety
/// `attributes` must be the structure that the command reads, and its pointers must be valid for
/// the command.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let pointer = core::ptr::from_mut(attributes);
    // SAFETY: the kernel reads no more than the size of `attributes`; the caller ensures the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size_of::<T>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as libc::c_int)
}
