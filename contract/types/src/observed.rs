//! Observed state of each kind of named resource.

use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::{
    DiskConfig, DiskStatus, NicConfig, NicStatus, NodeConfig, NodeStatus, PfConfig, PfStatus,
    QosPolicyConfig, QosPolicyStatus, Resource, StoreConfig, StoreStatus, SwitchConfig,
    SwitchStatus, TeamConfig, TeamStatus, UplinkConfig, UplinkStatus, VmConfig, VmStatus,
};

/// Kind of named resource with its observed state.
pub trait Observed: Resource {
    /// Type of the observed state.
    type Status: Serialize + DeserializeOwned + ToSchema;
}

impl Observed for SwitchConfig {
    type Status = SwitchStatus;
}

impl Observed for UplinkConfig {
    type Status = UplinkStatus;
}

impl Observed for TeamConfig {
    type Status = TeamStatus;
}

impl Observed for NicConfig {
    type Status = NicStatus;
}

impl Observed for StoreConfig {
    type Status = StoreStatus;
}

impl Observed for QosPolicyConfig {
    type Status = QosPolicyStatus;
}

impl Observed for DiskConfig {
    type Status = DiskStatus;
}

impl Observed for VmConfig {
    type Status = VmStatus;
}

impl Observed for PfConfig {
    type Status = PfStatus;
}

impl Observed for NodeConfig {
    type Status = NodeStatus;
}
