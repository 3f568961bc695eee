//! Help of commands about Storage QoS.

use crate::help::entry::{Help, read_only_command, state_changing_command};

pub(super) const HELP: &[Help] = &[
    read_only_command(
        "qos",
        "Storage QoS guarantees minimums and enforces maximums of disks in normalised IOPS: a read \
         or write of n bytes counts as n / 8 KiB operations, rounded up (8 KiB: \
         `normalization_bytes` of the store). A disk has limits of its own, or those of a policy.",
        &["suimon qos flows", "suimon qos set web min_iops=500 max_iops=2000"],
    ),
    read_only_command(
        "qos policy",
        "A policy has limits for several disks. `dedicated`: each disk has the limits for itself. \
         `aggregated`: the disks of one store share them.",
        &["suimon qos policy list", "suimon qos policy add gold --kind aggregated --min-iops 1000"],
    ),
    read_only_command(
        "qos policy list",
        "Prints kind, limits, number of disks, reserved and delivered IOPS of each policy.",
        &["suimon qos policy list"],
    ),
    read_only_command(
        "qos policy show",
        "Prints the keys, disks, reserved and delivered IOPS of the policy, and for a shared \
         policy the share of its limits that this host has on each store.",
        &["suimon qos policy show gold"],
    ),
    state_changing_command(
        "qos policy add",
        "The policy has no effect until a disk uses it: `suimon qos set DISK --policy NAME`.",
        &[
            "suimon qos policy add gold --kind aggregated --min-iops 1000",
            "suimon qos policy add batch --max-iops 500 --weight 10",
        ],
    ),
    state_changing_command(
        "qos policy set",
        "Changes apply at once to all disks of the policy; their requests continue. A minimum is \
         rejected if the minimums of a store would exceed 90 % of its capacity or the capacity \
         is unknown, unless `--force` is given.",
        &["suimon qos policy set gold --min-iops 2000"],
    ),
    state_changing_command(
        "qos policy delete",
        "Fails with exit code 6 while a disk uses the policy; give the disk other limits first \
         with `suimon qos set`.",
        &["suimon qos policy delete gold"],
    ),
    read_only_command(
        "qos show",
        "Prints the limits in effect, queued requests, for the last 5 s and 5 min the guaranteed \
         IOPS, demand and delivered IOPS, and the factors that limited the disk. The disk must \
         be open; `suimon disk show` works for any disk.",
        &["suimon qos show web"],
    ),
    state_changing_command(
        "qos set",
        "Changes apply at once; requests of VMs continue. Keys that are not given are unchanged. \
         Limits replace a policy of the disk, and `--policy` replaces its limits. A minimum is \
         rejected if the minimums of the store would exceed 90 % of its capacity or the capacity \
         is unknown, unless `--force` is given.",
        &[
            "suimon qos set web min_iops=500 max_iops=2000",
            "suimon qos set web max_iops=default",
            "suimon qos set web --policy gold",
        ],
    ),
    read_only_command(
        "qos flows",
        "Prints one row per open disk. A minimum is met if DELIVERED is at least 98 % of \
         GUARANTEED; the leader of a shared store reports a disk below 95 % (event 6211). \
         LIMITED BY names the factor that limited the disk for the largest part of the last 5 s. \
         `in the device` (time of requests in the device at its own latency) is not a limit: it is \
         shown only if there is no other factor. docs/reference/status.md lists the factors. Rates \
         are in normalised IOPS and means of 5 s; with `--cluster`, of about 1 s.",
        &[
            "suimon qos flows",
            "suimon qos flows web --watch --interval 5000",
            "suimon qos flows --cluster",
        ],
    ),
    read_only_command(
        "qos what-if",
        "Computes the sum of the minimums of each concerned store and compares it with 90 % of \
         its capacity. Nothing is changed. The exit code is 0 if all minimums fit, otherwise 3.",
        &[
            "suimon qos what-if disk/web min_iops=500",
            "suimon qos what-if disk/new store=fast min_iops=800 --without batch",
            "suimon qos what-if store/fast capacity_iops=20000",
        ],
    ),
];
