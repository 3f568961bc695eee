//! Type of each kind of table.

/// Evaluates an expression with the type of a kind of table.
macro_rules! with_type {
    ($kind:expr, $config:ident => $result:expr) => {
        match $kind {
            $crate::Kind::File => {
                type $config = $crate::HostConfig;
                $result
            }
            $crate::Kind::Host => {
                type $config = $crate::HostSection;
                $result
            }
            $crate::Kind::Api => {
                type $config = $crate::ApiConfig;
                $result
            }
            $crate::Kind::Console => {
                type $config = $crate::ConsoleConfig;
                $result
            }
            $crate::Kind::Lab => {
                type $config = $crate::LabConfig;
                $result
            }
            $crate::Kind::Power => {
                type $config = $crate::PowerConfig;
                $result
            }
            $crate::Kind::Cluster => {
                type $config = $crate::ClusterConfig;
                $result
            }
            $crate::Kind::ClusterTls => {
                type $config = $crate::ClusterTls;
                $result
            }
            $crate::Kind::Uplink => {
                type $config = $crate::UplinkConfig;
                $result
            }
            $crate::Kind::Team => {
                type $config = $crate::TeamConfig;
                $result
            }
            $crate::Kind::Switch => {
                type $config = $crate::SwitchConfig;
                $result
            }
            $crate::Kind::Nic => {
                type $config = $crate::NicConfig;
                $result
            }
            $crate::Kind::Store => {
                type $config = $crate::StoreConfig;
                $result
            }
            $crate::Kind::QosPolicy => {
                type $config = $crate::QosPolicyConfig;
                $result
            }
            $crate::Kind::Disk => {
                type $config = $crate::DiskConfig;
                $result
            }
            $crate::Kind::Vm => {
                type $config = $crate::VmConfig;
                $result
            }
            $crate::Kind::Pf => {
                type $config = $crate::PfConfig;
                $result
            }
            $crate::Kind::Node => {
                type $config = $crate::NodeConfig;
                $result
            }
            $crate::Kind::Vf => {
                type $config = $crate::VfConfig;
                $result
            }
            $crate::Kind::Offload => {
                type $config = $crate::OffloadConfig;
                $result
            }
            $crate::Kind::Vmq => {
                type $config = $crate::VmqConfig;
                $result
            }
            $crate::Kind::DiskQos => {
                type $config = $crate::DiskQos;
                $result
            }
            $crate::Kind::DiskVhostUser => {
                type $config = $crate::DiskVhostUser;
                $result
            }
            $crate::Kind::DiskNbd => {
                type $config = $crate::DiskNbd;
                $result
            }
        }
    };
}

pub(crate) use with_type;
