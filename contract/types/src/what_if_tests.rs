use super::*;
use crate::parse_toml;

fn host() -> HostConfig {
    parse_toml(
        r#"
[[store]]
name = "fast"
path = "/srv/fast"
capacity_iops = 50000
[[store]]
name = "slow"
path = "/srv/slow"
[[qos_policy]]
name = "gold"
kind = "aggregated"
min_iops = 1000
[[disk]]
name = "web"
store = "fast"
format = "vhdx"
qos_policy = "gold"
[[disk]]
name = "db"
store = "fast"
format = "raw"
qos.min_iops = 500
"#,
        None,
    )
    .unwrap()
}

fn applied(json: &str) -> Result<HostConfig, Vec<String>> {
    let request: WhatIfRequest = serde_json::from_str(json).unwrap();
    request.apply_to(&host()).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[test]
fn proposals_change_only_the_configuration_of_qos() {
    let config = applied(
        r#"{"proposals": [
            {"disk": {"name": "web", "store": "slow", "qos": {"min_iops": 7, "max_iops": 9}}},
            {"disk": {"name": "new", "store": "fast", "qos_policy": "silver"}},
            {"qos_policy": {"name": "gold", "limits": {"min_iops": 2000}}},
            {"qos_policy": {"name": "silver", "limits": {"min_iops": 3}}},
            {"store": {"name": "fast", "capacity_iops": 70000}},
            {"without_disk": "db"}
        ]}"#,
    )
    .unwrap();
    let names: Vec<_> = config.disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["web", "new"]);
    let [web, new] = config.disks.as_slice() else { panic!("{config:?}") };
    assert_eq!((web.store.as_str(), &web.qos_policy), ("slow", &None));
    assert_eq!((web.qos.min_iops, web.qos.max_iops), (Some(7), Some(9)));
    assert_eq!(web.format, DiskFormat::Vhdx);
    assert_eq!(new.qos_policy.as_ref().map(Name::as_str), Some("silver"));
    let gold = &config.qos_policies[0];
    assert_eq!((gold.kind, gold.min_iops), (QosPolicyKind::Aggregated, Some(2000)));
    assert_eq!(config.qos_policies[1].kind, QosPolicyKind::Dedicated);
    assert_eq!(config.stores[0].capacity_iops, Some(crate::StoreCapacity::Declared(70_000)));
}

#[test]
fn a_file_that_another_disk_has_is_no_obstacle() {
    let config = applied(
        r#"{"proposals": [
            {"disk": {"name": "a", "store": "fast"}}, {"disk": {"name": "b", "store": "fast"}},
            {"disk": {"name": "c", "store": "fast"}}
        ]}"#,
    );
    assert_eq!(config.unwrap().disks.len(), 5);
}

#[test]
fn invalid_proposals_are_rejected() {
    for (proposal, message) in [
        (
            r#"{"disk": {"name": "new"}}"#,
            "disk/new: store: there is no disk of this name; add the store in which it would be",
        ),
        (
            r#"{"disk": {"name": "web", "store": "fasst"}}"#,
            "disk/web: store: there is no store `fasst`; did you mean `fast`?",
        ),
        (
            r#"{"disk": {"name": "web", "qos_policy": "tin"}}"#,
            "disk/web: qos_policy: there is no qos_policy `tin`; add a [[qos_policy]] of that \
             name, or correct the name",
        ),
        (
            r#"{"disk": {"name": "web", "qos_policy": "gold", "qos": {"min_iops": 1}}}"#,
            "disk/web: qos: the disk already gets its limits from qos_policy `gold`; remove one \
             of the two keys",
        ),
        (
            r#"{"disk": {"name": "web", "qos": {"min_iops": 2, "max_iops": 1}}}"#,
            "disk/web: qos.min_iops: 2 exceeds max_iops 1; lower min_iops or raise max_iops",
        ),
        (
            r#"{"disk": {"name": "web", "qos": {"weight": 0}}}"#,
            "disk/web: qos.weight: must be a whole number from 1 to 10000, not 0",
        ),
        (
            r#"{"store": {"name": "tape", "capacity_iops": 1}}"#,
            "store/tape: there is no store of this name; `suimon store list` lists the existing \
             ones",
        ),
        (
            r#"{"without_disk": "tape"}"#,
            "disk/tape: there is no disk of this name; `suimon disk list` lists the existing ones",
        ),
    ] {
        let json = format!("{{\"proposals\": [{proposal}]}}");
        assert_eq!(applied(&json), Err(vec![message.to_owned()]), "{proposal}");
    }
    assert_eq!(
        applied(r#"{"proposals": []}"#),
        Err(vec![
            "proposals: the request has 0 proposals; the limit is 256, and one is required"
                .to_owned()
        ])
    );
}
