use serde_json::json;
use suimon_contract::parse_toml;

use super::*;

const HOST: &str = r#"
[[store]]
name = "fast"
path = "/srv/fast"
[[qos_policy]]
name = "gold"
kind = "aggregated"
min_iops = 1000
weight = 7
[[disk]]
name = "web"
store = "fast"
format = "vhdx"
qos_policy = "gold"
[[disk]]
name = "db"
store = "fast"
format = "raw"
qos = { min_iops = 500, max_iops = 900 }
"#;

fn proposed(arguments: &[&str]) -> Value {
    let config = parse_toml(HOST, None).unwrap();
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let proposals: Vec<_> = read(&arguments)
        .unwrap()
        .into_iter()
        .map(|different| different.proposal(&config).unwrap())
        .collect();
    serde_json::to_value(proposals).unwrap()
}

fn usage_error(arguments: &[&str]) -> String {
    let config = parse_toml(HOST, None).unwrap();
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let proposals = read(&arguments).and_then(|different| {
        different
            .into_iter()
            .map(|proposal| proposal.proposal(&config))
            .collect::<Result<Vec<_>, _>>()
    });
    let failure = proposals.unwrap_err();
    assert_eq!(failure.exit_code(), 2);
    failure.to_string()
}

#[test]
fn keys_that_are_not_named_are_unchanged() {
    assert_eq!(
        proposed(&["disk/db", "min_iops=800", "qos_policy/gold", "min_iops=2000"]),
        json!([
            {"disk": {"name": "db", "qos": {"min_iops": 800, "max_iops": 900, "weight": 100}}},
            {"qos_policy": {"name": "gold", "limits": {"min_iops": 2000, "weight": 7}}},
        ])
    );
    assert_eq!(
        proposed(&["disk/db", "max_iops=default", "store=slow"]),
        json!([{"disk": {"name": "db", "store": "slow", "qos": {"min_iops": 500, "weight": 100}}}])
    );
    assert_eq!(
        proposed(&["disk/web", "store=slow"]),
        json!([{"disk": {"name": "web", "store": "slow", "qos_policy": "gold"}}])
    );
    assert_eq!(
        proposed(&["qos_policy/new", "kind=aggregated", "max_bytes_per_s=8 MiB"]),
        json!([{"qos_policy": {
            "name": "new", "kind": "aggregated",
            "limits": {"max_bytes_per_s": 8 << 20, "weight": 100},
        }}])
    );
    assert_eq!(
        proposed(&["store/fast", "capacity_iops=70000", "disk/new", "store=fast", "min_iops=1"]),
        json!([
            {"store": {"name": "fast", "capacity_iops": 70_000}},
            {"disk": {"name": "new", "store": "fast", "qos": {"min_iops": 1, "weight": 100}}},
        ])
    );
}

#[test]
fn limits_come_from_the_given_keys() {
    assert_eq!(
        proposed(&["disk/web", "min_iops=5"]),
        json!([{"disk": {"name": "web", "qos": {"min_iops": 5, "weight": 100}}}])
    );
    assert_eq!(
        proposed(&["disk/db", "qos_policy=gold"]),
        json!([{"disk": {"name": "db", "qos_policy": "gold"}}])
    );
    assert_eq!(proposed(&["disk/web", "qos_policy=default"]), json!([{"disk": {"name": "web"}}]));
}

#[test]
fn invalid_arguments_are_rejected() {
    for (arguments, message) in [
        (
            &["min_iops=5"][..],
            "`min_iops=5` has no resource; give the resource before the key, such as disk/web",
        ),
        (
            &["web", "min_iops=5"],
            "`web` is neither KEY=VALUE nor disk/NAME, qos_policy/NAME or store/NAME",
        ),
        (
            &["nic/web", "min_iops=5"],
            "`nic/web` is neither KEY=VALUE nor disk/NAME, qos_policy/NAME or store/NAME",
        ),
        (
            &["disk/-x", "min_iops=5"],
            "`disk/-x` is neither KEY=VALUE nor disk/NAME, qos_policy/NAME or store/NAME",
        ),
        (
            &["disk/web", "size_bytes=5"],
            "no key `size_bytes` of disk/web concerns QoS; the keys are store, \
             qos_policy, min_iops, max_iops, max_bytes_per_s, weight, burst_iops, burst_s",
        ),
        (
            &["store/fast", "min_iops=5"],
            "no key `min_iops` of store/fast concerns QoS; the keys are capacity_iops",
        ),
        (
            &["disk/web", "min_iops=0"],
            "`min_iops` must be a whole number from 1 to 1000000000 or default, not `0`",
        ),
        (&["disk/web", "min_iops=1", "min_iops=2"], "`min_iops` is given twice; give it once"),
        (&["store/fast"], "store/fast: no key is given; give at least one of capacity_iops"),
        (
            &["store/fast", "capacity_iops=default"],
            "store/fast: its capacity is unknown; give one, such as capacity_iops=50000",
        ),
    ] {
        assert_eq!(usage_error(arguments), message, "{arguments:?}");
    }
}
