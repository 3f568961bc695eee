//! The floors and which crate may stand on which: the table of the architecture.

use std::path::{Component, Path};

/// Where a crate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// F0: quantities and frames.
    Base,
    /// F1: policies, formats and the contract.
    Pure,
    /// F2: traits.
    Ports,
    /// F3: the system; the only floor with `unsafe`.
    Sys,
    /// F4: policies driven over ports.
    Plane,
    /// F5: programs.
    Apps,
    /// Harness and checks: uses everything, is used by nobody.
    Outside,
}

impl Floor {
    /// The floor of a crate, from the first folder of its path in the workspace.
    pub(crate) fn of(folder_in_workspace: &Path) -> Option<Self> {
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

    /// As the architecture names it.
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

    /// Whether the floor takes time as an argument: no clock, thread, randomness
    /// or unordered map.
    pub(crate) const fn is_pure(self) -> bool {
        matches!(self, Self::Base | Self::Pure | Self::Ports)
    }

    /// Whether hostile input is handled here, so that nothing may panic on it.
    pub(crate) const fn must_not_panic(self) -> bool {
        matches!(self, Self::Base | Self::Pure | Self::Sys)
    }
}

/// The only edges inside one floor. All others are sideways and refused.
const WITHIN_A_FLOOR: &[(&str, &str)] = &[
    ("suimon-frame", "suimon-quantity"),
    ("suimon-client", "suimon-contract"),
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
    ("suimon-ring", "suimon-mapping"),
    ("suimon-ring", "suimon-uring"),
    ("suimon-uring", "suimon-mapping"),
    ("suimon-vhost-user", "suimon-mapping"),
    ("suimon-nbd-server", "suimon-uring"),
    ("suimon-node", "suimon-storage"),
    ("suimon-node", "suimon-switch"),
];

/// The lab sets up real parts as tests do, and with the same harness.
const THE_LAB: (&str, &str) = ("suimon-lab", "suimon-rig");

/// How programs for measurements end: examples of any crate use it.
const TEST_PROGRAMS: &str = "suimon-test-programs";

/// Crates that see less than their floor allows, and all they may see.
const NARROW: &[(&str, &[&str])] = &[
    (
        "suimon-lab",
        &["suimon-contract", "suimon-lab-run", "suimon-rig", "suimon-pages", "suimon-built-from"],
    ),
    ("suimon", &["suimon-contract", "suimon-client", "suimon-pages"]),
    (
        "suimon-sim",
        &[
            "suimon-quantity",
            "suimon-frame",
            "suimon-failover",
            "suimon-forwarding",
            "suimon-offload",
            "suimon-power",
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

/// Why crate `from` may not depend on crate `to`; `None` if it may. `is_for_tests`: only its tests and
/// examples do.
pub(crate) fn objection(
    from: (&str, Floor),
    to: (&str, Floor),
    is_for_tests: bool,
) -> Option<String> {
    let ((from, from_floor), (to, to_floor)) = (from, to);
    if from_floor == Floor::Outside || (from, to) == THE_LAB {
        return None;
    }
    if is_for_tests && to == TEST_PROGRAMS {
        return None;
    }
    if to_floor == Floor::Outside {
        return Some("harness and checks are used by nobody".to_owned());
    }
    if let Some((_, allowed)) = NARROW.iter().find(|(name, _)| *name == from) {
        return (!allowed.contains(&to)).then(|| format!("it may use only {}", allowed.join(", ")));
    }
    if from_floor == Floor::Plane && to_floor == Floor::Sys {
        return Some("a plane gets its system injected and never names it".to_owned());
    }
    if to_floor > from_floor {
        return Some("a crate depends only on lower floors".to_owned());
    }
    if to_floor == from_floor && !WITHIN_A_FLOOR.contains(&(from, to)) {
        return Some("this edge within one floor is not in the list of allowed ones".to_owned());
    }
    None
}
