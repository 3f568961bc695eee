use suimon_contract::{LacpTimer, TeamMode};

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

fn edit_error(edit: &Edit) -> ApiError {
    edit.apply_to(&current()).unwrap_err().remove(0)
}

#[test]
fn keys_are_patched_and_removed() {
    let patch = |text: &str| {
        let edit = Edit::Nic(ResourceEdit::Patch(name("web"), text.as_bytes().to_vec()));
        edit.apply_to(&current()).map(|config| config.nics[0].clone())
    };
    let nic = patch(r#"{"vlan": null, "offload": {"segmentation": false}}"#).unwrap();
    assert_eq!(nic.vlan, None);
    assert!(!nic.offload.segmentation && nic.offload.tx_checksum);
    assert_eq!(patch(r#"{"name": "db"}"#).unwrap_err()[0].field.as_deref(), Some("name"));
    assert_eq!(patch(r#"{"colour": 1}"#).unwrap_err()[0].code, ErrorCode::UnknownKey);
    assert_eq!(patch("[]").unwrap_err()[0].code, ErrorCode::Malformed);
}

#[test]
fn resources_that_others_refer_to_are_not_deleted() {
    let error = edit_error(&Edit::Switch(ResourceEdit::Delete(name("lan"))));
    assert_eq!((error.code, error.resource.as_deref()), (ErrorCode::InUse, Some("switch/lan")));
    assert!(error.message.contains("nic/web"));
    let error = edit_error(&Edit::Uplink(ResourceEdit::Delete(name("out"))));
    assert_eq!(error.code, ErrorCode::InUse);
}

fn with_team() -> HostConfig {
    host(
        r#"
        [[switch]]
        name = "lan"
        kind = "external"
        uplink = "both"
        [[uplink]]
        name = "left"
        device = "eth0"
        [[uplink]]
        name = "right"
        device = "eth1"
        [[team]]
        name = "both"
        members = ["left", "right"]
        mode = "switch-independent"
        "#,
    )
}

#[test]
fn a_member_and_a_team_that_a_switch_uses_are_not_deleted() {
    let refuse = |edit: Edit, config: &HostConfig| {
        let error = edit.apply_to(config).unwrap_err().remove(0);
        assert_eq!(error.code, ErrorCode::InUse);
        error.message
    };
    let mut config = with_team();
    let team = || Edit::Team(ResourceEdit::Delete(name("both")));
    let delete_left = || Edit::Uplink(ResourceEdit::Delete(name("left")));
    assert_eq!(
        refuse(team(), &config),
        "switch/lan refers to this resource; change or delete switch/lan first"
    );
    assert_eq!(
        refuse(delete_left(), &config),
        "team/both refers to this resource; change or delete team/both first"
    );
    config.switches.clear();
    assert!(team().apply_to(&config).unwrap().teams.is_empty());
    config.teams.clear();
    assert_eq!(delete_left().apply_to(&config).unwrap().uplinks.len(), 1);
}

#[test]
fn keys_of_a_team_and_its_vmq_are_patched() {
    let patch = |text: &str| {
        let edit = Edit::Team(ResourceEdit::Patch(name("both"), text.as_bytes().to_vec()));
        assert_eq!((edit.kind(), edit.subject()), ("team set".to_owned(), "team/both".to_owned()));
        edit.apply_to(&with_team()).map(|config| config.teams[0].clone())
    };
    let text = r#"{"mode": "lacp", "lacp_timer": "fast", "vmq": {"max_processors": 2}}"#;
    let team = patch(text).unwrap();
    assert_eq!((team.mode, team.lacp_timer), (TeamMode::Lacp, Some(LacpTimer::Fast)));
    assert_eq!((team.vmq.max_workers, team.vmq.enabled), (2, true));
    assert_eq!(patch(r#"{"members": null}"#).unwrap_err()[0].code, ErrorCode::MissingKey);
    let unknown = patch(r#"{"vmq": {"mode": "adaptive"}}"#).unwrap_err();
    assert_eq!(unknown[0].field.as_deref(), Some("vmq.mode"));
}

#[test]
fn existing_resources_are_not_added_and_missing_ones_are_not_changed() {
    let nic = current().nics.remove(0);
    let error = edit_error(&Edit::Nic(ResourceEdit::Add(nic.clone())));
    assert_eq!(error.code, ErrorCode::AlreadyExists);
    let error = edit_error(&Edit::Nic(ResourceEdit::Put(name("db"), nic.clone())));
    assert_eq!(error.code, ErrorCode::NotFound);
    let mut other = nic;
    other.name = name("db");
    let error = edit_error(&Edit::Nic(ResourceEdit::Put(name("web"), other)));
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidValue, Some("name")));
}
