//! Who uses a virtual function.

use suimon_contract::HostConfig;
use suimon_ports::{PfFacts, VfFacts};

/// The driver by which VMs get a function.
const VFIO: &str = "vfio-pci";

/// Who uses it, in words that follow "VF 3: "; `None` if nobody is seen to.
pub(crate) fn user_of(config: &HostConfig, vf: &VfFacts) -> Option<String> {
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
        // A driver of network devices would have made one that is seen, here or in a
        // namespace with a name.
        (Some(driver), None) => Some(format!("bound to driver {driver}, without a network device")),
    }
}

/// The virtual functions that are used, in words.
pub(super) fn users(config: &HostConfig, facts: &PfFacts) -> Vec<String> {
    let used = facts.vfs.iter().filter_map(|vf| Some((vf.index, user_of(config, vf)?)));
    used.map(|(index, user)| format!("VF {index}: {user}")).collect()
}
