//! Metrics of SR-IOV adapters.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{Health, SriovAdapter, SriovSupport};

use crate::family::{Family, Value};
use crate::readings::Readings;

/// Gauge of an adapter with the function that reads its value.
type AdapterMetric = (Family, fn(&SriovAdapter) -> Value);

const LABELS: &[&str] = &["address", "device"];

const ADAPTERS: [AdapterMetric; 4] = [
    (
        Family::gauge(
            "suimon_sriov_usable",
            "",
            LABELS,
            "1 if VMs can have virtual functions of the adapter, else 0",
        ),
        |adapter| Value::flag(adapter.support == SriovSupport::Supported),
    ),
    (
        Family::gauge(
            "suimon_sriov_vfs_supported",
            "",
            LABELS,
            "Largest number of virtual functions of the adapter",
        ),
        |adapter| Value::Real(f64::from(adapter.vfs_supported)),
    ),
    (
        Family::gauge("suimon_sriov_vfs_enabled", "", LABELS, "Virtual functions that exist"),
        |adapter| Value::Real(f64::from(adapter.vfs_enabled)),
    ),
    (Family::gauge("suimon_sriov_vfs_in_use", "", LABELS, "Virtual functions in use"), |adapter| {
        Value::Real(f64::from(adapter.vfs_in_use))
    }),
];

const PF_UP: Family = Family::gauge(
    "suimon_pf_up",
    "",
    &["pf"],
    "1 if the configuration of the adapter (`[[pf]]`) is in effect, else 0",
);

pub(super) fn families() -> Vec<Family> {
    ADAPTERS.map(|(family, _)| family).into_iter().chain([PF_UP]).collect()
}

impl Readings {
    pub(super) fn encode_sriov(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (family, value) in ADAPTERS {
            let adapters = self.sriov_adapters.iter().map(|adapter| {
                let device = adapter.device.clone().unwrap_or_default();
                ([adapter.address.clone(), device], value(adapter))
            });
            family.write_if_any(encoder, adapters)?;
        }
        let pfs = self.pfs.iter().map(|pf| {
            ([pf.config.name.to_string()], Value::flag(pf.condition.health == Health::Up))
        });
        PF_UP.write_if_any(encoder, pfs)
    }
}
