use crate::{VmqMode, parse_toml};

/// Returns a host with a single uplink, a team of one uplink, and the given keys of both `vmq`
/// tables.
fn host(host: &str, uplink: &str, team: &str) -> String {
    format!(
        "[host]\n{host}\n[[uplink]]\nname = \"alone\"\ndevice = \"e0\"\n[uplink.vmq]\n{uplink}\n\
         [[uplink]]\nname = \"of\"\ndevice = \"e1\"\n[[team]]\nname = \"t\"\nmembers = [\"of\"]\n\
         mode = \"static\"\n[team.vmq]\n{team}\n"
    )
}

fn errors_of(text: &str) -> Vec<String> {
    let errors = parse_toml(text, None).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_table_is_read_with_defaults() {
    let keys = "enabled = false\nmode = \"static\"\nbase_worker = 1\nmax_workers = 2\n\
                max_worker_number = 3\nnuma_node = 0";
    let config = parse_toml(&host("worker_cpus = [4, 5]", keys, ""), None).unwrap();
    let vmq = &config.uplinks[0].vmq;
    assert_eq!((vmq.enabled, vmq.mode), (false, VmqMode::Static));
    assert_eq!((vmq.base_worker, vmq.max_workers), (Some(1), 2));
    assert_eq!((vmq.max_worker_number, vmq.numa_node), (Some(3), Some(0)));
    let unwritten = &config.teams[0].vmq;
    assert_eq!((unwritten.enabled, unwritten.mode), (true, VmqMode::Dynamic));
    assert_eq!((unwritten.base_worker, unwritten.max_workers), (None, 4));
}

#[test]
fn floating_workers_are_counted_and_exclude_pinned_ones() {
    let base = "base_worker = 3";
    assert!(parse_toml(&host("floating_workers = 4", base, ""), None).is_ok());
    let errors = errors_of(&host("floating_workers = 3", base, ""));
    assert!(errors[0].contains("there is no worker 3; set a number from 0 to 2"), "{errors:?}");
    let both = errors_of(&host("worker_cpus = [1]\nfloating_workers = 4", "", ""));
    assert!(both[0].contains("applies only if `worker_cpus` names no CPUs"), "{both:?}");
    let none = errors_of(&host("floating_workers = 0", "", ""));
    assert!(none[0].contains("must be a whole number from 1 to 64, not 0"), "{none:?}");
}

#[test]
fn workers_contradict_neither_each_other_nor_the_host() {
    let four = "worker_cpus = [8, 9, 10, 11]";
    for (keys, message) in [
        ("base_worker = 4", "there is no worker 4; set a number from 0 to 3, or add CPUs"),
        ("base_worker = 2\nmax_worker_number = 1", "1 is below base_worker 2; set 2"),
        ("max_workers = 0", "must be a whole number from 1 to 64, not 0"),
        ("base_worker = 64", "must be a whole number from 0 to 63, not 64"),
        ("numa_node = 1024", "must be a whole number from 0 to 1023, not 1024"),
        ("mode = \"lacp\"", "must be one of `static`, `dynamic`, not \"lacp\""),
        ("max_workrs = 1", "the key does not exist; did you mean `max_workers`?"),
    ] {
        let key = keys.rsplit_once('\n').map_or(keys, |(_, last)| last).split(' ').next().unwrap();
        for (text, resource) in
            [(host(four, keys, ""), "uplink/alone"), (host(four, "", keys), "team/t")]
        {
            let errors = errors_of(&text);
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(
                errors[0].contains(&format!(": {resource}: vmq.{key}: {message}")),
                "{errors:?}"
            );
        }
    }
    for valid in ["base_worker = 3", "base_worker = 0\nmax_worker_number = 63"] {
        assert!(parse_toml(&host(four, valid, valid), None).is_ok(), "{valid}");
    }
}

#[test]
fn a_host_without_cpus_has_one_worker() {
    assert!(parse_toml(&host("", "base_worker = 0", ""), None).is_ok());
    assert_eq!(
        errors_of(&host("", "base_worker = 1", "")),
        ["line 7: uplink/alone: vmq.base_worker: there is no worker 1; there is one worker, \
          set 0, or add CPUs to `worker_cpus` of [host]"]
    );
}

#[test]
fn a_member_leaves_vmq_to_its_team() {
    let text = host("", "", "").replace("\"e1\"", "\"e1\"\nvmq.max_workers = 2");
    assert_eq!(
        errors_of(&text),
        ["line 11: uplink/of: vmq: the uplink is a member of team `t`, whose `vmq` applies; \
          remove this table and set it for the team"]
    );
    // An explicit default is no contradiction.
    assert!(parse_toml(&text.replace("max_workers = 2", "max_workers = 4"), None).is_ok());
}

#[test]
fn a_nic_has_a_weight() {
    let nic = |keys: &str| {
        let head = "[[switch]]\nname = \"s\"\nkind = \"private\"\n[[nic]]\nname = \"n\"\n\
                    switch = \"s\"\nbackend = \"tap\"\n";
        parse_toml(&format!("{head}{keys}"), None)
    };
    assert_eq!(nic("").unwrap().nics[0].vmq_weight, 100);
    assert_eq!(nic("vmq_weight = 0").unwrap().nics[0].vmq_weight, 0);
    assert_eq!(
        nic("vmq_weight = 101").unwrap_err()[0].to_string(),
        "line 8: nic/n: vmq_weight: must be a whole number from 0 to 100, not 101"
    );
}
