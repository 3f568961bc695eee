//! Validation of QoS limits, common to policies and disks.

use crate::finding::{Finding, FindingLocation};
use crate::{ErrorCode, QosLimits, QosPolicyConfig};

/// Reports invalid combinations of one policy's keys.
pub(crate) fn check_qos_policy(
    location: FindingLocation,
    policy: &QosPolicyConfig,
    findings: &mut Vec<Finding>,
) {
    check_limits(location, "", &policy.limits(), findings);
    let keys = [
        ("max_bytes_per_s", policy.max_bytes_per_s.is_some()),
        ("burst_iops", policy.burst_iops.is_some()),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set && policy.spans_nodes()) {
        let message = "a shared aggregated policy has limits in operations per second only; \
                       remove this key, or `shared`";
        findings.push(location.finding(ErrorCode::KeyNotApplicable, key, message.to_owned()));
    }
}

/// Reports invalid combinations of limits. `prefix` precedes their keys.
pub(crate) fn check_limits(
    location: FindingLocation,
    prefix: &str,
    limits: &QosLimits,
    findings: &mut Vec<Finding>,
) {
    let mut report = |code, key: &str, message: String| {
        findings.push(location.finding(code, &format!("{prefix}{key}"), message));
    };
    if let (Some(min), Some(max)) = (limits.min_iops, limits.max_iops) {
        if min > max {
            let message = format!("{min} exceeds max_iops {max}; lower min_iops or raise max_iops");
            report(ErrorCode::InvalidValue, "min_iops", message);
        }
    }
    match (limits.burst_iops, limits.burst_s) {
        (None, None) => return,
        (Some(_), None) => {
            let message = "missing; `burst_iops` needs a duration in seconds: set this key, or \
                           remove `burst_iops`";
            report(ErrorCode::MissingKey, "burst_s", message.to_owned());
        }
        (None, Some(_)) => {
            let message = "missing; `burst_s` needs a rate: set this key, or remove `burst_s`";
            report(ErrorCode::MissingKey, "burst_iops", message.to_owned());
        }
        (Some(_), Some(_)) => {}
    }
    match (limits.burst_iops, limits.max_iops) {
        (Some(_), None) => {
            let message = "a burst is a rate above max_iops, which is missing; set max_iops or \
                           remove this key";
            report(ErrorCode::KeyNotApplicable, "burst_iops", message.to_owned());
        }
        (Some(burst), Some(max)) if burst <= max => {
            let message =
                format!("{burst} does not exceed max_iops {max}; raise it or remove this key");
            report(ErrorCode::InvalidValue, "burst_iops", message);
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "qos_checks_tests.rs"]
mod tests;
