use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    ApiConfig, ClusterConfig, ClusterTls, ConsoleConfig, DiskConfig, DiskNbd, DiskVhostUser,
    HostSection, LabConfig, NicConfig, PowerConfig, QosLimits, QosPolicyConfig, StoreConfig,
    SwitchConfig, TeamConfig, UplinkConfig, VmqConfig, kind_example, parse_apply, parse_resource,
    patch_resource,
};

/// Returns values of every type at the limits of the keys' ranges.
fn odd_values() -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(u64::MAX),
        json!(i64::MIN),
        json!({}),
        json!({"a": 1}),
        json!([]),
        json!([[]]),
        json!([null]),
        json!([0]),
        json!([1, 2]),
        json!([65_535]),
        json!([65_536]),
        json!([-1]),
        json!(["10-20"]),
        json!(["20-10"]),
        json!(["10-"]),
        json!(["-"]),
        json!(["a", "b"]),
        json!({"base_worker": 3}),
        json!({"socket": "/a"}),
        json!({"min_iops": 3}),
        json!([1.5]),
    ];
    values.extend(
        [0u64, 1, 9, 10, 64, 65, 68, 4094, 4095, 9216, 65_535, 65_536, 1 << 32, 512, 4096]
            .map(Value::from),
    );
    let texts = [
        "",
        "a",
        "tap",
        "static",
        "lacp",
        "hyper-v-port",
        "fast",
        "vhost-user",
        "af_packet",
        "server",
        "private",
        "/",
        "/a",
        "a/b",
        "..",
        "52:54:00:12:34:56",
        "ff:ff:ff:ff:ff:ff",
        "127.0.0.1:1",
        "\u{0}",
        "ä",
        "10",
        "10 GiB",
        "4096 B",
        "10 GB",
        "vhdx",
        "raw",
        "dynamic",
        "aggregated",
        "a/../b",
    ];
    values.extend(texts.map(Value::from));
    values
}

/// Asserts that the type accepts every value that passes the table of keys: serde alone rejects no
/// value, since its errors do not name the key.
fn agrees<T: DeserializeOwned>(kind: ResourceKind, minimal: &Value) {
    for key in kind.keys() {
        for value in odd_values() {
            let mut table = minimal.as_object().unwrap().clone();
            table.insert(key.name.to_owned(), value.clone());
            if check_table(FindingLocation::new(kind, 0), &table).is_empty() {
                let read = super::read_table::<T>(FindingLocation::new(kind, 0), table);
                assert!(read.is_ok(), "{kind:?} {} = {value}: {:?}", key.name, read.err());
            }
        }
    }
}

#[test]
fn the_table_of_keys_is_at_least_as_strict_as_the_types() {
    agrees::<HostSection>(ResourceKind::Host, &json!({}));
    let api =
        json!({"listen": "[::]:1", "tls_certificate": "/c", "tls_key": "/k", "token_file": "/t"});
    agrees::<ApiConfig>(ResourceKind::Api, &api);
    agrees::<ConsoleConfig>(ResourceKind::Console, &json!({"listen": "[::1]:1"}));
    agrees::<LabConfig>(ResourceKind::Lab, &json!({}));
    agrees::<PowerConfig>(ResourceKind::Power, &json!({"plan": "custom"}));
    let cluster = json!({"name": "a", "node": "b", "endpoints": ["http://a:1"]});
    agrees::<ClusterConfig>(ResourceKind::Cluster, &cluster);
    agrees::<ClusterTls>(ResourceKind::ClusterTls, &json!({"authority": "/a"}));
    agrees::<SwitchConfig>(ResourceKind::Switch, &json!({"name": "a", "kind": "private"}));
    agrees::<UplinkConfig>(ResourceKind::Uplink, &json!({"name": "a", "device": "d"}));
    let team = json!({"name": "a", "members": ["b"], "mode": "lacp"});
    agrees::<TeamConfig>(ResourceKind::Team, &team);
    agrees::<VmqConfig>(ResourceKind::Vmq, &json!({}));
    agrees::<NicConfig>(ResourceKind::Nic, &json!({"name": "a", "switch": "s", "backend": "tap"}));
    agrees::<StoreConfig>(ResourceKind::Store, &json!({"name": "a", "path": "/a"}));
    agrees::<QosPolicyConfig>(ResourceKind::QosPolicy, &json!({"name": "a"}));
    let disk = json!({"name": "a", "store": "s", "format": "raw"});
    agrees::<DiskConfig>(ResourceKind::Disk, &disk);
    agrees::<QosLimits>(ResourceKind::DiskQos, &json!({}));
    agrees::<DiskVhostUser>(ResourceKind::DiskVhostUser, &json!({"socket": "/a"}));
    agrees::<DiskNbd>(ResourceKind::DiskNbd, &json!({"socket": "/a"}));
}

#[test]
fn messages_cannot_drive_a_terminal() {
    let table = json!({"name": "a", "kind": "\u{1b}[2J", "\u{1b}[31m": 1});
    let findings =
        check_table(FindingLocation::new(ResourceKind::Switch, 0), table.as_object().unwrap());
    assert_eq!(findings.len(), 2);
    for finding in findings {
        let error = finding.into_error(None).to_string();
        assert!(!error.chars().any(char::is_control), "{error:?}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = "(name|switch|kind|backend|vlan|trunk|offload|toml|config|nic|team|members|vmq|mtu|disk|store|format|qos|size_bytes|[a-z]{0,3})";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u64..5000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(tap|private|lan|raw|1 GiB|[ -~]{0,12})".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_body_panics(body in any_json()) {
        let body = body.to_string();
        let body = body.as_bytes();
        let nic: NicConfig =
            parse_resource(br#"{"name":"a","switch":"lan","backend":"tap"}"#).unwrap();
        let _ = parse_resource::<NicConfig>(body);
        let _ = parse_resource::<TeamConfig>(body);
        let _ = parse_resource::<DiskConfig>(body);
        let _ = parse_apply(body);
        if let Err(errors) = patch_resource(&nic, body) {
            prop_assert!(!errors.is_empty());
        }
    }
}

#[test]
fn null_is_refused_where_the_openapi_document_does_not_admit_it() {
    for kind in ResourceKind::RESOURCES {
        let Some(Value::Object(example)) = kind_example(kind) else { panic!("{kind:?}") };
        for key in kind.keys() {
            let mut table = example.clone();
            table.insert(key.name.to_owned(), Value::Null);
            let findings = check_table(FindingLocation::new(kind, 0), &table);
            assert_eq!(findings.is_empty(), key.permits_null(), "{kind:?} {}", key.name);
        }
    }
}

#[test]
fn examples_are_accepted() {
    for (kind, example) in
        ResourceKind::ALL.into_iter().filter_map(|kind| Some((kind, kind_example(kind)?)))
    {
        let Value::Object(table) = example else { panic!() };
        assert_eq!(check_table(FindingLocation::new(kind, 0), &table), [], "{kind:?}");
    }
}
