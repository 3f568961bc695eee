//! SR-IOV adapters without hardware, with injected failures.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use suimon_frame::MacAddr;
use suimon_ports::{
    DeviceError, DeviceErrorKind, PfProperties, SriovHost, SriovSupport, VfLinkState, VfProperties,
    VfSettings, VfSettingsChange,
};
use suimon_quantity::PciAddress;

use super::wait_until;

/// Adapters of a host. Clones share the state, which survives daemons.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeSriov(Arc<Mutex<World>>);

#[derive(Debug, Default)]
struct World {
    adapters: Vec<PfProperties>,
    /// Setting that the driver rejects, by its key.
    cannot: Option<&'static str>,
    calls: Vec<String>,
    /// Addresses added for physical functions in embedded switches.
    addresses: BTreeSet<(PciAddress, MacAddr)>,
    /// Addresses added (`true`) and removed since the last query.
    leads: Vec<(MacAddr, bool)>,
    /// Number of queries of the adapters.
    listed: usize,
}

impl FakeSriov {
    /// Returns adapters `wan0`, `wan1`, … on buses 1, 2, …
    pub(crate) fn with_adapters(number: u8) -> Self {
        let adapter = |index: u8| PfProperties {
            address: PciAddress { domain: 0, bus: index + 1, device: 0, function: 0 },
            device: Some(format!("wan{index}")),
            netns: None,
            driver: Some("igb".to_owned()),
            vfs_max: 7,
            iommu_group: Some(u32::from(index)),
            numa_node: None,
            support: SriovSupport::Supported,
            vfs: Vec::new(),
        };
        let fake = Self::default();
        fake.world().adapters = (0..number).map(adapter).collect();
        fake
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Changes an adapter externally.
    pub(crate) fn change(&self, index: usize, change: impl FnOnce(&mut PfProperties)) {
        change(&mut self.world().adapters[index]);
    }

    pub(crate) fn properties(&self, index: usize) -> PfProperties {
        self.world().adapters[index].clone()
    }

    /// Blocks until the node has queried its adapters and has reacted to the result.
    pub(crate) fn wait_polled(&self) {
        let before = self.world().listed;
        // One query may have begun before, and the last one may not be complete.
        wait_until("adapters are looked at", || self.world().listed >= before + 3);
    }

    /// Has the driver reject changes of this key; `None`: of no key.
    pub(crate) fn reject_key(&self, key: Option<&'static str>) {
        self.world().cannot = key;
    }

    /// Returns the addresses added for physical functions.
    pub(crate) fn led_addresses(&self) -> Vec<String> {
        self.world().addresses.iter().map(|(pf, mac)| format!("{pf} {mac}")).collect()
    }

    /// Returns the addresses added (`true`) and removed since the last call.
    pub(crate) fn leads(&self) -> Vec<(MacAddr, bool)> {
        std::mem::take(&mut self.world().leads)
    }

    /// Returns the changes since the last call.
    pub(crate) fn settings_applied(&self) -> Vec<String> {
        std::mem::take(&mut self.world().calls)
    }
}

fn unsupported_error(field: &'static str) -> DeviceError {
    let detail = format!("the driver cannot do {field}");
    DeviceError { kind: DeviceErrorKind::Unsupported, field, detail }
}

fn new_vf(pf: PciAddress, index: u16) -> VfProperties {
    let device = 16 + u8::try_from(index).unwrap();
    VfProperties {
        index,
        address: PciAddress { device, ..pf },
        driver: Some("igbvf".to_owned()),
        iommu_group: Some(100 + u32::from(index)),
        device: Some(format!("vf{index}")),
        netns: None,
        is_up: false,
        settings: Some(VfSettings {
            mac: MacAddr::default(),
            vlan: None,
            spoof_check: Some(true),
            trust: Some(false),
            rate_min_mbps: 0,
            rate_max_mbps: 0,
            link_state: Some(VfLinkState::Auto),
        }),
    }
}

impl SriovHost for FakeSriov {
    fn adapters(&self) -> Result<Vec<PfProperties>, DeviceError> {
        let mut world = self.world();
        world.listed += 1;
        Ok(world.adapters.clone())
    }

    fn set_vf_count(&self, pf: PciAddress, count: u16) -> Result<(), DeviceError> {
        let mut world = self.world();
        let adapter = world.adapters.iter_mut().find(|adapter| adapter.address == pf).unwrap();
        if adapter.vfs.len() == usize::from(count) {
            return Ok(());
        }
        adapter.vfs = (0..count).map(|index| new_vf(pf, index)).collect();
        world.calls.push(format!("{pf} {count}"));
        Ok(())
    }

    fn set_embedded_switch_address(
        &self,
        pf: PciAddress,
        mac: MacAddr,
        is_added: bool,
    ) -> Result<(), DeviceError> {
        let mut world = self.world();
        world.leads.push((mac, is_added));
        let led = &mut world.addresses;
        if is_added {
            led.insert((pf, mac))
        } else {
            led.remove(&(pf, mac))
        };
        Ok(())
    }

    fn change_vf(
        &self,
        pf: PciAddress,
        index: u16,
        change: &VfSettingsChange,
    ) -> Result<(), DeviceError> {
        let mut world = self.world();
        let cannot = world.cannot;
        let keys = [
            ("mac", change.mac.is_some()),
            ("vlan", change.vlan.is_some()),
            ("spoof_check", change.spoof_check.is_some()),
            ("trust", change.trust.is_some()),
            ("bandwidth_max_bps", change.rates_mbps.is_some()),
            ("link_state", change.link_state.is_some()),
        ];
        for (key, _) in keys.into_iter().filter(|(_, is_reported)| *is_reported) {
            if cannot == Some(key) {
                return Err(unsupported_error(key));
            }
            let adapter = world.adapters.iter_mut().find(|adapter| adapter.address == pf).unwrap();
            let current = adapter.vfs[usize::from(index)].settings.as_mut().unwrap();
            match key {
                "mac" => current.mac = change.mac.unwrap(),
                "vlan" => current.vlan = change.vlan.unwrap(),
                "spoof_check" => current.spoof_check = change.spoof_check,
                "trust" => current.trust = change.trust,
                "link_state" => current.link_state = change.link_state,
                _ => (current.rate_min_mbps, current.rate_max_mbps) = change.rates_mbps.unwrap(),
            }
            world.calls.push(format!("{pf} vf {index} {key}"));
        }
        Ok(())
    }
}
