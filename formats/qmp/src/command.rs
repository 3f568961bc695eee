//! QMP commands.

use serde_json::{Map, Value, json};

use crate::chardev::ReconnectOption;
use crate::device::{BlockNode, DeviceArguments, Netdev};
use crate::migration::MigrationCapability;

/// QMP command. The function named in each variant decodes the result, if there is one.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Completes capability negotiation; required before any other command.
    Capabilities,
    /// Queries the run state ([`decode_run_state`](crate::decode_run_state)).
    QueryStatus,
    /// Queries whether KVM is in use ([`decode_kvm_enabled`](crate::decode_kvm_enabled)).
    QueryKvm,
    /// Queries present and hot-pluggable CPUs ([`decode_cpu_slots`](crate::decode_cpu_slots)).
    QueryHotpluggableCpus,
    /// Queries present CPUs ([`decode_cpu_count`](crate::decode_cpu_count)).
    QueryCpusFast,
    /// Queries the memory size ([`decode_base_memory_bytes`](crate::decode_base_memory_bytes)).
    QueryMemorySizeSummary,
    /// Queries the chardevs ([`decode_chardevs`](crate::decode_chardevs)).
    QueryChardev,
    /// Lists the properties of a QOM object
    /// ([`decode_qom_properties`](crate::decode_qom_properties)).
    QomList {
        /// QOM path of the object.
        path: String,
    },
    /// Queries the features negotiated with a virtio device
    /// ([`decode_standby_negotiated`](crate::decode_standby_negotiated)). Unstable command (prefix
    /// `x-`); the result has had this structure since QEMU 7.2.
    QueryVirtioStatus {
        /// QOM path of the virtio device.
        path: String,
    },
    /// Stops the CPUs of the VM.
    Stop,
    /// Resumes the CPUs of the VM.
    Cont,
    /// Resets the machine of the VM.
    SystemReset,
    /// Presses the ACPI power button.
    SystemPowerdown,
    /// Terminates the QEMU process immediately.
    Quit,
    /// Hot-plugs a device into the VM.
    DeviceAdd(DeviceArguments),
    /// Requests the hot-unplug of a device;
    /// [`QmpEvent::DeviceDeleted`](crate::QmpEvent::DeviceDeleted) reports that the guest has
    /// released it.
    DeviceDel {
        /// Identifier (`id`) of the device.
        id: String,
    },
    /// Adds a chardev that is the client of a Unix socket.
    ChardevAdd {
        /// Identifier (`id`) of the new chardev.
        id: String,
        /// Path of the Unix socket.
        path: String,
        /// Reconnection of the socket after a disconnect.
        reconnect: ReconnectOption,
    },
    /// Removes a chardev that no device uses.
    ChardevRemove {
        /// Identifier (`id`) of the chardev.
        id: String,
    },
    /// Adds the network back-end of a NIC.
    NetdevAdd(Netdev),
    /// Removes a network back-end that no NIC uses.
    NetdevDel {
        /// Identifier (`id`) of the netdev.
        id: String,
    },
    /// Adds the block node of a disk.
    BlockdevAdd(BlockNode),
    /// Removes a block node that no device uses.
    BlockdevDel {
        /// Node name of the block node.
        name: String,
    },
    /// Reads a property of a QOM object. The result is the value.
    QomGet {
        /// QOM path of the object.
        path: String,
        /// Name of the QOM property.
        property: String,
    },
    /// Stores the file descriptor that is sent together with this line (`SCM_RIGHTS`).
    GetFd {
        /// Name by which later commands refer to the descriptor.
        name: &'static str,
    },
    /// Enables migration capabilities on the source or target.
    MigrateSetCapabilities(Vec<MigrationCapability>),
    /// Sets the limits of an outgoing migration.
    MigrateSetParameters {
        /// Maximum downtime of the VM in milliseconds.
        downtime_ms: u64,
        /// Bandwidth limit in bytes per second; 0: unlimited.
        bytes_per_second: u64,
    },
    /// Starts an outgoing migration over a descriptor stored by [`Command::GetFd`].
    Migrate {
        /// Name of the stored descriptor.
        fd_name: &'static str,
    },
    /// Starts an incoming migration over a descriptor stored by [`Command::GetFd`].
    MigrateIncoming {
        /// Name of the stored descriptor.
        fd_name: &'static str,
    },
    /// Continues an outgoing migration that paused before switchover
    /// ([`MigrationCapability::PauseBeforeSwitchover`]).
    MigrateContinue,
    /// Cancels the migration in progress.
    MigrateCancel,
    /// Queries the progress of a migration ([`migration`](crate::migration)).
    QueryMigrate,
    /// Makes the NICs announce their addresses to their networks, so that switches learn them.
    AnnounceSelf,
}

impl Command {
    /// Returns the command's name in QMP.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Capabilities => "qmp_capabilities",
            Self::QueryStatus => "query-status",
            Self::QueryKvm => "query-kvm",
            Self::QueryHotpluggableCpus => "query-hotpluggable-cpus",
            Self::QueryCpusFast => "query-cpus-fast",
            Self::QueryMemorySizeSummary => "query-memory-size-summary",
            Self::QueryChardev => "query-chardev",
            Self::QomList { .. } => "qom-list",
            Self::QueryVirtioStatus { .. } => "x-query-virtio-status",
            Self::Stop => "stop",
            Self::Cont => "cont",
            Self::SystemReset => "system_reset",
            Self::SystemPowerdown => "system_powerdown",
            Self::Quit => "quit",
            Self::DeviceAdd(_) => "device_add",
            Self::DeviceDel { .. } => "device_del",
            Self::ChardevAdd { .. } => "chardev-add",
            Self::ChardevRemove { .. } => "chardev-remove",
            Self::NetdevAdd(_) => "netdev_add",
            Self::NetdevDel { .. } => "netdev_del",
            Self::BlockdevAdd(_) => "blockdev-add",
            Self::BlockdevDel { .. } => "blockdev-del",
            Self::QomGet { .. } => "qom-get",
            Self::GetFd { .. } => "getfd",
            Self::MigrateSetCapabilities(_) => "migrate-set-capabilities",
            Self::MigrateSetParameters { .. } => "migrate-set-parameters",
            Self::Migrate { .. } => "migrate",
            Self::MigrateIncoming { .. } => "migrate-incoming",
            Self::MigrateContinue => "migrate-continue",
            Self::MigrateCancel => "migrate_cancel",
            Self::QueryMigrate => "query-migrate",
            Self::AnnounceSelf => "announce-self",
        }
    }

    fn arguments(&self) -> Option<Value> {
        Some(match self {
            Self::QomList { path } | Self::QueryVirtioStatus { path } => json!({ "path": path }),
            Self::DeviceAdd(device) => device.to_json(),
            Self::NetdevAdd(netdev) => netdev.to_json(),
            Self::BlockdevAdd(node) => node.to_json(),
            Self::BlockdevDel { name } => json!({ "node-name": name }),
            Self::DeviceDel { id } | Self::ChardevRemove { id } | Self::NetdevDel { id } => {
                json!({ "id": id })
            }
            Self::ChardevAdd { id, path, reconnect } => {
                let mut data = Map::new();
                let address = json!({ "type": "unix", "data": { "path": path } });
                data.insert("addr".to_owned(), address);
                data.insert("server".to_owned(), json!(false));
                reconnect.add_to(&mut data);
                json!({ "id": id, "backend": { "type": "socket", "data": data } })
            }
            _ => return self.migration_arguments(),
        })
    }

    fn migration_arguments(&self) -> Option<Value> {
        Some(match self {
            Self::QomGet { path, property } => json!({ "path": path, "property": property }),
            Self::GetFd { name } => json!({ "fdname": name }),
            Self::MigrateSetCapabilities(capabilities) => {
                let entry = |name: &str| json!({ "capability": name, "state": true });
                let values: Vec<Value> =
                    capabilities.iter().map(|capability| entry(capability.name())).collect();
                json!({ "capabilities": values })
            }
            Self::MigrateSetParameters { downtime_ms, bytes_per_second } => {
                json!({ "downtime-limit": downtime_ms, "max-bandwidth": bytes_per_second })
            }
            Self::Migrate { fd_name: fd } | Self::MigrateIncoming { fd_name: fd } => {
                json!({ "uri": format!("fd:{fd}") })
            }
            Self::MigrateContinue => json!({ "state": "pre-switchover" }),
            // Five announcements within about half a second, QEMU's defaults after a migration.
            Self::AnnounceSelf => json!({ "initial": 50, "max": 550, "rounds": 5, "step": 100 }),
            _ => return None,
        })
    }

    /// Returns the command as one line. QEMU's response contains the same `id`.
    pub fn line(&self, id: u64) -> Vec<u8> {
        let mut object = Map::new();
        object.insert("execute".to_owned(), json!(self.name()));
        if let Some(arguments) = self.arguments() {
            object.insert("arguments".to_owned(), arguments);
        }
        object.insert("id".to_owned(), json!(id));
        let mut line = Value::Object(object).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}
