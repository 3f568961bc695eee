//! What QEMU is told.

use serde_json::{Map, Value, json};

use crate::chardev::Reconnect;
use crate::device::{BlockNode, Device, Netdev};
use crate::migration::MigrationCapability;

/// A command. What it returns, if it is more than nothing, is read by a function of this crate,
/// which is named.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Answers the greeting; nothing else is taken before.
    Capabilities,
    /// Whether the CPUs run ([`run_state`](crate::run_state)).
    QueryStatus,
    /// Whether KVM runs them ([`is_kvm_enabled`](crate::is_kvm_enabled)).
    QueryKvm,
    /// Which CPUs there are and could be ([`cpu_slots`](crate::cpu_slots)).
    QueryHotpluggableCpus,
    /// Which CPUs there are ([`cpu_count`](crate::cpu_count)).
    QueryCpusFast,
    /// How much memory the machine has ([`base_memory`](crate::base_memory)).
    QueryMemorySizeSummary,
    /// Which chardevs there are ([`chardevs`](crate::chardevs)).
    QueryChardev,
    /// What an object has ([`qom_properties`](crate::qom_properties)).
    QomList {
        /// Where it is in QEMU's tree of objects.
        path: String,
    },
    /// What a guest's driver and a virtio device have agreed on
    /// ([`has_standby`](crate::has_standby)). QEMU promises nothing of its form; it is so since
    /// 7.2.
    QueryVirtioStatus {
        /// Where the device is in QEMU's tree of objects.
        path: String,
    },
    /// Stops the CPUs.
    Stop,
    /// Lets them run.
    Cont,
    /// Starts the machine anew.
    SystemReset,
    /// Presses its power button.
    SystemPowerdown,
    /// Ends QEMU.
    Quit,
    /// Plugs a device in.
    DeviceAdd(Device),
    /// Asks the guest to let go of a device; [`Event::DeviceDeleted`](crate::Event) tells when
    /// it has.
    DeviceDel {
        /// Its id.
        id: String,
    },
    /// Adds a socket chardev that connects.
    ChardevAdd {
        /// Its id.
        id: String,
        /// The socket.
        path: String,
        /// How it connects again.
        reconnect: Reconnect,
    },
    /// Takes a chardev away that nothing uses.
    ChardevRemove {
        /// Its id.
        id: String,
    },
    /// Adds what stands behind a NIC.
    NetdevAdd(Netdev),
    /// Takes it away.
    NetdevDel {
        /// Its id.
        id: String,
    },
    /// Adds what stands behind a disk.
    BlockdevAdd(BlockNode),
    /// Takes it away; nothing may use it.
    BlockdevDel {
        /// Its name.
        name: String,
    },
    /// What a property of an object is.
    QomGet {
        /// Where the object is in QEMU's tree.
        path: String,
        /// The property.
        property: String,
    },
    /// Keeps the file descriptor that comes with this line.
    GetFd {
        /// The name that it is known by from then on.
        name: &'static str,
    },
    /// Has QEMU send, or receive, in these ways.
    MigrateSetCapabilities(Vec<MigrationCapability>),
    /// Bounds how a VM is sent.
    MigrateSetParameters {
        /// Milliseconds that it may stand still.
        downtime_ms: u64,
        /// Bytes in a second at most; 0 is as many as the line carries.
        bytes_per_second: u64,
    },
    /// Sends the VM over a descriptor that QEMU was told to keep.
    Migrate {
        /// The descriptor's name.
        fd: &'static str,
    },
    /// Receives a VM over a descriptor that QEMU was told to keep.
    MigrateIncoming {
        /// The descriptor's name.
        fd: &'static str,
    },
    /// Sends the rest, for which the sender waits.
    MigrateContinue,
    /// Ends what was begun to be sent.
    MigrateCancel,
    /// How far it is ([`migration`](crate::migration)).
    QueryMigrate,
    /// Tells networks where the NICs' addresses are.
    AnnounceSelf,
}

impl Command {
    /// Its name in QMP.
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
                let set =
                    |of: &MigrationCapability| json!({ "capability": of.name(), "state": true });
                let all: Vec<Value> = capabilities.iter().map(set).collect();
                json!({ "capabilities": all })
            }
            Self::MigrateSetParameters { downtime_ms, bytes_per_second } => {
                json!({ "downtime-limit": downtime_ms, "max-bandwidth": bytes_per_second })
            }
            Self::Migrate { fd } | Self::MigrateIncoming { fd } => {
                json!({ "uri": format!("fd:{fd}") })
            }
            Self::MigrateContinue => json!({ "state": "pre-switchover" }),
            // Five rounds within about half a second, as QEMU does by itself.
            Self::AnnounceSelf => json!({ "initial": 50, "max": 550, "rounds": 5, "step": 100 }),
            _ => return None,
        })
    }

    /// The line that tells QEMU so; the answer repeats `id`.
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
