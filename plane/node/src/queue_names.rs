//! Queues by the names that users know.

use std::collections::BTreeMap;

use suimon_quantity::{Direction, PortId, QueueId};

use crate::PortKey;

/// Which way a queue carries frames, seen from whom the port stands for: `rx`
/// of a NIC carries frames to the guest, `rx` of an uplink carries what came
/// from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSide {
    /// Received by the guest, or from the wire.
    Rx,
    /// Sent by the guest, or to the wire.
    Tx,
}

impl QueueSide {
    /// `rx` or `tx`; anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "rx" => Some(Self::Rx),
            "tx" => Some(Self::Tx),
            _ => None,
        }
    }

    /// The direction seen from the switch.
    pub(crate) fn direction(self, key: &PortKey) -> Direction {
        match (self, key) {
            (Self::Rx, PortKey::Uplink(_)) => Direction::Ingress,
            (Self::Tx, PortKey::Uplink(_)) => Direction::Egress,
            (Self::Rx, _) => Direction::Egress,
            (Self::Tx, _) => Direction::Ingress,
        }
    }
}

/// `web/rx/0`.
pub(crate) fn queue_name(labels: &BTreeMap<PortId, String>, key: &PortKey, id: QueueId) -> String {
    let label = labels.get(&id.port).map_or_else(|| key.name().to_string(), String::clone);
    let rx = QueueSide::Rx.direction(key) == id.direction;
    format!("{label}/{}/{}", if rx { "rx" } else { "tx" }, id.index)
}
