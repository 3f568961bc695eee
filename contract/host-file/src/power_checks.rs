//! Validation of `[power]`.

use crate::finding::{Finding, FindingLocation};
use crate::{ErrorCode, HostConfig, ResourceKind};

/// Smallest difference between `vmq_high_percent` and `vmq_low_percent`, in percent of a worker's
/// time.
const MARKS_APART: u8 = 30;

/// Reports invalid combinations of the keys of `[power]`.
pub(crate) fn check_power(config: &HostConfig, findings: &mut Vec<Finding>) {
    let Some(power) = &config.power else { return };
    let location = FindingLocation::new(ResourceKind::Power, 0);
    if let (Some(min), Some(max)) = (power.performance_percent_min, power.performance_percent_max) {
        if max < min {
            findings.push(location.finding(
                ErrorCode::InvalidValue,
                "performance_percent_max",
                format!("{max} is below performance_percent_min {min}; set {min} or more"),
            ));
        }
    }
    if let (Some(low), Some(high)) = (power.vmq_low_percent, power.vmq_high_percent) {
        let low_max = high.saturating_sub(MARKS_APART);
        if low > low_max {
            findings.push(location.finding(
                ErrorCode::InvalidValue,
                "vmq_low_percent",
                format!(
                    "{low} is too close to vmq_high_percent {high}: a worker that takes over \
                     queues would exceed that at once; set {low_max} or less"
                ),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{ChangeEffect, Plan, ResourceKind, default_text, parse_toml, to_toml};

    fn errors_of(text: &str) -> Vec<String> {
        let errors = parse_toml(text, None).unwrap_err();
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn contradictions_are_refused_with_valid_values() {
        let text = "[power]\nplan = \"custom\"\nperformance_percent_min = 60\n\
                    performance_percent_max = 50\nvmq_low_percent = 50\nvmq_high_percent = 70\n";
        let errors = errors_of(text);
        assert!(errors[0].contains("performance_percent_max") && errors[0].contains("60 or more"));
        assert!(errors[1].contains("vmq_low_percent") && errors[1].contains("40 or less"));
        assert_eq!(errors.len(), 2, "{errors:?}");
        let errors =
            errors_of("[power]\nplan = \"fast\"\npoll_us = 10001\nidle_state_max = \"\"\n");
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors_of("[power]\nturbo = true\n")[0].contains("plan"));
    }

    #[test]
    fn a_plan_is_written_as_it_is_read_and_its_keys_change_live() {
        let text = "[power]\nplan = \"power-saver\"\ngovernor = \"ondemand\"\n\
                    idle_state_max = \"C1E\"\nparking = false\n";
        let config = parse_toml(text, None).unwrap();
        assert_eq!(to_toml(&config), text);
        let balanced = parse_toml("[power]\nplan = \"balanced\"\n", None).unwrap();
        let plan = Plan::between(&config, &balanced);
        assert_eq!(
            plan.steps.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["~ power change live: plan power-saver → balanced, governor ondemand → none, \
              idle_state_max C1E → none, parking false → none"]
        );
        assert!(ResourceKind::Power.keys().iter().all(|key| key.effect == ChangeEffect::Live));
        assert_eq!(default_text(ResourceKind::Power, "turbo").as_deref(), Some("–"));
        let none = parse_toml("", None).unwrap();
        assert_eq!(Plan::between(&none, &config).steps[0].to_string(), "+ power create");
        assert_eq!(Plan::between(&config, &none).steps[0].to_string(), "- power delete");
    }
}
