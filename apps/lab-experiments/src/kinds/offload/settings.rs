//! Settings of plans of kind `offload`: load and combinations of offloads.

use anyhow::{Context, Result};
use serde::Deserialize;
use suimon_lab_run::LocalizedText;

use crate::bounds::check_bounds;

/// Table `[settings]` of plans of kind `offload`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Drivers of the uplink, each measured with each combination of offloads.
    drivers: Vec<Driver>,
    /// Number of unpinned workers, 1 to 16.
    #[serde(rename = "processors")]
    pub(crate) workers: u16,
    /// Number of files, 1 to 64.
    pub(crate) files: usize,
    /// Size of each file in MiB, 1 to 1024.
    pub(crate) file_mib: u64,
    /// Number of clients that download files repeatedly, 1 to 256.
    pub(crate) clients: usize,
    /// Warm-up time before each measurement in seconds, 0 to 60.
    pub(crate) warm_up_seconds: u64,
    /// Measuring time of each case in seconds, 2 to 3600.
    pub(crate) seconds: u64,
}

/// Driver of the uplink, as in the host file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Driver {
    AfPacket,
    AfXdp,
}

/// Offloads that are enabled in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offload {
    ChecksumAndSegmentation,
    Checksum,
    None,
}

/// Driver and offloads of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combination {
    pub(crate) driver: Driver,
    pub(crate) offload: Offload,
}

impl Driver {
    /// Returns the driver as written in a host file.
    pub(crate) const fn driver_key(self) -> &'static str {
        match self {
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::AfPacket => "packet",
            Self::AfXdp => "xdp",
        }
    }
}

impl Offload {
    const ALL: [Self; 3] = [Self::ChecksumAndSegmentation, Self::Checksum, Self::None];

    /// Returns the arguments of `suimon offload set`.
    pub(crate) const fn command_arguments(self) -> [&'static str; 3] {
        match self {
            Self::ChecksumAndSegmentation => {
                ["tx_checksum=on", "rx_checksum=on", "segmentation=on"]
            }
            Self::Checksum => ["tx_checksum=on", "rx_checksum=on", "segmentation=off"],
            Self::None => ["tx_checksum=off", "rx_checksum=off", "segmentation=off"],
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::ChecksumAndSegmentation => "both",
            Self::Checksum => "checksum",
            Self::None => "none",
        }
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::ChecksumAndSegmentation => {
                ("checksum and segmentation", "チェックサムとセグメンテーション")
            }
            Self::Checksum => ("checksum only", "チェックサムのみ"),
            Self::None => ("none", "なし"),
        }
    }
}

impl Combination {
    pub(crate) fn id(self) -> String {
        format!("{}+{}", self.driver.id(), self.offload.id())
    }

    pub(crate) fn description(self) -> LocalizedText {
        let (driver, (en, ja)) = (self.driver.driver_key(), self.offload.words());
        LocalizedText::new(
            format!("{driver}, offload: {en}"),
            format!("{driver}、オフロード: {ja}"),
        )
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("drivers", self.drivers.len() as u64, 1, 2),
            ("processors", self.workers.into(), 1, 16),
            ("files", self.files as u64, 1, 64),
            ("file_mib", self.file_mib, 1, 1024),
            ("clients", self.clients as u64, 1, 256),
            ("warm_up_seconds", self.warm_up_seconds, 0, 60),
            ("seconds", self.seconds, 2, 3600),
        ])
    }

    pub(crate) fn combinations(&self) -> Vec<Combination> {
        let of_driver =
            |&driver: &Driver| Offload::ALL.map(|offload| Combination { driver, offload });
        self.drivers.iter().flat_map(of_driver).collect()
    }

    pub(crate) fn combination(&self, case: &str) -> Result<Combination> {
        self.combinations()
            .into_iter()
            .find(|combination| combination.id() == case)
            .context("unknown case")
    }
}
