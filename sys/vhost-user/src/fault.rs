//! Why a message that could be read was not carried out.

use suimon_ports::PortFault;
use suimon_ring::{InflightError, LogError, MemoryError};
use thiserror::Error;

use crate::request::Request;

/// Why a message that could be read was not carried out.
#[derive(Debug, Error)]
pub enum DeviceFault {
    /// The VM's memory cannot be used as described.
    #[error("{request}: {source}")]
    Memory {
        /// The request.
        request: Request,
        /// What is wrong.
        source: MemoryError,
    },
    /// No such memory region.
    #[error("{request}: no region of {size:#x} bytes at guest address {guest_addr:#x}")]
    NoRegion {
        /// The request.
        request: Request,
        /// Guest-physical address named.
        guest_addr: u64,
        /// Size named.
        size: u64,
    },
    /// No such vring.
    #[error("{request}: vring {index}, this {noun} has {count}")]
    VringIndex {
        /// The request.
        request: Request,
        /// The vring named.
        index: u32,
        /// `NIC` or `disk`.
        noun: &'static str,
        /// Vrings of the device.
        count: usize,
    },
    /// Feature bits that were not offered.
    #[error("{request}: bits {bits:#x} were not offered")]
    NotOffered {
        /// The request.
        request: Request,
        /// The bits.
        bits: u64,
    },
    /// A descriptor that is no eventfd.
    #[error("{request}: vring {index}: {reason}")]
    EventFd {
        /// The request.
        request: Request,
        /// The vring.
        index: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// The log of written pages cannot be used as described.
    #[error("SET_LOG_BASE: {source}")]
    Log {
        /// What is wrong.
        source: LogError,
    },
    /// The record of what is in flight cannot be made or used as described.
    #[error("in-flight record: {source}")]
    Inflight {
        /// What is wrong.
        source: InflightError,
    },
    /// A request whose protocol feature was not negotiated.
    #[error("{request}: its protocol feature, bit {bit}, was not negotiated")]
    NotNegotiated {
        /// The request.
        request: Request,
        /// The feature's number.
        bit: u32,
    },
    /// A position that no split ring has.
    #[error("{request}: vring {index}: base {base:#x}, a split ring has 0 to 0xffff")]
    Base {
        /// The request.
        request: Request,
        /// The vring.
        index: u32,
        /// The position named.
        base: u32,
    },
    /// A channel for requests of ours that is none.
    #[error("SET_BACKEND_REQ_FD: {reason}")]
    Channel {
        /// What is wrong with it.
        reason: String,
    },
    /// A ring that cannot run as described.
    #[error("{request}: {source}")]
    Ring {
        /// The request that would have started it.
        request: Request,
        /// What is wrong.
        source: PortFault,
    },
    /// An MTU that the port does not carry. The connection goes on.
    #[error("NET_SET_MTU: {mtu} bytes, the port carries 68 to {max}; raise `mtu` of the NIC")]
    Mtu {
        /// What the front-end wants.
        mtu: u64,
        /// What the port carries.
        max: u16,
    },
    /// That part of configuration space cannot be written. The connection goes on.
    #[error("SET_CONFIG: {bytes} bytes at {offset}: configuration space is read-only there")]
    ReadOnly {
        /// First byte.
        offset: u32,
        /// How many.
        bytes: usize,
    },
}

impl DeviceFault {
    /// Whether the front-end has to be cut off, because it and we would from now
    /// on believe different things.
    pub const fn is_fatal(&self) -> bool {
        !matches!(self, Self::Mtu { .. } | Self::ReadOnly { .. })
    }
}
