//! ethtool ioctls for flow rules and the receive indirection table (linux/ethtool.h), each bound to
//! its argument type.
#![allow(unsafe_code, reason = "ioctl has no safe form for these requests")]

use std::io;
use std::os::fd::BorrowedFd;

use crate::flow_rules::{FlowRequest, decode_rule_locations, rule_locations_request};
use crate::ioctl::ethtool;

/// ethtool command for flow rules, whose argument is one `struct ethtool_rxnfc`.
#[derive(Clone, Copy)]
pub struct FlowOp(u32);

/// `ETHTOOL_GRXCLSRLCNT`: number of rules.
pub const COUNT: FlowOp = FlowOp(0x2e);
/// `ETHTOOL_GRXCLSRULE`: rule at a location.
pub const READ: FlowOp = FlowOp(0x2f);
/// `ETHTOOL_SRXCLSRLDEL`: removes the rule at a location.
pub const REMOVE: FlowOp = FlowOp(0x31);
/// `ETHTOOL_SRXCLSRLINS`: inserts a rule.
pub const INSERT: FlowOp = FlowOp(0x32);

const ALL_LOCATIONS: u32 = 0x30;
/// Maximum size of the table of a device's rules that is read, in rules.
const LOCATIONS_MAX: u32 = 1 << 16;

/// Executes a command for the flow rules of `device`. `fd` is any socket. Returns the structure as
/// the kernel has written it.
///
/// # Errors
/// The errno of the call; `EOPNOTSUPP` if the device supports no rules.
pub fn execute_flow_op(
    fd: BorrowedFd<'_>,
    device: &str,
    op: FlowOp,
    mut request: FlowRequest,
) -> io::Result<FlowRequest> {
    set_command(&mut request.0, op.0);
    // SAFETY: each `FlowOp` reads and writes one `struct ethtool_rxnfc`, which has the
    // size of a `FlowRequest`; the one command that writes more behind it is none of them.
    unsafe { ethtool(fd, device, &mut request.0) }?;
    Ok(request)
}

/// Returns the locations of the rules of `device`, and the size of its table in rules. `count`: the
/// number of rules that [`COUNT`] has returned.
///
/// # Errors
/// As [`execute_flow_op`]; `EMSGSIZE` if there are more rules.
pub fn query_rule_locations(
    fd: BorrowedFd<'_>,
    device: &str,
    count: u32,
) -> io::Result<(Vec<u32>, u64)> {
    let mut request = rule_locations_request(count.min(LOCATIONS_MAX));
    set_command(&mut request, ALL_LOCATIONS);
    // SAFETY: ETHTOOL_GRXCLSRLALL reads and writes a `struct ethtool_rxnfc` and writes
    // behind its fields as many locations as it says there is room for.
    unsafe { ethtool(fd, device, request.as_mut_slice()) }?;
    decode_rule_locations(&request).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

const GET_SPREADING: u32 = 0x38;
const SET_SPREADING: u32 = 0x39;
const SPREADING_MAX: u32 = 1 << 16;

/// Returns the number of entries of a device's receive indirection table, which distributes frames
/// over receive queues by a hash (`ETHTOOL_GRXFHINDIR`).
///
/// # Errors
/// The errno of the call; `EOPNOTSUPP` if the device has no such table.
pub fn indirection_entries(fd: BorrowedFd<'_>, device: &str) -> io::Result<u32> {
    // `struct ethtool_rxfh_indir` without entries requests their number.
    let mut request = [GET_SPREADING, 0];
    // SAFETY: ETHTOOL_GRXFHINDIR with a size of 0 reads and writes these two numbers.
    unsafe { ethtool(fd, device, &mut request) }?;
    let [_, entries] = request;
    Ok(entries)
}

/// Fills the receive indirection table, which has `entries` entries, with `queues`, repeated
/// cyclically. If `queues` is empty, restores the driver's default (`ETHTOOL_SRXFHINDIR`).
///
/// # Errors
/// The errno of the call.
pub fn set_indirection(
    fd: BorrowedFd<'_>,
    device: &str,
    entries: u32,
    queues: &[u16],
) -> io::Result<()> {
    let entries = if queues.is_empty() { 0 } else { entries.min(SPREADING_MAX) };
    let queues = queues.iter().copied().map(u32::from).cycle().take(entries as usize);
    let mut request: Vec<u32> = [SET_SPREADING, entries].into_iter().chain(queues).collect();
    // SAFETY: ETHTOOL_SRXFHINDIR reads two numbers and as many entries as the second says,
    // which are there: an empty cycle has no entries and says so.
    unsafe { ethtool(fd, device, request.as_mut_slice()) }
}

fn set_command(request: &mut [u8], command: u32) {
    if let Some(first) = request.first_chunk_mut() {
        *first = command.to_ne_bytes();
    }
}
