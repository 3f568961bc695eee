//! Detection of the users of VFs.

use suimon_contract::HostConfig;
use suimon_ports::{PfProperties, VfProperties};

/// Driver through which VMs use VFs.
const VFIO: &str = "vfio-pci";

/// Returns the user of a VF as text that continues "VF 3: "; `None` if no user is detected.
pub(crate) fn find_vf_user(config: &HostConfig, vf: &VfProperties) -> Option<String> {
    let device = vf.device.as_deref();
    if let (Some(device), Some(netns)) = (device, &vf.netns) {
        return Some(format!("its device {device} is in network namespace {netns}"));
    }
    let uplink = config.uplinks.iter().find(|uplink| Some(uplink.device.as_str()) == device);
    if let Some(uplink) = uplink {
        return Some(format!("its device {} is used by uplink/{}", uplink.name, uplink.device));
    }
    match (vf.driver.as_deref(), device) {
        (None, _) => None,
        (Some(VFIO), _) => Some("bound to driver vfio-pci, for a VM".to_owned()),
        (Some(_), Some(device)) => {
            vf.is_up.then(|| format!("its device {device} is up (`ip link set {device} down`)"))
        }
        // The driver of a network function would have created a network device, visible here or in
        // a named namespace.
        (Some(driver), None) => Some(format!("bound to driver {driver}, without a network device")),
    }
}

/// Returns a text for each VF that is in use.
pub(super) fn vf_user_texts(config: &HostConfig, properties: &PfProperties) -> Vec<String> {
    let used = properties.vfs.iter().filter_map(|vf| Some((vf.index, find_vf_user(config, vf)?)));
    used.map(|(index, user)| format!("VF {index}: {user}")).collect()
}
