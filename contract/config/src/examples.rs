//! Valid examples of configuration for the OpenAPI document. They contain the required keys only,
//! so that [`default_of`](crate::default_of) derives the defaults of all other keys from them.

use serde_json::Value;

use crate::Kind;

/// Returns a valid table of this kind; `None` if an empty table is valid, or no example exists.
pub fn example_of(kind: Kind) -> Option<Value> {
    let text = match kind {
        Kind::Switch => r#"{"name":"lan","kind":"private"}"#,
        Kind::Uplink => r#"{"name":"left","device":"eth0"}"#,
        Kind::Nic => r#"{"name":"web","switch":"lan","backend":"tap"}"#,
        Kind::Team => r#"{"name":"both","members":["left","right"],"mode":"static"}"#,
        Kind::Store => r#"{"name":"ssd","path":"/srv/ssd"}"#,
        Kind::QosPolicy => r#"{"name":"gold"}"#,
        Kind::Disk => r#"{"name":"web","store":"ssd","format":"raw"}"#,
        Kind::Vm => r#"{"name":"web","memory_bytes":1073741824}"#,
        Kind::Pf => r#"{"name":"port0","device":"eth0"}"#,
        Kind::Vf => r#"{"index":0}"#,
        Kind::Node => {
            r#"{"name":"node2","address":"node2.example.net:8443","ca_certificate":"/etc/suimon/ca.pem","token_file":"/etc/suimon/node2.token"}"#
        }
        Kind::DiskVhostUser => r#"{"socket":"/run/suimon/web-disk.sock"}"#,
        Kind::Power => r#"{"plan":"balanced"}"#,
        Kind::Cluster => r#"{"name":"lab","node":"node1","endpoints":["https://192.0.2.10:2379"]}"#,
        Kind::ClusterTls => r#"{"ca_certificate":"/etc/suimon/etcd-ca.pem"}"#,
        Kind::Lab | Kind::Offload | Kind::Vmq | Kind::DiskQos | Kind::DiskNbd => "{}",
        Kind::File | Kind::Host | Kind::Api | Kind::Console => return None,
    };
    serde_json::from_str(text).ok()
}
