//! Type of each kind of table.

/// Evaluates an expression in which `$config` is the Rust type of a table, such as
/// [`NicConfig`](crate::NicConfig) for [`ResourceKind::Nic`](crate::ResourceKind::Nic).
macro_rules! with_type {
    ($kind:expr, $config:ident => $result:expr) => {
        match $kind {
            $crate::ResourceKind::File => {
                type $config = $crate::HostConfig;
                $result
            }
            $crate::ResourceKind::Host => {
                type $config = $crate::HostSection;
                $result
            }
            $crate::ResourceKind::Api => {
                type $config = $crate::ApiConfig;
                $result
            }
            $crate::ResourceKind::Console => {
                type $config = $crate::ConsoleConfig;
                $result
            }
            $crate::ResourceKind::Lab => {
                type $config = $crate::LabConfig;
                $result
            }
            $crate::ResourceKind::Power => {
                type $config = $crate::PowerConfig;
                $result
            }
            $crate::ResourceKind::Cluster => {
                type $config = $crate::ClusterConfig;
                $result
            }
            $crate::ResourceKind::ClusterTls => {
                type $config = $crate::ClusterTls;
                $result
            }
            $crate::ResourceKind::Uplink => {
                type $config = $crate::UplinkConfig;
                $result
            }
            $crate::ResourceKind::Team => {
                type $config = $crate::TeamConfig;
                $result
            }
            $crate::ResourceKind::Switch => {
                type $config = $crate::SwitchConfig;
                $result
            }
            $crate::ResourceKind::Nic => {
                type $config = $crate::NicConfig;
                $result
            }
            $crate::ResourceKind::Store => {
                type $config = $crate::StoreConfig;
                $result
            }
            $crate::ResourceKind::QosPolicy => {
                type $config = $crate::QosPolicyConfig;
                $result
            }
            $crate::ResourceKind::Disk => {
                type $config = $crate::DiskConfig;
                $result
            }
            $crate::ResourceKind::Vm => {
                type $config = $crate::VmConfig;
                $result
            }
            $crate::ResourceKind::Pf => {
                type $config = $crate::PfConfig;
                $result
            }
            $crate::ResourceKind::Node => {
                type $config = $crate::NodeConfig;
                $result
            }
            $crate::ResourceKind::Vf => {
                type $config = $crate::VfConfig;
                $result
            }
            $crate::ResourceKind::Offload => {
                type $config = $crate::OffloadConfig;
                $result
            }
            $crate::ResourceKind::Vmq => {
                type $config = $crate::VmqConfig;
                $result
            }
            $crate::ResourceKind::DiskQos => {
                type $config = $crate::QosLimits;
                $result
            }
            $crate::ResourceKind::DiskVhostUser => {
                type $config = $crate::DiskVhostUser;
                $result
            }
            $crate::ResourceKind::DiskNbd => {
                type $config = $crate::DiskNbd;
                $result
            }
        }
    };
}

pub(crate) use with_type;
