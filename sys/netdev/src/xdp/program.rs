//! The program that gives a device's frames to the sockets.
//!
//! ```text
//!            frame ──▶ slow protocol or LLDP? ──yes──▶ the kernel's stack
//!                             │ no
//!                             ▼
//!                 socket of this receive queue? ──no──▶ the kernel's stack
//!                             │ yes
//!                             ▼
//!                         the switch
//! ```
//!
//! LACPDUs and Marker PDUs (EtherType 0x8809) are for the control sockets of teams, and
//! LLDP (0x88cc) for whoever speaks it on this host: both concern the link, and no switch
//! forwards them (IEEE 802.1Q-2022, Table 8-1).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::bpf::instructions::{Assembler, If, Instruction, Register, Width};
use crate::bpf::{self, Kind, Map, Purpose, XdpHook};

// `struct xdp_md`, linux/bpf.h.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RECEIVE_QUEUE: i16 = 16;

/// `XDP_PASS`.
const TO_THE_STACK: i32 = 2;
/// `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;

const ETHERTYPE_AT: i16 = 12;
const ETHERNET_BYTES: i32 = 14;
/// What stays with the kernel.
const OF_THE_LINK: [[u8; 2]; 2] = [[0x88, 0x09], [0x88, 0xcc]];

fn instructions(sockets: i32) -> Vec<Instruction> {
    use Register::{R0, R1, R2, R3, R4};
    let mut p = Assembler::default();
    let pass = p.label();
    p.load(Width::Word, R2, R1, DATA);
    p.load(Width::Word, R3, R1, DATA_END);
    p.copy(R4, R2);
    p.add(R4, ETHERNET_BYTES);
    p.jump_if_registers(R4, If::Greater, R3, pass);
    p.load(Width::Half, R4, R2, ETHERTYPE_AT);
    for ethertype in OF_THE_LINK {
        p.jump_if(R4, If::Equal, u16::from_ne_bytes(ethertype).into(), pass);
    }
    p.load(Width::Word, R2, R1, RECEIVE_QUEUE);
    p.map(R1, sockets);
    p.set(R3, TO_THE_STACK);
    p.call(REDIRECT_MAP);
    p.exit();
    p.place(pass);
    p.set(R0, TO_THE_STACK);
    p.exit();
    p.finish()
}

/// The program at a device, until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Attached {
    sockets: Map<4, 4>,
    /// In whose driver it runs, or not.
    pub(super) hook: XdpHook,
    _link: OwnedFd,
    _program: OwnedFd,
}

impl Attached {
    /// Attaches it in the driver, or in front of the kernel's stack if the driver refuses.
    /// Frames go on to the stack until there are sockets.
    ///
    /// # Errors
    /// The kernel's words. `EBUSY` or `EEXIST`: the device has another program.
    pub(super) fn new(index: u32, queues: u32, takes_fragments: bool) -> io::Result<Self> {
        let sockets = Map::new(Kind::Sockets, queues)?;
        let program =
            bpf::load(Purpose::Xdp { takes_fragments }, &instructions(sockets.descriptor()))?;
        let attach = |hook| bpf::attach_xdp(program.as_fd(), index, hook);
        let (hook, link) = match attach(XdpHook::Driver) {
            Ok(link) => (XdpHook::Driver, link),
            Err(cause) if is_taken(&cause) => return Err(cause),
            Err(cause) => {
                tracing::info!(%cause, index, "a driver runs no XDP program; the kernel does");
                (XdpHook::Generic, attach(XdpHook::Generic)?)
            }
        };
        Ok(Self { sockets, hook, _link: link, _program: program })
    }

    /// Gives the frames of a receive queue to a socket.
    ///
    /// # Errors
    /// The kernel's words.
    pub(super) fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets.set(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())
    }
}

/// Whether an attempt to attach says that the device has another program.
pub(super) fn is_taken(cause: &io::Error) -> bool {
    matches!(Errno::from_io_error(cause), Some(Errno::BUSY | Errno::EXIST))
}
