//! Table of flow rules of a device, and its receive indirection table.

use core::fmt;
use std::io;

use rustix::io::Errno;
use suimon_netif::flow_calls::{self, FlowOp};
use suimon_netif::flow_rules::{ANY_LOCATION, FlowRequest, FlowRule};
use suimon_netif::ioctl::{NTUPLE_FILTERS, has_feature, set_feature};

use crate::link::Link;

/// Error number `ENOTSUPP`, which some drivers return instead of `EOPNOTSUPP`.
const NOT_SUPPORTED: i32 = 524;

/// Reason why a device rejected a flow rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowError {
    /// The device supports no flow rules, or none with a destination address.
    Unsupported(Errno),
    /// The device does not support rules of this form.
    UnsupportedForm(Errno),
    /// The device's table is full.
    Full,
    /// The device's rules ignore VLANs, and a rule for the same address in another VLAN exists.
    Ambiguous,
    /// The kernel returned an error that none of the others describes.
    Host(Errno),
}

impl From<io::Error> for FlowError {
    fn from(cause: io::Error) -> Self {
        let errno = Errno::from_io_error(&cause).unwrap_or(Errno::IO);
        match errno {
            Errno::OPNOTSUPP | Errno::NOSYS => Self::Unsupported(errno),
            _ if errno.raw_os_error() == NOT_SUPPORTED => Self::Unsupported(errno),
            Errno::INVAL => Self::UnsupportedForm(errno),
            Errno::NOSPC | Errno::MSGSIZE => Self::Full,
            _ => Self::Host(errno),
        }
    }
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(errno) => {
                write!(f, "the device does not support flow rules by destination address ({errno})")
            }
            Self::UnsupportedForm(errno) => {
                write!(f, "the device rejects flow rules of this form ({errno})")
            }
            Self::Full => f.write_str("the flow rule table of the device is full"),
            Self::Ambiguous => f.write_str(
                "flow rules of the device ignore VLANs, and NICs in several VLANs have the same \
                 address",
            ),
            Self::Host(errno) => write!(f, "a flow rule could not be set ({errno})"),
        }
    }
}

/// Table of flow rules of a device. Tests simulate it.
pub(super) trait FlowTable: Send {
    /// Returns all rules that have the form of those that [`FlowTable::insert`] creates, each with
    /// its location.
    fn rules(&self) -> Result<Vec<(u32, FlowRule)>, FlowError>;

    /// Inserts a rule and returns its location in the table.
    fn insert(&mut self, rule: &FlowRule) -> Result<u32, FlowError>;

    /// Removes the rule at a location.
    fn remove(&mut self, location: u32) -> Result<(), FlowError>;

    /// Distributes frames that match no rule evenly over `queues`. If `queues` is empty, restores
    /// the driver's default.
    fn distribute_unmatched(&mut self, queues: &[u16]) -> Result<(), FlowError>;
}

/// Table of flow rules of a device of this host, by ioctl.
pub(super) struct DeviceFlowTable {
    link: Link,
    /// True if flow rules were disabled and this process has enabled them.
    was_enabled: bool,
}

impl DeviceFlowTable {
    pub(super) const fn new(link: Link) -> Self {
        Self { link, was_enabled: false }
    }

    fn call(&self, op: FlowOp, request: FlowRequest) -> Result<FlowRequest, FlowError> {
        let (socket, device) = self.link.request_socket();
        Ok(flow_calls::execute_flow_op(socket, device, op, request)?)
    }

    /// Returns the location for a new rule: [`ANY_LOCATION`] if the driver chooses it, otherwise
    /// the last free location, as ethtool(8) does.
    fn free_location(&self) -> Result<u32, FlowError> {
        let count = self.call(flow_calls::COUNT, FlowRequest::empty())?.table_info();
        if count.driver_assigns_locations {
            return Ok(ANY_LOCATION);
        }
        let (socket, device) = self.link.request_socket();
        let (used, size) = flow_calls::query_rule_locations(socket, device, count.rule_count)?;
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        // The last n + 1 locations contain a free one if n are used.
        let locations = (0..size).rev().take(used.len() + 1);
        locations.into_iter().find(|location| !used.contains(location)).ok_or(FlowError::Full)
    }

    fn insert_now(&self, rule: &FlowRule) -> Result<u32, FlowError> {
        let request = FlowRequest::for_insert(rule, self.free_location()?);
        Ok(self.call(flow_calls::INSERT, request)?.location())
    }

    /// Enables flow rules. Returns true if they were disabled before.
    fn switch_on(&mut self) -> bool {
        let (socket, device) = self.link.request_socket();
        let is_off = has_feature(socket, device, NTUPLE_FILTERS).is_ok_and(|is_on| !is_on);
        let is_switched = is_off && set_feature(socket, device, NTUPLE_FILTERS, true).is_ok();
        self.was_enabled |= is_switched;
        is_switched
    }
}

impl FlowTable for DeviceFlowTable {
    fn rules(&self) -> Result<Vec<(u32, FlowRule)>, FlowError> {
        let rules = self.call(flow_calls::COUNT, FlowRequest::empty())?.table_info().rule_count;
        if rules == 0 {
            return Ok(Vec::new());
        }
        let (socket, device) = self.link.request_socket();
        let (locations, _) = flow_calls::query_rule_locations(socket, device, rules)?;
        let rule = |location: u32| {
            let answer = self.call(flow_calls::READ, FlowRequest::for_location(location)).ok()?;
            Some((location, answer.rule()?))
        };
        Ok(locations.into_iter().filter_map(rule).collect())
    }

    fn insert(&mut self, rule: &FlowRule) -> Result<u32, FlowError> {
        match self.insert_now(rule) {
            Err(FlowError::Unsupported(_) | FlowError::UnsupportedForm(_)) if self.switch_on() => {
                self.insert_now(rule)
            }
            result => result,
        }
    }

    fn remove(&mut self, location: u32) -> Result<(), FlowError> {
        match self.call(flow_calls::REMOVE, FlowRequest::for_location(location)) {
            // The rule was removed already.
            Ok(_) | Err(FlowError::Host(Errno::NOENT)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn distribute_unmatched(&mut self, queues: &[u16]) -> Result<(), FlowError> {
        let (socket, device) = self.link.request_socket();
        let entries = flow_calls::indirection_entries(socket, device)?;
        Ok(flow_calls::set_indirection(socket, device, entries, queues)?)
    }
}

impl Drop for DeviceFlowTable {
    fn drop(&mut self) {
        if self.was_enabled {
            let (socket, device) = self.link.request_socket();
            // The device may have been removed.
            let _ = set_feature(socket, device, NTUPLE_FILTERS, false);
        }
    }
}
