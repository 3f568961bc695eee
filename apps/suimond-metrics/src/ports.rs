//! Metrics of ports: NICs, uplinks, teams and host NICs of switches.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::PortCounters;

use crate::family::{Family, Value};
use crate::readings::{PortReading, Readings};

/// Counter of a port with the function that reads its value.
type PortMetric = (Family, fn(&PortCounters) -> u64);

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    Family::counter(name, unit, &[], help)
}

/// Counters as seen by the guest or host behind the port: frames that the switch received from the
/// port are those that the guest transmitted.
const GUEST_METRICS: [PortMetric; 4] = [
    (counter("receive_bytes", "bytes", "Bytes delivered to the {peer}"), |c| c.tx_bytes),
    (
        counter(
            "receive_frames",
            "frames",
            "Frames delivered to the {peer}. A large frame counts once",
        ),
        |c| c.tx_frames,
    ),
    (counter("transmit_bytes", "bytes", "Bytes sent by the {peer}"), |c| c.rx_bytes),
    (
        counter(
            "transmit_frames",
            "frames",
            "Frames sent by the {peer}. A large frame counts once",
        ),
        |c| c.rx_frames,
    ),
];

/// Counters as seen by the device, which receives from the wire; for a team the sum of its members.
const UPLINK_METRICS: [PortMetric; 4] = [
    (counter("receive_bytes", "bytes", "Bytes received from the {peer}"), |c| c.rx_bytes),
    (counter("receive_frames", "frames", "Frames received from the {peer}"), |c| c.rx_frames),
    (counter("transmit_bytes", "bytes", "Bytes sent to the {peer}"), |c| c.tx_bytes),
    (
        counter(
            "transmit_frames",
            "frames",
            "Frames sent to the {peer}. A large frame counts once",
        ),
        |c| c.tx_frames,
    ),
];

/// Counters without a direction, and counters of frames that the switch sent to the port.
static COMMON_METRICS: [PortMetric; 5] = [
    (counter("flooded_frames", "frames", "Frames from the {peer} that the switch flooded"), |c| {
        c.flooded
    }),
    (
        counter(
            "segmented_frames",
            "frames",
            "Frames that the switch segmented in software and sent to the {peer}",
        ),
        |c| c.software_segmented,
    ),
    (
        counter(
            "checksummed_frames",
            "frames",
            "Frames whose checksum the switch completed in software, sent to the {peer}",
        ),
        |c| c.software_checksummed,
    ),
    (
        counter(
            "coalesced_segments",
            "frames",
            "Segments that the switch coalesced in software with others of their stream, for the \
             {peer}",
        ),
        |c| c.software_coalesced_segments,
    ),
    (
        counter(
            "coalesced_units",
            "frames",
            "Large frames to the {peer} that resulted from coalescing",
        ),
        |c| c.software_coalesced_frames,
    ),
];

const DROPPED: Family = counter(
    "dropped_frames",
    "frames",
    "Dropped frames by reason. Direction `transmit`: sent by the guest (NIC), by the host (host NIC) \
     or to the wire (uplink, team); `receive`: the opposite direction",
);

const UP: Family =
    Family::gauge("up", "", &[], "1 if the port is in service and can forward frames, else 0");

/// Kind of port, with the properties of its metrics.
struct Kind {
    /// Label and name of the kind in [`PortReading`].
    word: &'static str,
    prefix: &'static str,
    /// Labels of the port's series, and of its drops.
    labels: &'static [&'static str],
    drop_labels: &'static [&'static str],
    /// Component at the other side of the port, for descriptions.
    peer: &'static str,
    directed: [PortMetric; 4],
    /// Values of the label `direction` for frames that the switch received from the port, and for
    /// frames that it sent to the port.
    directions: [&'static str; 2],
}

const KINDS: [Kind; 4] = [
    Kind {
        word: "nic",
        prefix: "suimon_nic",
        labels: &["nic"],
        drop_labels: &["nic", "direction", "reason"],
        peer: "guest",
        directed: GUEST_METRICS,
        directions: ["transmit", "receive"],
    },
    Kind {
        word: "uplink",
        prefix: "suimon_uplink",
        labels: &["uplink"],
        drop_labels: &["uplink", "direction", "reason"],
        peer: "wire",
        directed: UPLINK_METRICS,
        directions: ["receive", "transmit"],
    },
    Kind {
        word: "team",
        prefix: "suimon_team",
        labels: &["team"],
        drop_labels: &["team", "direction", "reason"],
        peer: "wires of the members",
        directed: UPLINK_METRICS,
        directions: ["receive", "transmit"],
    },
    Kind {
        word: "switch",
        prefix: "suimon_switch_host_nic",
        labels: &["switch"],
        drop_labels: &["switch", "direction", "reason"],
        peer: "host",
        directed: GUEST_METRICS,
        directions: ["transmit", "receive"],
    },
];

const ON_VF: Family = Family::gauge(
    "suimon_nic_on_vf",
    "",
    &["nic"],
    "1 if traffic of the NIC uses its virtual function, 0 if it uses the switch. Only NICs with \
     an `iov_weight` above 0",
);

pub(super) fn families() -> Vec<Family> {
    let mut families = Vec::new();
    for kind in &KINDS {
        families.extend(kind.metrics().map(|(family, _)| family));
        families.extend([kind.dropped(), kind.up()]);
    }
    families.push(ON_VF);
    families
}

impl Kind {
    fn metrics(&self) -> impl Iterator<Item = PortMetric> + '_ {
        let metrics = self.directed.iter().chain(&COMMON_METRICS);
        metrics.map(|(family, value)| {
            (family.for_port_kind(self.prefix, self.labels, self.peer), *value)
        })
    }

    fn dropped(&self) -> Family {
        DROPPED.for_port_kind(self.prefix, self.drop_labels, self.peer)
    }

    fn up(&self) -> Family {
        UP.for_port_kind(self.prefix, self.labels, self.peer)
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>, ports: &[&PortReading]) -> fmt::Result {
        for (family, value) in self.metrics() {
            let series = ports
                .iter()
                .map(|port| ([port.name.clone()], Value::Integer(value(&port.counters))));
            family.write(encoder, series)?;
        }
        self.dropped().write(encoder, ports.iter().flat_map(|port| self.drops(port)))?;
        let up =
            ports.iter().map(|port| ([port.name.clone()], Value::Integer(u64::from(port.is_up))));
        self.up().write(encoder, up)
    }

    fn drops(&self, port: &PortReading) -> Vec<([String; 3], Value)> {
        let sides = [&port.counters.rx_dropped, &port.counters.tx_dropped];
        let drops = self
            .directions
            .into_iter()
            .zip(sides)
            .flat_map(|(direction, drops)| drops.iter().map(move |drop| (direction, drop)));
        drops
            .map(|(direction, drop)| {
                let labels = [port.name.clone(), direction.to_owned(), drop.reason.clone()];
                (labels, Value::Integer(drop.frames))
            })
            .collect()
    }
}

impl Readings {
    pub(super) fn encode_ports(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for kind in &KINDS {
            let ports: Vec<_> = self.ports.iter().filter(|port| port.kind == kind.word).collect();
            if !ports.is_empty() {
                kind.encode(encoder, &ports)?;
            }
        }
        let on_vf =
            self.nic_uses_vf.iter().map(|(nic, is_on_vf)| ([nic.clone()], Value::flag(*is_on_vf)));
        ON_VF.write_if_any(encoder, on_vf)
    }
}
