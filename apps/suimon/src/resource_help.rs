//! Help texts about resources.

use suimon_contract::{
    DiskConfig, NicConfig, NodeConfig, PfConfig, QosPolicyConfig, StoreConfig, SwitchConfig,
    TeamConfig, UplinkConfig, VmConfig,
};
use suimon_tables::resource_tables::TextOutput;

/// Kind of resource with help texts.
pub(crate) trait ResourceHelp: TextOutput {
    /// Noun in help texts, without article.
    const NOUN: &'static str;

    /// Plural of the noun in help texts.
    const PLURAL: &'static str;

    /// Help text of the verb `set`.
    const ABOUT_SET: &'static str;

    /// Help text of the verb `delete`.
    const ABOUT_DELETE: &'static str;
}

impl ResourceHelp for SwitchConfig {
    const NOUN: &'static str = "switch";
    const PLURAL: &'static str = "switches";
    const ABOUT_SET: &'static str = "Change keys of a switch";
    const ABOUT_DELETE: &'static str = "Delete a switch without NICs";
}

impl ResourceHelp for UplinkConfig {
    const NOUN: &'static str = "uplink";
    const PLURAL: &'static str = "uplinks";
    const ABOUT_SET: &'static str = "Change keys of an uplink";
    const ABOUT_DELETE: &'static str = "Delete an uplink that no switch or team uses";
}

impl ResourceHelp for TeamConfig {
    const NOUN: &'static str = "team";
    const PLURAL: &'static str = "teams";
    const ABOUT_SET: &'static str = "Change keys of a team";
    const ABOUT_DELETE: &'static str = "Delete a team that no switch uses";
}

impl ResourceHelp for NicConfig {
    const NOUN: &'static str = "NIC";
    const PLURAL: &'static str = "NICs";
    const ABOUT_SET: &'static str = "Change keys of a NIC";
    const ABOUT_DELETE: &'static str = "Delete a NIC that no VM uses";
}

impl ResourceHelp for StoreConfig {
    const NOUN: &'static str = "store";
    const PLURAL: &'static str = "stores";
    const ABOUT_SET: &'static str = "Change keys of a store";
    const ABOUT_DELETE: &'static str = "Delete a store without disks, and keep its files";
}

impl ResourceHelp for QosPolicyConfig {
    const NOUN: &'static str = "QoS policy";
    const PLURAL: &'static str = "QoS policies";
    const ABOUT_SET: &'static str = "Change keys of a QoS policy";
    const ABOUT_DELETE: &'static str = "Delete a QoS policy that no disk uses";
}

impl ResourceHelp for DiskConfig {
    const NOUN: &'static str = "disk";
    const PLURAL: &'static str = "disks";
    const ABOUT_SET: &'static str = "Change keys of a disk";
    const ABOUT_DELETE: &'static str =
        "Delete a disk that no VM uses, and keep its file unless --with-file is given";
}

impl ResourceHelp for VmConfig {
    const NOUN: &'static str = "VM";
    const PLURAL: &'static str = "VMs";
    const ABOUT_SET: &'static str = "Change keys of a VM, with hot-plug of NICs, disks and CPUs";
    const ABOUT_DELETE: &'static str = "Delete a VM that does not run, and keep its NICs and disks";
}

impl ResourceHelp for PfConfig {
    const NOUN: &'static str = "SR-IOV adapter";
    const PLURAL: &'static str = "configured SR-IOV adapters";
    const ABOUT_SET: &'static str = "Change keys of an SR-IOV adapter";
    const ABOUT_DELETE: &'static str =
        "Delete the configuration of an SR-IOV adapter, and keep its VFs";
}

impl ResourceHelp for NodeConfig {
    const NOUN: &'static str = "node";
    const PLURAL: &'static str = "nodes";
    const ABOUT_SET: &'static str = "Change keys of a node";
    const ABOUT_DELETE: &'static str = "Delete a node from the configuration of this host";
}

/// Returns a noun with its indefinite article: `a switch`, `an uplink`, `a NIC`.
pub(crate) fn with_article(noun: &str) -> String {
    let begins_with_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']) || noun.starts_with("SR-");
    let article = if begins_with_vowel { "an" } else { "a" };
    format!("{article} {noun}")
}

/// Returns the help text of an argument that names a resource.
pub(crate) fn name_help(noun: &str) -> String {
    format!("Name of the {noun}")
}
