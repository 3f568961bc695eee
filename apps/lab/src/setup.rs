//! Command `suimon lab setup`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::output::print;
use crate::plan::{Plan, SHIPPED_PLANS, Scale};
use crate::profile::PERF;
use crate::shared_flags::WORK_FOLDER_DEFAULT;

/// Arguments of `setup`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetupFlags {
    /// Plans to install the required programs for; all shipped plans if absent.
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// Print the packages that would be installed, and install none.
    #[arg(long)]
    dry_run: bool,
}

impl SetupFlags {
    pub(crate) fn run(self) -> Result<()> {
        let plan_ids: Vec<String> = SHIPPED_PLANS.iter().map(|(id, _)| (*id).to_owned()).collect();
        let names = if self.plans.is_empty() { plan_ids } else { self.plans };
        let mut packages = BTreeSet::new();
        for name in names {
            let experiment = Plan::find(&name)?.experiment(Scale::Full)?;
            let missing = |need: &suimon_lab_experiments::Requirement| {
                need.missing(Path::new(WORK_FOLDER_DEFAULT)).is_some()
            };
            let mut requirements = experiment.requirements();
            requirements.push(PERF);
            packages.extend(
                requirements.iter().filter(|need| missing(need)).filter_map(|need| need.package()),
            );
        }
        if packages.is_empty() {
            return print("all packages are installed\n");
        }
        let packages: Vec<&str> = packages.into_iter().collect();
        if self.dry_run {
            return print(&format!("{}\n", packages.join("\n")));
        }
        let status = Command::new("apt-get")
            .args(["install", "--yes", "--no-install-recommends"])
            .args(&packages)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status()
            .context("apt-get")?;
        ensure!(status.success(), "apt-get could not install {}", packages.join(", "));
        Ok(())
    }
}
