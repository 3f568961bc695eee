//! Requested changes of the desired state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suimon_contract::{
    ApiError, ClusterConfig, DiskConfig, ErrorCode, HostConfig, IncomingMigrationRequest, Name,
    NicConfig, NodeConfig, PfConfig, PowerConfig, QosPolicyConfig, Resource, ResourceKind,
    StoreConfig, SwitchConfig, TeamConfig, UplinkConfig, VmConfig, patch_cluster, patch_power,
    patch_resource,
};

use crate::errors::{no_cluster, not_found};

/// Change of the desired state.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few at a time, and not for long")]
pub enum Edit {
    /// Replaces the complete desired state.
    Apply(Box<HostConfig>),
    /// Replaces the desired state by the daemon's host file and stores its text.
    ApplyFile {
        /// Configuration parsed from the file.
        config: Box<HostConfig>,
        /// Text of the file, for comparison at the next start.
        text: String,
    },
    /// Changes nothing and reloads files that the desired state refers to: certificates, keys,
    /// users and groups of NBD servers.
    Reload,
    /// Sets, patches or removes the power plan.
    Power(PowerEdit),
    /// Changes the cluster membership of the host and the access to the cluster.
    Cluster(ClusterEdit),
    /// Adds, changes or deletes one switch.
    Switch(ResourceEdit<SwitchConfig>),
    /// Adds, changes or deletes one uplink.
    Uplink(ResourceEdit<UplinkConfig>),
    /// Adds, changes or deletes one team.
    Team(ResourceEdit<TeamConfig>),
    /// Adds, changes or deletes one NIC.
    Nic(ResourceEdit<NicConfig>),
    /// Adds, changes or deletes one store.
    Store(ResourceEdit<StoreConfig>),
    /// Adds, changes or deletes one QoS policy.
    QosPolicy(ResourceEdit<QosPolicyConfig>),
    /// Adds, changes or deletes one disk.
    Disk(ResourceEdit<DiskConfig>),
    /// Adds, changes or deletes one VM.
    Vm(ResourceEdit<VmConfig>),
    /// Adds, changes or deletes the settings of one adapter with SR-IOV.
    Pf(ResourceEdit<PfConfig>),
    /// Adds, changes or deletes the access to another node.
    Node(ResourceEdit<NodeConfig>),
    /// Adds the VM of an incoming migration, with its NICs, disks and QoS policies.
    CreateIncomingVm(Arc<IncomingMigrationRequest>),
    /// Deletes a VM that was migrated to another node, with its NICs and disks.
    DeleteMigratedVm(Name),
    /// Adopts the QoS policies of the cluster.
    AdoptClusterPolicies {
        /// Complete list of the cluster's policies.
        policies: Vec<QosPolicyConfig>,
        /// Policies deleted from the cluster. Policies that disks use remain.
        deleted: BTreeSet<Name>,
    },
}

/// Options of a change, given with the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeOptions {
    /// Permits minimums that exceed the capacity of stores.
    pub forces_minimums: bool,
    /// Deletes the files of deleted disks.
    pub deletes_files: bool,
    /// Keeps disks that cannot be opened as failed, and retries them. Otherwise a disk that cannot
    /// be opened fails the change. True only when the host file is applied at the start of the
    /// daemon, and at the end of a merge whose disk had failed before.
    pub keeps_faulty_disks: bool,
    /// Creates the missing image file of the disk that the change sets, although the disk is not
    /// new.
    pub creates_image: bool,
    /// True for jobs on image files, which may replace the image of a disk by one of its parents.
    pub replaces_images: bool,
}

/// Change of the power plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PowerEdit {
    /// Replaces the power plan, or sets one if none exists.
    Put(PowerConfig),
    /// Changes the plan by a JSON merge patch (RFC 7386).
    Patch(Vec<u8>),
    /// Removes the plan; the former settings of the CPUs are restored.
    Delete,
}

/// Change of the cluster membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterEdit {
    /// Creates the cluster, with this host as its first node.
    Init(ClusterConfig),
    /// Joins the cluster, or changes the access to it.
    Put(ClusterConfig),
    /// Changes the membership by a JSON merge patch (RFC 7386).
    Patch(Vec<u8>),
    /// Ends the membership: the host leaves the cluster.
    Delete,
}

/// Change of one resource of the configuration.
#[derive(Clone, Debug)]
pub enum ResourceEdit<T> {
    /// Adds a resource, which must not exist.
    Add(T),
    /// Replaces the existing resource of this name.
    Put(Name, T),
    /// Changes the existing resource of this name by a JSON merge patch (RFC 7386).
    Patch(Name, Vec<u8>),
    /// Deletes the existing resource of this name. No other resource may refer to it.
    Delete(Name),
}

impl Edit {
    /// Returns the kind of the operation: `apply`, `nic add`, `switch set`, …
    pub fn kind(&self) -> String {
        match self {
            Self::Apply(_) | Self::ApplyFile { .. } => "apply".to_owned(),
            Self::Reload => "reload".to_owned(),
            Self::Power(PowerEdit::Delete) => "power unset".to_owned(),
            Self::Power(_) => "power set".to_owned(),
            Self::Cluster(ClusterEdit::Delete) => "cluster leave".to_owned(),
            Self::Cluster(ClusterEdit::Init(_)) => "cluster init".to_owned(),
            Self::Cluster(_) => "cluster set".to_owned(),
            Self::Switch(edit) => format!("switch {}", edit.verb()),
            Self::Uplink(edit) => format!("uplink {}", edit.verb()),
            Self::Team(edit) => format!("team {}", edit.verb()),
            Self::Nic(edit) => format!("nic {}", edit.verb()),
            Self::Store(edit) => format!("store {}", edit.verb()),
            Self::QosPolicy(edit) => format!("qos policy {}", edit.verb()),
            Self::Disk(edit) => format!("disk {}", edit.verb()),
            Self::Vm(edit) => format!("vm {}", edit.verb()),
            Self::Pf(edit) => format!("pf {}", edit.verb()),
            Self::Node(edit) => format!("node {}", edit.verb()),
            Self::CreateIncomingVm(_) => "vm arrive".to_owned(),
            Self::DeleteMigratedVm(_) => "vm depart".to_owned(),
            Self::AdoptClusterPolicies { .. } => "qos policy adopt".to_owned(),
        }
    }

    /// Returns true if the complete desired state is applied, which also reloads the files that it
    /// refers to.
    pub(crate) const fn is_apply(&self) -> bool {
        matches!(self, Self::Apply(_) | Self::ApplyFile { .. } | Self::Reload)
    }

    /// Returns the disk whose missing image file the change creates on request.
    pub(crate) fn disk_of_created_image(&self, options: ChangeOptions) -> Option<Name> {
        match self {
            Self::Disk(ResourceEdit::Put(name, _) | ResourceEdit::Patch(name, _)) => {
                options.creates_image.then(|| name.clone())
            }
            _ => None,
        }
    }

    /// Returns the object of the change: `host` or the resource, like `nic/web`.
    pub fn subject(&self) -> String {
        match self {
            Self::Apply(_) | Self::ApplyFile { .. } | Self::Reload => "host".to_owned(),
            Self::Power(_) => "power".to_owned(),
            Self::Cluster(_) => "cluster".to_owned(),
            Self::Switch(edit) => edit.subject(),
            Self::Uplink(edit) => edit.subject(),
            Self::Team(edit) => edit.subject(),
            Self::Nic(edit) => edit.subject(),
            Self::Store(edit) => edit.subject(),
            Self::QosPolicy(edit) => edit.subject(),
            Self::Disk(edit) => edit.subject(),
            Self::Vm(edit) => edit.subject(),
            Self::Pf(edit) => edit.subject(),
            Self::Node(edit) => edit.subject(),
            Self::CreateIncomingVm(request) => format!("vm/{}", request.vm.name),
            Self::DeleteMigratedVm(vm) => format!("vm/{vm}"),
            Self::AdoptClusterPolicies { .. } => "cluster".to_owned(),
        }
    }

    /// Returns the desired state after the change, not validated.
    ///
    /// # Errors
    /// The change does not fit the current state: the resource exists or is missing, is in use, or
    /// the patch is invalid.
    pub(crate) fn apply_to(&self, current: &HostConfig) -> Result<HostConfig, Vec<ApiError>> {
        let mut config = current.clone();
        match self {
            Self::Reload => {}
            Self::Apply(new_config) | Self::ApplyFile { config: new_config, .. } => {
                config = (**new_config).clone();
                keep_shared_policies(current, &mut config);
            }
            Self::Power(edit) => config.power = edit.apply(config.power.as_ref())?,
            Self::Cluster(edit) => config.cluster = edit.apply(config.cluster.as_ref())?,
            Self::Switch(edit) => edit.apply(&mut config)?,
            Self::Uplink(edit) => edit.apply(&mut config)?,
            Self::Team(edit) => edit.apply(&mut config)?,
            Self::Nic(edit) => edit.apply(&mut config)?,
            Self::Store(edit) => edit.apply(&mut config)?,
            Self::QosPolicy(edit) => edit.apply(&mut config)?,
            Self::Disk(edit) => edit.apply(&mut config)?,
            Self::Vm(edit) => edit.apply(&mut config)?,
            Self::Pf(edit) => edit.apply(&mut config)?,
            Self::Node(edit) => edit.apply(&mut config)?,
            Self::CreateIncomingVm(request) => arrive(request, &mut config)?,
            Self::DeleteMigratedVm(vm) => depart(vm, &mut config),
            Self::AdoptClusterPolicies { policies, deleted } => {
                adopt(policies, deleted, &mut config);
            }
        }
        Ok(config)
    }
}

/// Adds the VM of an incoming migration to `config`, with its NICs, disks and QoS policies. A
/// policy of the same name must be identical.
///
/// # Errors
/// A resource exists already, or a policy differs.
fn arrive(
    request: &IncomingMigrationRequest,
    config: &mut HostConfig,
) -> Result<(), Vec<ApiError>> {
    let mut errors = Vec::new();
    for policy in &request.qos_policies {
        match config.qos_policies.iter().find(|known_policy| known_policy.name == policy.name) {
            Some(known_policy) if known_policy == policy => {}
            Some(_) => {
                let text = "the policy of this name has other limits on the source node of the \
                            VM; set the same limits on both nodes";
                let error = ApiError::new(ErrorCode::AlreadyExists, text);
                errors.push(error.with_resource(format!(
                    "{}/{}",
                    ResourceKind::QosPolicy.noun(),
                    policy.name
                )));
            }
            None => config.qos_policies.push(policy.clone()),
        }
    }
    let mut add =
        |added: Result<(), Vec<ApiError>>| errors.extend(added.err().into_iter().flatten());
    for nic in &request.nics {
        add(ResourceEdit::Add(nic.clone()).apply(config));
    }
    for disk in &request.disks {
        add(ResourceEdit::Add(disk.clone()).apply(config));
    }
    add(ResourceEdit::Add(request.vm.clone()).apply(config));
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Copies the cluster's policies that `to` does not contain from `current` to `to`. Applying a host
/// file cannot delete them, because they belong to all nodes.
fn keep_shared_policies(current: &HostConfig, to: &mut HostConfig) {
    let cluster = |config: &HostConfig| {
        config.cluster.as_ref().map(|cluster_config| cluster_config.name.clone())
    };
    if cluster(current).is_none() || cluster(current) != cluster(to) {
        return;
    }
    let known: BTreeSet<Name> = to.qos_policies.iter().map(|policy| policy.name.clone()).collect();
    let missing =
        current.qos_policies.iter().filter(|policy| policy.shared && !known.contains(&policy.name));
    to.qos_policies.extend(missing.cloned());
}

/// Updates and deletes policies to match the cluster. A policy of this host only (not `shared`)
/// with the same name remains.
fn adopt(policies: &[QosPolicyConfig], deleted: &BTreeSet<Name>, config: &mut HostConfig) {
    let of_cluster: BTreeMap<&Name, &QosPolicyConfig> =
        policies.iter().map(|policy| (&policy.name, policy)).collect();
    let known: BTreeSet<Name> =
        config.qos_policies.iter().map(|policy| policy.name.clone()).collect();
    for known_policy in config.qos_policies.iter_mut().filter(|policy| policy.shared) {
        if let Some(policy) = of_cluster.get(&known_policy.name) {
            *known_policy = (*policy).clone();
        }
    }
    let new = policies.iter().filter(|policy| !known.contains(&policy.name));
    config.qos_policies.extend(new.cloned());
    let used: BTreeSet<&Name> =
        config.disks.iter().filter_map(|disk| disk.qos_policy.as_ref()).collect();
    let is_deleted = |policy: &QosPolicyConfig| {
        policy.shared && deleted.contains(&policy.name) && !used.contains(&policy.name)
    };
    config.qos_policies.retain(|policy| !is_deleted(policy));
}

/// Removes a VM with its NICs and disks.
fn depart(vm: &Name, config: &mut HostConfig) {
    let Some(index) = config.vms.iter().position(|config| config.name == *vm) else { return };
    let removed_vm = config.vms.remove(index);
    config.nics.retain(|nic| !removed_vm.nics.contains(&nic.name));
    config.disks.retain(|disk| !removed_vm.disks.contains(&disk.name));
}

impl PowerEdit {
    fn apply(&self, power: Option<&PowerConfig>) -> Result<Option<PowerConfig>, Vec<ApiError>> {
        match self {
            Self::Put(new_power) => Ok(Some(new_power.clone())),
            Self::Patch(patch) => patch_power(power, patch).map(Some),
            Self::Delete => Ok(None),
        }
    }
}

impl ClusterEdit {
    fn apply(
        &self,
        cluster: Option<&ClusterConfig>,
    ) -> Result<Option<ClusterConfig>, Vec<ApiError>> {
        match self {
            Self::Init(_) if cluster.is_some() => {
                let text =
                    "the host is a node of a cluster; leave it first (`suimon cluster leave`)";
                Err(vec![ApiError::new(ErrorCode::AlreadyExists, text).with_resource("cluster")])
            }
            Self::Init(new_cluster) | Self::Put(new_cluster) => Ok(Some(new_cluster.clone())),
            Self::Patch(patch) => patch_cluster(cluster, patch).map(Some).map_err(|errors| {
                let lacks_name = errors.iter().any(|error| error.field.as_deref() == Some("name"));
                if cluster.is_none() && lacks_name { vec![no_cluster()] } else { errors }
            }),
            Self::Delete => Ok(None),
        }
    }
}

impl<T: Resource> ResourceEdit<T> {
    fn verb(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Put(..) | Self::Patch(..) => "set",
            Self::Delete(_) => "delete",
        }
    }

    fn name(&self) -> &Name {
        match self {
            Self::Add(resource) => resource.name(),
            Self::Put(name, _) | Self::Patch(name, _) | Self::Delete(name) => name,
        }
    }

    fn subject(&self) -> String {
        format!("{}/{}", T::KIND.noun(), self.name())
    }

    fn apply(&self, config: &mut HostConfig) -> Result<(), Vec<ApiError>> {
        let name = self.name();
        let index = T::all(config).iter().position(|resource| resource.name() == name);
        let Some(index) = index else {
            return match self {
                Self::Add(resource) => {
                    T::all_mut(config).push(resource.clone());
                    Ok(())
                }
                Self::Put(..) | Self::Patch(..) | Self::Delete(_) => {
                    Err(vec![not_found(T::KIND, name)])
                }
            };
        };
        match self {
            Self::Add(_) => Err(vec![self.already_exists()]),
            Self::Put(_, resource) => {
                self.same_name(resource)?;
                T::all_mut(config)[index] = resource.clone();
                Ok(())
            }
            Self::Patch(_, patch) => {
                let resource = patch_resource(&T::all(config)[index], patch)?;
                T::all_mut(config)[index] = resource;
                Ok(())
            }
            Self::Delete(_) => {
                let users = users(config, T::KIND, name);
                if !users.is_empty() {
                    return Err(vec![self.in_use(&users)]);
                }
                T::all_mut(config).remove(index);
                Ok(())
            }
        }
    }

    fn already_exists(&self) -> ApiError {
        let text = format!(
            "a {} of this name exists already; choose another name, or change the existing one",
            T::KIND.noun()
        );
        ApiError::new(ErrorCode::AlreadyExists, text)
            .with_resource(self.subject())
            .with_field("name")
    }

    fn in_use(&self, users: &[String]) -> ApiError {
        let text = match users {
            [user] => format!("{user} refers to this resource; change or delete {user} first"),
            _ => {
                format!("{} refer to this resource; change or delete them first", users.join(", "))
            }
        };
        ApiError::new(ErrorCode::InUse, text).with_resource(self.subject())
    }

    fn same_name(&self, resource: &T) -> Result<(), Vec<ApiError>> {
        if resource.name() == self.name() {
            return Ok(());
        }
        let text = format!(
            "the name is `{}` in the URL and `{}` in the body; a name cannot be changed: delete \
             the resource and create another",
            self.name(),
            resource.name()
        );
        Err(vec![
            ApiError::new(ErrorCode::InvalidValue, text)
                .with_resource(self.subject())
                .with_field("name"),
        ])
    }
}

/// Returns the resources that refer to the given one, like `nic/web`. A resource that others refer
/// to cannot be deleted.
fn users(config: &HostConfig, kind: ResourceKind, name: &Name) -> Vec<String> {
    match kind {
        ResourceKind::Switch => {
            let nics = config.nics.iter().filter(|nic| &nic.switch == name);
            nics.map(|nic| format!("nic/{}", nic.name)).collect()
        }
        // Teams and uplinks share one namespace, so the name in a switch is unambiguous.
        ResourceKind::Uplink | ResourceKind::Team => {
            let teams = config.teams.iter().filter(|team| team.members.contains(name));
            let teams = teams.map(|team| format!("team/{}", team.name));
            let switches = config.switches.iter().filter(|s| s.uplink.as_ref() == Some(name));
            teams.chain(switches.map(|switch| format!("switch/{}", switch.name))).collect()
        }
        ResourceKind::Store => disks(config, |disk| disk.store == *name),
        ResourceKind::QosPolicy => disks(config, |disk| disk.qos_policy.as_ref() == Some(name)),
        ResourceKind::Nic => vms(config, |vm| vm.nics.contains(name)),
        ResourceKind::Disk => vms(config, |vm| vm.disks.contains(name)),
        _ => Vec::new(),
    }
}

fn disks(config: &HostConfig, is_user: impl Fn(&DiskConfig) -> bool) -> Vec<String> {
    let users = config.disks.iter().filter(|disk| is_user(disk));
    users.map(|disk| format!("disk/{}", disk.name)).collect()
}

fn vms(config: &HostConfig, is_user: impl Fn(&VmConfig) -> bool) -> Vec<String> {
    let users = config.vms.iter().filter(|vm| is_user(vm));
    users.map(|vm| format!("vm/{}", vm.name)).collect()
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
