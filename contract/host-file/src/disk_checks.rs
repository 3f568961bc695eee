//! Validation of disks: each by itself, and together with other disks of its store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::finding::{Finding, FindingLocation};
use crate::nbd_checks::check_nbd;
use crate::qos_checks::check_limits;
use crate::{
    ByteSize, DiskConfig, DiskFormat, DiskKind, ErrorCode, HostConfig, Name, ResourceKind,
    StoreConfig,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Reports invalid combinations of a store's keys. The scheduler counts operations by shifting, so
/// `normalization_bytes` must be a power of two.
pub(crate) fn check_store(
    location: FindingLocation,
    store: &StoreConfig,
    findings: &mut Vec<Finding>,
) {
    let bytes = store.normalization_bytes;
    if !bytes.bytes().is_power_of_two() {
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "normalization_bytes",
            format!("{bytes} is not a power of two from 512 B to 1 MiB; set one that is"),
        ));
    }
    if store.fallback_iops.is_some() && !store.shared {
        let message = "applies only to shared stores; set `shared`, or remove this key";
        let code = ErrorCode::KeyNotApplicable;
        findings.push(location.finding(code, "fallback_iops", message.to_owned()));
    }
}

/// Reports invalid combinations of one disk's keys.
pub(crate) fn check_disk(
    location: FindingLocation,
    disk: &DiskConfig,
    findings: &mut Vec<Finding>,
) {
    keys_apply(location, disk, findings);
    kind_fits(location, disk, findings);
    parent_fits(location, disk, findings);
    sectors_fit(location, disk, findings);
    size_fits(location, disk, findings);
    block_fits(location, disk, findings);
    check_disk_limits(location, disk, findings);
    controller_fits(location, disk, findings);
    check_nbd(location, disk, findings);
}

/// Reports invalid limits of one disk.
pub(crate) fn check_disk_limits(
    location: FindingLocation,
    disk: &DiskConfig,
    findings: &mut Vec<Finding>,
) {
    if let Some(policy) = disk.qos_policy.as_ref().filter(|_| !disk.qos.is_default()) {
        findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            "qos",
            format!(
                "the disk already gets its limits from qos_policy `{policy}`; remove one of the \
                 two keys"
            ),
        ));
    }
    check_limits(location, "qos.", &disk.qos, findings);
}

/// Reports keys that do not apply to a pass-through disk.
fn keys_apply(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    if disk.format != DiskFormat::PassThrough {
        return;
    }
    let of_files = [
        ("file", disk.file.is_some()),
        ("size_bytes", disk.size_bytes.is_some()),
        ("parent", disk.parent.is_some()),
        ("block_bytes", disk.block_bytes.is_some()),
    ];
    for (key, _) in of_files.iter().filter(|(_, present)| *present) {
        findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            key,
            "a pass-through disk is its store's whole block device and has no file; remove this \
             key or set another format",
        ));
    }
}

fn kind_fits(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    let remedy = match (disk.format, disk.kind_of_new_file()) {
        (DiskFormat::Raw, DiskKind::Differencing) => {
            "a raw file has no parent; set kind to \"fixed\" or \"dynamic\" (a sparse file), or \
             set format = \"vhdx\""
        }
        (DiskFormat::PassThrough, DiskKind::Dynamic | DiskKind::Differencing) => {
            "all space of a pass-through disk is allocated; remove this key or set it to \"fixed\""
        }
        _ => return,
    };
    findings.push(location.finding(ErrorCode::InvalidValue, "kind", remedy));
}

fn parent_fits(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    let is_differencing = disk.kind_of_new_file() == DiskKind::Differencing;
    match (&disk.parent, disk.format) {
        (Some(_), DiskFormat::Raw | DiskFormat::Vhd | DiskFormat::Vhdx) if !is_differencing => {
            findings.push(location.finding(
                ErrorCode::KeyNotApplicable,
                "parent",
                "applies only to differencing disks; remove this key, or remove kind and set \
                 format = \"vhdx\"",
            ));
        }
        (Some(parent), _) if disk.effective_file().as_ref() == Some(parent) => {
            findings.push(location.finding(
                ErrorCode::InvalidValue,
                "parent",
                format!("`{parent}` is the disk's own file; name another file as its parent"),
            ));
        }
        _ => {}
    }
}

fn sectors_fit(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    let (logical, physical) = (disk.logical_sector_bytes, disk.physical_sector_bytes);
    if physical < logical {
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "physical_sector",
            format!("{physical} is below logical_sector {logical}; set {logical} or more"),
        ));
    }
    if disk.format == DiskFormat::Vhd && logical != 512 {
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "logical_sector",
            "a VHD has sectors of 512 bytes; remove this key or set format = \"vhdx\"",
        ));
    }
}

fn size_fits(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    let Some(size) = disk.size_bytes else { return };
    let sector = u64::from(disk.logical_sector_bytes);
    if size.bytes().checked_rem(sector) != Some(0) {
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "size_bytes",
            format!("{size} is not a multiple of logical_sector {sector}; round it up"),
        ));
    }
    let (max, format, remedy) = match disk.format {
        DiskFormat::Vhd => (2040 * GIB, "VHD", "set a smaller size, or format = \"vhdx\""),
        DiskFormat::Vhdx => (64 * KIB * GIB, "VHDX", "set a smaller size, or format = \"raw\""),
        DiskFormat::Raw | DiskFormat::PassThrough => return,
    };
    if size.bytes() > max {
        let max = ByteSize::new(max);
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "size_bytes",
            format!("{size} exceeds {max}, the maximum of a {format}; {remedy}"),
        ));
    }
}

fn block_fits(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    let Some(block) = disk.block_bytes else { return };
    let (min, max) = match (disk.format, disk.kind_of_new_file()) {
        (DiskFormat::PassThrough, _) => return,
        (DiskFormat::Raw, _) | (DiskFormat::Vhd, DiskKind::Fixed) => {
            findings.push(location.finding(
                ErrorCode::KeyNotApplicable,
                "block_bytes",
                "a raw file and a fixed VHD have no blocks; remove this key or set kind = \
                 \"dynamic\" and format = \"vhd\" or \"vhdx\"",
            ));
            return;
        }
        (DiskFormat::Vhd, _) => (512 * KIB, 2 * MIB),
        (DiskFormat::Vhdx, _) => (MIB, 256 * MIB),
    };
    let is_block = block.bytes().is_power_of_two() && (min..=max).contains(&block.bytes());
    if !is_block {
        let (min, max) = (ByteSize::new(min), ByteSize::new(max));
        findings.push(location.finding(
            ErrorCode::InvalidValue,
            "block_bytes",
            format!("{block} is not a power of two from {min} to {max}; set one that is"),
        ));
    }
}

/// Reports settings not supported by an emulated controller.
fn controller_fits(location: FindingLocation, disk: &DiskConfig, findings: &mut Vec<Finding>) {
    let controller = disk.controller;
    if !controller.is_emulated() {
        return;
    }
    let of_virtio = [
        ("vhost_user", disk.vhost_user.is_some(), "has no vhost-user socket"),
        ("read_only", disk.read_only, "cannot be read-only in QEMU"),
        (
            "logical_sector",
            disk.logical_sector_bytes != 512,
            "has only sectors of 512 bytes in QEMU",
        ),
    ];
    for (key, _, restriction) in of_virtio.iter().filter(|(_, present, _)| *present) {
        let text = format!(
            "a disk on {controller} {restriction}; remove this key or set controller = \"virtio\""
        );
        findings.push(location.finding(ErrorCode::KeyNotApplicable, key, text));
    }
}

/// Reports other disks in the store of a pass-through disk: its path is a block device, not a
/// directory.
pub(crate) fn check_pass_through_exclusive(config: &HostConfig, findings: &mut Vec<Finding>) {
    let pass_through = |disk: &DiskConfig| disk.format == DiskFormat::PassThrough;
    let mut devices: BTreeMap<&Name, &DiskConfig> = BTreeMap::new();
    for disk in config.disks.iter().filter(|disk| pass_through(disk)) {
        devices.entry(&disk.store).or_insert(disk);
    }
    for (index, disk) in config.disks.iter().enumerate().filter(|(_, disk)| !pass_through(disk)) {
        let Some(holder) = devices.get(&disk.store) else { continue };
        findings.push(FindingLocation::new(ResourceKind::Disk, index).finding(
            ErrorCode::Conflict,
            "store",
            format!(
                "store `{}` is a block device and disk/{} already uses all of it; name a store \
                 that is a directory",
                disk.store, holder.name
            ),
        ));
    }
}

/// Largest number of disks in one store, equal to the number of queues of a store's scheduler.
pub const STORE_DISKS_MAX: usize = 4096;

/// Reports the first disk of each store beyond [`STORE_DISKS_MAX`].
pub(crate) fn check_disks_per_store(config: &HostConfig, findings: &mut Vec<Finding>) {
    let mut counts: BTreeMap<&Name, usize> = BTreeMap::new();
    for (index, disk) in config.disks.iter().enumerate() {
        let count = counts.entry(&disk.store).or_default();
        *count += 1;
        if *count == STORE_DISKS_MAX + 1 {
            findings.push(FindingLocation::new(ResourceKind::Disk, index).finding(
                ErrorCode::Conflict,
                "store",
                format!(
                    "store `{}` has {STORE_DISKS_MAX} disks, the most it can have; name another \
                     store, or delete a disk",
                    disk.store
                ),
            ));
        }
    }
}

/// Reports parents of differencing disks that another disk may write to, which would corrupt the
/// children.
pub(crate) fn check_parents_unwritten(config: &HostConfig, findings: &mut Vec<Finding>) {
    let stores: BTreeMap<&Name, &StoreConfig> =
        config.stores.iter().map(|store| (&store.name, store)).collect();
    let writers: BTreeMap<PathBuf, &DiskConfig> = config
        .disks
        .iter()
        .filter(|disk| !disk.read_only)
        .filter_map(|disk| Some((disk.path_in(stores.get(&disk.store)?), disk)))
        .collect();
    for (index, disk) in config.disks.iter().enumerate() {
        let parent = disk.parent.as_ref().filter(|_| disk.format != DiskFormat::PassThrough);
        let (Some(parent), Some(store)) = (parent, stores.get(&disk.store)) else { continue };
        let writer = writers.get(&store.path.join(parent)).filter(|other| other.name != disk.name);
        let Some(writer) = writer else { continue };
        findings.push(FindingLocation::new(ResourceKind::Disk, index).finding(
            ErrorCode::Conflict,
            "parent",
            format!(
                "disk/{} writes to `{parent}`, which would damage this differencing disk; set \
                 read_only = true of that disk, or name another parent",
                writer.name
            ),
        ));
    }
}

#[cfg(test)]
#[path = "disk_checks_tests.rs"]
mod tests;
