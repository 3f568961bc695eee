//! Columns of SR-IOV adapters and their virtual functions.

use crate::columns::column::{Columns, number, text};

pub(crate) const PFS: Columns = Columns {
    commands: &["pf list"],
    row: "configured SR-IOV adapter",
    path: "[]",
    schema: Some("PfStatus"),
    all: &[
        text("NAME", "config.name", "Name of the `[[pf]]`."),
        text("DEVICE", "config.device", "Network device or PCI address of the adapter."),
        number("VFS", "config.vfs", "", "Configured number of virtual functions."),
        number("ENABLED", "adapter.vfs_enabled", "", "Virtual functions that exist."),
        number("IN USE", "adapter.vfs_in_use", "", "Virtual functions in use."),
        text(
            "HEALTH",
            "condition.health, condition.reason",
            "`up`: the configuration of the adapter is in effect. `failed`: it is not; the reason follows, and \
             the daemon retries after 1 s, doubling to 30 s.",
        ),
    ],
};

pub(crate) const ADAPTERS: Columns = Columns {
    commands: &["vf list"],
    row: "network adapter with SR-IOV",
    path: "[]",
    schema: Some("SriovAdapter"),
    all: &[
        text(
            "DEVICE",
            "device, netns",
            "Network device of the physical function, with its namespace if it is not the daemon's.",
        ),
        text("ADDRESS", "address", "PCI address of the physical function."),
        text("DRIVER", "driver", "Kernel driver of the physical function."),
        number("SUPPORTED", "vfs_supported", "", "Largest number of virtual functions."),
        number("ENABLED", "vfs_enabled", "", "Virtual functions that exist."),
        number("IN USE", "vfs_in_use", "", "Virtual functions in use."),
        number("IOMMU", "iommu_group", "", "IOMMU group."),
        number("NUMA", "numa_node", "", "NUMA node of the adapter."),
        text(
            "SRIOV SUPPORT",
            "support",
            "`Supported` if VMs can have virtual functions, else the first obstacle, in the words of Hyper-V's \
             `SriovSupport`. The remedy is printed below the table.",
        ),
    ],
};

pub(crate) const VFS: Columns = Columns {
    commands: &["vf list", "vf show ADAPTER", "pf show NAME"],
    row: "virtual function",
    path: "vfs[]",
    schema: Some("VfStatus"),
    all: &[
        number("VF", "index", "", "Number of the virtual function."),
        text("ADDRESS", "address", "PCI address."),
        text("DRIVER", "driver", "Kernel driver; `vfio-pci` while a VM has the function."),
        number("IOMMU", "iommu_group", "", "IOMMU group."),
        text(
            "DEVICE",
            "device, netns",
            "Network device, with its namespace if it is not the daemon's.",
        ),
        text("MAC", "mac", "MAC address that the adapter has for the function."),
        number("VLAN", "vlan", "", "VLAN of all frames of the function."),
        text(
            "SPOOF",
            "spoof_check",
            "Whether the adapter drops frames from other source addresses; `–` if the driver does not report it.",
        ),
        text(
            "TRUST",
            "trust",
            "Whether the user of the function may change its address and receive frames for other addresses.",
        ),
        number("MIN", "bandwidth_min_bps", "bit/s", "Guaranteed transmit rate."),
        number("MAX", "bandwidth_max_bps", "bit/s", "Maximum transmit rate."),
        text(
            "LINK",
            "link_state",
            "Link state that the function is shown: `auto`, `enable` or `disable`.",
        ),
        text(
            "USED BY",
            "used_by",
            "User of the function: a VM, a network namespace, an uplink, a driver or the host.",
        ),
    ],
};
