//! A device's flow rules, and its table for all other frames.

use core::fmt;
use std::io;

use rustix::io::Errno;

use crate::flow_calls::{self, FlowOp};
use crate::flow_rules::{ANY_LOCATION, FlowRequest, FlowRule};
use crate::ioctl::{HEEDS_FLOW_RULES, has_feature, set_feature};
use crate::link::Link;

/// `ENOTSUPP`, which some drivers say instead of `EOPNOTSUPP`.
const NOT_SUPPORTED: i32 = 524;

/// Why a device does not have a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowError {
    /// It has none by addresses, or none at all.
    Unsupported(Errno),
    /// It has none of this form.
    Form(Errno),
    /// It has room for no more.
    Full,
    /// It looks at no VLANs, and another NIC has the same address in another VLAN.
    Ambiguous,
    /// The kernel refused otherwise.
    Host(Errno),
}

impl From<io::Error> for FlowError {
    fn from(cause: io::Error) -> Self {
        let errno = Errno::from_io_error(&cause).unwrap_or(Errno::IO);
        match errno {
            Errno::OPNOTSUPP | Errno::NOSYS => Self::Unsupported(errno),
            _ if errno.raw_os_error() == NOT_SUPPORTED => Self::Unsupported(errno),
            Errno::INVAL => Self::Form(errno),
            Errno::NOSPC | Errno::MSGSIZE => Self::Full,
            _ => Self::Host(errno),
        }
    }
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(errno) => {
                write!(f, "the device takes no flow rules by destination address ({errno})")
            }
            Self::Form(errno) => {
                write!(f, "the device refuses flow rules of this form ({errno})")
            }
            Self::Full => f.write_str("the device has room for no more flow rules"),
            Self::Ambiguous => f.write_str(
                "the device's flow rules look at no VLANs, and NICs in several have one address",
            ),
            Self::Host(errno) => write!(f, "a flow rule could not be set ({errno})"),
        }
    }
}

/// What rules are set on.
pub(super) trait FlowTable: Send {
    /// All rules of the form that [`FlowTable::insert`] makes, with their places.
    fn rules(&self) -> Result<Vec<(u32, FlowRule)>, FlowError>;

    /// Has one more; returns its place.
    fn insert(&mut self, rule: &FlowRule) -> Result<u32, FlowError>;

    /// Takes one away.
    fn remove(&mut self, location: u32) -> Result<(), FlowError>;

    /// Has frames of no rule arrive on these queues only, spread as evenly as it can; as
    /// the driver would of itself if there are none.
    fn spread(&mut self, queues: &[u16]) -> Result<(), FlowError>;
}

/// Those of a device of this host.
pub(super) struct DeviceFlowTable {
    link: Link,
    /// It did not heed rules before.
    was_switched_on: bool,
}

impl DeviceFlowTable {
    pub(super) const fn new(link: Link) -> Self {
        Self { link, was_switched_on: false }
    }

    fn call(&self, op: FlowOp, request: FlowRequest) -> Result<FlowRequest, FlowError> {
        let (socket, device) = self.link.asked();
        Ok(flow_calls::flow(socket, device, op, request)?)
    }

    /// Where a rule can be: where the driver likes, or at the last place that is free, as
    /// ethtool(8) does it.
    fn free_location(&self) -> Result<u32, FlowError> {
        let (count, driver_chooses) = self.call(flow_calls::COUNT, FlowRequest::empty())?.count();
        if driver_chooses {
            return Ok(ANY_LOCATION);
        }
        let (socket, device) = self.link.asked();
        let (taken, size) = flow_calls::flow_table(socket, device, count)?;
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        // As many places as are taken, and one more, hold a free one.
        let places = (0..size).rev().take(taken.len() + 1);
        places.into_iter().find(|at| !taken.contains(at)).ok_or(FlowError::Full)
    }

    fn insert_now(&self, rule: &FlowRule) -> Result<u32, FlowError> {
        let request = FlowRequest::insert(rule, self.free_location()?);
        Ok(self.call(flow_calls::INSERT, request)?.location())
    }

    /// Whether it heeds rules since this was called.
    fn switch_on(&mut self) -> bool {
        let (socket, device) = self.link.asked();
        let is_off = has_feature(socket, device, HEEDS_FLOW_RULES).is_ok_and(|on| !on);
        let is_switched = is_off && set_feature(socket, device, HEEDS_FLOW_RULES, true).is_ok();
        self.was_switched_on |= is_switched;
        is_switched
    }
}

impl FlowTable for DeviceFlowTable {
    fn rules(&self) -> Result<Vec<(u32, FlowRule)>, FlowError> {
        let (count, _) = self.call(flow_calls::COUNT, FlowRequest::empty())?.count();
        if count == 0 {
            return Ok(Vec::new());
        }
        let (socket, device) = self.link.asked();
        let (locations, _) = flow_calls::flow_table(socket, device, count)?;
        let rule = |at: u32| {
            let answer = self.call(flow_calls::READ, FlowRequest::at(at)).ok()?;
            Some((at, answer.rule()?))
        };
        Ok(locations.into_iter().filter_map(rule).collect())
    }

    fn insert(&mut self, rule: &FlowRule) -> Result<u32, FlowError> {
        match self.insert_now(rule) {
            Err(FlowError::Unsupported(_) | FlowError::Form(_)) if self.switch_on() => {
                self.insert_now(rule)
            }
            done => done,
        }
    }

    fn remove(&mut self, location: u32) -> Result<(), FlowError> {
        match self.call(flow_calls::REMOVE, FlowRequest::at(location)) {
            // Somebody was faster.
            Ok(_) | Err(FlowError::Host(Errno::NOENT)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn spread(&mut self, queues: &[u16]) -> Result<(), FlowError> {
        let (socket, device) = self.link.asked();
        let entries = flow_calls::spreading_entries(socket, device)?;
        Ok(flow_calls::set_spreading(socket, device, entries, queues)?)
    }
}

impl Drop for DeviceFlowTable {
    fn drop(&mut self) {
        if self.was_switched_on {
            let (socket, device) = self.link.asked();
            // The device may be gone.
            let _ = set_feature(socket, device, HEEDS_FLOW_RULES, false);
        }
    }
}
