//! Frames with stacks of VLAN tags, sent by one port of a switch and recorded at all others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_frame::VnetHeader;
use suimon_rig::Namespace;

use super::model::{Destination, Observation, Stack, Tag};
use crate::packet_tap::PacketTap;

/// Deadline for the arrival of a frame. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum number of frames in flight, below the capacity of every queue on the path.
const CHUNK_FRAMES: usize = 64;
/// IEEE Std 802 local experimental EtherType 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const MARK: [u8; 8] = *b"vlanstck";
const FRAME_BYTES: usize = 96;

/// Frame to be sent in a test.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) sender: usize,
    pub(super) to: Destination,
    pub(super) stack: Stack,
}

/// Frame that every switch forwards from one port to another.
#[derive(Clone, Debug)]
pub(super) struct Marker {
    pub(super) sender: usize,
    pub(super) stack: Stack,
    pub(super) receiver: usize,
}

/// Sockets on the far ends of all ports.
pub(super) struct Recorder {
    taps: Vec<PacketTap>,
    /// Receivers of each frame, by its number.
    seen: BTreeMap<u32, Observation>,
    next: u32,
}

/// Returns the MAC address of a port.
pub(super) fn mac(port: usize) -> String {
    mac_bytes(port).map(|byte| format!("{byte:02x}")).join(":")
}

fn mac_bytes(port: usize) -> [u8; 6] {
    [0x52, 0x54, 0, 0, 0, 0x10 + port as u8]
}

impl Recorder {
    /// Opens a socket on a device of each namespace.
    pub(super) fn open(ends: &[(&Namespace, &str)]) -> Self {
        let open =
            |(namespace, device): &(&Namespace, &str)| PacketTap::open_incoming(namespace, device);
        Self { taps: ends.iter().map(open).collect(), seen: BTreeMap::new(), next: 0 }
    }

    /// Waits until each marker arrives, repeating it: ports may become ready at different times.
    pub(super) fn wait_ready(&mut self, markers: &[Marker]) {
        for marker in markers {
            let started = Instant::now();
            loop {
                let number = self.send(marker.sender, Destination::All, &marker.stack);
                if self.read(marker.receiver, number, Duration::from_millis(500)) {
                    break;
                }
                assert!(started.elapsed() < LIMIT, "{marker:?} does not arrive");
            }
        }
    }

    /// Sends every frame and returns the receivers of each. `markers` contain a frame from each
    /// sender, and a frame to each receiver, that every switch forwards. Queues keep the order:
    /// once a later frame of a sender has arrived anywhere, the switch has processed all of its
    /// earlier frames, and once a later frame has arrived at a receiver, the receiver has all
    /// copies.
    pub(super) fn record(&mut self, probes: &[Probe], markers: &[Marker]) -> Vec<Observation> {
        let mut numbers = Vec::new();
        for of_sender in probes.chunk_by(|first, next| first.sender == next.sender) {
            let marker = markers.iter().find(|marker| marker.sender == of_sender[0].sender);
            for chunk in of_sender.chunks(CHUNK_FRAMES) {
                let send = |probe: &Probe| self.send(probe.sender, probe.to, &probe.stack);
                numbers.extend(chunk.iter().map(send));
                self.wait_marker(marker.unwrap());
            }
        }
        for receiver in 0..self.taps.len() {
            self.wait_marker(markers.iter().find(|marker| marker.receiver == receiver).unwrap());
        }
        numbers.iter().map(|number| self.seen.remove(number).unwrap_or_default()).collect()
    }

    fn wait_marker(&mut self, marker: &Marker) {
        let number = self.send(marker.sender, Destination::All, &marker.stack);
        assert!(self.read(marker.receiver, number, LIMIT), "{marker:?} does not arrive");
    }

    fn send(&mut self, sender: usize, destination: Destination, stack: &[Tag]) -> u32 {
        let number = self.next;
        self.next += 1;
        let destination_mac = match destination {
            Destination::All => [0xff; 6],
            Destination::Port(port) => mac_bytes(port),
        };
        let mut bytes = [destination_mac, mac_bytes(sender)].concat();
        for tag in stack {
            bytes.extend([tag.kind.to_be_bytes(), tag.tci.to_be_bytes()].concat());
        }
        bytes.extend(ETHERTYPE);
        bytes.extend(MARK);
        bytes.extend(number.to_be_bytes());
        bytes.resize(FRAME_BYTES, 0);
        self.taps[sender].send(&VnetHeader::default(), &bytes);
        number
    }

    /// Records frames that arrive at a port, until frame `number` or until none arrives for
    /// `patience`. Returns true if frame `number` arrived.
    fn read(&mut self, receiver: usize, number: u32, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let Some(bytes) = self.taps[receiver].receive_tagged(remaining) else { return false };
            let Some((read, stack)) = parse(&bytes) else { continue };
            let before = self.seen.entry(read).or_default().insert(receiver, stack);
            assert_eq!(before, None, "frame {read} is twice at {receiver}");
            if read == number {
                return true;
            }
        }
    }
}

/// Returns number and tags of a test frame; `None` for other frames.
fn parse(bytes: &[u8]) -> Option<(u32, Stack)> {
    let mut rest = bytes.get(12..)?;
    let mut stack = Stack::new();
    while let [kind_high, kind_low, high, low, inner @ ..] = rest {
        let kind = u16::from_be_bytes([*kind_high, *kind_low]);
        if !Tag::is_known(kind) {
            break;
        }
        stack.push(Tag { kind, tci: u16::from_be_bytes([*high, *low]) });
        rest = inner;
    }
    let rest = rest.strip_prefix(&ETHERTYPE)?.strip_prefix(&MARK)?;
    Some((u32::from_be_bytes(*rest.first_chunk()?), stack))
}
