//! Metrics of VMs.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{VmState, VmStatus};

use super::{Readings, encode_gauges};

/// What a gauge of a VM is called, and what it shows, if that is known.
type VmMetric = (&'static str, &'static str, fn(&VmStatus) -> Option<f64>);

#[allow(clippy::cast_precision_loss, reason = "gauges are floating point")]
const VM_METRICS: [VmMetric; 4] = [
    ("suimon_vm_up", "Whether it runs and its CPUs do", |of| {
        Some(f64::from(u8::from(matches!(of.state, VmState::Running | VmState::Stopping))))
    }),
    (
        "suimon_vm_failed",
        "Whether it does not run because it failed, panicked or is silent",
        |of| {
            let is_out = matches!(of.state, VmState::Panicked | VmState::Lost);
            Some(f64::from(u8::from(is_out || of.reason.is_some())))
        },
    ),
    ("suimon_vm_uptime_seconds", "Time since it was started", |of| of.uptime_s.map(|s| s as f64)),
    ("suimon_vm_cpus", "Virtual CPUs that it has", |of| of.cpus.map(f64::from)),
];

impl Readings {
    pub(super) fn encode_vms(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in VM_METRICS {
            let vms = self
                .vms
                .iter()
                .filter_map(|vm| Some(([("vm", vm.config.name.to_string())], value(vm)?)));
            encode_gauges(encoder, name, help, vms)?;
        }
        Ok(())
    }
}
