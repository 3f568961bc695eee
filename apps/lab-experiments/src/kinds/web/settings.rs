//! Settings of plans of kind `web`: number of web VMs, and load.

use anyhow::{Context, Result};
use serde::Deserialize;
use suimon_lab_run::LocalizedText;

use crate::bounds::check_bounds;
use crate::loads::web::{Connections, Profile};

/// Table `[settings]` of plans of kind `web`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Numbers of web VMs, 1 to 16; each is a case.
    pub(crate) vms: Vec<u8>,
    /// Profiles, each measured with each setting of VMQ.
    profiles: Vec<ProfileName>,
    /// Settings of VMQ, each measured: true if each NIC has separate queues.
    vmq: Vec<bool>,
    /// Number of unpinned workers, 1 to 16.
    #[serde(rename = "processors")]
    pub(crate) workers: u16,
    /// Number of HTTP connections to each web VM, 1 to 1000.
    http_connections: u32,
    /// Number of HTTPS connections to each web VM, 1 to 1000.
    https_connections: u32,
    /// Size of a response in bytes, 1 to 65 536.
    pub(crate) file_bytes: usize,
    /// Measuring time of each case in seconds, 2 to 3600.
    pub(crate) seconds: u64,
}

/// WebBench profile: mix of the requests.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum ProfileName {
    StdCgi,
    MinCgi,
}

/// Profile, VMQ setting and number of VMs of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination {
    profile: ProfileName,
    pub(crate) has_vmq: bool,
    pub(crate) vms: u8,
}

impl ProfileName {
    const fn id(self) -> &'static str {
        match self {
            Self::StdCgi => "std-cgi",
            Self::MinCgi => "min-cgi",
        }
    }

    const fn display_name(self) -> &'static str {
        match self {
            Self::StdCgi => "STD-CGI",
            Self::MinCgi => "MIN-CGI",
        }
    }
}

impl Combination {
    pub(crate) fn id(self) -> String {
        let vmq = if self.has_vmq { "vmq" } else { "plain" };
        format!("{}+{vmq}.{}", self.profile.id(), self.vms)
    }

    pub(crate) fn description(self) -> LocalizedText {
        let (profile, vms) = (self.profile.display_name(), self.vms);
        let s = if vms == 1 { "" } else { "s" };
        let (state, ja) = if self.has_vmq { ("on", "オン") } else { ("off", "オフ") };
        LocalizedText::new(
            format!("{profile}, VMQ {state}, {vms} web VM{s}"),
            format!("{profile}、VMQ {ja}、Web VM {vms} 台"),
        )
    }

    pub(crate) const fn profile(self) -> Profile {
        match self.profile {
            ProfileName::StdCgi => Profile::STD_CGI,
            ProfileName::MinCgi => Profile::MIN_CGI,
        }
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("vms", self.vms.len() as u64, 1, 16),
            ("profiles", self.profiles.len() as u64, 1, 2),
            ("vmq", self.vmq.len() as u64, 1, 2),
            ("processors", self.workers.into(), 1, 16),
            ("http_connections", self.http_connections.into(), 1, 1000),
            ("https_connections", self.https_connections.into(), 1, 1000),
            ("file_bytes", self.file_bytes as u64, 1, 65_536),
            ("seconds", self.seconds, 2, 3600),
        ])?;
        for &vms in &self.vms {
            check_bounds(&[("vms", vms.into(), 1, 16)])?;
        }
        Ok(())
    }

    pub(crate) fn combinations(&self) -> Vec<Combination> {
        let mut combinations = Vec::new();
        for &profile in &self.profiles {
            for &has_vmq in &self.vmq {
                combinations.extend(self.vms.iter().map(|&vms| Combination {
                    profile,
                    has_vmq,
                    vms,
                }));
            }
        }
        combinations
    }

    pub(crate) fn combination(&self, case: &str) -> Result<Combination> {
        self.combinations()
            .into_iter()
            .find(|combination| combination.id() == case)
            .context("unknown case")
    }

    pub(crate) const fn connections(&self) -> Connections {
        Connections { http: self.http_connections, https: self.https_connections }
    }
}
