//! Help of commands about workers: VMQ, queues and workers.

use crate::help::entry::{Help, read_only_command, state_changing_command};

pub(super) const HELP: &[Help] = &[
    read_only_command(
        "vmq",
        "VMQ (virtual machine queue) assigns the queues of the ports of an external switch to \
         workers, the data-plane threads of the daemon. It is configured per uplink or team that a \
         switch uses.",
        &["suimon vmq show wan", "suimon vmq explain web"],
    ),
    read_only_command(
        "vmq list",
        "Prints mode, number of queues, workers in use and parked workers for each uplink or team \
         that a switch uses.",
        &["suimon vmq list"],
    ),
    read_only_command(
        "vmq show",
        "Prints the VMQ keys, one row per worker with its load, and one row per queue with its \
         worker, load and the time since it was assigned. A parked worker is permitted but has no \
         queue of this uplink or team; it may service other queues and disks.",
        &["suimon vmq show", "suimon vmq show wan"],
    ),
    state_changing_command(
        "vmq set",
        "Changes apply at once. Queues move to other workers if the new values require it, without \
         loss or reordering of frames. Keys that are not given are unchanged.",
        &["suimon vmq set wan max_workers=2", "suimon vmq set wan mode=static"],
    ),
    read_only_command(
        "vmq explain",
        "Prints one sentence per queue of the NIC or uplink: its load, its worker, why it was \
         assigned to this worker, and why it stays there. The column PORT of \
         `suimon vmq show` lists the NICs and uplinks.",
        &["suimon vmq explain web", "suimon vmq explain wan"],
    ),
    read_only_command(
        "queue",
        "A queue carries the frames of one direction of a port. Its id is PORT/rx/N or PORT/tx/N. \
         For a NIC, `rx` carries frames to the guest and `tx` frames from the guest. These directions \
         are opposite to RX and TX of `suimon nic list`.",
        &["suimon queue list", "suimon queue move web/tx/0 --to 1"],
    ),
    read_only_command(
        "queue list",
        "Prints the worker of each queue, and the frames, bytes, dropped frames (FULL: the \
         receiver had no free buffer) and moves to another worker since the queue was created.",
        &["suimon queue list"],
    ),
    read_only_command(
        "queue move",
        "No frame is lost or reordered. The assignment is not part of desired state: it is lost at \
         a restart of the daemon. With VMQ in mode `static` it lasts until a VMQ key of the uplink \
         or team, the `vmq_weight` of the NIC, the workers, or the power plan changes; in mode \
         `dynamic` until VMQ moves the queue because of the load.",
        &["suimon queue move web/tx/0 --to 1"],
    ),
    read_only_command(
        "worker",
        "A worker is a data-plane thread of the daemon that services queues of ports and disks. \
         Workers are numbered from 0. The keys `worker_cpus` and `floating_workers` in `[host]` of the host file set the \
         number of workers and their CPUs.",
        &["suimon worker list"],
    ),
    read_only_command(
        "worker list",
        "Prints the CPU, number of queues, CPU time and state of each worker, with its counters \
         since the daemon started. `suimon top --stages` shows what workers spend their time on.",
        &["suimon worker list"],
    ),
];
