//! Table of keys agrees with the types it describes.

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use crate::{
    ApiConfig, ChangeEffect, ConsoleConfig, DiskConfig, DiskNbd, DiskVhostUser, Form, HostConfig,
    HostSection, LabConfig, NicConfig, OffloadConfig, PowerConfig, QosLimits, QosPolicyConfig,
    ResourceKind, StoreConfig, SwitchConfig, TeamConfig, UplinkConfig, VmqConfig,
};

fn described<T: PartialSchema>() -> (Vec<String>, Vec<String>) {
    let RefOr::T(Schema::Object(object)) = T::schema() else { panic!("not an object") };
    (object.properties.keys().cloned().collect(), object.required)
}

fn agrees<T: PartialSchema>(kind: ResourceKind) {
    let (properties, required) = described::<T>();
    let keys: Vec<_> = kind.keys().iter().map(|key| key.name.to_owned()).collect();
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(sorted(keys), sorted(properties), "{kind:?}");
    for name in required {
        assert!(kind.key(&name).unwrap().required, "{kind:?} {name}");
    }
}

#[test]
fn every_key_of_a_type_is_in_the_table_and_no_other() {
    agrees::<HostConfig>(ResourceKind::File);
    agrees::<HostSection>(ResourceKind::Host);
    agrees::<ApiConfig>(ResourceKind::Api);
    agrees::<ConsoleConfig>(ResourceKind::Console);
    agrees::<LabConfig>(ResourceKind::Lab);
    agrees::<PowerConfig>(ResourceKind::Power);
    agrees::<SwitchConfig>(ResourceKind::Switch);
    agrees::<UplinkConfig>(ResourceKind::Uplink);
    agrees::<TeamConfig>(ResourceKind::Team);
    agrees::<NicConfig>(ResourceKind::Nic);
    agrees::<VmqConfig>(ResourceKind::Vmq);
    agrees::<OffloadConfig>(ResourceKind::Offload);
    agrees::<StoreConfig>(ResourceKind::Store);
    agrees::<QosPolicyConfig>(ResourceKind::QosPolicy);
    agrees::<DiskConfig>(ResourceKind::Disk);
    agrees::<QosLimits>(ResourceKind::DiskQos);
    agrees::<DiskVhostUser>(ResourceKind::DiskVhostUser);
    agrees::<DiskNbd>(ResourceKind::DiskNbd);
}

#[test]
fn resources_are_the_tables_of_the_file() {
    let mut of_file: Vec<ResourceKind> = ResourceKind::File
        .keys()
        .iter()
        .filter_map(|key| match key.form {
            Form::Tables(kind) => Some(kind),
            _ => None,
        })
        .collect();
    let mut resources = ResourceKind::RESOURCES.to_vec();
    of_file.sort_unstable();
    resources.sort_unstable();
    assert_eq!(of_file, resources);
    for kind in resources {
        assert!(kind.is_resource() && kind.key("name").is_some_and(|key| key.required));
    }
    assert!(!ResourceKind::Host.is_resource() && !ResourceKind::DiskQos.is_resource());
}

/// Reservations belong to the names of the cluster and of the node.
#[test]
fn names_of_a_cluster_and_of_its_node_are_fixed_until_it_leaves() {
    for name in ["name", "node"] {
        let key = ResourceKind::Cluster.key(name).unwrap();
        assert_eq!(key.effect, ChangeEffect::AfterLeavingCluster, "{name}");
    }
}

#[test]
fn sizes_and_files_have_their_forms() {
    let size = Form::Bytes { min: 512, max: 4096, step: 512 };
    for valid in [512.into(), 4096.into(), "1 KiB".into(), "1024".into()] {
        assert!(size.accepts(&valid), "{valid}");
    }
    for invalid in [0.into(), 511.into(), 513.into(), 4608.into(), (-512).into(), "8 KiB".into()] {
        assert!(!size.accepts(&invalid), "{invalid}");
    }
    assert!(!size.accepts(&serde_json::json!(512.0)) && !size.accepts(&"512 b".into()));
    let sectors = Form::OneOfNumbers(&[512, 4096]);
    assert!(sectors.accepts(&512.into()) && !sectors.accepts(&1024.into()));
    assert!(!sectors.accepts(&"512".into()));
    assert!(Form::StoreFile.accepts(&"a/b.vhdx".into()));
    assert!(!Form::StoreFile.accepts(&"/a".into()) && !Form::StoreFile.accepts(&1.into()));
    let serial = Form::Serial { max: 4 };
    for valid in ["a", "a b!", "~~~~"] {
        assert!(serial.accepts(&valid.into()), "{valid}");
    }
    for invalid in ["", " a", "a ", "abcde", "ä", "a\tb"] {
        assert!(!serial.accepts(&invalid.into()), "{invalid}");
    }
}

#[test]
fn forms_accept_only_valid_values() {
    let accepts = |form: Form, value: serde_json::Value| form.accepts(&value);
    for valid in ["a", "host-1", "9"] {
        assert!(accepts(Form::HostName, valid.into()), "{valid}");
    }
    for invalid in ["", "-a", "a-", "a.b", "ä", &"x".repeat(64)] {
        assert!(!accepts(Form::HostName, invalid.into()), "{invalid}");
    }
    for invalid in
        ["", ".", "..", "all", "default", "a b", "a/b", "a:1", "e%d", "a\u{7}", "sixteen-bytes-xx"]
    {
        assert!(!accepts(Form::NetworkDevice, invalid.into()), "{invalid}");
    }
    assert!(accepts(Form::NetworkDevice, "fifteen-bytes-x".into()));
    assert!(accepts(Form::UnixSocketPath, format!("/{}", "x".repeat(106)).into()));
    assert!(!accepts(Form::UnixSocketPath, format!("/{}", "x".repeat(107)).into()));
    for invalid in ["x", "", "/run/", "/a\0b"] {
        assert!(!accepts(Form::UnixSocketPath, invalid.into()), "{invalid}");
    }
    for invalid in ["", ".", "..", "a/b"] {
        assert!(!accepts(Form::NetworkNamespace, invalid.into()), "{invalid}");
    }
    let ips = Form::UnicastIps { max: 2 };
    assert!(accepts(ips, vec!["10.0.0.1", "fd00::1"].into()));
    for invalid in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "ff02::1", "::1"]
    {
        assert!(!accepts(ips, vec![invalid].into()), "{invalid}");
    }
    for invalid in [vec![], vec!["10.0.0.1"; 2], vec!["10.0.0.1", "10.0.0.2", "10.0.0.3"]] {
        assert!(!accepts(ips, invalid.clone().into()), "{invalid:?}");
    }
    for invalid in ["10.0.0.1/24", "::ffff:10.0.0.1", "10.1", "host", "FD00::1%eth0"] {
        assert!(!accepts(ips, vec![invalid].into()), "{invalid}");
    }
    assert!(!accepts(ips, vec!["fd00::1", "FD00:0::1"].into()));
    assert!(!accepts(ips, "10.0.0.1".into()) && !accepts(ips, vec![7].into()));
    let names = Form::Names { max: 2 };
    assert!(accepts(names, vec!["a"].into()) && accepts(names, vec!["a", "10"].into()));
    for invalid in [vec![], vec!["a", "b", "c"], vec!["a", "-b"], vec![""]] {
        assert!(!accepts(names, invalid.clone().into()), "{invalid:?}");
    }
    assert!(!accepts(names, vec![10].into()) && !accepts(names, "a".into()));
    assert!(accepts(Form::Cpus, (0..64).collect::<Vec<_>>().into()));
    assert!(!accepts(Form::Cpus, (0..65).collect::<Vec<_>>().into()));
    assert!(!accepts(Form::Cpus, vec![70_000].into()));
    assert!(accepts(Form::Vlan, 4094.into()) && !accepts(Form::Vlan, 0.into()));
    assert!(!accepts(Form::Vlan, "10".into()));
    assert!(accepts(Form::SocketAddress, "[::1]:80".into()));
    assert!(!accepts(Form::SocketAddress, "host:80".into()));
    assert!(accepts(Form::LoopbackAddress, "127.0.0.2:80".into()));
    for address in ["192.0.2.1:80", "0.0.0.0:80", "[::]:80", "127.0.0.1:0", "localhost:80"] {
        assert!(!accepts(Form::LoopbackAddress, address.into()), "{address}");
    }
}
