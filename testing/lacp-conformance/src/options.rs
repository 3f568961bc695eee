//! The command line.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;

use crate::cases::{self, Case};
use crate::probe::Probe;
use crate::setup::Setup;

/// Tests a device's LACP (IEEE 802.1AX) from the far ends of its links.
///
/// Exit code: 0 if no case failed, 1 if a case failed, 2 if the suite failed to execute a case.
#[derive(Debug, Parser)]
#[command(name = "lacp-conformance", version)]
pub(crate) struct Options {
    /// Interfaces of this host; each is the far end of a member of one team of the device
    #[arg(value_name = "INTERFACE", required_unless_present = "list")]
    pub(crate) interfaces: Vec<String>,
    /// Description of the device for the report
    #[arg(long, default_value = "device")]
    pub(crate) device: String,
    /// Prints the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Lists the cases with their clauses, without running them
    #[arg(long)]
    pub(crate) list: bool,
    /// Runs only the cases with these names or name prefixes, such as `receive.`
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Skips the cases with these names or name prefixes
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Also runs cases that wait for the long timers (30 s, 90 s)
    #[arg(long)]
    pub(crate) long: bool,
    /// Prints every LACPDU except for floods to standard error: `<` received, `>` sent
    #[arg(long)]
    pub(crate) trace: bool,
    /// Maximum deviation of the device's timers, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 250)]
    pub(crate) tolerance_ms: u64,
    /// Maximum error of the times measured by this host, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(..500))]
    pub(crate) jitter_ms: u64,
    /// Maximum time for a member to come into use, in seconds
    #[arg(long, value_name = "S", default_value_t = 15)]
    pub(crate) establish_s: u64,
    /// IPv4 address of a host behind the team, with which the suite tests whether frames are
    /// forwarded
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) probe: Option<Ipv4Addr>,
    /// Unused address of the same network, from which the probes are sent
    #[arg(long, value_name = "ADDRESS", requires = "probe")]
    pub(crate) probe_from: Option<Ipv4Addr>,
    /// Shell command that sets the link `$INTERFACE` to `$STATE` (up or down), instead of `ip link
    /// set`
    #[arg(long, value_name = "COMMAND")]
    pub(crate) link_command: Option<String>,
}

impl Options {
    /// Returns the parameters of the run.
    pub(crate) fn setup(&self) -> Setup {
        let probe = self.probe.map(|target| {
            let [a, b, c, d] = target.octets();
            // The other host address of the /30 network that contains the target.
            let neighbour = Ipv4Addr::new(a, b, c, d ^ 3);
            Probe { target, sender: self.probe_from.unwrap_or(neighbour) }
        });
        Setup {
            tolerance: Duration::from_millis(self.tolerance_ms),
            jitter: Duration::from_millis(self.jitter_ms),
            establish_limit: Duration::from_secs(self.establish_s),
            long: self.long,
            trace: self.trace,
            probe,
        }
    }

    /// Returns the selected cases.
    ///
    /// # Errors
    /// A name does not match any case.
    pub(crate) fn cases(&self) -> Result<Vec<&'static Case>> {
        for name in self.only.iter().chain(&self.skip) {
            if !cases::all().any(|case| case.id.starts_with(name.as_str())) {
                bail!("no case begins with {name:?}: see --list");
            }
        }
        let matches_any =
            |names: &[String], id: &str| names.iter().any(|n| id.starts_with(n.as_str()));
        Ok(cases::all()
            .filter(|case| self.only.is_empty() || matches_any(&self.only, case.id))
            .filter(|case| !matches_any(&self.skip, case.id))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(arguments: &[&str]) -> Vec<&'static str> {
        let arguments = ["lacp-conformance", "eth0"].iter().chain(arguments);
        let options = Options::try_parse_from(arguments).unwrap();
        options.cases().unwrap().into_iter().map(|case| case.id).collect()
    }

    #[test]
    fn cases_are_chosen_by_name_and_by_beginning() {
        assert_eq!(chosen(&["--only", "rate.three-per-second"]), ["rate.three-per-second"]);
        assert_eq!(
            chosen(&["--only", "rate.,marker.", "--skip", "rate.ten,marker.r"]),
            ["rate.three-per-second", "marker.answered"]
        );
        assert_eq!(chosen(&[]).len(), cases::all().count());
    }

    #[test]
    fn an_unknown_name_is_rejected() {
        let arguments = ["lacp-conformance", "eth0", "--only", "tea."];
        let error = Options::try_parse_from(arguments).unwrap().cases().unwrap_err();
        assert!(error.to_string().contains("tea."));
    }

    #[test]
    fn names_are_unique_and_every_case_has_a_clause() {
        let ids: Vec<&str> = cases::all().map(|case| case.id).collect();
        let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len());
        assert!(cases::all().all(|case| case.clause.contains("6.")), "a case without a clause");
    }
}
