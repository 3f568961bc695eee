//! Devices and their back-ends, in the JSON syntax common to QEMU's command line and QMP.

use serde_json::{Map, Value, json};

use crate::chardev::ReconnectOption;

/// Device with its properties: the argument of `device_add`, and the value of `-device`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceArguments {
    properties: Map<String, Value>,
}

impl DeviceArguments {
    /// Creates a device with this driver, without properties.
    pub fn new(driver: &str) -> Self {
        let mut properties = Map::new();
        properties.insert("driver".to_owned(), json!(driver));
        Self { properties }
    }

    /// Returns the device with a property added.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.properties.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the JSON object for QEMU.
    pub fn to_json(&self) -> Value {
        Value::Object(self.properties.clone())
    }
}

/// Network back-end of a NIC: the argument of `netdev_add`, and the value of `-netdev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Netdev {
    /// vhost-user back-end that is connected by a chardev.
    VhostUser {
        /// Identifier (`id`) of the netdev.
        id: String,
        /// Identifier (`id`) of the chardev.
        chardev: String,
        /// Number of queue pairs of the NIC.
        queue_pairs: u16,
    },
    /// Client of a stream socket, on which each frame is preceded by its length. Since QEMU 7.2.
    Stream {
        /// Identifier (`id`) of the netdev.
        id: String,
        /// Path of the Unix socket.
        path: String,
        /// Reconnection of the socket after a disconnect.
        reconnect: ReconnectOption,
    },
}

impl Netdev {
    /// Returns the JSON object for QEMU.
    pub fn to_json(&self) -> Value {
        match self {
            Self::VhostUser { id, chardev, queue_pairs: queues } => {
                json!({ "type": "vhost-user", "id": id, "chardev": chardev, "queues": queues })
            }
            Self::Stream { id, path, reconnect } => {
                let mut object = Map::new();
                object.insert("type".to_owned(), json!("stream"));
                object.insert("id".to_owned(), json!(id));
                object.insert("server".to_owned(), json!(false));
                object.insert("addr".to_owned(), json!({ "type": "unix", "path": path }));
                reconnect.add_to(&mut object);
                Value::Object(object)
            }
        }
    }
}

/// Block node of a disk: the argument of `blockdev-add`, and the value of `-blockdev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockNode {
    /// Export of an NBD server on a Unix socket.
    Nbd {
        /// Node name, at most 31 bytes.
        name: String,
        /// Path of the server's socket.
        path: String,
        /// Name of the NBD export.
        export: String,
        /// Time in seconds for which requests wait for a reconnection before they fail.
        reconnect_delay_s: u32,
    },
    /// Regular file on the host.
    File {
        /// Node name, at most 31 bytes.
        name: String,
        /// Path of the file on the host.
        path: String,
        /// True to open the file read-only.
        is_read_only: bool,
    },
}

impl BlockNode {
    /// Returns the JSON object for QEMU.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Nbd { name, path, export, reconnect_delay_s: reconnect_delay } => json!({
                "driver": "nbd",
                "node-name": name,
                "server": { "type": "unix", "path": path },
                "export": export,
                "reconnect-delay": reconnect_delay,
                "discard": "unmap",
            }),
            Self::File { name, path, is_read_only } => json!({
                "driver": "file",
                "node-name": name,
                "filename": path,
                "read-only": is_read_only,
            }),
        }
    }
}
