//! Settings of plans of kind `streams`: endpoints, network paths and block sizes.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use suimon_lab_run::LocalizedText;

use crate::bounds::check_bounds;

/// Table `[settings]` of plans of kind `streams`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Number of unpinned workers, 1 to 16.
    #[serde(rename = "processors")]
    pub(crate) workers: u16,
    /// Measuring time of each case in seconds, 2 to 3600.
    pub(crate) seconds: u64,
    /// Warm-up time before each measurement in seconds, 0 to 60.
    pub(crate) warm_up_seconds: u64,
    /// Interval of broadcasts of a VM during the streams in ms, 10 to 1000; no broadcasts if
    /// absent.
    #[serde(rename = "broadcast_ms")]
    pub(crate) broadcast_interval_ms: Option<u64>,
    /// Combinations of streams to measure.
    streams: Vec<Streams>,
}

/// Cases that differ in their block size only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Streams {
    through: NetworkPath,
    way: Endpoints,
    /// Block sizes of a sender's writes in bytes, 64 to 1 048 576.
    blocks: Vec<u32>,
}

/// Network path between the endpoints.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NetworkPath {
    /// Suimon's switch without an uplink.
    Private,
    /// Suimon's switch with the external network behind its uplink.
    External,
    /// Bridge of the Linux kernel.
    LinuxBridge,
    /// veth pair without VM or switch.
    Native,
}

/// Set of senders and receivers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Endpoints {
    OneToOne,
    FourToOne,
    OneToFour,
    /// From a VM to the external network.
    #[serde(rename = "out")]
    ToExternal,
    /// From the external network to a VM.
    #[serde(rename = "in")]
    FromExternal,
}

/// Network path, endpoints and block size of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combination {
    pub(crate) path: NetworkPath,
    pub(crate) endpoints: Endpoints,
    pub(crate) block_bytes: u32,
}

impl NetworkPath {
    const fn id(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::External => "external",
            Self::LinuxBridge => "linux-bridge",
            Self::Native => "native",
        }
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Private => ("private switch", "プライベートスイッチ"),
            Self::External => ("external switch", "外部スイッチ"),
            Self::LinuxBridge => ("Linux bridge", "Linux ブリッジ"),
            Self::Native => ("native", "ネイティブ"),
        }
    }
}

impl Endpoints {
    const fn id(self) -> &'static str {
        match self {
            Self::OneToOne => "one-to-one",
            Self::FourToOne => "four-to-one",
            Self::OneToFour => "one-to-four",
            Self::ToExternal => "out",
            Self::FromExternal => "in",
        }
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::OneToOne => ("one VM to one", "1 台から 1 台"),
            Self::FourToOne => ("four VMs to one", "4 台から 1 台"),
            Self::OneToFour => ("one VM to four", "1 台から 4 台"),
            Self::ToExternal => ("sends", "送信"),
            Self::FromExternal => ("receives", "受信"),
        }
    }

    /// Returns the number of VMs involved.
    pub(crate) const fn vms(self) -> u8 {
        match self {
            Self::OneToOne => 2,
            Self::FourToOne | Self::OneToFour => 5,
            Self::ToExternal | Self::FromExternal => 1,
        }
    }

    /// Returns true if one endpoint is in the external network.
    pub(crate) const fn uses_external_network(self) -> bool {
        matches!(self, Self::ToExternal | Self::FromExternal)
    }
}

impl Combination {
    pub(crate) fn id(self) -> String {
        format!("{}+{}.{}", self.path.id(), self.endpoints.id(), self.block_bytes)
    }

    pub(crate) fn description(self) -> LocalizedText {
        let ((path, through_ja), (endpoints, way_ja)) = (self.path.words(), self.endpoints.words());
        let block = self.block_bytes;
        LocalizedText::new(
            format!("{path}, {endpoints}, {block} bytes"),
            format!("{through_ja}、{way_ja}、{block} バイト"),
        )
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("processors", self.workers.into(), 1, 16),
            ("seconds", self.seconds, 2, 3600),
            ("warm_up_seconds", self.warm_up_seconds, 0, 60),
            ("broadcast_ms", self.broadcast_interval_ms.unwrap_or(10), 10, 1000),
            ("streams", self.streams.len() as u64, 1, 64),
        ])?;
        for streams in &self.streams {
            check_bounds(&[("blocks", streams.blocks.len() as u64, 1, 32)])?;
            for &block in &streams.blocks {
                check_bounds(&[("blocks", block.into(), 64, 1 << 20)])?;
            }
            let has_world = streams.way.uses_external_network();
            let (path, endpoints) = (streams.through.id(), streams.way.id());
            match streams.through {
                NetworkPath::Private => {
                    ensure!(!has_world, "streams: {endpoints}: {path} has no outside endpoint");
                }
                NetworkPath::Native => {
                    ensure!(has_world, "streams: {endpoints}: {path} has no VMs");
                }
                NetworkPath::External | NetworkPath::LinuxBridge => {}
            }
        }
        let mut ids: Vec<String> = self.combinations().into_iter().map(Combination::id).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        ensure!(ids.len() == count, "streams: an entry is listed twice");
        Ok(())
    }

    pub(crate) fn combinations(&self) -> Vec<Combination> {
        let combinations_of = |streams: &Streams| {
            let (path, endpoints) = (streams.through, streams.way);
            let combinations = streams.blocks.iter().map(|&block| Combination {
                path,
                endpoints,
                block_bytes: block,
            });
            combinations.collect::<Vec<_>>()
        };
        self.streams.iter().flat_map(combinations_of).collect()
    }

    pub(crate) fn combination(&self, case: &str) -> Result<Combination> {
        self.combinations()
            .into_iter()
            .find(|combination| combination.id() == case)
            .context("unknown case")
    }
}
