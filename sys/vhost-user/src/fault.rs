//! Reasons why a valid message was not executed.

use suimon_eventfd::EventFdError;
use suimon_ports::QueueFault;
use suimon_ring::{InflightError, LogError, MemoryError};
use thiserror::Error;

use crate::request::Request;

/// Reason why a valid message was not executed.
#[derive(Debug, Error)]
pub enum DeviceFault {
    /// The VM's memory cannot be mapped as the message describes it.
    #[error("{request}: {source}")]
    Memory {
        /// Request of the rejected message.
        request: Request,
        /// Error of the memory mapping.
        source: MemoryError,
    },
    /// The message refers to a memory region that is not mapped.
    #[error("{request}: no memory region of {size:#x} bytes at guest address {guest_addr:#x}")]
    NoRegion {
        /// Request of the rejected message.
        request: Request,
        /// Guest-physical address in the message.
        guest_addr: u64,
        /// Size in the message, in bytes.
        size: u64,
    },
    /// The message refers to a vring that the device does not have.
    #[error("{request}: vring {index} does not exist, this {device_kind} has {count} vrings")]
    VringIndex {
        /// Request of the rejected message.
        request: Request,
        /// Vring index in the message.
        index: u32,
        /// Kind of the device, for the message: `NIC` or `disk`.
        device_kind: &'static str,
        /// Number of vrings of the device.
        count: usize,
    },
    /// The message acknowledges features that were not offered.
    #[error("{request}: feature bits {bits:#x} were not offered")]
    NotOffered {
        /// Request of the rejected message.
        request: Request,
        /// Bits that were not offered.
        bits: u64,
    },
    /// The message carries a descriptor that is not an eventfd for this use.
    #[error("{request}: vring {index}: {source}")]
    EventFd {
        /// Request of the rejected message.
        request: Request,
        /// Index of the vring, counted from 0.
        index: u32,
        /// Reason why the descriptor is rejected.
        source: EventFdError,
    },
    /// The log of written pages cannot be mapped as described.
    #[error("SET_LOG_BASE: {source}")]
    Log {
        /// Error of the log's mapping.
        source: LogError,
    },
    /// The in-flight record cannot be created or mapped as described.
    #[error("in-flight record: {source}")]
    Inflight {
        /// Error of the record's creation or mapping.
        source: InflightError,
    },
    /// The protocol feature of the request was not negotiated.
    #[error("{request}: its protocol feature (bit {bit}) was not negotiated")]
    NotNegotiated {
        /// Request of the rejected message.
        request: Request,
        /// Bit number of the protocol feature.
        bit: u32,
    },
    /// The position of a split ring in the message exceeds 16 bits.
    #[error("{request}: vring {index}: base {base:#x} of a split ring is outside of 0 to 0xffff")]
    Base {
        /// Request of the rejected message.
        request: Request,
        /// Index of the vring, counted from 0.
        index: u32,
        /// Position (`num`) in the message.
        base: u32,
    },
    /// The descriptor in the message cannot be used as a channel for back-end requests.
    #[error("SET_BACKEND_REQ_FD: {reason}")]
    Channel {
        /// Reason why the descriptor is rejected.
        reason: String,
    },
    /// A ring cannot run as configured.
    #[error("{request}: {source}")]
    Ring {
        /// Request that would have started the ring.
        request: Request,
        /// Error that names the queue and the invalid parameter.
        source: QueueFault,
    },
    /// The port does not support the MTU in the message. The connection stays open.
    #[error("NET_SET_MTU: {mtu} bytes are outside of 68 to {max}; raise `mtu` of the NIC")]
    Mtu {
        /// MTU that the front-end requested, in bytes.
        mtu: u64,
        /// Maximum MTU of the port, in bytes.
        max: u16,
    },
    /// The message writes to a read-only part of configuration space. The connection stays open.
    #[error(
        "SET_CONFIG: {bytes} bytes at offset {offset} of the configuration space are read-only"
    )]
    ReadOnlyConfig {
        /// Offset of the first byte in configuration space.
        offset: u32,
        /// Number of bytes from `offset` on.
        bytes: usize,
    },
}

impl DeviceFault {
    /// Returns true if the front-end must be disconnected, because its state and the device's would
    /// differ from now on.
    pub const fn is_fatal(&self) -> bool {
        !matches!(self, Self::Mtu { .. } | Self::ReadOnlyConfig { .. })
    }
}
