use super::*;
use crate::testing::{host, name};

fn current() -> HostConfig {
    host(
        r#"
        [[switch]]
        name = "lan"
        kind = "external"
        uplink = "out"
        [[uplink]]
        name = "out"
        device = "eth0"
        [[nic]]
        name = "web"
        switch = "lan"
        backend = "tap"
        vlan = 10
        "#,
    )
}

fn refused(edit: &Edit) -> ApiError {
    edit.candidate(&current()).unwrap_err().remove(0)
}

#[test]
fn keys_are_patched_and_removed() {
    let patch = |text: &str| {
        let edit = Edit::Nic(ResourceEdit::Patch(name("web"), text.as_bytes().to_vec()));
        edit.candidate(&current()).map(|config| config.nics[0].clone())
    };
    let nic = patch(r#"{"vlan": null, "offload": {"segmentation": false}}"#).unwrap();
    assert_eq!(nic.vlan, None);
    assert!(!nic.offload.segmentation && nic.offload.tx_checksum);
    assert_eq!(patch(r#"{"name": "db"}"#).unwrap_err()[0].field.as_deref(), Some("name"));
    assert_eq!(patch(r#"{"colour": 1}"#).unwrap_err()[0].code, ErrorCode::UnknownKey);
    assert_eq!(patch("[]").unwrap_err()[0].code, ErrorCode::Malformed);
}

#[test]
fn what_is_referred_to_is_not_deleted() {
    let error = refused(&Edit::Switch(ResourceEdit::Delete(name("lan"))));
    assert_eq!((error.code, error.resource.as_deref()), (ErrorCode::InUse, Some("switch/lan")));
    assert!(error.message.contains("nic/web"));
    let error = refused(&Edit::Uplink(ResourceEdit::Delete(name("out"))));
    assert_eq!(error.code, ErrorCode::InUse);
}

#[test]
fn what_is_there_is_not_added_and_what_is_not_is_not_changed() {
    let nic = current().nics.remove(0);
    let error = refused(&Edit::Nic(ResourceEdit::Add(nic.clone())));
    assert_eq!(error.code, ErrorCode::AlreadyExists);
    let error = refused(&Edit::Nic(ResourceEdit::Put(name("db"), nic.clone())));
    assert_eq!(error.code, ErrorCode::NotFound);
    let mut other = nic;
    other.name = name("db");
    let error = refused(&Edit::Nic(ResourceEdit::Put(name("web"), other)));
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidValue, Some("name")));
}
