//! Offload features of a network device, as reported by the kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Feature of a network device that corresponds to an offload capability. The kernel's names are
/// those of `ETH_SS_FEATURES` (`net/ethtool/common.c`, `netdev_features_strings`), which `ethtool
/// -k` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeviceFeature {
    /// Completes transport checksums of any protocol on transmission.
    #[serde(rename = "tx-checksum-ip-generic")]
    TxChecksum,
    /// Completes TCP and UDP checksums over IPv4 on transmission.
    #[serde(rename = "tx-checksum-ipv4")]
    TxChecksumIpv4,
    /// Completes TCP and UDP checksums over IPv6 on transmission.
    #[serde(rename = "tx-checksum-ipv6")]
    TxChecksumIpv6,
    /// Segments large TCP/IPv4 frames on transmission.
    #[serde(rename = "tx-tcp-segmentation")]
    TxTcp4Segmentation,
    /// Segments large TCP/IPv6 frames on transmission.
    #[serde(rename = "tx-tcp6-segmentation")]
    TxTcp6Segmentation,
    /// Segments large TCP frames with CWR, setting it on the first segment only.
    #[serde(rename = "tx-tcp-ecn-segmentation")]
    TxTcpEcnSegmentation,
    /// Segments large UDP frames on transmission.
    #[serde(rename = "tx-udp-segmentation")]
    TxUdpSegmentation,
    /// Verifies checksums of received frames.
    #[serde(rename = "rx-checksum")]
    RxChecksum,
    /// The kernel coalesces received segments (GRO).
    #[serde(rename = "rx-gro")]
    RxGro,
    /// The device coalesces received segments such that they can be segmented again.
    #[serde(rename = "rx-gro-hw")]
    RxGroHw,
    /// The device coalesces received segments irreversibly (LRO).
    #[serde(rename = "rx-lro")]
    RxLro,
    /// The kernel coalesces received UDP datagrams that are forwarded.
    #[serde(rename = "rx-udp-gro-forwarding")]
    RxUdpGro,
}

impl DeviceFeature {
    /// Every feature, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::TxChecksum,
        Self::TxChecksumIpv4,
        Self::TxChecksumIpv6,
        Self::TxTcp4Segmentation,
        Self::TxTcp6Segmentation,
        Self::TxTcpEcnSegmentation,
        Self::TxUdpSegmentation,
        Self::RxChecksum,
        Self::RxGro,
        Self::RxGroHw,
        Self::RxLro,
        Self::RxUdpGro,
    ];

    /// Returns the kernel's name of the feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TxChecksum => "tx-checksum-ip-generic",
            Self::TxChecksumIpv4 => "tx-checksum-ipv4",
            Self::TxChecksumIpv6 => "tx-checksum-ipv6",
            Self::TxTcp4Segmentation => "tx-tcp-segmentation",
            Self::TxTcp6Segmentation => "tx-tcp6-segmentation",
            Self::TxTcpEcnSegmentation => "tx-tcp-ecn-segmentation",
            Self::TxUdpSegmentation => "tx-udp-segmentation",
            Self::RxChecksum => "rx-checksum",
            Self::RxGro => "rx-gro",
            Self::RxGroHw => "rx-gro-hw",
            Self::RxLro => "rx-lro",
            Self::RxUdpGro => "rx-udp-gro-forwarding",
        }
    }

    /// Returns the feature with this name; `None` if it corresponds to no capability.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name().as_bytes() == name)
    }
}

/// State of a feature, from the four bit sets of the kernel (`networking/ethtool-netlink`,
/// `FEATURES_GET`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureState {
    /// The driver permits changing the feature (`hw`).
    pub can_change: bool,
    /// The feature was requested (`wanted`).
    pub is_wanted: bool,
    /// The feature is in use (`active`).
    pub is_active: bool,
    /// The feature can never be changed (`nochange`).
    pub is_fixed: bool,
}

impl FeatureState {
    /// Returns true if the feature is in use or can be switched on.
    pub const fn is_supported(self) -> bool {
        self.is_active || (self.can_change && !self.is_fixed)
    }

    /// Returns the state as `ethtool -k` prints it, for example `off [fixed]`.
    pub const fn ethtool_state(self) -> &'static str {
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

/// Features of one network device with their states. A feature unknown to the running kernel is
/// missing and counts as unsupported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFeatures(BTreeMap<DeviceFeature, FeatureState>);

impl DeviceFeatures {
    /// Returns the state of `feature`; unsupported if missing.
    pub fn state(&self, feature: DeviceFeature) -> FeatureState {
        self.0.get(&feature).copied().unwrap_or_default()
    }

    /// Returns the state of `feature` for modification, adding it if missing.
    pub fn state_mut(&mut self, feature: DeviceFeature) -> &mut FeatureState {
        self.0.entry(feature).or_default()
    }

    /// Returns the known features with their states, in the order of [`DeviceFeature::ALL`].
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
            assert_eq!(DeviceFeature::from_name(feature.name().as_bytes()), Some(feature));
        }
        assert_eq!(DeviceFeature::from_name(b"rx-fcs"), None);
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
            assert_eq!(
                (state(bits).ethtool_state(), state(bits).is_supported()),
                (word, is_supported)
            );
        }
    }
}
