//! Valid examples of configuration for the OpenAPI document. They contain the required keys only,
//! so that [`key_default`](crate::key_default) derives the defaults of all other keys from them.

use serde_json::Value;

use crate::ResourceKind;

/// Returns a valid table of this kind; `None` if an empty table is valid, or no example exists.
pub fn kind_example(kind: ResourceKind) -> Option<Value> {
    let text = match kind {
        ResourceKind::Switch => r#"{"name":"lan","kind":"private"}"#,
        ResourceKind::Uplink => r#"{"name":"left","device":"eth0"}"#,
        ResourceKind::Nic => r#"{"name":"web","switch":"lan","backend":"tap"}"#,
        ResourceKind::Team => r#"{"name":"both","members":["left","right"],"mode":"static"}"#,
        ResourceKind::Store => r#"{"name":"ssd","path":"/srv/ssd"}"#,
        ResourceKind::QosPolicy => r#"{"name":"gold"}"#,
        ResourceKind::Disk => r#"{"name":"web","store":"ssd","format":"raw"}"#,
        ResourceKind::Vm => r#"{"name":"web","memory_bytes":1073741824}"#,
        ResourceKind::Pf => r#"{"name":"port0","device":"eth0"}"#,
        ResourceKind::Vf => r#"{"index":0}"#,
        ResourceKind::Node => {
            r#"{"name":"node2","address":"node2.example.net:8443","ca_certificate":"/etc/suimon/ca.pem","token_file":"/etc/suimon/node2.token"}"#
        }
        ResourceKind::DiskVhostUser => r#"{"socket":"/run/suimon/web-disk.sock"}"#,
        ResourceKind::Power => r#"{"plan":"balanced"}"#,
        ResourceKind::Cluster => {
            r#"{"name":"lab","node":"node1","endpoints":["https://192.0.2.10:2379"]}"#
        }
        ResourceKind::ClusterTls => r#"{"ca_certificate":"/etc/suimon/etcd-ca.pem"}"#,
        ResourceKind::Lab
        | ResourceKind::Offload
        | ResourceKind::Vmq
        | ResourceKind::DiskQos
        | ResourceKind::DiskNbd => "{}",
        ResourceKind::File | ResourceKind::Host | ResourceKind::Api | ResourceKind::Console => {
            return None;
        }
    };
    serde_json::from_str(text).ok()
}
