use proptest::prelude::*;

use crate::test_configs::hosts;
use crate::{HostConfig, Plan, PlanAction, PlanStep, parse_toml};

const BEFORE: &str = r#"
[[uplink]]
name = "wan"
device = "eth0"
[[switch]]
name = "lan"
kind = "external"
uplink = "wan"
[[switch]]
name = "inside"
kind = "internal"
[[nic]]
name = "vm"
switch = "lan"
backend = "vhost-user"
socket = "/run/vm.sock"
vlan = 10
[[nic]]
name = "tap"
switch = "inside"
backend = "tap"
"#;

const TEAMED: &str = r#"
[host]
worker_cpus = [0, 1]
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
[[switch]]
name = "lan"
kind = "external"
uplink = "both"
"#;

fn host(text: &str) -> HostConfig {
    parse_toml(text, None).unwrap()
}

/// Returns the plan from `BEFORE` to `BEFORE` with pairs of texts replaced.
fn plan(replacements: &[(&str, &str)]) -> Vec<String> {
    plan_from(BEFORE, replacements)
}

fn plan_from(before: &str, replacements: &[(&str, &str)]) -> Vec<String> {
    let after = replacements.iter().fold(before.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    });
    plan_steps(&host(before), &host(&after))
}

fn plan_steps(from: &HostConfig, to: &HostConfig) -> Vec<String> {
    Plan::between(from, to).steps.iter().map(PlanStep::to_string).collect()
}

#[test]
fn keys_that_change_live_do() {
    assert_eq!(
        plan(&[("vlan = 10", "vlan = 20\nisolated = true")]),
        ["~ nic/vm change live: vlan 10 → 20, isolated false → true"]
    );
    assert_eq!(
        plan(&[("vlan = 10", "trunk = [3]")]),
        ["~ nic/vm change live: vlan 10 → none, trunk none → [3]"]
    );
    assert_eq!(
        plan(&[("switch = \"inside\"", "switch = \"lan\"\nmtu = 9000")]),
        ["~ nic/tap change live: switch inside → lan, mtu 1500 → 9000"]
    );
    assert_eq!(
        plan(&[("device = \"eth0\"", "device = \"eth0\"\nmtu = 1400")]),
        ["~ uplink/wan change live: mtu none → 1400"]
    );
    assert_eq!(
        plan(&[("backend = \"tap\"", "backend = \"tap\"\noffload.segmentation = false")]),
        ["~ nic/tap change live: offload.segmentation true → false"]
    );
    assert_eq!(
        plan(&[("vlan = 10", "offload.rx_checksum = false")]),
        ["~ nic/vm change live: vlan 10 → none, offload.rx_checksum true → false"]
    );
    assert_eq!(
        plan(&[("\"eth0\"", "\"eth0\"\noffload.segmentation = false")]),
        ["~ uplink/wan change live: offload.segmentation true → false"]
    );
    assert_eq!(
        plan(&[("\"internal\"", "\"internal\"\nhost_offload.tx_checksum = false")]),
        ["~ switch/inside change live: host_offload.tx_checksum true → false"]
    );
}

#[test]
fn everything_of_a_team_changes_live() {
    let mode = "mode = \"switch-independent\"";
    assert_eq!(
        plan_from(TEAMED, &[(mode, "mode = \"static\"\nalgorithm = \"mac-addresses\"")]),
        ["~ team/both change live: mode switch-independent → static, algorithm dynamic → \
             mac-addresses"]
    );
    assert_eq!(
        plan_from(TEAMED, &[(mode, "mode = \"lacp\"\nlacp_timer = \"fast\"")]),
        ["~ team/both change live: mode switch-independent → lacp, lacp_timer none → fast, \
             lacp_active none → true, lacp_system_priority none → 32768"]
    );
    let roles = format!("{mode}\nprimary = \"right\"\nstandby = \"left\"");
    assert_eq!(
        plan_from(TEAMED, &[(mode, &roles)]),
        ["~ team/both change live: standby none → left, primary none → right"]
    );
    assert_eq!(
        plan_from(TEAMED, &[("[\"left\", \"right\"]", "[\"right\"]")]),
        ["~ team/both change live: members [\"left\",\"right\"] → [\"right\"]"]
    );
    let vmq = format!("{mode}\n[team.vmq]\nbase_worker = 1\nmode = \"static\"");
    assert_eq!(
        plan_from(TEAMED, &[(mode, &vmq)]),
        ["~ team/both change live: vmq.base_worker none → 1, vmq.mode dynamic → static"]
    );
    assert_eq!(
        plan(&[("vlan = 10", "vlan = 10\nvmq_weight = 0")]),
        ["~ nic/vm change live: vmq_weight 100 → 0"]
    );
    assert_eq!(
        plan(&[("\"eth0\"", "\"eth0\"\nvmq.max_workers = 1")]),
        ["~ uplink/wan change live: vmq.max_workers 4 → 1"]
    );
}

/// Fails if only the keys present in the final inner table are compared.
#[test]
fn a_key_of_an_inner_table_that_is_removed_is_a_change() {
    let with_vmq = TEAMED.replace("[[switch]]", "vmq.base_worker = 1\n[[switch]]");
    assert_eq!(
        plan_steps(&host(&with_vmq), &host(TEAMED)),
        ["~ team/both change live: vmq.base_worker 1 → none"]
    );
}

#[test]
fn spelling_lacp_out_changes_nothing() {
    let lacp = TEAMED.replace("switch-independent", "lacp");
    let explicit = "\"lacp\"\nlacp_timer = \"slow\"\nlacp_active = true\n\
                   lacp_system_priority = 32768\nmin_links = 1\nvmq.enabled = true";
    assert_eq!(plan_from(&lacp, &[("\"lacp\"", explicit)]), [""; 0]);
}

#[test]
fn a_switch_exchanges_an_uplink_for_a_team_that_has_it() {
    let single = TEAMED.replace("uplink = \"both\"", "uplink = \"left\"").replace(
        "[[team]]\nname = \"both\"\nmembers = [\"left\", \"right\"]\nmode = \"switch-independent\"\n",
        "",
    );
    assert_eq!(
        plan_steps(&host(&single), &host(TEAMED)),
        ["+ team/both create", "~ switch/lan change live: uplink left → both"]
    );
    assert_eq!(
        plan_steps(&host(TEAMED), &host(&single)),
        ["- team/both delete", "~ switch/lan change live: uplink both → left"]
    );
}

#[test]
fn a_team_is_made_after_its_uplinks_and_deleted_before_them() {
    let (full, none) = (host(TEAMED), HostConfig::default());
    let order = |plan: Plan| plan.steps.iter().map(|s| s.resource.clone()).collect::<Vec<_>>();
    let creations = order(Plan::between(&none, &full));
    assert_eq!(creations, ["uplink/left", "uplink/right", "team/both", "switch/lan", "host"]);
    let deletions = order(Plan::between(&full, &none));
    assert_eq!(deletions, ["host", "switch/lan", "team/both", "uplink/left", "uplink/right"]);
}

#[test]
fn keys_that_need_a_new_port_replace_it() {
    assert_eq!(
        plan(&[("vlan = 10", "mac = \"02:00:00:00:00:01\"")]),
        ["± nic/vm replace: mac none → 02:00:00:00:00:01, vlan 10 → none"]
    );
    assert_eq!(
        plan(&[("/run/vm.sock", "/run/vm2.sock")]),
        ["± nic/vm replace: socket /run/vm.sock → /run/vm2.sock"]
    );
    assert_eq!(plan(&[("\"eth0\"", "\"eth1\"")]), ["± uplink/wan replace: device eth0 → eth1"]);
}

#[test]
fn spelling_a_default_out_changes_nothing() {
    let explicit = [
        ("vlan = 10", "vlan = 10\nmode = \"server\"\nqueues = 1"),
        (
            "kind = \"internal\"",
            "kind = \"internal\"\nhost_device = \"inside\"\nhost_offload.segmentation = true",
        ),
        ("backend = \"tap\"", "backend = \"tap\"\ndevice = \"tap\""),
    ];
    assert_eq!(plan(&explicit), [""; 0]);
}

#[test]
fn an_uplink_is_exchanged_under_a_switch_without_touching_its_nics() {
    let steps = plan(&[
        ("name = \"wan\"\ndevice = \"eth0\"", "name = \"wan2\"\ndevice = \"eth1\""),
        ("uplink = \"wan\"", "uplink = \"wan2\""),
    ]);
    assert_eq!(
        steps,
        [
            "+ uplink/wan2 create",
            "~ switch/lan change live: uplink wan → wan2",
            "- uplink/wan delete",
        ]
    );
}

#[test]
fn a_device_is_released_before_another_uplink_uses_it() {
    let steps = plan(&[
        ("name = \"wan\"\ndevice", "name = \"wan2\"\ndevice"),
        ("uplink = \"wan\"", "uplink = \"wan2\""),
    ]);
    assert_eq!(
        steps,
        [
            "- uplink/wan delete",
            "+ uplink/wan2 create",
            "~ switch/lan change live: uplink wan → wan2",
        ]
    );
}

#[test]
fn a_nic_moves_from_a_deleted_switch_to_a_new_one_live() {
    let steps = plan(&[
        ("name = \"inside\"\nkind = \"internal\"", "name = \"new\"\nkind = \"private\""),
        ("switch = \"inside\"", "switch = \"new\""),
    ]);
    assert_eq!(
        steps,
        [
            "+ switch/new create",
            "~ nic/tap change live: switch inside → new",
            "- switch/inside delete",
        ]
    );
}

#[test]
fn everything_is_made_bottom_up_and_taken_down_top_down() {
    let (config, none) = (host(BEFORE), HostConfig::default());
    let order = |plan: Plan| plan.steps.iter().map(|s| s.resource.clone()).collect::<Vec<_>>();
    let is_up = order(Plan::between(&none, &config));
    assert_eq!(is_up, ["uplink/wan", "switch/inside", "switch/lan", "nic/tap", "nic/vm"]);
    let down = order(Plan::between(&config, &none));
    assert_eq!(down, ["nic/tap", "nic/vm", "switch/inside", "switch/lan", "uplink/wan"]);
}

#[test]
fn the_listener_waits_for_the_next_start() {
    let api = "[api]\nlisten = \"[::]:1\"\ntls_certificate = \"/c\"\ntls_key = \"/k\"\n\
               token_file = \"/t\"\n";
    let with_api = format!("{api}{BEFORE}");
    let steps = Plan::between(&host(BEFORE), &host(&with_api)).steps;
    assert_eq!(steps[0].to_string(), "+ api create (takes effect at the next start of the daemon)");
    let moved = with_api.replace("[::]:1", "[::]:2");
    let steps = Plan::between(&host(&with_api), &host(&moved)).steps;
    assert_eq!(
        steps[0].to_string(),
        "~ api change: listen [::]:1 → [::]:2 (takes effect at the next start of the daemon)"
    );
}

/// Applies a plan to the names of resources.
fn carried_out(from: &HostConfig, plan: &Plan) -> Vec<String> {
    let mut remote = resources(from);
    for step in &plan.steps {
        let position = remote.iter().position(|resource| *resource == step.resource);
        match (step.action, position) {
            (PlanAction::Create, None) => remote.push(step.resource.clone()),
            (PlanAction::Delete, Some(index)) => {
                remote.remove(index);
            }
            (PlanAction::ChangeLive | PlanAction::Replace, Some(_)) => {
                // A disk replaced only because of its store has a note instead of changes.
                assert!(!step.changes.is_empty() || step.note.is_some());
            }
            _ => panic!("{step} does not fit {remote:?}"),
        }
    }
    remote.sort();
    remote
}

fn resources(host: &HostConfig) -> Vec<String> {
    let mut names = vec!["host".to_owned()];
    names.extend(host.console.iter().map(|_| "console".to_owned()));
    names.extend(host.lab.iter().map(|_| "lab".to_owned()));
    names.extend(host.api.iter().map(|_| "api".to_owned()));
    names.extend(host.uplinks.iter().map(|u| format!("uplink/{}", u.name)));
    names.extend(host.teams.iter().map(|t| format!("team/{}", t.name)));
    names.extend(host.switches.iter().map(|s| format!("switch/{}", s.name)));
    names.extend(host.nics.iter().map(|n| format!("nic/{}", n.name)));
    names.extend(host.stores.iter().map(|s| format!("store/{}", s.name)));
    names.extend(host.qos_policies.iter().map(|p| format!("qos_policy/{}", p.name)));
    names.extend(host.disks.iter().map(|d| format!("disk/{}", d.name)));
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_plan_between_equal_states_is_empty(a in hosts()) {
        prop_assert!(Plan::between(&a, &a).is_empty());
    }

    #[test]
    fn a_plan_leads_to_its_target(a in hosts(), b in hosts()) {
        let plan = Plan::between(&a, &b);
        prop_assert_eq!(carried_out(&a, &plan), resources(&b));
        prop_assert_eq!(Plan::between(&b, &a).is_empty(), plan.is_empty());
    }

    #[test]
    fn a_team_is_made_or_changed_only_of_uplinks_that_are_there(a in hosts(), b in hosts()) {
        let mut uplinks: Vec<String> = a.uplinks.iter().map(|u| u.name.to_string()).collect();
        for step in Plan::between(&a, &b).steps {
            let (kind, name) = step.resource.split_once('/').unwrap_or((&step.resource, ""));
            match (kind, step.action) {
                ("uplink", PlanAction::Create) => uplinks.push(name.to_owned()),
                ("uplink", PlanAction::Delete) => uplinks.retain(|uplink| uplink != name),
                ("team", PlanAction::Create | PlanAction::ChangeLive) => {
                    let team = b.teams.iter().find(|team| team.name.as_str() == name).unwrap();
                    for member in &team.members {
                        prop_assert!(uplinks.iter().any(|uplink| *uplink == member.as_str()));
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_nic_is_made_or_moved_only_onto_a_switch_that_is_there(a in hosts(), b in hosts()) {
        let mut switches: Vec<String> = a.switches.iter().map(|s| s.name.to_string()).collect();
        for step in Plan::between(&a, &b).steps {
            let (kind, name) = step.resource.split_once('/').unwrap_or((&step.resource, ""));
            match (kind, step.action) {
                ("switch", PlanAction::Create) => switches.push(name.to_owned()),
                ("switch", PlanAction::Delete) => switches.retain(|switch| switch != name),
                ("nic", PlanAction::Create | PlanAction::ChangeLive | PlanAction::Replace) => {
                    let nic = b.nics.iter().find(|nic| nic.name.as_str() == name).unwrap();
                    prop_assert!(switches.iter().any(|switch| *switch == nic.switch.as_str()));
                }
                _ => {}
            }
        }
    }
}
