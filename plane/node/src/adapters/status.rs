//! Observed state of SR-IOV adapters for the API.

use suimon_contract::{
    ApiError, Condition, ErrorCode, Health, HostConfig, PfConfig, PfStatus, ResourceKind,
    SriovAdapter, SriovSupport, VfStatus,
};
use suimon_ports::{self as ports, PfProperties, VfProperties};

use super::setting::{assigned_mac, mbps_to_bps, to_api_link_state};
use super::steps::first_difference;
use super::users::find_vf_user;
use super::{find, refers_to};
use crate::errors::not_found;
use crate::shared::Shared;

impl Shared {
    /// Returns the status of all SR-IOV capable adapters.
    ///
    /// # Errors
    /// The host cannot be queried.
    pub(crate) fn sriov_adapters(&self) -> Result<Vec<SriovAdapter>, ApiError> {
        let desired = self.desired();
        let adapters = self.pf_facts()?;
        Ok(adapters.iter().map(|properties| self.adapter(&desired.config, properties)).collect())
    }

    /// Returns the adapter with this PCI address, network device or `[[pf]]` name.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if there is none; [`ErrorCode::HostError`] if the host cannot be
    /// queried.
    pub(crate) fn sriov_adapter(&self, name: &str) -> Result<SriovAdapter, ApiError> {
        let desired = self.desired();
        let by_name = desired.config.pfs.iter().find(|pf| pf.name.as_str() == name);
        let device = by_name.map_or(name, |pf| pf.device.as_str());
        let adapter = self.pf_facts()?.into_iter().find(|properties| refers_to(properties, device));
        adapter.map(|properties| self.adapter(&desired.config, &properties)).ok_or_else(|| {
            let text = "no SR-IOV adapter has this PCI address, device or name; `suimon vf list` \
                        lists the adapters";
            ApiError::new(ErrorCode::NotFound, text).with_resource(format!("pf/{name}"))
        })
    }

    fn pf_facts(&self) -> Result<Vec<PfProperties>, ApiError> {
        let adapters = self.sriov.host.adapters();
        adapters.map_err(|error| ApiError::new(ErrorCode::HostError, error.detail))
    }

    /// Returns the status of all configured adapters.
    pub(crate) fn pfs(&self) -> Vec<PfStatus> {
        let desired = self.desired();
        if desired.config.pfs.is_empty() {
            return Vec::new();
        }
        let adapters = self.sriov.host.adapters();
        let status = |pf: &PfConfig| {
            let properties = adapters.as_ref().map_err(Clone::clone);
            let properties = properties.and_then(|adapters| find(adapters.clone(), pf));
            let condition = match &properties {
                Err(error) => failed_condition(error.detail.clone()),
                Ok(properties) => match first_difference(properties, pf) {
                    None => Condition { health: Health::Up, reason: None },
                    Some(error) => failed_condition(self.sriov.failure(&pf.name).unwrap_or(error)),
                },
            };
            let adapter =
                properties.ok().map(|properties| self.adapter(&desired.config, &properties));
            PfStatus { config: pf.clone(), condition, adapter }
        };
        desired.config.pfs.iter().map(status).collect()
    }

    /// Returns the status of an adapter, including VFs that are assigned to NICs.
    fn adapter(&self, config: &HostConfig, properties: &PfProperties) -> SriovAdapter {
        let mut adapter = adapter(config, properties);
        for (vf, properties) in adapter.vfs.iter_mut().zip(&properties.vfs) {
            if let Some(nic) = self.vf_assignments.nic_of_vf(properties.address) {
                let vm = config.vm_of_nic(&nic).map(|vm| format!(" of vm/{}", vm.name));
                vf.used_by = Some(format!("nic/{nic}{}", vm.unwrap_or_default()));
            }
        }
        adapter.vfs_in_use = count(adapter.vfs.iter().filter(|vf| vf.used_by.is_some()).count());
        adapter
    }

    /// Returns the status of one configured adapter.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`](suimon_contract::ErrorCode::NotFound) if no `[[pf]]` has this name.
    pub(crate) fn pf(&self, name: &str) -> Result<PfStatus, ApiError> {
        let found_pf = self.pfs().into_iter().find(|pf| pf.config.name.as_str() == name);
        found_pf.ok_or_else(|| not_found(ResourceKind::Pf, name))
    }
}

fn count(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn failed_condition(reason: String) -> Condition {
    Condition { health: Health::Failed, reason: Some(reason) }
}

fn adapter(config: &HostConfig, properties: &PfProperties) -> SriovAdapter {
    let support = support(properties.support);
    let vfs: Vec<_> = properties.vfs.iter().map(|vf| vf_status(config, vf)).collect();
    let pf = config.pfs.iter().find(|pf| refers_to(properties, &pf.device));
    SriovAdapter {
        address: properties.address.to_string(),
        device: properties.device.clone(),
        netns: properties.netns.clone(),
        pf: pf.map(|pf| pf.name.clone()),
        driver: properties.driver.clone(),
        support,
        remedy: support.remedy().map(str::to_owned),
        vfs_supported: properties.vfs_max,
        vfs_enabled: count(vfs.len()),
        vfs_in_use: count(vfs.iter().filter(|vf| vf.used_by.is_some()).count()),
        iommu_group: properties.iommu_group,
        numa_node: properties.numa_node,
        vfs,
    }
}

fn vf_status(config: &HostConfig, vf: &VfProperties) -> VfStatus {
    let settings = vf.settings.as_ref();
    VfStatus {
        index: vf.index,
        address: vf.address.to_string(),
        driver: vf.driver.clone(),
        iommu_group: vf.iommu_group,
        device: vf.device.clone(),
        netns: vf.netns.clone(),
        used_by: find_vf_user(config, vf),
        mac: settings.and_then(|settings| assigned_mac(settings.mac)),
        vlan: settings.and_then(|settings| settings.vlan),
        spoof_check: settings.and_then(|settings| settings.spoof_check),
        trust: settings.and_then(|settings| settings.trust),
        bandwidth_min_bps: settings.and_then(|settings| mbps_to_bps(settings.rate_min_mbps)),
        bandwidth_max_bps: settings.and_then(|settings| mbps_to_bps(settings.rate_max_mbps)),
        link_state: settings.and_then(|settings| settings.link_state).map(to_api_link_state),
    }
}

/// Returns the API value of an adapter's SR-IOV support.
pub(super) const fn support(support: ports::SriovSupport) -> SriovSupport {
    match support {
        ports::SriovSupport::Supported => SriovSupport::Supported,
        ports::SriovSupport::MissingPfDriver => SriovSupport::MissingPfDriver,
        ports::SriovSupport::NoVfBarSpace => SriovSupport::NoVfBarSpace,
        ports::SriovSupport::NoBusResources => SriovSupport::NoBusResources,
        ports::SriovSupport::NoIommu => SriovSupport::NoIoMmuSupport,
        ports::SriovSupport::MissingAcs => SriovSupport::MissingAcs,
    }
}
