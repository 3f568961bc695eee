use crate::{
    ErrorCode, HostConfig, NicConfig, Resource, SwitchConfig, TeamConfig, parse_apply,
    parse_resource, patch_resource,
};

fn nic() -> NicConfig {
    parse_resource(
        br#"{"name":"web","switch":"lan","backend":"tap","vlan":10,
             "offload":{"segmentation":false}}"#,
    )
    .unwrap()
}

fn error_texts<T: core::fmt::Debug>(result: Result<T, Vec<crate::ApiError>>) -> Vec<String> {
    result.unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn a_patch_changes_only_its_keys() {
    let patched =
        patch_resource(&nic(), br#"{"vlan":20,"offload":{"tx_checksum":false},"queues":null}"#)
            .unwrap();
    let mut expected = nic();
    expected.vlan = suimon_frame::VlanId::new(20);
    expected.offload.tx_checksum = false;
    assert_eq!(patched, expected);
    let patched = patch_resource(&nic(), br#"{"vlan":null,"offload":null}"#).unwrap();
    assert_eq!(patched.vlan, None);
    assert!(patched.offload.segmentation);
}

#[test]
fn a_team_is_read_and_patched_like_any_resource() {
    let team: TeamConfig = parse_resource(
        br#"{"name":"both","members":["a","b"],"mode":"lacp","lacp_timer":"fast",
             "vmq":{"base_worker":1,"max_workers":2}}"#,
    )
    .unwrap();
    let patch =
        br#"{"mode":"static","members":["a"],"lacp_timer":null,"vmq":{"base_worker":null}}"#;
    let patched = patch_resource(&team, patch).unwrap();
    let body = br#"{"name":"both","members":["a"],"mode":"static","vmq":{"max_workers":2}}"#;
    assert_eq!(patched, parse_resource(body).unwrap());
    assert_eq!(
        error_texts(patch_resource(
            &team,
            br#"{"members":["a","b/c"],"modus":1,"vmq":{"mode":"x"}}"#
        )),
        [
            "team/both: members: must be a list of 1 to 32 names, like [\"left\", \"right\"], \
             not [\"a\",\"b/c\"]",
            "team/both: modus: the key does not exist; did you mean `mode`?",
            "team/both: vmq.mode: must be one of `static`, `dynamic`, not \"x\"",
        ]
    );
    let missing = parse_resource::<TeamConfig>(br#"{"name":"both"}"#);
    assert_eq!(missing.unwrap_err().len(), 2);
    let mut host = HostConfig::default();
    TeamConfig::all_mut(&mut host).push(team);
    assert_eq!((TeamConfig::PATH, TeamConfig::all(&host)[0].name().as_str()), ("teams", "both"));
}

#[test]
fn an_invalid_patch_is_rejected_with_the_key() {
    assert_eq!(
        error_texts(patch_resource(&nic(), br#"{"vlan":0,"quues":2}"#)),
        [
            "nic/web: quues: the key does not exist; did you mean `queues`?",
            "nic/web: vlan: must be a number from 1 to 4094, not 0",
        ]
    );
    assert_eq!(
        error_texts(patch_resource(&nic(), br#"{"name":"other"}"#)),
        ["nic/web: name: a name cannot be changed; delete the resource and create another"]
    );
    assert_eq!(
        error_texts(patch_resource(&nic(), br#"{"switch":null}"#))[0],
        "nic/web: switch: missing; set it to a name of 1 to 63 letters, digits, `-`, `_` and `.` \
         that starts with a letter or a digit"
    );
    let deep = format!("{}1{}", "{\"offload\":".repeat(100), "}".repeat(100));
    assert!(patch_resource(&nic(), deep.as_bytes()).is_err());
}

#[test]
fn a_patch_that_removes_a_key_that_does_not_exist_is_refused() {
    for (patch, field) in
        [(&br#"{"vlna":null}"#[..], "vlna"), (br#"{"offload":{"tso":null}}"#, "offload.tso")]
    {
        let errors = patch_resource(&nic(), patch).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].code, ErrorCode::UnknownKey);
        assert_eq!(errors[0].field.as_deref(), Some(field));
    }
    // Removing an existing key that is not set is accepted.
    let patch = br#"{"trunk":null,"mtu":null,"offload":{"rx_checksum":null}}"#;
    assert_eq!(patch_resource(&nic(), patch), Ok(nic()));
}

#[test]
fn a_key_given_twice_is_refused_as_in_a_file() {
    let errors =
        error_texts(parse_resource::<SwitchConfig>(br#"{"name":"a","kind":"private","name":"b"}"#));
    assert!(errors[0].contains("the key `name` is present twice"), "{errors:?}");
    let inner = br#"{"offload":{"tx_checksum":true,"tx_checksum":false}}"#;
    assert!(
        error_texts(patch_resource(&nic(), inner))[0].contains("`tx_checksum` is present twice")
    );
    let apply = br#"{"config":{"switch":[{"name":"a","kind":"private","kind":"internal"}]}}"#;
    assert!(error_texts(parse_apply(apply))[0].contains("`kind` is present twice"));
}

#[test]
fn a_body_that_is_no_resource_is_refused() {
    for body in [&b"[]"[..], b"", b"{", b"nonsense", b"\xff"] {
        let errors = parse_resource::<SwitchConfig>(body).unwrap_err();
        assert_eq!(errors[0].code, ErrorCode::Malformed);
    }
    assert_eq!(
        error_texts(parse_resource::<SwitchConfig>(b"{\"kind\":\"x\",\"name\":3}")).len(),
        2
    );
}

#[test]
fn apply_takes_toml_or_json_but_not_both() {
    assert_eq!(parse_apply(br#"{"toml":""}"#), Ok(HostConfig::default()));
    for null in
        [r#"{"config":{},"toml":null}"#, r#"{"toml":"","config":null}"#, r#"{"config":null}"#]
    {
        assert!(parse_apply(null.as_bytes()).is_err(), "{null}");
    }
    assert!(parse_apply(br#"{"config":{},"toml":""}"#).is_err());
    assert!(parse_apply(br#"{"config":3}"#).is_err());
    let unknown = parse_apply(br#"{"tomml":"","file":3}"#).unwrap_err();
    let fields: Vec<_> = unknown.iter().map(|e| (e.code, e.field.as_deref())).collect();
    assert_eq!(
        fields,
        [(ErrorCode::Malformed, Some("file")), (ErrorCode::UnknownKey, Some("tomml"))]
    );
    assert_eq!(
        error_texts(parse_apply(br#"{"toml":"[[nic]]\nname=3","file":"h.toml"}"#))[1],
        "h.toml:1: nic[0]: backend: missing; set it to one of `vhost-user`, `tap`, `legacy`"
    );
    assert_eq!(
        error_texts(parse_apply(
            br#"{"config":{"nic":[{"name":"a","switch":"lan","backend":"tap"}]}}"#
        )),
        ["nic/a: switch: there is no switch `lan`; add a [[switch]] of that name, or correct the \
          name"]
    );
}

#[test]
fn errors_found_after_apply_was_read_are_given_their_lines() {
    let body = br#"{"toml":"\n[[nic]]\nname = \"a\"\nvlan = 3","file":"h.toml"}"#;
    let mut errors = [crate::ApiError::new(ErrorCode::DeviceMissing, "m")
        .with_resource("nic/a")
        .with_field("vlan")];
    crate::locate_errors_of_apply(b"{", &mut errors);
    assert_eq!(errors[0].line, None);
    crate::locate_errors_of_apply(body, &mut errors);
    assert_eq!(errors[0].to_string(), "h.toml:4: nic/a: vlan: m");
}

#[test]
fn resources_are_found_in_desired_state() {
    let mut host = HostConfig::default();
    NicConfig::all_mut(&mut host).push(nic());
    assert_eq!(NicConfig::all(&host)[0].name().as_str(), "web");
}
