//! Help of commands about VMs.

use crate::help::entry::{Help, read_only_command, state_changing_command};

pub(super) const HELP: &[Help] = &[
    read_only_command(
        "vm",
        "A VM is a QEMU process that the daemon starts with the NICs and disks of this host. VMs \
         continue to run when the daemon stops, is restarted or upgraded. Whether a VM runs is not \
         part of desired state; `autostart` starts it after each boot of the host.",
        &["suimon vm list", "suimon vm start web"],
    ),
    read_only_command(
        "vm list",
        "Prints CPUs, memory, NICs, disks, accelerator, uptime and state of each VM.",
        &["suimon vm list"],
    ),
    read_only_command(
        "vm show",
        "Prints the keys and state of the VM, the process, the devices that are plugged in now, \
         and the keys that take effect at its next start.",
        &["suimon vm show web"],
    ),
    state_changing_command(
        "vm add",
        "Adds the VM without starting it: `suimon vm start` does that. The NICs and disks must \
         exist and belong to no other VM.",
        &[
            "suimon vm add web --memory-bytes 2GiB --cpus 2 --nics web --disks web",
            "suimon vm add pxe --memory-bytes 1GiB --nics pxe --firmware uefi --autostart",
        ],
    ),
    state_changing_command(
        "vm set",
        "On a running VM, `nics` and virtio `disks` are hot-plugged and hot-unplugged; give the \
         complete list. The guest decides when it releases a device. More `cpus` (up to \
         `cpus_max`) are hot-plugged; fewer take effect at the next start of the VM, as do all \
         other keys except `autostart`. `suimon vm show` lists the keys that take \
         effect at the next start.",
        &[
            "suimon vm set web --nics web,backup --cpus 4",
            "suimon vm set web --memory-bytes 4GiB",
            "suimon vm set web --unset cdrom",
        ],
    ),
    state_changing_command(
        "vm delete",
        "Fails with exit code 6 while the VM runs; stop it first. Its NICs and disks stay.",
        &["suimon vm delete web"],
    ),
    read_only_command(
        "vm start",
        "Starts QEMU and returns when the virtual CPUs run. Fails if a disk of the VM is not in \
         service. The VM is not started again by itself after the guest shuts down.",
        &["suimon vm start web"],
    ),
    read_only_command(
        "vm stop",
        "Requests the guest to shut down and waits for it. If the guest has not shut down after \
         `--seconds`, the command fails and the VM continues to run, or with `--force` is \
         killed, as by `suimon vm kill`.",
        &["suimon vm stop web", "suimon vm stop web --seconds 120 --force"],
    ),
    read_only_command(
        "vm kill",
        "Ends the QEMU process at once, like a loss of power: data that the guest has not written \
         to its disks is lost. Completed writes are kept.",
        &["suimon vm kill web"],
    ),
    read_only_command(
        "vm pause",
        "Stops the virtual CPUs; memory and devices stay. `suimon vm resume` continues. With QEMU \
         7.2, do not restart the daemon while a VM is paused: the VM would lose its vhost-user \
         disks until its next start.",
        &["suimon vm pause web"],
    ),
    read_only_command(
        "vm resume",
        "Continues the virtual CPUs of a paused VM.",
        &["suimon vm resume web"],
    ),
    read_only_command(
        "vm reset",
        "Resets the virtual machine like a reset button: data that the guest has not written to \
         its disks is lost. The QEMU process stays, so that changed keys still take effect only at \
         the next start.",
        &["suimon vm reset web"],
    ),
    read_only_command(
        "vm freeze",
        "The guest agent flushes the file systems of the guest and blocks further writes. \
         `suimon vm thaw` ends this; otherwise it ends by itself after `--seconds`, also after a \
         restart of the daemon. `suimon disk snapshot --freeze` freezes, takes the snapshot and thaws. \
         Requires qemu-guest-agent in the guest.",
        &["suimon vm freeze web --seconds 60"],
    ),
    read_only_command(
        "vm thaw",
        "The guest agent permits writes to the file systems again, after `suimon vm freeze`.",
        &["suimon vm thaw web"],
    ),
    read_only_command(
        "vm migrate",
        "The VM continues on the other node with its NICs and disks, which leave the desired state \
         of this host. QoS policies of the disks are copied and stay here, too. Disks in shared \
         stores are handed over, others are copied while the VM runs. If the migration fails or is \
         cancelled (`suimon operation cancel`), the VM continues here. Update the host files of \
         both nodes afterwards, by hand or with `suimon export`, which writes no comments. With \
         the former files, `suimon apply` adds the VM here again; on the other node, `suimon \
         apply` fails while the VM runs.",
        &[
            "suimon vm migrate web --to node2 --dry-run",
            "suimon vm migrate web --to node2 --downtime 1s --bandwidth 100MiB",
        ],
    ),
    read_only_command(
        "vm guest",
        "Prints what the guest agent reports; the host does not verify it. Requires \
         qemu-guest-agent in the guest. Can take some seconds.",
        &["suimon vm guest web"],
    ),
    read_only_command(
        "vm console",
        "Copies keystrokes to the serial port of the guest (ttyS0 of Linux) and its output to \
         the terminal, for one client at a time. Ctrl-] disconnects; the VM continues. If \
         standard input is not a terminal, its content is sent.",
        &["suimon vm console web"],
    ),
    read_only_command(
        "vm xml",
        "Prints XML elements (`memoryBacking`, `devices`) for the domain of a VM that libvirt \
         starts instead of the daemon. Each NIC and disk must have a `socket`.",
        &["suimon vm xml web"],
    ),
];
