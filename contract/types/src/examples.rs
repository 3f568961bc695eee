//! Valid examples of configuration, for the OpenAPI document. They have the required keys and no
//! others, so that they also tell the defaults of the rest ([`default_of`](crate::default_of)).

use serde_json::Value;

use crate::Kind;

/// A valid table of this kind; `None` if a table without keys is one, or none has been chosen.
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
            r#"{"name":"node2","address":"node2.example.net:8443","authority":"/etc/suimon/ca.pem","token_file":"/etc/suimon/node2.token"}"#
        }
        Kind::DiskVhostUser => r#"{"socket":"/run/suimon/web-disk.sock"}"#,
        Kind::Power => r#"{"plan":"balanced"}"#,
        Kind::Cluster => r#"{"name":"lab","node":"node1","endpoints":["https://192.0.2.10:2379"]}"#,
        Kind::ClusterTls => r#"{"authority":"/etc/suimon/etcd-ca.pem"}"#,
        Kind::Lab | Kind::Offload | Kind::Vmq | Kind::DiskQos | Kind::DiskNbd => "{}",
        Kind::File | Kind::Host | Kind::Api | Kind::Console => return None,
    };
    serde_json::from_str(text).ok()
}
