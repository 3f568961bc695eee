//! Devices and what stands behind them, in the words that both QEMU's command line and its
//! commands take.

use serde_json::{Map, Value, json};

use crate::chardev::Reconnect;

/// A device: the argument of `device_add`, and the value of `-device`.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    properties: Map<String, Value>,
}

impl Device {
    /// A device of this driver.
    pub fn new(driver: &str) -> Self {
        let mut properties = Map::new();
        properties.insert("driver".to_owned(), json!(driver));
        Self { properties }
    }

    /// With this property.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.properties.insert(name.to_owned(), value.into());
        self
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        Value::Object(self.properties.clone())
    }
}

/// What stands behind a NIC: the argument of `netdev_add`, and the value of `-netdev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Netdev {
    /// A vhost-user back-end behind a chardev.
    VhostUser {
        /// Its id.
        id: String,
        /// The chardev's id.
        chardev: String,
        /// Queue pairs.
        queues: u16,
    },
    /// A stream socket that QEMU connects to, on which each frame follows its length. Since 7.2.
    Stream {
        /// Its id.
        id: String,
        /// The socket.
        path: String,
        /// Whether QEMU connects again.
        reconnect: Reconnect,
    },
}

impl Netdev {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::VhostUser { id, chardev, queues } => {
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

/// Where a disk's bytes are: the argument of `blockdev-add`, and the value of `-blockdev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockNode {
    /// An export of an NBD server on a Unix socket.
    Nbd {
        /// Its name, at most 31 bytes.
        name: String,
        /// The server's socket.
        path: String,
        /// The export's name.
        export: String,
        /// For so many seconds requests wait for the server to come back, before they fail.
        reconnect_delay: u32,
    },
    /// A file.
    File {
        /// Its name, at most 31 bytes.
        name: String,
        /// The file.
        path: String,
        /// Whether it may only be read.
        is_read_only: bool,
    },
}

impl BlockNode {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Nbd { name, path, export, reconnect_delay } => json!({
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
