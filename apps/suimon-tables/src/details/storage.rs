//! Detail views of stores, disks, images and policies.

use super::line::{Details, line};

pub(super) const STORE: Details = Details {
    command: "store show",
    lines: &[
        line("state", "state, stale, reason", "As in `suimon store list`."),
        line("disks", "disks", "Number of disks in the store."),
        line(
            "free",
            "free_bytes, total_bytes",
            "Free space, and size of the file system or block device.",
        ),
        line(
            "nearly full",
            "nearly_full",
            "`yes` if more than `full_warning_percent` of the store is used.",
        ),
        line(
            "virtual size of disks",
            "virtual_bytes, overcommit_percent",
            "Sum of the sizes of the disks, and its ratio to the size of the store.",
        ),
        line("allocated by disks", "allocated_bytes", "Space that the files of the disks take."),
        line(
            "capacity",
            "capacity_iops, capacity_source",
            "Capacity for admission control, in normalised IOPS; `configured` or `measured`.",
        ),
        line(
            "measured",
            "measured",
            "Result and conditions of the last measurement; below it the rate of each pattern of requests.",
        ),
        line(
            "rate at saturation",
            "estimate.iops, estimate.age_ms",
            "Normalised IOPS that the store delivered when requests were last queued for it, and how long ago \
                 that was: an estimate of its capacity for the load of that time. `–` if that has not occurred since \
                 its disks went into service.",
        ),
        line(
            "reserved",
            "reserved_iops, reserved_percent",
            "Sum of minimums, and its ratio to the capacity.",
        ),
        line("delivered (5 s)", "delivered_iops", "Rate of all disks in the last 5 s."),
        line("latency", "latency_ns", "Current time of a request in the device."),
        line(
            "requests in flight",
            "depth, depth_allowed",
            "Requests in the device, of those that the scheduler currently allows there.",
        ),
    ],
};

pub(super) const DISK: Details = Details {
    command: "disk show",
    lines: &[
        line("state", "state, stale, reason", "As in `suimon disk list`."),
        line("image file", "file", "Path of the image that the disk writes to."),
        line("image format", "config.format, kind", "Format and kind of this image."),
        line("parent", "parent", "Parent of a differencing image, relative to the store."),
        line("size", "size_bytes", "Size that the guest sees."),
        line("allocated", "allocated_bytes", "Space that the image takes on the store."),
        line("files", "layers", "Number of images of the disk: its own and its parents."),
        line(
            "metadata",
            "uncommitted_bytes",
            "`clean` if no metadata of the image is pending (0 in JSON); otherwise bytes of metadata that the \
                 next flush, or 2 s without writes, makes durable.",
        ),
        line(
            "requests without space",
            "full.queued_requests",
            "Requests that wait because the store is full; only while there are any.",
        ),
        line("worker", "worker", "Number of the worker that serves the disk."),
        line("used by", "vhost_user.connected, nbd", "VM, and NBD clients."),
        line(
            "limits in effect",
            "qos.limits, qos.holder",
            "Limits of the disk, and the object that they belong to.",
        ),
        line("requests queued", "qos.queued", "Requests queued in the scheduler."),
        line("requests in flight", "qos.in_flight", "Requests in the device."),
    ],
};

pub(super) const DISK_EXPORT: Details = Details {
    command: "disk export",
    lines: &[
        line("disk", "config.name", "Name of the disk."),
        line("state", "state, stale, reason", "As in `suimon disk list`."),
        line(
            "vhost_user.…, nbd.…",
            "config.vhost_user, config.nbd",
            "Keys of `[disk.vhost_user]` and `[disk.nbd]` ([host file](config.md)).",
        ),
        line(
            "NBD URI",
            "config.nbd.socket, config.nbd.listen",
            "Address of the disk for NBD clients, one line per socket and listener: \
                 `nbd+unix:///DISK?socket=PATH`, `nbd://ADDRESS/DISK`, or with TLS `nbds://ADDRESS/DISK`.",
        ),
        line("used by", "vhost_user.connected, nbd.clients", "VM, and number of NBD clients."),
        line(
            "NBD connections",
            "nbd.connections[], nbd.connections_max, nbd.buffer_bytes, nbd.buffer_max_bytes",
            "Connections and their buffer memory, each with its limit; only while there are any.",
        ),
        line(
            "NBD client",
            "nbd.connections[]",
            "Peer, transport and buffer memory of each connection.",
        ),
    ],
};

pub(super) const IMAGE_INFO: Details = Details {
    command: "image info",
    lines: &[
        line("file", "file", "Path of the file, or its name in the store."),
        line("format", "format, kind", "Format and kind of the image."),
        line("size", "size_bytes", "Size of the disk that the guest sees."),
        line("file length", "file_bytes", "Length of the file, holes included."),
        line("allocated", "allocated_bytes", "Space that the file takes on the store."),
        line(
            "block",
            "block_bytes",
            "Unit in which the image allocates space; `–` for formats and kinds without blocks.",
        ),
        line("sectors", "logical_sector, physical_sector", "Sector sizes in bytes."),
        line(
            "closed",
            "dirty",
            "`no` (`true` in JSON) if the log of a VHDX must be replayed, because its writer did not close it.",
        ),
        line("disk id", "disk_id", "VHD: Unique Id. VHDX: Virtual Disk Id. `–` for raw."),
        line(
            "content id",
            "content_id",
            "Identity of the contents of a VHDX, which children record of their parent; `–` otherwise.",
        ),
        line(
            "parent recorded",
            "parent.recorded",
            "Paths of the parent in a differencing image, in the syntax of Windows.",
        ),
        line(
            "parent",
            "parent.file, parent.reason",
            "File of the parent that was found, or why there is none.",
        ),
    ],
};

pub(super) const QOS_POLICY: Details = Details {
    command: "qos policy show",
    lines: &[
        line("disks", "disks", "Disks that have the policy."),
        line(
            "reserved",
            "reserved_iops",
            "Sum of the minimums that are reserved for the policy on all stores, in normalised IOPS.",
        ),
        line(
            "delivered (5 s)",
            "delivered_iops",
            "Rate of its disks on this host in the last 5 s, in normalised IOPS.",
        ),
    ],
};
