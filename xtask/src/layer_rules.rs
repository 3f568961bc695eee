//! Layers of the architecture, and the permitted dependencies between them.

use std::path::{Component, Path};

use anyhow::{Context, Result};

use crate::metadata::{Metadata, Package};

/// Layer of a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// F0: quantities and frames.
    Base,
    /// F1: policies, formats and the contract.
    Pure,
    /// F2: traits.
    Ports,
    /// F3: system interfaces; the only layer with `unsafe`.
    Sys,
    /// F4: policies driven over ports.
    Plane,
    /// F5: programs.
    Apps,
    /// Test harness and checks: may use every layer, and no layer may use them.
    Outside,
}

impl Layer {
    /// Returns the layer of a crate, from the first folder of its path in the workspace.
    pub(crate) fn from_folder(folder_in_workspace: &Path) -> Option<Self> {
        let Some(Component::Normal(first)) = folder_in_workspace.components().next() else {
            return None;
        };
        Some(match first.to_str()? {
            "base" => Self::Base,
            "policy" | "formats" | "contract" => Self::Pure,
            "ports" => Self::Ports,
            "sys" => Self::Sys,
            "plane" => Self::Plane,
            "apps" => Self::Apps,
            "testing" | "xtask" => Self::Outside,
            _ => return None,
        })
    }

    /// Returns the name of the layer in the architecture.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Base => "F0 base",
            Self::Pure => "F1 policy, formats, contract",
            Self::Ports => "F2 ports",
            Self::Sys => "F3 sys",
            Self::Plane => "F4 plane",
            Self::Apps => "F5 apps",
            Self::Outside => "outside",
        }
    }

    /// Returns true if the layer takes time as an argument: no clock, thread, randomness or
    /// unordered map.
    pub(crate) const fn is_pure(self) -> bool {
        matches!(self, Self::Base | Self::Pure | Self::Ports)
    }

    /// Returns true if the layer handles untrusted input, so that it may not panic.
    pub(crate) const fn must_not_panic(self) -> bool {
        matches!(self, Self::Base | Self::Pure | Self::Sys)
    }
}

/// Permitted dependencies within one layer; all others are rejected.
const WITHIN_A_LAYER: &[(&str, &str)] = &[
    ("suimon-frame", "suimon-quantity"),
    ("suimon-client", "suimon-contract"),
    ("suimon-contract", "suimon-config"),
    ("suimon-contract", "suimon-host-file"),
    ("suimon-host-file", "suimon-config"),
    ("suimon-client", "suimon-lookups"),
    ("suimon-client", "suimon-secret-file"),
    ("suimon-recording", "suimon-cluster-qos"),
    ("suimon-recording", "suimon-storage-qos"),
    ("suimon-recording", "suimon-teaming"),
    ("suimon-recording", "suimon-vmq"),
    ("suimon-vhost-user", "suimon-ring"),
    ("suimon-vhost-user", "suimon-uring"),
    ("suimon-vhost-user", "suimon-unix-socket"),
    ("suimon-vhost-user", "suimon-socket-runtime"),
    ("suimon-stream-nic", "suimon-unix-socket"),
    ("suimon-stream-nic", "suimon-socket-runtime"),
    ("suimon-nbd-server", "suimon-socket-runtime"),
    ("suimon-ring", "suimon-eventfd"),
    ("suimon-ring", "suimon-mapping"),
    ("suimon-ring", "suimon-uring"),
    ("suimon-uring", "suimon-mapping"),
    ("suimon-vhost-user", "suimon-eventfd"),
    ("suimon-vhost-user", "suimon-mapping"),
    ("suimon-nbd-server", "suimon-unix-socket"),
    ("suimon-nbd-server", "suimon-uring"),
    ("suimon-qemu", "suimon-unix-socket"),
    ("suimon-socket-runtime", "suimon-unix-socket"),
    ("suimon-netdev", "suimon-bpf"),
    ("suimon-netdev", "suimon-netif"),
    ("suimon-node", "suimon-node-core"),
    ("suimon-node", "suimon-image-files"),
    ("suimon-node", "suimon-storage"),
    ("suimon-node", "suimon-storage-engine"),
    ("suimon-storage", "suimon-image-files"),
    ("suimon-storage", "suimon-storage-engine"),
    ("suimon-storage-engine", "suimon-image-files"),
    ("suimon-node", "suimon-switch"),
    ("suimond", "suimond-api"),
    ("suimond", "suimond-lab"),
    ("suimond", "suimond-metrics"),
    ("suimond-api", "suimond-lab"),
    ("suimond-api", "suimond-metrics"),
];

/// The lab and its experiments set up real components with the tests' harness.
const THE_LAB: &[(&str, &str)] =
    &[("suimon-lab", "suimon-rig"), ("suimon-lab-experiments", "suimon-rig")];

/// Exit status of measurement programs, used by examples of any crate.
const TEST_PROGRAMS: &str = "suimon-test-programs";

/// Crates with fewer permitted dependencies than their layer, and the complete list of those.
const NARROW: &[(&str, &[&str])] = &[
    (
        "suimon-lab",
        &[
            "suimon-contract",
            "suimon-lab-run",
            "suimon-lab-experiments",
            "suimon-rig",
            "suimon-pages",
            "suimon-built-from",
        ],
    ),
    ("suimon-lab-experiments", &["suimon-lab-run", "suimon-rig"]),
    ("suimon", &["suimon-contract", "suimon-client", "suimon-pages", "suimon-tables"]),
    ("suimon-tables", &["suimon-contract"]),
    ("suimon-sim-kernel", &["suimon-quantity"]),
    (
        "suimon-sim-storage",
        &[
            "suimon-sim-kernel",
            "suimon-quantity",
            "suimon-storage-qos",
            "suimon-cluster-qos",
            "suimon-contract",
            "suimon-ports",
        ],
    ),
    (
        "suimon-sim-host",
        &[
            "suimon-sim-kernel",
            "suimon-quantity",
            "suimon-frame",
            "suimon-failover",
            "suimon-forwarding",
            "suimon-offload",
            "suimon-power",
            "suimon-teaming",
            "suimon-vmq",
            "suimon-contract",
            "suimon-ports",
        ],
    ),
    (
        "suimon-sim",
        &[
            "suimon-sim-kernel",
            "suimon-sim-storage",
            "suimon-sim-host",
            "suimon-quantity",
            "suimon-frame",
            "suimon-storage-qos",
            "suimon-cluster-qos",
            "suimon-teaming",
            "suimon-vmq",
            "suimon-recording",
            "suimon-contract",
            "suimon-ports",
            "suimon-pages",
            "suimon-built-from",
        ],
    ),
];

/// Returns the reason why crate `from` may not depend on crate `to`; `None` if it may.
/// `is_for_tests` is true for a dependency of tests and examples only.
pub(crate) fn violation(
    from: (&str, Layer),
    to: (&str, Layer),
    is_for_tests: bool,
) -> Option<String> {
    let ((from, from_layer), (to, to_layer)) = (from, to);
    if from_layer == Layer::Outside || THE_LAB.contains(&(from, to)) {
        return None;
    }
    if is_for_tests && to == TEST_PROGRAMS {
        return None;
    }
    if to_layer == Layer::Outside {
        return Some("no crate may depend on test programs and checks".to_owned());
    }
    if let Some((_, allowed)) = NARROW.iter().find(|(name, _)| *name == from) {
        return (!allowed.contains(&to)).then(|| format!("it may use only {}", allowed.join(", ")));
    }
    if from_layer == Layer::Plane && to_layer == Layer::Sys {
        return Some("crates of plane use system services only through ports".to_owned());
    }
    if to_layer > from_layer {
        return Some("a crate depends only on crates of lower layers".to_owned());
    }
    if to_layer == from_layer && !WITHIN_A_LAYER.contains(&(from, to)) {
        return Some(
            "this dependency within one layer is not in the list of permitted ones".to_owned(),
        );
    }
    None
}

/// Returns the layer of a crate.
pub(crate) fn layer_of_crate(metadata: &Metadata, package: &Package) -> Result<Layer> {
    let folder = package.folder().strip_prefix(&metadata.workspace_root).unwrap_or(Path::new(""));
    Layer::from_folder(folder).with_context(|| {
        format!(
            "crate {} in {} belongs to no layer: move it into base, policy, formats, contract, \
             ports, sys, plane, apps, testing or xtask",
            package.name,
            folder.display()
        )
    })
}
