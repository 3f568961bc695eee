//! Plans of all kinds.

use anyhow::Result;
use serde::Deserialize;

use crate::lab::{Lab, Outcome};
use crate::{disk_io, power_plan, qos_host, sriov_host_cpu};

/// A plan, by its `kind`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Plan {
    QosHost(qos_host::Plan),
    DiskIo(disk_io::Plan),
    #[serde(rename = "power-plan")]
    Power(power_plan::Plan),
    SriovHostCpu(sriov_host_cpu::Plan),
}

impl Plan {
    /// Reads and checks a plan.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let plan: Self = toml::from_str(text)?;
        match &plan {
            Self::QosHost(plan) => plan.check()?,
            Self::DiskIo(plan) => plan.check()?,
            Self::Power(plan) => plan.check()?,
            Self::SriovHostCpu(plan) => plan.check()?,
        }
        Ok(plan)
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::QosHost(plan) => &plan.name,
            Self::DiskIo(plan) => &plan.name,
            Self::Power(plan) => &plan.name,
            Self::SriovHostCpu(plan) => &plan.name,
        }
    }

    pub(crate) fn run(&self, lab: &Lab) -> Result<Outcome> {
        match self {
            Self::QosHost(plan) => qos_host::run(plan, lab),
            Self::DiskIo(plan) => disk_io::run(plan, lab),
            Self::Power(plan) => power_plan::run(plan, lab),
            Self::SriovHostCpu(plan) => sriov_host_cpu::run(plan, lab),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;

    /// `good` is read, and what a replacement makes of it is refused with words that name
    /// what is wrong.
    fn refuses(good: &str, cases: &[(&str, &str, &str)]) {
        Plan::parse(good).unwrap();
        for (from, to, expected) in cases {
            assert!(good.contains(from), "{from}");
            let error = Plan::parse(&good.replacen(from, to, 1)).expect_err(to);
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn plans_of_qos_on_a_host_are_read_and_wrong_ones_refused() {
        refuses(
            include_str!("../../../../../lab/qos-host.toml"),
            &[
                ("folder = \"/var/tmp\"", "folder = \"tmp\"", "absolute"),
                ("disks = 5", "disks = 0", "group"),
                ("block_kib = 512", "block_kib = 500", "block_kib"),
                ("disk_mib = 128", "disk_mib = 0", "disk_mib"),
                ("seconds = 30", "seconds = 1", "seconds"),
                ("{ max_iops = 1000 }", "{ max_iops = 0 }", "max_iops"),
                ("{ max_iops = 1000 }", "{ max_iops = 2, min_iops = 3 }", "min_iops"),
                ("limits = [{ max_iops = 1000 }, {}]", "limits = [{}]", "limits"),
                ("document_iops = 18_000", "document_iops = 16_000", "90 %"),
                ("max_iops", "most_iops", "most_iops"),
            ],
        );
    }

    #[test]
    fn plans_of_disk_io_are_read_and_wrong_ones_refused() {
        refuses(
            include_str!("../../../../../lab/disk-io.toml"),
            &[
                ("folder = \"/var/tmp\"", "folder = \"\"", "absolute"),
                ("rounds = 3", "rounds = 0", "rounds"),
                ("depths = [1,", "depths = [0,", "depths"),
                ("read_percent = 67", "read_percent = 101", "read_percent"),
                ("block_kib = 8", "block_kib = 3", "block_kib"),
                ("window_ms = 300", "window_ms = 99", "window_ms"),
                ("ways = [", "ways = [] # [", "ways"),
                ("ways = [", "ways = [\"nbd\", ", "ways"),
                ("ways = [", "ways = [\"carrier-pigeon\", ", "carrier-pigeon"),
                ("depths = [1,", "depths = [2,", "depths"),
                ("native_from_depth = 8", "native_from_depth = 0", "native_from_depth"),
                ("file_percent = 84", "file_percent = 101", "file_percent"),
                ("\"raw\"", "\"vhd-fixed\"", "targets"),
                ("\"pass-through\"", "\"floppy\"", "floppy"),
            ],
        );
    }

    #[test]
    fn plans_of_power_plans_are_read_and_wrong_ones_refused() {
        refuses(
            include_str!("../../../../../lab/power-plan.toml"),
            &[
                ("folder = \"/var/tmp\"", "folder = \"tmp\"", "absolute"),
                ("\"balanced\", ", "", "balanced"),
                ("sessions = 4", "sessions = 0", "sessions"),
                ("window_ms = 2000", "window_ms = 9", "window_ms"),
                ("rounds = 5", "rounds = 0", "rounds"),
                ("disk_mib", "disk_gib", "disk_gib"),
            ],
        );
    }

    #[test]
    fn plans_of_sriov_host_cpu_are_read_and_wrong_ones_refused() {
        refuses(
            include_str!("../../../../../lab/sriov-host-cpu.toml"),
            &[
                ("mib = 64", "mib = 0", "mib"),
                ("rounds = 5", "rounds = 0", "rounds"),
                ("rounds = 5", "round = 5", "round"),
                ("name = \"sriov-host-cpu\"", "name = \"../x\"", "name"),
            ],
        );
    }
}
