//! Desired state with proposed changes, for computing the resulting reservations (`POST
//! /1.0/qos/what-if`).

use serde::{Deserialize, Serialize};

use utoipa::ToSchema;

use crate::{
    ApiError, DiskConfig, DiskFormat, ErrorCode, HostConfig, Name, QosLimits, QosPolicyConfig,
    QosPolicyKind, Resource, StoreCapacity, validate_qos,
};

/// Largest number of proposals in one request.
const PROPOSALS_MAX: usize = 256;

/// Body of `POST /1.0/qos/what-if`: proposals, applied in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIfRequest {
    /// Proposals, 1 to 256.
    #[schema(min_items = 1, max_items = 256)]
    pub proposals: Vec<QosProposal>,
}

/// Proposed change of desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QosProposal {
    /// New disk, or a disk with other limits or in another store.
    Disk(DiskProposal),
    /// New QoS policy, or a policy with other limits.
    QosPolicy(QosPolicyProposal),
    /// Existing store with another capacity.
    Store(StoreProposal),
    /// Removal of the disk with this name.
    #[serde(rename = "without_disk")]
    RemoveDisk(Name),
}

/// Proposed settings of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskProposal {
    /// Name of the disk.
    pub name: Name,
    /// Store that contains the disk; unchanged if absent. Required for a new disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Name>,
    /// QoS policy of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_policy: Option<Name>,
    /// Complete limits of the disk itself; none if neither these nor a policy is given.
    #[serde(default, skip_serializing_if = "QosLimits::is_default")]
    pub qos: QosLimits,
}

/// Proposed settings of a QoS policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyProposal {
    /// Name of the policy.
    pub name: Name,
    /// Scope of the limits; unchanged if absent, and `dedicated` for a new policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<QosPolicyKind>,
    /// Complete limits of the policy.
    #[serde(default, skip_serializing_if = "QosLimits::is_default")]
    pub limits: QosLimits,
}

/// Proposed settings of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreProposal {
    /// Name of an existing store.
    pub name: Name,
    /// Capacity in normalised operations per second, 1 to 1 000 000 000.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub capacity_iops: u64,
}

impl WhatIfRequest {
    /// Returns the desired state with the proposals applied, for computing reservations. Its QoS
    /// settings are valid; claims of files and sockets are not checked.
    ///
    /// # Errors
    /// References to missing resources, or every fault of the result; never empty.
    pub fn apply_to(&self, config: &HostConfig) -> Result<HostConfig, Vec<ApiError>> {
        if !(1..=PROPOSALS_MAX).contains(&self.proposals.len()) {
            let message = format!(
                "the request has {} proposals; the limit is {PROPOSALS_MAX}, and one is required",
                self.proposals.len()
            );
            let error = ApiError::new(ErrorCode::InvalidValue, message);
            return Err(vec![error.with_field("proposals")]);
        }
        let mut config = config.clone();
        for proposal in &self.proposals {
            match proposal {
                QosProposal::Disk(disk) => disk.apply(&mut config).map_err(|error| vec![error])?,
                QosProposal::QosPolicy(policy) => policy.apply(&mut config),
                QosProposal::Store(store) => {
                    let target = existing(&mut config.stores, &store.name)?;
                    target.capacity_iops = Some(StoreCapacity::Declared(store.capacity_iops));
                }
                QosProposal::RemoveDisk(name) => {
                    existing(&mut config.disks, name)?;
                    config.disks.retain(|disk| disk.name != *name);
                }
            }
        }
        validate_qos(&config)?;
        Ok(config)
    }
}

impl DiskProposal {
    fn apply(&self, config: &mut HostConfig) -> Result<(), ApiError> {
        let target = config.disks.iter_mut().find(|disk| disk.name == self.name);
        let (qos_policy, qos) = (self.qos_policy.clone(), self.qos);
        match (target, &self.store) {
            (Some(disk), store) => {
                disk.store = store.clone().unwrap_or_else(|| disk.store.clone());
                disk.qos_policy = qos_policy;
                disk.qos = qos;
            }
            (None, Some(store)) => {
                config.disks.push(new_disk(&self.name, store, qos_policy, qos));
            }
            (None, None) => {
                let message = "there is no disk of this name; add the store in which it would be";
                let error = ApiError::new(ErrorCode::MissingKey, message).with_field("store");
                return Err(error.with_resource(format!("disk/{}", self.name)));
            }
        }
        Ok(())
    }
}

/// Returns a disk for the calculation of reservations, which reads only its limits and store. All
/// other keys have arbitrary valid values.
fn new_disk(name: &Name, store: &Name, qos_policy: Option<Name>, qos: QosLimits) -> DiskConfig {
    DiskConfig { qos_policy, qos, ..DiskConfig::new(name.clone(), store.clone(), DiskFormat::Raw) }
}

impl QosPolicyProposal {
    fn apply(&self, config: &mut HostConfig) {
        let target = config.qos_policies.iter_mut().find(|policy| policy.name == self.name);
        match target {
            Some(policy) => {
                let kind = self.kind.unwrap_or(policy.kind);
                let shared = policy.shared;
                *policy = QosPolicyConfig::new(self.name.clone(), kind, self.limits);
                policy.shared = shared;
            }
            None => {
                let kind = self.kind.unwrap_or_default();
                config.qos_policies.push(QosPolicyConfig::new(
                    self.name.clone(),
                    kind,
                    self.limits,
                ));
            }
        }
    }
}

fn existing<'a, R: Resource>(
    resources: &'a mut [R],
    name: &Name,
) -> Result<&'a mut R, Vec<ApiError>> {
    let missing = || {
        let kind = R::KIND;
        let message = format!(
            "there is no {} of this name; `suimon {} list` lists the existing ones",
            kind.noun(),
            kind.command_words()
        );
        let error = ApiError::new(ErrorCode::NotFound, message);
        vec![error.with_resource(format!("{}/{name}", kind.noun()))]
    };
    resources.iter_mut().find(|resource| resource.name() == name).ok_or_else(missing)
}

#[cfg(test)]
#[path = "what_if_tests.rs"]
mod tests;
