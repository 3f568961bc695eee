//! Command `qos what-if`: reservations of stores under proposed changes.

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use suimon_contract::{
    ApiError, DiskProposal, ErrorCode, HostConfig, Key, Name, QosLimits, QosPolicyProposal,
    QosProposal, ResourceKind, StoreProposal, WhatIfRequest, WhatIfResponse, rename_of_old_key,
};
use suimon_tables::qos_tables::reservation_table;

use crate::exit::Failure;
use crate::output::Context;
use crate::settings;

/// Arguments of `qos what-if`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhatIfFlags {
    /// Proposed changes: `disk/NAME`, `qos_policy/NAME` or `store/NAME`, each followed by keys with
    /// their new values, such as `disk/web min_iops=500`. Keys that are not given have their
    /// present values. A disk that does not exist requires `store=NAME`.
    #[arg(value_name = "RESOURCE|KEY=VALUE", required_unless_present = "without")]
    words: Vec<String>,
    /// Disk whose minimum does not count, as if it were deleted; may be given several times.
    #[arg(long, value_name = "DISK")]
    without: Vec<Name>,
}

/// Proposed values of the keys of one resource.
#[derive(Clone, Debug, PartialEq)]
struct Different {
    kind: ResourceKind,
    name: Name,
    /// Limits in the form of a merge patch.
    limits: Map<String, Value>,
    others: Map<String, Value>,
}

impl WhatIfFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let different = read(&self.words)?;
        let config = context.client.config().await?;
        let removed = self.without.into_iter().map(QosProposal::RemoveDisk);
        let proposals: Result<Vec<_>, Failure> = removed
            .map(Ok)
            .chain(different.into_iter().map(|different| different.proposal(&config)))
            .collect();
        let answer = context.client.what_if(&WhatIfRequest { proposals: proposals? }).await?;
        context.show(&answer, |answer| reservation_table(&answer.stores).render())?;
        if answer.fits { Ok(()) } else { Err(refusal(&answer)) }
    }
}

/// Returns the error with which the daemon would reject the change, for each store with too high
/// minimums.
fn refusal(answer: &WhatIfResponse) -> Failure {
    let too_much = answer.stores.iter().filter(|store| !store.fits);
    let errors = too_much.map(|store| {
        let error = ApiError::new(ErrorCode::Overcommitted, &store.explanation);
        error.with_resource(format!("store/{}", store.store))
    });
    Failure::Refused(errors.collect())
}

fn read(arguments: &[String]) -> Result<Vec<Different>, Failure> {
    let mut parsed: Vec<Different> = Vec::new();
    for argument in arguments {
        match (argument.split_once('='), parsed.last_mut()) {
            (None, _) => parsed.push(Different::new(argument)?),
            (Some((key, value)), Some(last)) => last.set(key, value)?,
            (Some(_), None) => {
                return Err(Failure::Usage(format!(
                    "`{argument}` has no resource; give the resource before the key, such as \
                     disk/web"
                )));
            }
        }
    }
    let empty =
        parsed.iter().find(|different| different.limits.is_empty() && different.others.is_empty());
    // A new disk may be proposed without limits. A policy or store without keys would propose
    // nothing.
    match empty.filter(|different| different.kind != ResourceKind::Disk) {
        Some(different) => Err(Failure::Usage(format!(
            "{}/{}: no key is given; give at least one of {}",
            different.kind.noun(),
            different.name,
            different.keys()
        ))),
        None => Ok(parsed),
    }
}

impl Different {
    fn new(argument: &str) -> Result<Self, Failure> {
        let usage_error = || {
            Failure::Usage(format!(
                "`{argument}` is neither KEY=VALUE nor disk/NAME, qos_policy/NAME or store/NAME"
            ))
        };
        let (kind, name) = argument.split_once('/').ok_or_else(usage_error)?;
        let kinds = [ResourceKind::Disk, ResourceKind::QosPolicy, ResourceKind::Store];
        let kind = kinds
            .into_iter()
            .find(|resource_kind| resource_kind.noun() == kind)
            .ok_or_else(usage_error)?;
        let name = name.parse().map_err(|_| usage_error())?;
        Ok(Self { kind, name, limits: Map::new(), others: Map::new() })
    }

    /// Returns the keys other than limits that affect the reservations.
    const fn other_keys(&self) -> &'static [&'static str] {
        match self.kind {
            ResourceKind::Disk => &["store", "qos_policy"],
            ResourceKind::QosPolicy => &["kind"],
            _ => &["capacity_iops"],
        }
    }

    /// Returns the limit with this name, for resources with limits.
    fn limit(&self, name: &str) -> Option<&'static Key> {
        ResourceKind::DiskQos.key(name).filter(|_| self.kind != ResourceKind::Store)
    }

    fn keys(&self) -> String {
        let limits = ResourceKind::DiskQos.keys().iter().map(|key| key.name);
        let limits = limits.filter(|name| self.limit(name).is_some());
        let keys: Vec<_> = self.other_keys().iter().copied().chain(limits).collect();
        keys.join(", ")
    }

    fn set(&mut self, name: &str, argument: &str) -> Result<(), Failure> {
        let name = rename_of_old_key(self.kind, name).map_or(name, |rename| rename.new);
        let other = || self.kind.key(name).filter(|_| self.other_keys().contains(&name));
        let (key, is_limit) = match (self.limit(name), other()) {
            (Some(key), _) => (key, true),
            (None, Some(key)) => (key, false),
            (None, None) => {
                return Err(Failure::Usage(format!(
                    "no key `{name}` of {}/{} concerns QoS; the keys are {}",
                    self.kind.noun(),
                    self.name,
                    self.keys()
                )));
            }
        };
        let value = settings::parse_setting_value(key, argument).map_err(Failure::Usage)?;
        let table = if is_limit { &mut self.limits } else { &mut self.others };
        match table.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(Failure::Usage(format!("`{name}` is given twice; give it once"))),
        }
    }

    /// Returns the proposal. Keys that are not given have their current values.
    fn proposal(self, config: &HostConfig) -> Result<QosProposal, Failure> {
        let Self { kind, name, limits, others } = self;
        Ok(match kind {
            ResourceKind::Disk => {
                let configured_disk = config.disks.iter().find(|disk| disk.name == name);
                let before = DiskProposal {
                    name,
                    store: None,
                    qos_policy: configured_disk.and_then(|disk| disk.qos_policy.clone()),
                    qos: QosLimits::NONE,
                };
                let mut disk: DiskProposal = merged(&before, &others)?;
                // A disk has one source of limits: a given policy replaces the disk's own limits,
                // and given limits replace a policy.
                let names_policy = others.get("qos_policy").is_some_and(|name| !name.is_null());
                let own_limits = configured_disk.map_or(QosLimits::NONE, |disk| disk.qos);
                let before = if names_policy { QosLimits::NONE } else { own_limits };
                disk.qos = merged(&before, &limits)?;
                if !limits.is_empty() && !names_policy {
                    disk.qos_policy = None;
                }
                QosProposal::Disk(disk)
            }
            ResourceKind::QosPolicy => {
                let policy = config.qos_policies.iter().find(|policy| policy.name == name);
                let before = policy.map_or(QosLimits::NONE, |policy| policy.limits());
                let policy =
                    QosPolicyProposal { name, kind: None, limits: merged(&before, &limits)? };
                QosProposal::QosPolicy(merged(&policy, &others)?)
            }
            _ => {
                let store = config.stores.iter().find(|store| store.name == name);
                let capacity_iops = others
                    .get("capacity_iops")
                    .and_then(Value::as_u64)
                    .or_else(|| store.and_then(|store| store.capacity_iops?.declared_iops()));
                let Some(capacity_iops) = capacity_iops else {
                    return Err(Failure::Usage(format!(
                        "store/{name}: its capacity is unknown; give one, such as capacity_iops=50000"
                    )));
                };
                QosProposal::Store(StoreProposal { name, capacity_iops })
            }
        })
    }
}

/// Returns `before` with the keys of `patch` applied.
fn merged<T: Serialize + DeserializeOwned>(
    before: &T,
    patch: &Map<String, Value>,
) -> Result<T, Failure> {
    let usage_error = |error: serde_json::Error| Failure::Usage(error.to_string());
    let mut value = serde_json::to_value(before).map_err(usage_error)?;
    if let Value::Object(table) = &mut value {
        for (key, value) in patch {
            if value.is_null() {
                table.remove(key);
            } else {
                table.insert(key.clone(), value.clone());
            }
        }
    }
    serde_json::from_value(value).map_err(usage_error)
}

#[cfg(test)]
#[path = "qos_what_if_tests.rs"]
mod tests;
