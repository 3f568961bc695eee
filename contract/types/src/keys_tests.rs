//! The table of keys agrees with the types it describes.

use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use crate::{
    ApiConfig, Form, HostConfig, HostSection, Kind, NicConfig, OffloadConfig, SwitchConfig,
    TeamConfig, UplinkConfig, VmqConfig,
};

fn described<T: PartialSchema>() -> (Vec<String>, Vec<String>) {
    let RefOr::T(Schema::Object(object)) = T::schema() else { panic!("not an object") };
    (object.properties.keys().cloned().collect(), object.required)
}

fn agrees<T: PartialSchema>(kind: Kind) {
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
    agrees::<HostConfig>(Kind::File);
    agrees::<HostSection>(Kind::Host);
    agrees::<ApiConfig>(Kind::Api);
    agrees::<SwitchConfig>(Kind::Switch);
    agrees::<UplinkConfig>(Kind::Uplink);
    agrees::<TeamConfig>(Kind::Team);
    agrees::<NicConfig>(Kind::Nic);
    agrees::<VmqConfig>(Kind::Vmq);
    agrees::<OffloadConfig>(Kind::Offload);
}

#[test]
fn forms_take_what_they_say_and_nothing_else() {
    let takes = |form: Form, value: serde_json::Value| form.accepts(&value);
    for good in ["a", "host-1", "9"] {
        assert!(takes(Form::HostName, good.into()), "{good}");
    }
    for bad in ["", "-a", "a-", "a.b", "ä", &"x".repeat(64)] {
        assert!(!takes(Form::HostName, bad.into()), "{bad}");
    }
    for bad in
        ["", ".", "..", "all", "default", "a b", "a/b", "a:1", "e%d", "a\u{7}", "sixteen-bytes-xx"]
    {
        assert!(!takes(Form::Device, bad.into()), "{bad}");
    }
    assert!(takes(Form::Device, "fifteen-bytes-x".into()));
    assert!(takes(Form::UnixSocketPath, format!("/{}", "x".repeat(106)).into()));
    assert!(!takes(Form::UnixSocketPath, format!("/{}", "x".repeat(107)).into()));
    for bad in ["x", "", "/run/", "/a\0b"] {
        assert!(!takes(Form::UnixSocketPath, bad.into()), "{bad}");
    }
    for bad in ["", ".", "..", "a/b"] {
        assert!(!takes(Form::Namespace, bad.into()), "{bad}");
    }
    let names = Form::Names { most: 2 };
    assert!(takes(names, vec!["a"].into()) && takes(names, vec!["a", "10"].into()));
    for bad in [vec![], vec!["a", "b", "c"], vec!["a", "-b"], vec![""]] {
        assert!(!takes(names, bad.clone().into()), "{bad:?}");
    }
    assert!(!takes(names, vec![10].into()) && !takes(names, "a".into()));
    assert!(takes(Form::Cpus, (0..64).collect::<Vec<_>>().into()));
    assert!(!takes(Form::Cpus, (0..65).collect::<Vec<_>>().into()));
    assert!(!takes(Form::Cpus, vec![70_000].into()));
    assert!(takes(Form::Vlan, 4094.into()) && !takes(Form::Vlan, 0.into()));
    assert!(!takes(Form::Vlan, "10".into()));
    assert!(takes(Form::SocketAddress, "[::1]:80".into()));
    assert!(!takes(Form::SocketAddress, "host:80".into()));
}
