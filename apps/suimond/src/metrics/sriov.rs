//! Metrics of adapters with SR-IOV.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{Health, SriovAdapter, SriovSupport};

use super::{Readings, encode_gauges};

/// What a gauge of an adapter is called, and what it shows.
type AdapterMetric = (&'static str, &'static str, fn(&SriovAdapter) -> f64);

const ADAPTER_METRICS: [AdapterMetric; 4] = [
    ("suimon_sriov_usable", "Whether VMs could be given its VFs", |of| {
        f64::from(u8::from(of.support == SriovSupport::Supported))
    }),
    ("suimon_sriov_vfs_supported", "VFs that it can have", |of| f64::from(of.vfs_supported)),
    ("suimon_sriov_vfs_enabled", "VFs that it has", |of| f64::from(of.vfs_enabled)),
    ("suimon_sriov_vfs_in_use", "VFs that somebody uses", |of| f64::from(of.vfs_in_use)),
];

impl Readings {
    pub(super) fn encode_sriov(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in ADAPTER_METRICS {
            let adapters = self.sriov.iter().map(|adapter| {
                let labels = [
                    ("address", adapter.address.clone()),
                    ("device", adapter.device.clone().unwrap_or_default()),
                ];
                (labels, value(adapter))
            });
            encode_gauges(encoder, name, help, adapters)?;
        }
        let pfs = self.pfs.iter().map(|pf| {
            let is_up = pf.condition.health == Health::Up;
            ([("pf", pf.config.name.to_string())], f64::from(u8::from(is_up)))
        });
        encode_gauges(encoder, "suimon_pf_up", "Whether an adapter is as desired", pfs)
    }
}
