//! Help of commands about stores, disks and image files.

use crate::help::entry::{Help, read_only_command, state_changing_command};

pub(super) const HELP: &[Help] = &[
    read_only_command(
        "store",
        "A store is a directory that contains disks as image files, or a block device that one \
         disk uses as a whole. Storage QoS schedules the requests of all disks of a store.",
        &["suimon store list", "suimon store add fast --path /srv/suimon"],
    ),
    read_only_command(
        "store list",
        "Prints path, space, delivered IOPS, capacity, reserved IOPS, latency and state of each \
         store.",
        &["suimon store list"],
    ),
    read_only_command(
        "store show",
        "Prints the keys, state, space, capacity, last measurement and current load of the store.",
        &["suimon store show fast"],
    ),
    state_changing_command(
        "store add",
        "The directory or block device must exist. Nothing is written to it until a disk is \
         added.",
        &[
            "suimon store add fast --path /srv/suimon --capacity-iops measure",
            "suimon store add san --path /srv/san --shared --capacity-iops 4000",
        ],
    ),
    state_changing_command(
        "store set",
        "A change of `path`, `normalization_bytes` or `depth_max` closes and reopens all disks \
         of the store: requests of their VMs are queued meanwhile, and their NBD clients are \
         disconnected. Other keys apply without interruption. Files are not moved when `path` \
         changes.",
        &[
            "suimon store set fast --capacity-iops 50000",
            "suimon store set fast --full-warning-percent 80",
        ],
    ),
    state_changing_command(
        "store delete",
        "Fails with exit code 6 while a disk is in the store. All files in its directory stay.",
        &["suimon store delete fast"],
    ),
    read_only_command(
        "store measure",
        "Measures random reads, random writes and a mix of both with a temporary file of at most \
         1 GiB; on a block device, reads only. The lowest of the rates is the capacity in \
         normalised IOPS. It is used for minimums of disks if `capacity_iops` of the store is \
         `measure`, and survives restarts. Fails while VMs or NBD clients use disks of the \
         store, unless `--beside` is given.",
        &["suimon store measure fast", "suimon store measure fast --seconds 30 --beside"],
    ),
    read_only_command(
        "disk",
        "A disk is an image file in a store (formats `raw`, `vhd`, `vhdx`) or a whole block device \
         (`pass-through`). VMs access it over vhost-user or an emulated controller, other programs \
         over NBD.",
        &["suimon disk list", "suimon disk add web --store fast --format vhdx --size-bytes 20GiB"],
    ),
    read_only_command(
        "disk list",
        "Prints store, format, size, allocated space, limits, traffic, errors, users and state of \
         each disk.",
        &["suimon disk list"],
    ),
    read_only_command(
        "disk show",
        "Prints the keys, state, image file, clients, limits, request counters with latencies, \
         delivered IOPS, and the factors that limited them.",
        &["suimon disk show web"],
    ),
    state_changing_command(
        "disk add",
        "Creates the image file if it does not exist, otherwise opens it. If the file is missing \
         later, the disk fails, and `suimon disk set --create-image` creates it. To give the disk to a VM, name it in \
         `disks` of the VM (`suimon vm set`), which hot-plugs it into a running VM. A minimum is \
         rejected if the minimums of the store would exceed 90 % of its capacity or the capacity \
         is unknown, unless `--force` is given.",
        &[
            "suimon disk add web --store fast --format vhdx --size-bytes 20GiB",
            "suimon disk add web --store fast --format raw --file web.raw --qos-min-iops 500",
        ],
    ),
    state_changing_command(
        "disk set",
        "Options whose help has a text `Change:` close and reopen the disk: requests of its VM \
         are queued meanwhile, and its NBD clients are disconnected. Other options apply without \
         interruption. No option moves or converts the image: with another `--store` or \
         `--file`, the disk uses the file of that name there. If this file is missing, the change \
         fails; `--create-image` creates a new image instead: an empty one, or with `parent` a \
         child with the content of the parent. `--dry-run` shows which of the two would be \
         created. Without other options, `--create-image` creates the missing image of a failed \
         disk; an existing file is never overwritten.",
        &[
            "suimon disk set web --qos-max-iops 1000",
            "suimon disk set web --on-full error",
            "suimon disk set web --unset qos.max_iops",
            "suimon disk set web --file scratch.vhdx --create-image",
        ],
    ),
    state_changing_command(
        "disk delete",
        "Fails with exit code 6 while a VM names the disk in `disks`; remove it there first with \
         `suimon vm set`. The image file stays and can be added again with `--file`, unless \
         `--with-file` is given, which deletes the data irrevocably.",
        &["suimon disk delete web", "suimon disk delete web --with-file"],
    ),
    state_changing_command(
        "disk export",
        "Without keys, prints the NBD export of the disk, its URIs and the connected clients. With \
         keys, changes the export: keys that are not given are unchanged. Connected clients that \
         the new settings no longer permit are disconnected; the VM of the disk is not affected.",
        &[
            "suimon disk export web",
            "suimon disk export web socket=/run/suimon/nbd.sock",
            "suimon disk export web --none",
        ],
    ),
    state_changing_command(
        "disk resize",
        "The disk stays in use. It cannot be shrunk again. The guest of a virtio disk is \
         notified at once; NBD clients see the new size when they reconnect, guests of IDE and \
         SATA disks at their next start. Enlarge the partition and file system in the guest \
         afterwards. If the host file contains `size_bytes`, change it there, too.",
        &["suimon disk resize web 40GiB"],
    ),
    read_only_command(
        "disk check",
        "Checks the metadata of the image file and reads all of its data. Nothing is changed. The \
         disk must not be in use: stop its VM and disconnect its NBD clients first. The disk is \
         out of service (`working`) until the check ends.",
        &["suimon disk check web"],
    ),
    read_only_command(
        "disk compact",
        "Writes the image file anew without unused blocks, which requires free space in the store \
         for the new file. The disk must not be in use: stop its VM and disconnect its NBD clients \
         first. The disk is out of service (`working`) until the operation ends. A restart of the \
         daemon does not lose the progress.",
        &["suimon disk compact web"],
    ),
    read_only_command(
        "disk convert",
        "Copies the content to a new file in the same store; the disk and its file are unchanged. \
         The new file is used only by a disk that names it: `suimon disk set --file` or `disk add \
         --file`. The disk must not be in use: stop its VM and disconnect its NBD clients first. A \
         restart of the daemon does not lose the progress.",
        &["suimon disk convert web web.raw --format raw"],
    ),
    read_only_command(
        "disk snapshot",
        "Later writes go to the new differencing file FILE. The present file keeps the present \
         content and becomes the parent of FILE. VMs and NBD clients see a short pause. Formats: \
         `vhd` and `vhdx`. A disk has at most 64 layers (its own image file and those of its \
         parents). The keys `file`, `kind` and `parent` of the disk change in the desired state: \
         update the host file (`suimon export`), because `suimon apply` rejects the old values. \
         `suimon disk merge` writes the later data into the parent and deletes FILE.",
        &["suimon disk snapshot web web-2.vhdx", "suimon disk snapshot web web-2.vhdx --freeze"],
    ),
    read_only_command(
        "disk merge",
        "Writes the content of the differencing file into its parent, which then is the file of \
         the disk; the differencing file is deleted. The content that the parent had at the time \
         of the snapshot is lost. The disk must not be in use: stop its VM and disconnect its \
         NBD clients first. The keys `file`, `kind` and `parent` of the disk change in the \
         desired state: update the host file (`suimon export`). A restart of the daemon does not \
         lose the progress.",
        &["suimon disk merge web"],
    ),
    read_only_command(
        "disk reopen",
        "Repair the store first. Closes the disk and checks the metadata of its image; the disk \
         returns to service if the metadata is consistent. Writes since the last successful flush may \
         be lost, so check the file systems in the guest afterwards. Requests of VMs and NBD clients \
         are queued meanwhile.",
        &["suimon disk reopen web"],
    ),
    read_only_command(
        "image",
        "Works on image files that need not belong to a disk. Without `--store`, the tool \
         `suimond image-tool` opens the file with the permissions of the caller, and the daemon \
         need not run.",
        &["suimon image info /srv/suimon/web.vhdx", "suimon image check web.vhdx --store fast"],
    ),
    read_only_command(
        "image info",
        "Prints format, size, allocated space, block and sector sizes, disk id and content id, \
         and for a differencing image the recorded and the found parent. The content id of a VHDX \
         identifies its contents; children record it of their parent. Nothing is changed.",
        &["suimon image info /srv/suimon/web.vhdx"],
    ),
    read_only_command(
        "image check",
        "Verifies all metadata; data blocks are not read and nothing is changed. Exit codes, as \
         of `qemu-img check`, instead of those of other commands: 0 no errors, 1 not checked, 2 \
         errors, 3 leaked space only, 63 the format has no metadata.",
        &["suimon image check /srv/suimon/web.vhdx", "suimon image check web.vhdx --store fast"],
    ),
    read_only_command(
        "image repair",
        "Restores damaged metadata from its second copy in the image, replays the log of a VHDX, \
         and releases leaked space. Data blocks are not written. The previous metadata is saved \
         in a file beside the image; `--undo` writes it back. Damage without a second copy is \
         reported and left. The exit code is that of `suimon image check` after the repair, or 1 \
         if the repair failed.",
        &[
            "suimon image repair /srv/suimon/web.vhdx --dry-run",
            "suimon image repair /srv/suimon/web.vhdx",
        ],
    ),
    read_only_command(
        "image relink",
        "Writes the path of the parent into the image, after the parent was moved or renamed. \
         Fails if the content of the parent changed since the image was created. The previous \
         metadata is saved in a file beside the image.",
        &["suimon image relink /srv/suimon/web-2.vhdx /srv/old/web.vhdx"],
    ),
];
