//! Columns of SR-IOV adapters and their virtual functions.

use crate::columns::column::{Columns, number_column, text_column};

pub(crate) const PFS: Columns = Columns {
    commands: &["pf list"],
    row_object: "configured SR-IOV adapter",
    json_path: "[]",
    schema: Some("PfStatus"),
    columns: &[
        text_column("NAME", "config.name", "Name of the `[[pf]]`."),
        text_column("DEVICE", "config.device", "Network device or PCI address of the adapter."),
        number_column("VFS", "config.vfs", "", "Configured number of virtual functions."),
        number_column("ENABLED", "adapter.vfs_enabled", "", "Virtual functions that exist."),
        number_column("IN USE", "adapter.vfs_in_use", "", "Virtual functions in use."),
        text_column(
            "HEALTH",
            "condition.health, condition.reason",
            "`up`: the configuration of the adapter is in effect. `failed`: it is not; the reason follows, and \
             the daemon retries after 1 s, doubling to 30 s.",
        ),
    ],
};

pub(crate) const ADAPTERS: Columns = Columns {
    commands: &["vf list"],
    row_object: "network adapter with SR-IOV",
    json_path: "[]",
    schema: Some("SriovAdapter"),
    columns: &[
        text_column(
            "DEVICE",
            "device, netns",
            "Network device of the physical function, with its namespace if it is not the daemon's.",
        ),
        text_column("ADDRESS", "address", "PCI address of the physical function."),
        text_column("DRIVER", "driver", "Kernel driver of the physical function."),
        number_column("SUPPORTED", "vfs_supported", "", "Largest number of virtual functions."),
        number_column("ENABLED", "vfs_enabled", "", "Virtual functions that exist."),
        number_column("IN USE", "vfs_in_use", "", "Virtual functions in use."),
        number_column("IOMMU", "iommu_group", "", "IOMMU group."),
        number_column("NUMA", "numa_node", "", "NUMA node of the adapter."),
        text_column(
            "SRIOV SUPPORT",
            "support",
            "`Supported` if VMs can have virtual functions, else the first obstacle, in the words of Hyper-V's \
             `SriovSupport`. The remedy is printed below the table.",
        ),
    ],
};

pub(crate) const VFS: Columns = Columns {
    commands: &["vf list", "vf show ADAPTER", "pf show NAME"],
    row_object: "virtual function",
    json_path: "vfs[]",
    schema: Some("VfStatus"),
    columns: &[
        number_column("VF", "index", "", "Number of the virtual function."),
        text_column("ADDRESS", "address", "PCI address."),
        text_column("DRIVER", "driver", "Kernel driver; `vfio-pci` while a VM has the function."),
        number_column("IOMMU", "iommu_group", "", "IOMMU group."),
        text_column(
            "DEVICE",
            "device, netns",
            "Network device, with its namespace if it is not the daemon's.",
        ),
        text_column("MAC", "mac", "MAC address that the adapter has for the function."),
        number_column("VLAN", "vlan", "", "VLAN of all frames of the function."),
        text_column(
            "SPOOF",
            "spoof_check",
            "Whether the adapter drops frames from other source addresses; `–` if the driver does not report it.",
        ),
        text_column(
            "TRUST",
            "trust",
            "Whether the user of the function may change its address and receive frames for other addresses.",
        ),
        number_column("MIN", "bandwidth_min_bps", "bit/s", "Guaranteed transmit rate."),
        number_column("MAX", "bandwidth_max_bps", "bit/s", "Maximum transmit rate."),
        text_column(
            "LINK",
            "link_state",
            "Link state that the function is shown: `auto`, `enable` or `disable`.",
        ),
        text_column(
            "USED BY",
            "used_by",
            "User of the function: a VM, a network namespace, an uplink, a driver or the host.",
        ),
    ],
};
