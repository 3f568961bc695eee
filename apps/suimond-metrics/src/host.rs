//! Metrics of the daemon and of the configuration.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::HostStatus;

use crate::family::{Family, Value};
use crate::readings::Readings;

const BUILD_INFO: Family = Family::gauge(
    "suimon_build_info",
    "",
    &["version"],
    "Always 1. The label `version` has the version of the daemon",
);

/// Gauge of the host with the function that reads its value.
type HostMetric = (Family, fn(&HostStatus) -> u64);

const HOST: [HostMetric; 10] = [
    (
        Family::gauge(
            "suimon_desired_revision",
            "",
            &[],
            "Number of configuration changes. It survives restarts of the daemon",
        ),
        |host| host.revision,
    ),
    (
        Family::gauge("suimon_uptime_seconds", "seconds", &[], "Time since the daemon started"),
        |host| host.uptime_s,
    ),
    (Family::gauge("suimon_switches", "", &[], "Configured switches"), |host| host.switches as u64),
    (Family::gauge("suimon_uplinks", "", &[], "Configured uplinks"), |host| host.uplinks as u64),
    (Family::gauge("suimon_teams", "", &[], "Configured teams"), |host| host.teams as u64),
    (Family::gauge("suimon_nics", "", &[], "Configured NICs"), |host| host.nics as u64),
    (Family::gauge("suimon_disks", "", &[], "Configured disks"), |host| host.disks as u64),
    (Family::gauge("suimon_vms", "", &[], "Configured VMs"), |host| host.vms as u64),
    (Family::gauge("suimon_pfs", "", &[], "Configured SR-IOV adapters (`[[pf]]`)"), |host| {
        host.pfs as u64
    }),
    (Family::gauge("suimon_nodes", "", &[], "Configured other nodes (`[[node]]`)"), |host| {
        host.nodes as u64
    }),
];

const STATE_WRITABLE: Family = Family::gauge(
    "suimon_state_writable",
    "",
    &[],
    "1 if the state directory can be written, else 0. While it is 0, changes of the configuration are rejected",
);

const REFUSED_CALLS: Family = Family::counter(
    "suimon_refused_system_calls",
    "",
    &[],
    "System calls of the daemon's threads that the kernel denied. An increase indicates a defect \
     or an attack",
);

const REFUSED_ACCESS: Family = Family::counter(
    "suimon_refused_access",
    "",
    &["listener"],
    "Requests with a wrong token or login code, of the TCP listener (`api`) or the console (`console`). An \
     increase indicates a client with an outdated token, or attempts to guess one: event 1020 names the peer",
);

pub(super) fn families() -> Vec<Family> {
    let mut families = vec![BUILD_INFO];
    families.extend(HOST.map(|(family, _)| family));
    families.extend([STATE_WRITABLE, REFUSED_CALLS, REFUSED_ACCESS]);
    families
}

impl Readings {
    pub(super) fn encode_host(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let version = [([self.host.version.clone()], Value::Integer(1))];
        BUILD_INFO.write(encoder, version.into_iter())?;
        for (family, value) in HOST {
            family.write(encoder, [([], Value::Integer(value(&self.host)))].into_iter())?;
        }
        let writable = Value::flag(self.host.state_store.writable);
        STATE_WRITABLE.write(encoder, [([], writable)].into_iter())?;
        let denied_calls = Value::Integer(self.host.confinement.refused_calls);
        REFUSED_CALLS.write(encoder, [([], denied_calls)].into_iter())?;
        let series = self.refused_requests_by_listener.iter();
        let series = series.map(|(name, count)| ([(*name).to_owned()], Value::Integer(*count)));
        REFUSED_ACCESS.write(encoder, series)
    }
}
