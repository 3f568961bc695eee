//! Plans included in the program.

/// Names and files of the plans, in the order of the list of experiments.
pub(crate) const SHIPPED_PLANS: &[(&str, &str)] = &[
    ("vmq-teaming", include_str!("../../../../lab/plans/vmq-teaming.toml")),
    ("vmq-max-processors", include_str!("../../../../lab/plans/vmq-max-processors.toml")),
    ("offload-ftp", include_str!("../../../../lab/plans/offload-ftp.toml")),
    ("sriov-host-cpu", include_str!("../../../../lab/plans/sriov-host-cpu.toml")),
    ("cpu-memory", include_str!("../../../../lab/plans/cpu-memory.toml")),
    ("disk-io", include_str!("../../../../lab/plans/disk-io.toml")),
    ("oltp", include_str!("../../../../lab/plans/oltp.toml")),
    ("net-throughput", include_str!("../../../../lab/plans/net-throughput.toml")),
    ("net-vm-to-vm", include_str!("../../../../lab/plans/net-vm-to-vm.toml")),
    ("web", include_str!("../../../../lab/plans/web.toml")),
    ("tiles", include_str!("../../../../lab/plans/tiles.toml")),
    ("power-plan", include_str!("../../../../lab/plans/power-plan.toml")),
    ("qos-host", include_str!("../../../../lab/plans/qos-host.toml")),
    ("qos-cluster-min", include_str!("../../../../lab/plans/qos-cluster-min.toml")),
    ("qos-cluster-max", include_str!("../../../../lab/plans/qos-cluster-max.toml")),
];

/// Returns the plan with this name.
pub(crate) fn find_shipped_plan(name: &str) -> Option<&'static str> {
    SHIPPED_PLANS.iter().find(|(id, _)| *id == name).map(|(_, text)| *text)
}
