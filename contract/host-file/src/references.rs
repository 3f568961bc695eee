//! References between resources: names are unique, and named resources exist.

use std::collections::BTreeMap;

use crate::finding::{ERRORS_MAX, Finding, FindingLocation};
use crate::{ErrorCode, HostConfig, Name, ResourceKind};

/// Reports duplicate names within a kind. Uplinks and teams share one namespace, since a switch
/// refers to either by name.
pub(crate) fn check_names_unique(config: &HostConfig, findings: &mut Vec<Finding>) {
    let location = |kind: ResourceKind| move |index: usize| FindingLocation::new(kind, index);
    let switches = config.switches.iter().map(|s| &s.name);
    unique((0..).map(location(ResourceKind::Switch)).zip(switches), findings);
    let uplinks =
        (0..).map(location(ResourceKind::Uplink)).zip(config.uplinks.iter().map(|u| &u.name));
    let teams = (0..).map(location(ResourceKind::Team)).zip(config.teams.iter().map(|t| &t.name));
    unique(uplinks.chain(teams), findings);
    let nics = config.nics.iter().map(|n| &n.name);
    unique((0..).map(location(ResourceKind::Nic)).zip(nics), findings);
    let stores = config.stores.iter().map(|s| &s.name);
    unique((0..).map(location(ResourceKind::Store)).zip(stores), findings);
    let policies = config.qos_policies.iter().map(|p| &p.name);
    unique((0..).map(location(ResourceKind::QosPolicy)).zip(policies), findings);
    let disks = config.disks.iter().map(|d| &d.name);
    unique((0..).map(location(ResourceKind::Disk)).zip(disks), findings);
    let vms = config.vms.iter().map(|vm| &vm.name);
    unique((0..).map(location(ResourceKind::Vm)).zip(vms), findings);
    let pfs = config.pfs.iter().map(|pf| &pf.name);
    unique((0..).map(location(ResourceKind::Pf)).zip(pfs), findings);
    let nodes = config.nodes.iter().map(|node| &node.name);
    unique((0..).map(location(ResourceKind::Node)).zip(nodes), findings);
}

fn unique<'a>(
    names: impl Iterator<Item = (FindingLocation, &'a Name)>,
    findings: &mut Vec<Finding>,
) {
    let mut firsts: BTreeMap<&Name, FindingLocation> = BTreeMap::new();
    for (location, name) in names {
        let Some(first) = firsts.get(name) else {
            firsts.insert(name, location);
            continue;
        };
        findings.push(location.finding(
            ErrorCode::DuplicateName,
            "name",
            format!(
                "`{name}` is also the name of the {} {}; rename one of them",
                ordinal(first.index),
                first.kind.noun()
            ),
        ));
    }
}

fn ordinal(index: usize) -> String {
    let number = index.saturating_add(1);
    let suffix = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

/// Reports references to resources that do not exist.
pub(crate) fn check_references(config: &HostConfig, findings: &mut Vec<Finding>) {
    let switches = NamesOf::new(&[ResourceKind::Switch], config.switches.iter().map(|s| &s.name));
    let uplinks = || config.uplinks.iter().map(|u| &u.name);
    let teams = || config.teams.iter().map(|t| &t.name);
    let members = NamesOf::new(&[ResourceKind::Uplink], uplinks());
    let team_names = NamesOf::new(&[ResourceKind::Team], teams());
    let either =
        NamesOf::new(&[ResourceKind::Uplink, ResourceKind::Team], uplinks().chain(teams()));
    for (index, nic) in config.nics.iter().enumerate() {
        switches.check(
            FindingLocation::new(ResourceKind::Nic, index),
            "switch",
            &nic.switch,
            findings,
        );
    }
    for (index, switch) in config.switches.iter().enumerate() {
        if let Some(uplink) = &switch.uplink {
            either.check(
                FindingLocation::new(ResourceKind::Switch, index),
                "uplink",
                uplink,
                findings,
            );
        }
    }
    for (index, team) in config.teams.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Team, index);
        for member in &team.members {
            if team_names.holds(member) && !members.holds(member) {
                findings.push(location.finding(
                    ErrorCode::UnknownReference,
                    "members",
                    format!("`{member}` is a team; name only uplinks as members"),
                ));
            } else {
                members.check(location, "members", member, findings);
            }
        }
    }
    references_of_disks_exist(config, findings);
    references_of_vms_exist(config, findings);
}

fn references_of_disks_exist(config: &HostConfig, findings: &mut Vec<Finding>) {
    let stores = NamesOf::new(&[ResourceKind::Store], config.stores.iter().map(|s| &s.name));
    let policies =
        NamesOf::new(&[ResourceKind::QosPolicy], config.qos_policies.iter().map(|p| &p.name));
    for (index, disk) in config.disks.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Disk, index);
        stores.check(location, "store", &disk.store, findings);
        if let Some(policy) = &disk.qos_policy {
            policies.check(location, "qos_policy", policy, findings);
        }
    }
}

fn references_of_vms_exist(config: &HostConfig, findings: &mut Vec<Finding>) {
    let nics = NamesOf::new(&[ResourceKind::Nic], config.nics.iter().map(|nic| &nic.name));
    let disks = NamesOf::new(&[ResourceKind::Disk], config.disks.iter().map(|disk| &disk.name));
    for (index, vm) in config.vms.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Vm, index);
        for nic in &vm.nics {
            nics.check(location, "nics", nic, findings);
        }
        for disk in &vm.disks {
            disks.check(location, "disks", disk, findings);
        }
    }
}

/// Names that references to one kind of resource may use.
struct NamesOf<'a> {
    kinds: &'a [ResourceKind],
    sorted: Vec<&'a Name>,
}

impl<'a> NamesOf<'a> {
    /// Largest number of names that are compared with an unknown name to suggest a similar one.
    const SUGGESTIONS_FROM_MAX: usize = 256;

    fn new(kinds: &'a [ResourceKind], names: impl Iterator<Item = &'a Name>) -> Self {
        let mut sorted: Vec<_> = names.collect();
        sorted.sort_unstable();
        Self { kinds, sorted }
    }

    fn holds(&self, name: &Name) -> bool {
        self.sorted.binary_search(&name).is_ok()
    }

    fn check(
        &self,
        location: FindingLocation,
        field: &str,
        name: &Name,
        findings: &mut Vec<Finding>,
    ) {
        // Skips the search for a similar name if the error would not be reported.
        if self.holds(name) || findings.len() >= ERRORS_MAX {
            return;
        }
        let similar = self
            .sorted
            .iter()
            .take(Self::SUGGESTIONS_FROM_MAX)
            .map(|candidate| {
                (strsim::osa_distance(candidate.as_str(), name.as_str()), candidate.as_str())
            })
            .min()
            .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4);
        let join_words = |left: &str, right: &str| {
            let words: Vec<_> =
                self.kinds.iter().map(|kind| format!("{left}{}{right}", kind.noun())).collect();
            words.join(" or ")
        };
        let kinds = join_words("", "");
        let message = match similar {
            Some((_, candidate)) => {
                format!("there is no {kinds} `{name}`; did you mean `{candidate}`?")
            }
            None => {
                format!(
                    "there is no {kinds} `{name}`; add a {} of that name, or correct the name",
                    join_words("[[", "]]")
                )
            }
        };
        findings.push(location.finding(ErrorCode::UnknownReference, field, message));
    }
}
