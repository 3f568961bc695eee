//! XDP program that passes a device's frames to the AF_XDP sockets.
//!
//! ```text
//!  frame ──▶ is it for the host (`host_frames`)? ──yes──▶ the kernel's network stack
//!                 │ no
//!                 ▼
//!            does the receive queue have a socket? ──no──▶ the kernel's network stack
//!                 │ yes
//!                 ▼
//!            the socket, and through it the switch
//! ```

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use suimon_bpf::instructions::{Assembler, EbpfInstruction, Register, Width};
use suimon_bpf::{Map, MapType, ProgramType, XdpHook};

use super::host_frames::{HostAddresses, Registers, emit_filter};

// Offsets in `struct xdp_md`, linux/bpf.h.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RECEIVE_QUEUE: i16 = 16;

/// Action `XDP_PASS`: the frame continues to the kernel's network stack.
const TO_THE_STACK: i32 = 2;
/// Number of the helper function `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;

fn instructions(sockets: i32, host: &HostAddresses) -> Vec<EbpfInstruction> {
    use Register::{R0, R1, R2, R3, R4, R5};
    let mut p = Assembler::default();
    let pass = p.label();
    p.load(Width::Word, R2, R1, DATA);
    p.load(Width::Word, R3, R1, DATA_END);
    emit_filter(&mut p, &Registers { start: R2, end: R3, scratch: [R4, R5] }, host, pass);
    p.load(Width::Word, R2, R1, RECEIVE_QUEUE);
    p.set_map(R1, sockets);
    p.set(R3, TO_THE_STACK);
    p.call(REDIRECT_MAP);
    p.exit();
    p.bind(pass);
    p.set(R0, TO_THE_STACK);
    p.exit();
    p.finish()
}

/// Program attached to a device until this value is dropped or the process ends.
#[derive(Debug)]
pub(super) struct AttachedProgram {
    sockets: Map<4, 4>,
    /// Hook at which the program runs.
    pub(super) hook: XdpHook,
    link: OwnedFd,
    program: OwnedFd,
    host: HostAddresses,
    takes_fragments: bool,
}

impl AttachedProgram {
    /// Attaches the program to the device with interface index `index`, in the driver, or before
    /// the kernel's network stack if the driver does not support that. All frames pass to the
    /// network stack until sockets are set.
    ///
    /// # Errors
    /// The kernel's errno. `EBUSY` or `EEXIST`: the device has another program.
    pub(super) fn new(
        index: u32,
        queues: u32,
        takes_fragments: bool,
        host: HostAddresses,
    ) -> io::Result<Self> {
        let sockets = Map::new(MapType::XskMap, queues)?;
        let program = load(&sockets, takes_fragments, &host)?;
        let attach = |hook| suimon_bpf::attach_xdp(program.as_fd(), index, hook);
        let (hook, link) = match attach(XdpHook::Driver) {
            Ok(link) => (XdpHook::Driver, link),
            Err(cause) if is_hook_in_use(&cause) => return Err(cause),
            Err(cause) => {
                tracing::info!(
                    %cause,
                    index,
                    "the driver has no native XDP; the kernel's generic XDP is used"
                );
                (XdpHook::Generic, attach(XdpHook::Generic)?)
            }
        };
        Ok(Self { sockets, hook, link, program, host, takes_fragments })
    }

    /// Passes the frames of a receive queue to `socket` from now on.
    ///
    /// # Errors
    /// The kernel's errno.
    pub(super) fn set_queue_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets.set(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())
    }

    /// Replaces the host's addresses, from the next frame on.
    ///
    /// # Errors
    /// The kernel's errno; the addresses are then unchanged.
    pub(super) fn set_host_addresses(&mut self, host: HostAddresses) -> io::Result<()> {
        if host != self.host {
            let program = load(&self.sockets, self.takes_fragments, &host)?;
            suimon_bpf::replace_program(self.link.as_fd(), program.as_fd())?;
            self.program = program;
            self.host = host;
        }
        Ok(())
    }
}

fn load(sockets: &Map<4, 4>, takes_fragments: bool, host: &HostAddresses) -> io::Result<OwnedFd> {
    suimon_bpf::load_program(
        ProgramType::Xdp { takes_fragments },
        &instructions(sockets.descriptor(), host),
    )
}

/// Returns true if attaching failed because another XDP program is attached to the device.
pub(super) fn is_hook_in_use(cause: &io::Error) -> bool {
    matches!(Errno::from_io_error(cause), Some(Errno::BUSY | Errno::EXIST))
}
