//! Text output of SR-IOV adapters and their VFs.

use suimon_contract::{PfConfig, PfStatus, ResourceKind, SriovAdapter, VfStatus};

use crate::columns;
use crate::detail_text::{DetailText, health, serialized_name};
use crate::resource_tables::TextOutput;
use crate::table::{Table, or_dash};

impl TextOutput for PfConfig {
    fn table(statuses: &[PfStatus]) -> Table {
        let mut table = Table::new(&columns::PFS);
        for pf in statuses {
            let adapter = pf.adapter.as_ref();
            table.add_row([
                pf.config.name.to_string(),
                pf.config.device.clone(),
                pf.config.vf_count.to_string(),
                or_dash(adapter.map(|adapter| adapter.vfs_enabled)),
                or_dash(adapter.map(|adapter| adapter.vfs_in_use)),
                health(&pf.condition),
            ]);
        }
        table
    }

    fn details(status: &PfStatus) -> String {
        let mut lines = DetailText::from_resource(&status.config, &status.condition);
        for vf in &status.config.vf_settings {
            lines.add_nested_keys(ResourceKind::Vf, &format!("vf {}", vf.index), vf);
        }
        if let Some(adapter) = &status.adapter {
            add_adapter(&mut lines, adapter);
        }
        lines.into_text()
    }
}

/// Returns a table of all adapters, followed by the VFs of each adapter with VFs.
pub fn adapter_table(adapters: &[SriovAdapter]) -> String {
    let mut table = Table::new(&columns::ADAPTERS);
    for adapter in adapters {
        table.add_row([
            device_in_namespace(adapter.device.as_ref(), adapter.netns.as_ref()),
            adapter.address.clone(),
            or_dash(adapter.driver.as_ref()),
            adapter.vfs_supported.to_string(),
            adapter.vfs_enabled.to_string(),
            adapter.vfs_in_use.to_string(),
            or_dash(adapter.iommu_group),
            or_dash(adapter.numa_node),
            adapter.support.to_string(),
        ]);
    }
    let mut text = table.render();
    for adapter in adapters.iter().filter(|adapter| adapter.remedy.is_some()) {
        let remedy = adapter.remedy.as_deref().unwrap_or_default();
        text.push_str(&format!("\n{}: {}: {remedy}\n", name(adapter), adapter.support));
    }
    for adapter in adapters.iter().filter(|adapter| !adapter.vfs.is_empty()) {
        text.push_str(&format!("\nVFs of {}\n{}", name(adapter), vf_table(adapter).render()));
    }
    text
}

/// Returns the state of one adapter.
pub fn adapter_details(adapter: &SriovAdapter) -> String {
    let mut lines = DetailText::default();
    lines.add("configured by", or_dash(adapter.pf.as_ref().map(|pf| format!("pf/{pf}"))));
    add_adapter(&mut lines, adapter);
    lines.into_text()
}

/// Returns the state of one VF.
pub fn vf_details(vf: &VfStatus) -> String {
    let mut lines = DetailText::default();
    lines.add("index", vf.index);
    lines.add("address", &vf.address);
    lines.add("driver", or_dash(vf.driver.as_ref()));
    lines.add("iommu group", or_dash(vf.iommu_group));
    lines.add("device", device_in_namespace(vf.device.as_ref(), vf.netns.as_ref()));
    lines.add("used by", or_dash(vf.used_by.as_ref()));
    for (key, value) in settings(vf) {
        lines.add(key, value);
    }
    lines.into_text()
}

fn add_adapter(lines: &mut DetailText, adapter: &SriovAdapter) {
    lines.add("adapter", device_in_namespace(adapter.device.as_ref(), adapter.netns.as_ref()));
    lines.add("  address", &adapter.address);
    lines.add("  driver", or_dash(adapter.driver.as_ref()));
    lines.add("  SR-IOV support", adapter.support);
    if let Some(remedy) = &adapter.remedy {
        lines.add("    remedy", remedy);
    }
    lines.add("  iommu group", or_dash(adapter.iommu_group));
    lines.add("  numa node", or_dash(adapter.numa_node));
    lines.add("  VFs supported", adapter.vfs_supported);
    lines.add("  VFs enabled", adapter.vfs_enabled);
    lines.add("  VFs in use", adapter.vfs_in_use);
    if !adapter.vfs.is_empty() {
        lines.add_table(&vf_table(adapter));
    }
}

fn vf_table(adapter: &SriovAdapter) -> Table {
    let mut table = Table::new(&columns::VFS);
    for vf in &adapter.vfs {
        let [mac, vlan, spoof, trust, min, max, link] = settings(vf).map(|(_, value)| value);
        table.add_row([
            vf.index.to_string(),
            vf.address.clone(),
            or_dash(vf.driver.as_ref()),
            or_dash(vf.iommu_group),
            device_in_namespace(vf.device.as_ref(), vf.netns.as_ref()),
            mac,
            vlan,
            spoof,
            trust,
            min,
            max,
            link,
            or_dash(vf.used_by.as_ref()),
        ]);
    }
    table
}

/// Returns the settings of a VF by key.
fn settings(vf: &VfStatus) -> [(&'static str, String); 7] {
    let flag = |flag: Option<bool>| or_dash(flag.map(|is_on| if is_on { "on" } else { "off" }));
    [
        ("mac", or_dash(vf.mac)),
        ("vlan", or_dash(vf.vlan)),
        ("spoof_check", flag(vf.spoof_check)),
        ("trust", flag(vf.trust)),
        ("bandwidth_min_bps", or_dash(vf.bandwidth_min_bps.map(rate))),
        ("bandwidth_max_bps", or_dash(vf.bandwidth_max_bps.map(rate))),
        ("link_state", or_dash(vf.link_state.as_ref().map(serialized_name))),
    ]
}

/// Formats a rate: `100 Mbit/s`.
fn rate(bps: u64) -> String {
    format!("{} Mbit/s", bps / 1_000_000)
}

fn name(adapter: &SriovAdapter) -> String {
    match &adapter.device {
        Some(device) => format!("{device} ({})", adapter.address),
        None => adapter.address.clone(),
    }
}

/// Formats a device with its namespace: `eth3`, or `eth3 in blue`.
fn device_in_namespace(device: Option<&String>, netns: Option<&String>) -> String {
    match (device, netns) {
        (Some(device), Some(netns)) => format!("{device} in {netns}"),
        (device, _) => or_dash(device),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use suimon_contract::SriovSupport;

    use super::*;

    fn adapters() -> Vec<SriovAdapter> {
        serde_json::from_value(json!([
            {
                "address": "0000:01:00.0", "device": "eth0", "pf": "wan", "driver": "igb",
                "support": "Supported", "vfs_supported": 7, "vfs_enabled": 2, "vfs_in_use": 1,
                "iommu_group": 12, "numa_node": 0,
                "vfs": [
                    {
                        "index": 0, "address": "0000:01:10.0", "driver": "igbvf",
                        "iommu_group": 20, "device": "eth3", "netns": "blue",
                        "used_by": "its device eth3 is in network namespace blue",
                        "mac": "52:54:00:00:00:01", "vlan": 20, "spoof_check": true,
                        "trust": false, "bandwidth_max_bps": 100_000_000_u64,
                        "link_state": "auto",
                    },
                    {"index": 1, "address": "0000:01:10.2"},
                ],
            },
            {
                "address": "0000:02:00.0", "support": "MissingPfDriver",
                "remedy": SriovSupport::MissingPfDriver.remedy(), "vfs_supported": 8, "vfs_enabled": 0,
                "vfs_in_use": 0, "vfs": [],
            },
        ]))
        .unwrap()
    }

    #[test]
    fn adapters_and_vfs_are_shown_as_they_are() {
        let adapters = adapters();
        insta::assert_snapshot!(adapter_table(&adapters));
        insta::assert_snapshot!(adapter_details(&adapters[0]));
        insta::assert_snapshot!(vf_details(&adapters[0].vfs[0]));
    }
}
