//! Faults found in a host file. A check locates a fault by the position of its table; conversion to
//! an error replaces the position by the resource's name and the line.

use crate::{ApiError, ErrorCode, HostConfig, ResourceKind};

/// Largest number of reported errors.
pub(crate) const ERRORS_MAX: usize = 256;

/// Position of a table among the tables of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FindingLocation {
    pub(crate) kind: ResourceKind,
    pub(crate) index: usize,
}

/// Fault of a host's configuration, found by validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) location: FindingLocation,
    /// Key within the table, such as `offload.tx_checksum`; `None` for the table itself.
    pub(crate) field: Option<String>,
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl FindingLocation {
    pub(crate) const fn new(kind: ResourceKind, index: usize) -> Self {
        Self { kind, index }
    }

    pub(crate) const FILE: Self = Self::new(ResourceKind::File, 0);

    /// Returns the path in the document: `` for the file, `host`, or `nic[2]`, counted from 0.
    pub(crate) fn path(self) -> String {
        match self.kind {
            ResourceKind::File => String::new(),
            kind if kind.is_resource() => format!("{}[{}]", kind.noun(), self.index),
            kind => kind.noun().to_owned(),
        }
    }

    /// Returns the label of the location: `nic/web` if the name is known, else `nic[2]`; `None` for
    /// the file.
    pub(crate) fn resource_label(self, name: Option<&str>) -> Option<String> {
        match (self.kind, name) {
            (ResourceKind::File, _) => None,
            (kind, Some(name)) if kind.is_resource() => Some(format!("{}/{name}", kind.noun())),
            _ => Some(self.path()),
        }
    }

    /// Returns the name of the resource at this location.
    pub(crate) fn resource_name(self, config: &HostConfig) -> Option<&str> {
        match self.kind {
            ResourceKind::Switch => config.switches.get(self.index).map(|s| s.name.as_str()),
            ResourceKind::Uplink => config.uplinks.get(self.index).map(|u| u.name.as_str()),
            ResourceKind::Team => config.teams.get(self.index).map(|t| t.name.as_str()),
            ResourceKind::Nic => config.nics.get(self.index).map(|n| n.name.as_str()),
            ResourceKind::Store => config.stores.get(self.index).map(|s| s.name.as_str()),
            ResourceKind::QosPolicy => config.qos_policies.get(self.index).map(|p| p.name.as_str()),
            ResourceKind::Disk => config.disks.get(self.index).map(|d| d.name.as_str()),
            ResourceKind::Vm => config.vms.get(self.index).map(|vm| vm.name.as_str()),
            ResourceKind::Pf => config.pfs.get(self.index).map(|pf| pf.name.as_str()),
            ResourceKind::Node => config.nodes.get(self.index).map(|node| node.name.as_str()),
            _ => None,
        }
    }

    /// Returns a fault of the key `field` at this location.
    pub(crate) fn finding(
        self,
        code: ErrorCode,
        field: &str,
        message: impl Into<String>,
    ) -> Finding {
        Finding { location: self, field: Some(field.to_owned()), code, message: message.into() }
    }
}

impl Finding {
    /// Converts the fault to an error; `name` is the resource's name if known.
    pub(crate) fn into_error(self, name: Option<&str>) -> ApiError {
        let mut error = ApiError::new(self.code, self.message);
        error.resource = self.location.resource_label(name);
        error.field = self.field;
        error
    }
}
