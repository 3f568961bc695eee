//! Validation of SR-IOV adapters and their virtual functions.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Finding, FindingLocation};
use crate::{ErrorCode, PfConfig, VF_RATE_STEP_BPS, VfConfig};

/// Reports invalid combinations of one adapter's keys.
pub(crate) fn check_pf(location: FindingLocation, pf: &PfConfig, findings: &mut Vec<Finding>) {
    let mut indexes = BTreeSet::new();
    let mut macs = BTreeMap::new();
    for (index, vf) in pf.vf_settings.iter().enumerate() {
        let mut find = |key: &str, text: String| {
            let field = format!("vf[{index}].{key}");
            findings.push(location.finding(ErrorCode::InvalidValue, &field, text));
        };
        if !indexes.insert(vf.index) {
            find("index", format!("VF {} is described twice; remove one of the tables", vf.index));
        }
        if vf.index >= pf.vf_count {
            let text = match pf.vf_count.checked_sub(1) {
                None => "the adapter has no VFs; set `vfs` or remove this table".to_owned(),
                Some(last) => {
                    format!("the highest VF is number {last}; raise `vfs` or remove this table")
                }
            };
            find("index", text);
        }
        if let Some(other) = vf.mac.and_then(|mac| macs.insert(mac, vf.index)) {
            find("mac", format!("VF {other} has the same address; set another for one of them"));
        }
        for (key, text) in rates_fit(vf) {
            find(key, text);
        }
    }
}

fn rates_fit(vf: &VfConfig) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    let keys =
        [("bandwidth_min_bps", vf.bandwidth_min_bps), ("bandwidth_max_bps", vf.bandwidth_max_bps)];
    for (key, rate) in keys {
        if rate.is_some_and(|rate| rate.checked_rem(VF_RATE_STEP_BPS) != Some(0)) {
            let text = format!(
                "must be a multiple of {VF_RATE_STEP_BPS} bit/s, because adapters count in \
                 Mbit/s"
            );
            faults.push((key, text));
        }
    }
    if let (Some(min), Some(max)) = (vf.bandwidth_min_bps, vf.bandwidth_max_bps) {
        if min > max {
            let text = format!(
                "exceeds bandwidth_max_bps {max}; lower this key or raise bandwidth_max_bps"
            );
            faults.push(("bandwidth_min_bps", text));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use crate::{ErrorCode, parse_toml, to_toml};

    const GOOD: &str = r#"
        [[pf]]
        name = "wan"
        device = "0000:03:00.0"
        vfs = 4
        [[pf.vf]]
        index = 0
        mac = "52:54:00:00:00:01"
        vlan = 20
        spoof_check = true
        [[pf.vf]]
        index = 3
        bandwidth_min_bps = 10000000
        bandwidth_max_bps = 50000000
        link_state = "enable"
        trust = false
    "#;

    #[test]
    fn a_host_file_with_adapters_is_read_and_written() {
        let config = parse_toml(GOOD, None).unwrap();
        let pf = &config.pfs[0];
        assert_eq!((pf.vf_count, pf.vf_settings.len()), (4, 2));
        assert_eq!(pf.vf_settings[1].bandwidth_max_bps, Some(50_000_000));
        let text = to_toml(&config);
        assert!(text.contains("[[pf.vf]]\nindex = 3\n"), "{text}");
        assert_eq!(parse_toml(&text, None).unwrap(), config);
    }

    #[test]
    fn errors_contain_the_key_and_line() {
        for (from, to, field, part) in [
            ("index = 3", "index = 4", "vf[1].index", "the highest VF is number 3"),
            ("index = 3", "index = 0", "vf[1].index", "described twice"),
            ("vfs = 4", "vfs = 0", "vf[0].index", "the adapter has no VFs"),
            ("50000000", "50000001", "vf[1].bandwidth_max_bps", "multiple of 1000000"),
            ("50000000", "9000000", "vf[1].bandwidth_min_bps", "exceeds bandwidth_max_bps"),
            ("\"enable\"", "\"up\"", "vf[1].link_state", "`disable`"),
            ("index = 3", "index = 3\nmac = \"52:54:00:00:00:01\"", "vf[1].mac", "VF 0"),
            ("trust = false", "trsut = false", "vf[1].trsut", "did you mean `trust`"),
            ("0000:03:00.0", "0000:03:00.9", "device", "0000:03:00.0"),
        ] {
            let errors = parse_toml(&GOOD.replacen(from, to, 1), None).unwrap_err();
            let error = &errors[0];
            assert_eq!(error.field.as_deref(), Some(field), "{errors:?}");
            assert_eq!(error.resource.as_deref(), Some("pf/wan"), "{errors:?}");
            assert!(error.message.contains(part), "{errors:?}");
            assert!(error.line.is_some(), "{errors:?}");
        }
        let duplicated = format!("{GOOD}{}", GOOD.replace("\"wan\"", "\"lan\""));
        let errors = parse_toml(&duplicated, None).unwrap_err();
        assert_eq!(errors[0].code, ErrorCode::Conflict, "{errors:?}");
        let errors = parse_toml(&GOOD.replacen("index = 3\n", "", 1), None).unwrap_err();
        assert_eq!(errors[0].code, ErrorCode::MissingKey, "{errors:?}");
    }
}
