//! Validation of QoS limits, common to policies and disks.

use crate::finding::{Finding, Place};
use crate::{DiskQos, ErrorCode, QosPolicyConfig};

/// Reports invalid combinations of one policy's keys.
pub(crate) fn policy_fits(place: Place, policy: &QosPolicyConfig, findings: &mut Vec<Finding>) {
    limits_fit(place, "", &policy.limits(), findings);
    let keys = [
        ("max_bytes_per_s", policy.max_bytes_per_s.is_some()),
        ("burst_iops", policy.burst_iops.is_some()),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set && policy.spans_nodes()) {
        let message = "nodes do not share it: an aggregated policy that is shared has operations a \
                       second only; remove it, or `shared`";
        findings.push(place.finding(ErrorCode::KeyNotApplicable, key, message.to_owned()));
    }
}

/// Reports invalid combinations of limits. `prefix` precedes their keys.
pub(crate) fn limits_fit(
    place: Place,
    prefix: &str,
    limits: &DiskQos,
    findings: &mut Vec<Finding>,
) {
    let mut wrong = |code, key: &str, message: String| {
        findings.push(place.finding(code, &format!("{prefix}{key}"), message));
    };
    if let (Some(min), Some(max)) = (limits.min_iops, limits.max_iops) {
        if min > max {
            let message =
                format!("{min} is above max_iops {max}; lower the one or raise the other");
            wrong(ErrorCode::InvalidValue, "min_iops", message);
        }
    }
    match (limits.burst_iops, limits.burst_s) {
        (None, None) => return,
        (Some(_), None) => {
            let message = "missing; say for how many seconds `burst_iops` may last, or remove that";
            wrong(ErrorCode::MissingKey, "burst_s", message.to_owned());
        }
        (None, Some(_)) => {
            let message = "missing; say what may be done for `burst_s` seconds, or remove that";
            wrong(ErrorCode::MissingKey, "burst_iops", message.to_owned());
        }
        (Some(_), Some(_)) => {}
    }
    match (limits.burst_iops, limits.max_iops) {
        (Some(_), None) => {
            let message = "a burst is what may be done above max_iops; set max_iops or remove it";
            wrong(ErrorCode::KeyNotApplicable, "burst_iops", message.to_owned());
        }
        (Some(burst), Some(max)) if burst <= max => {
            let message = format!("{burst} is not above max_iops {max}; give more or remove it");
            wrong(ErrorCode::InvalidValue, "burst_iops", message);
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "qos_fits_tests.rs"]
mod tests;
