//! Which path a NIC's frames take that is to have a virtual function.

use core::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The path of a NIC's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IovPath {
    /// Through the switch.
    Synthetic,
    /// By a virtual function of an adapter.
    Vf,
}

/// Where a NIC is between its two paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IovStatus {
    /// The path that its frames take.
    pub path: IovPath,
    /// The PCI address of the adapter whose virtual function it has, whatever its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// The number of that function among those of the adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vf: Option<u16>,
    /// The function's own PCI address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Why its frames take the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl IovStatus {
    /// Its frames take the switch, and this is why.
    pub fn synthetic(reason: impl Into<String>) -> Self {
        let (path, reason) = (IovPath::Synthetic, Some(reason.into()));
        Self { path, adapter: None, vf: None, address: None, reason }
    }
}

/// `VF 3 of 0000:03:00.0`, or `synthetic (REASON)`.
impl fmt::Display for IovStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.path, self.vf, &self.adapter) {
            (IovPath::Vf, Some(vf), Some(adapter)) => write!(f, "VF {vf} of {adapter}"),
            (IovPath::Vf, ..) => f.write_str("VF"),
            (IovPath::Synthetic, ..) => match &self.reason {
                Some(reason) => write!(f, "synthetic ({reason})"),
                None => f.write_str("synthetic"),
            },
        }
    }
}
