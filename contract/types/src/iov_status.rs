//! Path of the frames of a NIC with `iov_weight`.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Path of a NIC's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IovPath {
    /// Paravirtual path through the switch.
    #[serde(rename = "synthetic")]
    Paravirtual,
    /// Virtual function of an adapter.
    Vf,
}

/// State of a NIC's virtual function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IovStatus {
    /// Path that frames currently take.
    pub path: IovPath,
    /// PCI address of the adapter of the assigned virtual function, independent of the path in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// Number of the assigned virtual function on its adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "vf")]
    pub vf_index: Option<u16>,
    /// PCI address of the assigned virtual function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "address")]
    pub vf_address: Option<String>,
    /// Reason why frames take the paravirtual path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl IovStatus {
    /// Returns a state on the paravirtual path with the reason for it.
    pub fn paravirtual(reason: impl Into<String>) -> Self {
        let (path, reason) = (IovPath::Paravirtual, Some(reason.into()));
        Self { path, adapter: None, vf_index: None, vf_address: None, reason }
    }
}

/// Formats as `VF 3 of 0000:03:00.0`, or `paravirtual (REASON)`.
impl fmt::Display for IovStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.path, self.vf_index, &self.adapter) {
            (IovPath::Vf, Some(vf), Some(adapter)) => write!(f, "VF {vf} of {adapter}"),
            (IovPath::Vf, ..) => f.write_str("VF"),
            (IovPath::Paravirtual, ..) => match &self.reason {
                Some(reason) => write!(f, "synthetic ({reason})"),
                None => f.write_str("synthetic"),
            },
        }
    }
}
