//! Checks that the destination of a migration has space for copied disks, and switches as the
//! source.

use std::collections::BTreeMap;
use std::path::Path;

use suimon_contract::{
    ApiError, DiskKind, ErrorCode, HostConfig, IncomingMigrationRequest, Name, ResourceKind,
    SwitchKind,
};
use thiserror::Error;

use crate::change::ValidatedChange;
use crate::shared::Shared;

/// Reason why this node cannot take a VM. The texts name the nodes, because the source node shows
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum UnsuitableNode {
    /// The copies of the disks do not fit into a store.
    #[error(
        "the disks copied from node {source_node} need at least {needed_bytes} bytes in this store, and \
         {free_bytes} bytes are free on node {this_node}; free space there, or move disks of the VM to another \
         store"
    )]
    NoSpace {
        /// Store without space.
        store: Name,
        /// Host name of the source node.
        source_node: String,
        /// Host name of this node.
        this_node: String,
        /// Space that the copies need, in bytes.
        needed_bytes: u64,
        /// Free space of the store, in bytes.
        free_bytes: u64,
    },
    /// A switch has another kind than on the source node.
    #[error(
        "this switch is {} on node {this_node} and {} on node {source_node}, so that the VM would \
         lose peers; set the same kind on both nodes, or connect the NIC to another switch",
        kind_name(*kind_on_this_node),
        kind_name(*kind_on_source_node)
    )]
    SwitchKindMismatch {
        /// Switch with different kinds.
        switch: Name,
        /// Host name of the source node.
        source_node: String,
        /// Host name of this node.
        this_node: String,
        /// Kind on this node.
        kind_on_this_node: SwitchKind,
        /// Kind on the source node.
        kind_on_source_node: SwitchKind,
    },
}

const fn kind_name(kind: SwitchKind) -> &'static str {
    match kind {
        SwitchKind::Private => "private",
        SwitchKind::Internal => "internal",
        SwitchKind::External => "external",
    }
}

impl From<UnsuitableNode> for ApiError {
    fn from(error: UnsuitableNode) -> Self {
        let (kind, name) = match &error {
            UnsuitableNode::NoSpace { store, .. } => (ResourceKind::Store, store),
            UnsuitableNode::SwitchKindMismatch { switch, .. } => (ResourceKind::Switch, switch),
        };
        let resource = format!("{}/{name}", kind.noun());
        let refusal = Self::new(ErrorCode::Conflict, error.to_string()).with_resource(resource);
        match error {
            UnsuitableNode::NoSpace { .. } => refusal,
            UnsuitableNode::SwitchKindMismatch { .. } => refusal.with_field("kind"),
        }
    }
}

/// Checks that the switches of the VM's NICs have the same kinds as on the source node. A missing
/// switch is reported by the validation.
pub(super) fn check_switches(
    request: &IncomingMigrationRequest,
    config: &HostConfig,
    node: &str,
) -> Result<(), UnsuitableNode> {
    for source_switch in &request.switches {
        let local_switch = config.switches.iter().find(|switch| switch.name == source_switch.name);
        if let Some(local_switch) =
            local_switch.filter(|local_switch| local_switch.kind != source_switch.kind)
        {
            return Err(UnsuitableNode::SwitchKindMismatch {
                switch: source_switch.name.clone(),
                source_node: request.source_node.clone(),
                this_node: node.to_owned(),
                kind_on_this_node: local_switch.kind,
                kind_on_source_node: source_switch.kind,
            });
        }
    }
    Ok(())
}

/// Returns the space that the copies of disks need, in bytes by store. A fixed image occupies its
/// whole size.
fn needed_space(
    request: &IncomingMigrationRequest,
    change: &ValidatedChange,
) -> BTreeMap<Name, u64> {
    let mut needed: BTreeMap<Name, u64> = BTreeMap::new();
    let copied = request.disks.iter().filter(|disk| {
        request.handed_over_disks.iter().all(|handed_over| handed_over.name != disk.name)
            && change.disks.contains_key(&disk.name)
    });
    for disk in copied {
        let size = disk.size_bytes.map_or(0, suimon_contract::ByteSize::bytes);
        let allocated = request.copied_disks.iter().find(|copied| copied.name == disk.name);
        let bytes = match disk.kind_of_new_file() {
            DiskKind::Fixed => size,
            _ => allocated.map_or(0, |copied| copied.allocated_bytes).min(size),
        };
        let of_store = needed.entry(disk.store.clone()).or_default();
        *of_store = of_store.saturating_add(bytes);
    }
    needed
}

impl Shared {
    /// Checks that the stores have space for the disks that are copied.
    pub(super) fn check_space(
        &self,
        request: &IncomingMigrationRequest,
        change: &ValidatedChange,
    ) -> Result<(), ApiError> {
        for (store, needed) in needed_space(request, change) {
            let config =
                change.state.config.stores.iter().find(|store_config| store_config.name == store);
            let Some(path) = config.map(|config| Path::new(&config.path)) else { continue };
            let resource = format!("{}/{store}", ResourceKind::Store.noun());
            let space =
                self.disks.store_space(path).map_err(|error| error.with_resource(resource))?;
            // The size of a block device or of an unknown file system.
            if space.total_bytes == 0 || needed <= space.free_bytes {
                continue;
            }
            let (source, free) = (request.source_node.clone(), space.free_bytes);
            let local_node = self.host_name();
            return Err(UnsuitableNode::NoSpace {
                store,
                source_node: source,
                this_node: local_node,
                needed_bytes: needed,
                free_bytes: free,
            }
            .into());
        }
        Ok(())
    }
}
