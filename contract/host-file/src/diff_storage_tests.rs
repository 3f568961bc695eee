use proptest::prelude::*;

use crate::test_configs::hosts;
use crate::{HostConfig, Plan, PlanAction, PlanStep, parse_toml};

const BEFORE: &str = r#"
[[store]]
name = "fast"
path = "/srv/fast"
[[qos_policy]]
name = "gold"
min_iops = 1000
[[disk]]
name = "web"
store = "fast"
format = "vhdx"
size_bytes = "10 GiB"
qos_policy = "gold"
[[disk]]
name = "db"
store = "fast"
format = "raw"
size_bytes = "1 GiB"
qos.min_iops = 500
"#;

fn host(text: &str) -> HostConfig {
    parse_toml(text, None).unwrap()
}

fn plan_steps(from: &HostConfig, to: &HostConfig) -> Vec<String> {
    Plan::between(from, to).steps.iter().map(PlanStep::to_string).collect()
}

/// Returns the plan from `BEFORE` to `BEFORE` with pairs of texts replaced.
fn plan(replacements: &[(&str, &str)]) -> Vec<String> {
    let after = replacements.iter().fold(BEFORE.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    });
    plan_steps(&host(BEFORE), &host(&after))
}

#[test]
fn live_changes_display_sizes_with_units() {
    assert_eq!(
        plan(&[("size_bytes = \"10 GiB\"", "size_bytes = \"20 GiB\"")]),
        ["~ disk/web change live: size_bytes 10 GiB → 20 GiB"]
    );
    assert_eq!(
        plan(&[("min_iops = 500", "max_iops = 600\nqos.max_bytes_per_s = 1048576")]),
        ["~ disk/db change live: qos.max_bytes_per_s none → 1 MiB, qos.max_iops none → 600, \
          qos.min_iops 500 → none"]
    );
    assert_eq!(
        plan(&[("path = \"/srv/fast\"", "path = \"/srv/fast\"\ncapacity_iops = 9")]),
        ["~ store/fast change live: capacity_iops none → 9"]
    );
    assert_eq!(
        plan(&[("min_iops = 1000", "min_iops = 1000\nkind = \"aggregated\"")]),
        ["~ qos_policy/gold change live: kind dedicated → aggregated"]
    );
    assert_eq!(
        plan(&[("qos_policy = \"gold\"", "[disk.nbd]\nsocket = \"/run/nbd.sock\"")]),
        [
            "~ disk/web change live: qos_policy gold → none, nbd none → {\"socket\":\"/run/nbd.sock\"}"
        ]
    );
}

#[test]
fn changes_visible_to_the_guest_recreate_the_disk() {
    for (key, displayed) in [
        ("read_only = true", "read_only false → true"),
        ("logical_sector = 4096", "logical_sector 512 → 4096"),
        ("serial = \"x\"", "serial web → x"),
        ("kind = \"fixed\"", "kind dynamic → fixed"),
        ("file = \"x\"", "file web.vhdx → x"),
    ] {
        assert_eq!(
            plan(&[("size_bytes = \"10 GiB\"", &format!("size_bytes = \"10 GiB\"\n{key}"))]),
            [format!("± disk/web replace: {displayed}")]
        );
    }
}

#[test]
fn a_default_that_is_written_changes_nothing() {
    let keys = "size_bytes = 10737418240\nfile = \"web.vhdx\"\nkind = \"dynamic\"\n\
                serial = \"web\"\nqos = { weight = 100 }";
    assert_eq!(plan(&[("size_bytes = \"10 GiB\"", keys)]), [""; 0]);
}

#[test]
fn disks_are_recreated_with_their_store() {
    assert_eq!(
        plan(&[
            ("path = \"/srv/fast\"", "path = \"/srv/other\""),
            ("min_iops = 500", "min_iops = 600")
        ]),
        [
            "± store/fast replace: path /srv/fast → /srv/other",
            "± disk/db replace: qos.min_iops 500 → 600 (together with store/fast)",
            "± disk/web replace (together with store/fast)",
        ]
    );
    // A change that replaces the disk by itself needs no further reason.
    assert_eq!(
        plan(&[
            ("path = \"/srv/fast\"", "path = \"/srv/fast\"\nnormalization_bytes = \"4 KiB\""),
            ("size_bytes = \"1 GiB\"", "size_bytes = \"1 GiB\"\nread_only = true"),
        ]),
        [
            "± store/fast replace: normalization_bytes 8 KiB → 4 KiB",
            "± disk/db replace: read_only false → true",
            "± disk/web replace (together with store/fast)",
        ]
    );
}

#[test]
fn stores_and_policies_come_first_and_go_last() {
    let (empty, full) = (HostConfig::default(), host(BEFORE));
    assert_eq!(
        plan_steps(&empty, &full),
        [
            "+ store/fast create",
            "+ qos_policy/gold create",
            "+ disk/db create",
            "+ disk/web create"
        ]
    );
    assert_eq!(
        plan_steps(&full, &empty),
        [
            "- disk/db delete",
            "- disk/web delete",
            "- qos_policy/gold delete",
            "- store/fast delete"
        ]
    );
    // The renamed store takes over the path, so the old store is deleted first.
    assert_eq!(
        plan_steps(&full, &host(&BEFORE.replace("\"fast\"", "\"new\""))),
        [
            "- store/fast delete",
            "+ store/new create",
            "± disk/db replace: store fast → new",
            "± disk/web replace: store fast → new"
        ]
    );
    let policies = BEFORE.replace("\"gold\"", "\"tin\"");
    assert_eq!(
        plan_steps(&full, &host(&policies)),
        [
            "+ qos_policy/tin create",
            "~ disk/web change live: qos_policy gold → tin",
            "- qos_policy/gold delete"
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_disk_is_made_or_changed_only_where_its_store_and_policy_are(a in hosts(), b in hosts()) {
        let name_of = |name: &crate::Name| name.to_string();
        let mut present: Vec<String> = a.stores.iter().map(|s| format!("store/{}", s.name)).collect();
        present.extend(a.qos_policies.iter().map(|p| format!("qos_policy/{}", p.name)));
        for step in Plan::between(&a, &b).steps {
            let (kind, name) = step.resource.split_once('/').unwrap_or((&step.resource, ""));
            match (kind, step.action) {
                ("store" | "qos_policy", PlanAction::Create) => present.push(step.resource),
                ("store" | "qos_policy", PlanAction::Delete) => {
                    present.retain(|resource| *resource != step.resource);
                }
                ("disk", PlanAction::Create | PlanAction::ChangeLive | PlanAction::Replace) => {
                    let disk = b.disks.iter().find(|disk| name_of(&disk.name) == name).unwrap();
                    let policy = disk.qos_policy.iter().map(|name| format!("qos_policy/{name}"));
                    let required = policy.chain([format!("store/{}", disk.store)]);
                    for resource in required {
                        prop_assert!(present.contains(&resource), "{}", resource);
                    }
                }
                _ => {}
            }
        }
    }
}
