//! What the kernel says that a network device does itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One feature of a network device that stands for one of our capabilities, by the
/// names of the kernel's `ETH_SS_FEATURES` (`net/ethtool/common.c`,
/// `netdev_features_strings`), which `ethtool -k` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeviceFeature {
    /// Transport checksums of any protocol are completed on sending.
    #[serde(rename = "tx-checksum-ip-generic")]
    TxChecksum,
    /// Those of TCP and UDP over IPv4 are.
    #[serde(rename = "tx-checksum-ipv4")]
    TxChecksumIpv4,
    /// Those of TCP and UDP over IPv6 are.
    #[serde(rename = "tx-checksum-ipv6")]
    TxChecksumIpv6,
    /// Large TCP/IPv4 frames are cut on sending.
    #[serde(rename = "tx-tcp-segmentation")]
    TxTcp4,
    /// Large TCP/IPv6 frames are.
    #[serde(rename = "tx-tcp6-segmentation")]
    TxTcp6,
    /// Large TCP frames with CWR are, so that it is on the first segment only.
    #[serde(rename = "tx-tcp-ecn-segmentation")]
    TxTcpEcn,
    /// Large UDP frames are.
    #[serde(rename = "tx-udp-segmentation")]
    TxUdp,
    /// Checksums of received frames are looked at.
    #[serde(rename = "rx-checksum")]
    RxChecksum,
    /// The kernel joins received segments.
    #[serde(rename = "rx-gro")]
    RxGro,
    /// The device joins them, so that they can be cut again.
    #[serde(rename = "rx-gro-hw")]
    RxGroHw,
    /// The device joins them, and what they were is lost.
    #[serde(rename = "rx-lro")]
    RxLro,
    /// The kernel joins received datagrams that are only passing.
    #[serde(rename = "rx-udp-gro-forwarding")]
    RxUdpGro,
}

impl DeviceFeature {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::TxChecksum,
        Self::TxChecksumIpv4,
        Self::TxChecksumIpv6,
        Self::TxTcp4,
        Self::TxTcp6,
        Self::TxTcpEcn,
        Self::TxUdp,
        Self::RxChecksum,
        Self::RxGro,
        Self::RxGroHw,
        Self::RxLro,
        Self::RxUdpGro,
    ];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TxChecksum => "tx-checksum-ip-generic",
            Self::TxChecksumIpv4 => "tx-checksum-ipv4",
            Self::TxChecksumIpv6 => "tx-checksum-ipv6",
            Self::TxTcp4 => "tx-tcp-segmentation",
            Self::TxTcp6 => "tx-tcp6-segmentation",
            Self::TxTcpEcn => "tx-tcp-ecn-segmentation",
            Self::TxUdp => "tx-udp-segmentation",
            Self::RxChecksum => "rx-checksum",
            Self::RxGro => "rx-gro",
            Self::RxGroHw => "rx-gro-hw",
            Self::RxLro => "rx-lro",
            Self::RxUdpGro => "rx-udp-gro-forwarding",
        }
    }

    /// The feature of this name; `None` if it says nothing about our capabilities.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name().as_bytes() == name)
    }
}

/// How a feature is now, in the four sets of bits that the kernel keeps
/// (`networking/ethtool-netlink`, `FEATURES_GET`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureState {
    /// `hw`: it can be switched.
    pub can_change: bool,
    /// `wanted`: somebody asked for it.
    pub is_wanted: bool,
    /// `active`: it is in use.
    pub is_active: bool,
    /// `nochange`: it can never be switched.
    pub is_fixed: bool,
}

impl FeatureState {
    /// Whether the device has it at all.
    pub const fn is_supported(self) -> bool {
        self.is_active || (self.can_change && !self.is_fixed)
    }

    /// As `ethtool -k` words it.
    pub const fn word(self) -> &'static str {
        let is_fixed = self.is_fixed || !self.can_change;
        match (self.is_active, is_fixed, self.is_wanted) {
            (true, true, _) => "on [fixed]",
            (true, false, true) => "on",
            (true, false, false) => "on [requested off]",
            (false, true, _) => "off [fixed]",
            (false, false, true) => "off [requested on]",
            (false, false, false) => "off",
        }
    }
}

/// What the kernel says of one device. A feature that this kernel has no name for is
/// not there, and counts as not supported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFeatures(BTreeMap<DeviceFeature, FeatureState>);

impl DeviceFeatures {
    /// How `feature` is.
    pub fn state(&self, feature: DeviceFeature) -> FeatureState {
        self.0.get(&feature).copied().unwrap_or_default()
    }

    /// The state of `feature`, to be filled in.
    pub fn state_mut(&mut self, feature: DeviceFeature) -> &mut FeatureState {
        self.0.entry(feature).or_default()
    }

    /// Those this kernel has a name for, in the order of [`DeviceFeature::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (DeviceFeature, FeatureState)> + '_ {
        self.0.iter().map(|(feature, state)| (*feature, *state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_one_name_in_code_and_in_json() {
        for feature in DeviceFeature::ALL {
            let json = serde_json::to_string(&feature).unwrap();
            assert_eq!(json, format!("\"{}\"", feature.name()));
            assert_eq!(DeviceFeature::named(feature.name().as_bytes()), Some(feature));
        }
        assert_eq!(DeviceFeature::named(b"rx-fcs"), None);
        assert!(DeviceFeature::ALL.is_sorted());
    }

    #[test]
    fn states_are_worded_as_ethtool_does() {
        let state = |bits: [bool; 4]| FeatureState {
            can_change: bits[0],
            is_wanted: bits[1],
            is_active: bits[2],
            is_fixed: bits[3],
        };
        for (bits, word, is_supported) in [
            ([true, true, true, false], "on", true),
            ([true, false, true, false], "on [requested off]", true),
            ([true, false, false, false], "off", true),
            ([true, true, false, false], "off [requested on]", true),
            ([false, false, true, false], "on [fixed]", true),
            ([true, true, true, true], "on [fixed]", true),
            ([false, false, false, false], "off [fixed]", false),
            ([true, true, false, true], "off [fixed]", false),
        ] {
            assert_eq!((state(bits).word(), state(bits).is_supported()), (word, is_supported));
        }
    }
}
