//! Metrics of VMs.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{VmState, VmStatus};

use crate::family::{Family, Value};
use crate::readings::Readings;

/// Gauge of a VM with the function that reads its value, if any.
type VmMetric = (Family, fn(&VmStatus) -> Option<Value>);

const LABELS: &[&str] = &["vm"];

const METRICS: [VmMetric; 4] = [
    (
        Family::gauge(
            "suimon_vm_up",
            "",
            LABELS,
            "1 if the virtual CPUs of the VM run, 0 if they are paused or stopped",
        ),
        |vm| Some(Value::flag(matches!(vm.state, VmState::Running | VmState::Stopping))),
    ),
    (
        Family::gauge(
            "suimon_vm_failed",
            "",
            LABELS,
            "1 if the VM ended with a failure, its guest panicked, or QEMU does not respond",
        ),
        |vm| {
            let is_out = matches!(vm.state, VmState::Panicked | VmState::NotResponding);
            Some(Value::flag(is_out || vm.reason.is_some()))
        },
    ),
    (
        Family::gauge(
            "suimon_vm_uptime_seconds",
            "seconds",
            LABELS,
            "Time since the VM was started",
        ),
        |vm| vm.uptime_s.map(Value::real_from_integer),
    ),
    (Family::gauge("suimon_vm_cpus", "", LABELS, "Virtual CPUs of the running VM"), |vm| {
        vm.cpus.map(|cpus| Value::Real(f64::from(cpus)))
    }),
];

pub(super) fn families() -> Vec<Family> {
    METRICS.map(|(family, _)| family).into()
}

impl Readings {
    pub(super) fn encode_vms(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (family, value) in METRICS {
            let vms =
                self.vms.iter().filter_map(|vm| Some(([vm.config.name.to_string()], value(vm)?)));
            family.write_if_any(encoder, vms)?;
        }
        Ok(())
    }
}
