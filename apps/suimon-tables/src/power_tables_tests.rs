use serde_json::json;

use super::*;

#[test]
fn a_host_without_cpufreq_is_shown_with_the_reason() {
    let reason = "there is no cpufreq driver";
    let power = serde_json::from_value(json!({
        "config": {"plan": "high-performance"}, "effect": "none",
        "settings": [
            {"cpus": [], "setting": "turbo", "required": "on", "in_effect": false,
             "reason": "there is no switch for turbo"},
            {"cpus": [], "setting": "governor", "required": "performance", "in_effect": false,
             "reason": reason},
        ],
        "data_plane":
            {"parking": false, "poll_us": 200, "vmq_high_percent": 70, "vmq_low_percent": 30},
        "cpus": [
            {"cpu": 0, "online": true, "idle_states": ["POLL", "haltpoll idle"]},
            {"cpu": 1, "online": true, "idle_states": ["POLL", "haltpoll idle"]},
        ],
        "changed": [],
        "energy": {"zones": [], "unavailable_reason": "energy is not known here"},
    }));
    insta::assert_snapshot!(details(&power.unwrap()));
}

#[test]
fn equal_cpus_share_a_line_and_power_is_shown() {
    let setting = |cpu: u16, now: &str| {
        json!({"cpus": [cpu], "setting": "governor", "required": "schedutil", "in_effect": true,
               "now": now})
    };
    let cpu = |cpu: u16, online: bool| {
        json!({"cpu": cpu, "online": online, "driver": "acpi-cpufreq", "governor": "schedutil",
               "khz_min": 1_500_000, "khz_max": 3_400_000, "idle_states": []})
    };
    let power = serde_json::from_value(json!({
        "config": {"plan": "balanced", "turbo": false}, "effect": "full",
        "settings": [setting(0, "schedutil"), setting(1, "schedutil"), setting(2, "schedutil"),
                     setting(4, "schedutil")],
        "data_plane":
            {"parking": true, "poll_us": 50, "vmq_high_percent": 85, "vmq_low_percent": 30},
        "cpus": [cpu(0, true), cpu(1, true), cpu(2, true), cpu(3, false), cpu(4, true)],
        "changed": [{"file": "devices/system/cpu/cpufreq/boost", "before": "1", "written": "0",
                     "now": "0"}],
        "energy": {"milliwatts": 42_340, "zones": [
            {"zone": "intel-rapl:0", "name": "package-0", "energy_uj": 9, "milliwatts": 38_140,
             "counted": true},
            {"zone": "intel-rapl:0:0", "name": "core", "energy_uj": 9, "milliwatts": 20_000,
             "counted": false},
            {"zone": "intel-rapl:0:1", "name": "dram", "energy_uj": 9, "milliwatts": 4200,
             "counted": true},
        ]},
    }));
    insta::assert_snapshot!(details(&power.unwrap()));
}

#[test]
fn without_a_plan_cpus_are_left_alone() {
    let power = PowerStatus::default();
    assert!(details(&power).contains("none: CPU settings are not changed"));
    assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
}
