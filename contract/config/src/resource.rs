//! Kinds of named resources, as types.

use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::{
    DiskConfig, HostConfig, Name, NicConfig, NodeConfig, PfConfig, QosPolicyConfig, ResourceKind,
    StoreConfig, SwitchConfig, TeamConfig, UplinkConfig, VmConfig,
};

/// Named resource of which a host may have several: a switch, an uplink, a team, a NIC, a store, a
/// QoS policy, a disk, a VM, an SR-IOV adapter or another node. Each kind is a collection of the
/// API.
pub trait Resource: Serialize + DeserializeOwned + ToSchema + Clone + PartialEq {
    /// Kind of the resource.
    const KIND: ResourceKind;

    /// Path of the collection relative to the API's root, such as `nics`.
    const PATH: &'static str;

    /// Returns the resource's name.
    fn name(&self) -> &Name;

    /// Returns the resources of this kind in the desired state.
    fn all(config: &HostConfig) -> &Vec<Self>;

    /// Returns the resources of this kind in the desired state, for modification.
    fn all_mut(config: &mut HostConfig) -> &mut Vec<Self>;
}

macro_rules! resource {
    ($type:ty, $kind:expr, $list:ident, $path:literal) => {
        impl Resource for $type {
            const KIND: ResourceKind = $kind;

            const PATH: &'static str = $path;

            fn name(&self) -> &Name {
                &self.name
            }

            fn all(config: &HostConfig) -> &Vec<Self> {
                &config.$list
            }

            fn all_mut(config: &mut HostConfig) -> &mut Vec<Self> {
                &mut config.$list
            }
        }
    };
}

resource!(SwitchConfig, ResourceKind::Switch, switches, "switches");
resource!(UplinkConfig, ResourceKind::Uplink, uplinks, "uplinks");
resource!(TeamConfig, ResourceKind::Team, teams, "teams");
resource!(NicConfig, ResourceKind::Nic, nics, "nics");
resource!(StoreConfig, ResourceKind::Store, stores, "stores");
resource!(QosPolicyConfig, ResourceKind::QosPolicy, qos_policies, "qos-policies");
resource!(DiskConfig, ResourceKind::Disk, disks, "disks");
resource!(VmConfig, ResourceKind::Vm, vms, "vms");
resource!(PfConfig, ResourceKind::Pf, pfs, "pfs");
resource!(NodeConfig, ResourceKind::Node, nodes, "nodes");
