//! Desired state of VMQ: which processors work off the queues of a team or uplink.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How queues are given to processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VmqMode {
    /// Once, when a NIC is added, evenly by weight.
    Static,
    /// By load: few processors at little load, many at much.
    #[default]
    Dynamic,
}

/// `[team.vmq]` and `[uplink.vmq]`. Processors are those of `[host] processors`, counted
/// from 0 in the order they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VmqConfig {
    /// Whether NICs have queues of their own; if not, the base processor works off all.
    pub enabled: bool,
    /// How queues are given to processors: once by weight, or by load.
    pub mode: VmqMode,
    /// The lowest processor that may be used, which is used first; the lowest there is if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_processor: Option<u16>,
    /// How many processors may be used at a time, 1 to 64; more than there are do no harm.
    pub max_processors: u16,
    /// The highest processor that may be used, `base_processor` or more; the highest there
    /// is if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_processor_number: Option<u16>,
    /// The only NUMA node whose processors may be used; any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
}

impl VmqConfig {
    /// Whether everything stands as it does where nothing is written.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for VmqConfig {
    /// As many processors as Hyper-V allows an adapter unless told otherwise.
    fn default() -> Self {
        Self {
            enabled: true,
            mode: VmqMode::default(),
            base_processor: None,
            max_processors: 4,
            max_processor_number: None,
            numa_node: None,
        }
    }
}
