use crate::{QosLimits, parse_toml};

/// Returns a host with these limits in a policy, and one with them in a disk.
fn hosts(keys: &str) -> [(String, &'static str); 2] {
    let policy = format!("[[qos_policy]]\nname = \"gold\"\n{keys}\n");
    let disk = format!(
        "[[store]]\nname = \"s\"\npath = \"/s\"\n[[disk]]\nname = \"d\"\nstore = \"s\"\n\
         format = \"raw\"\n[disk.qos]\n{keys}\n"
    );
    [(policy, "qos_policy/gold: "), (disk, "disk/d: qos.")]
}

const NO_BURST_S: &str = "burst_s: missing; `burst_iops` needs a duration in seconds: set this \
                          key, or remove `burst_iops`";

#[test]
fn limits_are_parsed_equally_for_policies_and_disks() {
    let keys = "min_iops = 100\nmax_iops = 1000\nmax_bytes_per_s = \"8 MiB\"\nweight = 7\n\
                burst_iops = 1001\nburst_s = 3600";
    let [(policy, _), (disk, _)] = hosts(keys);
    let limits = parse_toml(&policy, None).unwrap().qos_policies[0].limits();
    assert_eq!(parse_toml(&disk, None).unwrap().disks[0].qos, limits);
    assert_eq!((limits.min_iops, limits.max_iops), (Some(100), Some(1000)));
    assert_eq!((limits.weight, limits.burst_iops, limits.burst_s), (7, Some(1001), Some(3600)));
    assert_eq!(limits.max_bytes_per_s.unwrap().bytes(), 8 << 20);
    let [(policy, _), (disk, _)] = hosts("");
    assert_eq!(parse_toml(&policy, None).unwrap().qos_policies[0].limits(), QosLimits::NONE);
    assert_eq!(parse_toml(&disk, None).unwrap().disks[0].qos, QosLimits::NONE);
}

#[test]
fn limits_that_contradict_themselves_are_refused() {
    let cases: &[(&str, &[&str])] = &[
        (
            "min_iops = 11\nmax_iops = 10",
            &["min_iops: 11 exceeds max_iops 10; lower min_iops or raise max_iops"],
        ),
        ("min_iops = 10\nmax_iops = 10", &[]),
        ("max_iops = 10\nburst_iops = 20", &[NO_BURST_S]),
        (
            "max_iops = 10\nburst_s = 20",
            &["burst_iops: missing; `burst_s` needs a rate: set this key, or remove `burst_s`"],
        ),
        (
            "burst_iops = 20\nburst_s = 1",
            &["burst_iops: a burst is a rate above max_iops, which is missing; set max_iops or \
               remove this key"],
        ),
        (
            "max_iops = 20\nburst_iops = 20\nburst_s = 1",
            &["burst_iops: 20 does not exceed max_iops 20; raise it or remove this key"],
        ),
        (
            "min_iops = 9\nmax_iops = 8\nburst_iops = 7",
            &[
                "min_iops: 9 exceeds max_iops 8; lower min_iops or raise max_iops",
                NO_BURST_S,
                "burst_iops: 7 does not exceed max_iops 8; raise it or remove this key",
            ],
        ),
        ("min_iops = 0", &["min_iops: must be a whole number from 1 to 1000000000, not 0"]),
        (
            "max_iops = 1000000001",
            &["max_iops: must be a whole number from 1 to 1000000000, not 1000000001"],
        ),
        ("weight = 0", &["weight: must be a whole number from 1 to 10000, not 0"]),
        ("weight = 10001", &["weight: must be a whole number from 1 to 10000, not 10001"]),
        ("burst_s = 3601", &["burst_s: must be a whole number from 1 to 3600, not 3601"]),
        (
            "max_bytes_per_s = 511",
            &["max_bytes_per_s: must be a size from 512 B to 1 TiB, as a number of bytes or like \
               \"10 GiB\" (B, KiB, MiB, GiB, TiB), not 511"],
        ),
        (
            "max_bytes_per_s = \"2 TiB\"",
            &["max_bytes_per_s: must be a size from 512 B to 1 TiB, as a number of bytes or like \
               \"10 GiB\" (B, KiB, MiB, GiB, TiB), not \"2 TiB\""],
        ),
    ];
    for (keys, expected) in cases {
        for (text, location) in hosts(keys) {
            let actual: Vec<String> = parse_toml(&text, None)
                .err()
                .unwrap_or_default()
                .into_iter()
                .map(|mut error| {
                    error.line = None;
                    error.to_string()
                })
                .collect();
            let mut actual = actual;
            actual.sort_unstable();
            let mut expected: Vec<String> =
                expected.iter().map(|message| format!("{location}{message}")).collect();
            expected.sort_unstable();
            assert_eq!(actual, expected, "{keys}");
        }
    }
}

#[test]
fn nodes_share_operations_and_nothing_else_of_an_aggregated_policy() {
    let policy = |keys: &str| {
        parse_toml(&format!("[[qos_policy]]\nname = \"gold\"\nshared = true\n{keys}\n"), None)
    };
    let keys = "max_iops = 9\nmax_bytes_per_s = \"8 MiB\"\nburst_iops = 10\nburst_s = 1";
    assert!(policy(keys).unwrap().qos_policies[0].shared, "each disk has it by itself");
    let errors = policy(&format!("kind = \"aggregated\"\n{keys}")).unwrap_err();
    let fields: Vec<_> = errors.iter().filter_map(|error| error.field.as_deref()).collect();
    assert_eq!(fields, ["max_bytes_per_s", "burst_iops"], "{errors:?}");
    let config = policy("kind = \"aggregated\"\nmin_iops = 1\nmax_iops = 9").unwrap();
    assert!(config.qos_policies[0].spans_nodes());
}
