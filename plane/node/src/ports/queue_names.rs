//! Names of queues in the API and CLI.

use std::collections::BTreeMap;

use suimon_quantity::{Direction, PortId, QueueId};

use crate::PortKey;

/// Direction of a queue as seen by the guest or the host: `rx` of a NIC carries frames to the
/// guest, `rx` of an uplink carries frames from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSide {
    /// Receive queue: frames to the guest, or from the network.
    Rx,
    /// Transmit queue: frames from the guest, or to the network.
    Tx,
}

impl QueueSide {
    /// Parses `rx` or `tx`; returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "rx" => Some(Self::Rx),
            "tx" => Some(Self::Tx),
            _ => None,
        }
    }

    /// Returns the direction as seen by the switch.
    pub(crate) fn direction(self, key: &PortKey) -> Direction {
        match (self, key) {
            (Self::Rx, PortKey::Uplink(_)) => Direction::Ingress,
            (Self::Tx, PortKey::Uplink(_)) => Direction::Egress,
            (Self::Rx, _) => Direction::Egress,
            (Self::Tx, _) => Direction::Ingress,
        }
    }
}

/// Returns the name of a queue, like `web/rx/0`.
pub(crate) fn queue_name(labels: &BTreeMap<PortId, String>, key: &PortKey, id: QueueId) -> String {
    let label = labels.get(&id.port).map_or_else(|| key.name().to_string(), String::clone);
    let rx = QueueSide::Rx.direction(key) == id.direction;
    format!("{label}/{}/{}", if rx { "rx" } else { "tx" }, id.index)
}
