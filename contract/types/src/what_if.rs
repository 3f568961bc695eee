//! `POST /1.0/qos/what-if`: desired state with proposals, to see what it would promise.

use serde::{Deserialize, Serialize};

use utoipa::ToSchema;

use crate::validate::qos_of_host;
use crate::{
    ApiError, DiskConfig, DiskFormat, DiskQos, ErrorCode, HostConfig, Name, QosPolicyConfig,
    QosPolicyKind, Resource, StoreCapability,
};

/// Most proposals of one request.
const PROPOSALS_MAX: usize = 256;

/// `POST /1.0/qos/what-if`: proposals, taken one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIfRequest {
    /// What would be, 1 to 256.
    #[schema(min_items = 1, max_items = 256)]
    pub proposals: Vec<QosProposal>,
}

/// One thing that would be different.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QosProposal {
    /// A disk with other limits or in another store, or a new one.
    Disk(DiskProposal),
    /// A QoS policy with other limits, or a new one.
    QosPolicy(QosPolicyProposal),
    /// A store with another capability.
    Store(StoreProposal),
    /// A disk that would not be there.
    WithoutDisk(Name),
}

/// A disk as it would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskProposal {
    /// Its name.
    pub name: Name,
    /// The store it is in; as it is if absent. A new disk needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Name>,
    /// The QoS policy it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_policy: Option<Name>,
    /// Its own limits, all of them; none if neither these nor a policy is given.
    #[serde(default, skip_serializing_if = "DiskQos::is_default")]
    pub qos: DiskQos,
}

/// A QoS policy as it would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPolicyProposal {
    /// Its name.
    pub name: Name,
    /// Its kind; as it is if absent, and `dedicated` for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<QosPolicyKind>,
    /// Its limits, all of them.
    #[serde(default, skip_serializing_if = "DiskQos::is_default")]
    pub limits: DiskQos,
}

/// A store as it would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreProposal {
    /// Its name; it exists.
    pub name: Name,
    /// Normalised operations per second that it could do, 1 to 1 000 000 000.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub capability_iops: u64,
}

impl WhatIfRequest {
    /// Desired state as it would be, to be asked what it promises. Its QoS is valid; whether
    /// files and sockets would be free is not looked at.
    ///
    /// # Errors
    /// What is not there, or all that is wrong with the result; never empty.
    pub fn applied_to(&self, config: &HostConfig) -> Result<HostConfig, Vec<ApiError>> {
        if !(1..=PROPOSALS_MAX).contains(&self.proposals.len()) {
            let message =
                format!("{} proposals are given; give 1 to {PROPOSALS_MAX}", self.proposals.len());
            let error = ApiError::new(ErrorCode::InvalidValue, message);
            return Err(vec![error.field("proposals")]);
        }
        let mut config = config.clone();
        for proposal in &self.proposals {
            match proposal {
                QosProposal::Disk(disk) => disk.apply(&mut config).map_err(|error| vec![error])?,
                QosProposal::QosPolicy(policy) => policy.apply(&mut config),
                QosProposal::Store(store) => {
                    let found = existing(&mut config.stores, &store.name)?;
                    found.capability_iops = Some(StoreCapability::Declared(store.capability_iops));
                }
                QosProposal::WithoutDisk(name) => {
                    existing(&mut config.disks, name)?;
                    config.disks.retain(|disk| disk.name != *name);
                }
            }
        }
        qos_of_host(&config)?;
        Ok(config)
    }
}

impl DiskProposal {
    fn apply(&self, config: &mut HostConfig) -> Result<(), ApiError> {
        let known = config.disks.iter_mut().find(|disk| disk.name == self.name);
        let (qos_policy, qos) = (self.qos_policy.clone(), self.qos);
        match (known, &self.store) {
            (Some(disk), store) => {
                disk.store = store.clone().unwrap_or_else(|| disk.store.clone());
                disk.qos_policy = qos_policy;
                disk.qos = qos;
            }
            (None, Some(store)) => {
                config.disks.push(new_disk(&self.name, store, qos_policy, qos));
            }
            (None, None) => {
                let message = "there is no disk of this name; say in which store it would be";
                let error = ApiError::new(ErrorCode::MissingKey, message).field("store");
                return Err(error.about(format!("disk/{}", self.name)));
            }
        }
        Ok(())
    }
}

/// A disk of which nothing matters but its limits and its store.
fn new_disk(name: &Name, store: &Name, qos_policy: Option<Name>, qos: DiskQos) -> DiskConfig {
    DiskConfig { qos_policy, qos, ..DiskConfig::new(name.clone(), store.clone(), DiskFormat::Raw) }
}

impl QosPolicyProposal {
    fn apply(&self, config: &mut HostConfig) {
        let known = config.qos_policies.iter_mut().find(|policy| policy.name == self.name);
        match known {
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

fn existing<'a, R: Resource>(all: &'a mut [R], name: &Name) -> Result<&'a mut R, Vec<ApiError>> {
    let missing = || {
        let kind = R::KIND;
        let message = format!(
            "there is no {} of this name; `suimon {} list` shows those there are",
            kind.word(),
            kind.command()
        );
        let error = ApiError::new(ErrorCode::NotFound, message);
        vec![error.about(format!("{}/{name}", kind.word()))]
    };
    all.iter_mut().find(|resource| resource.name() == name).ok_or_else(missing)
}

#[cfg(test)]
#[path = "what_if_tests.rs"]
mod tests;
