//! Model of a transmitting NIC, and of the wire for received frames.
//!
//! Equations
//! - The engine processes sequentially: `segmentation_start_ns` to start segmenting a packet larger
//!   than a frame, then `frame_ns` for each frame, and `byte_ps` for each byte that it fetches.
//! - The wire carries frames sequentially with Ethernet's overhead (38 bytes): MTU plus overhead at
//!   the link's rate.
//! - The engine is ahead of the wire by at most `fifo_frames`. If that covers less time than the
//!   engine takes for an operation, the wire is idle in between.
//!
//! Parameters: rates are those of published NICs. Durations and capacities of engines are
//! unpublished and assumed in each scenario.

use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::host::spec::NicSpec;

/// TCP and IP headers in a frame, in bytes.
pub(crate) const HEADER_BYTES: u64 = 40;
/// Bytes on the wire that frames have in addition to the MTU: preamble, header, frame check
/// sequence and inter-frame gap.
const ON_WIRE: u64 = 38;

/// Data that the NIC sends or receives in one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) packets: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct Nic {
    spec: NicSpec,
    engine_free: u64,
    out_free: u64,
    in_free: u64,
    /// Times in ns at which the last `fifo_frames` frames have left, oldest first.
    sent_at: VecDeque<u64>,
}

impl Nic {
    pub(crate) fn new(spec: &NicSpec) -> Self {
        let sent_at = VecDeque::with_capacity(spec.fifo_frames);
        Self { spec: spec.clone(), engine_free: 0, out_free: 0, in_free: 0, sent_at }
    }

    fn wire_ns(&self) -> u64 {
        (self.spec.mtu + ON_WIRE) * 8 / self.spec.gbit_s
    }

    /// Sends data after the data sent before. Returns the time at which its last frame has left.
    pub(crate) fn send(&mut self, now: Time, transfer: Transfer) -> Time {
        let Transfer { packets, frames, bytes } = transfer;
        let wire_ns = self.wire_ns();
        let fetch_ns = bytes * self.spec.byte_ps / 1000 / frames.max(1);
        let frames_each = frames.div_ceil(packets.max(1));
        self.engine_free = self.engine_free.max(now.as_ns());
        for frame in 0..frames {
            if frames_each > 1 && frame % frames_each == 0 {
                self.engine_free += self.spec.segmentation_start_ns;
            }
            if self.sent_at.len() >= self.spec.fifo_frames {
                let previous_sent = self.sent_at.pop_front().unwrap_or_default();
                self.engine_free = self.engine_free.max(previous_sent);
            }
            self.engine_free += self.spec.frame_ns + fetch_ns;
            self.out_free = self.out_free.max(self.engine_free) + wire_ns;
            self.sent_at.push_back(self.out_free);
        }
        Time::from_ns(self.out_free.max(now.as_ns()))
    }

    /// Receives data after the data received before. Returns the time at which its last frame has
    /// arrived.
    pub(crate) fn receive(&mut self, now: Time, transfer: Transfer) -> Time {
        self.in_free = self.in_free.max(now.as_ns()) + transfer.frames * self.wire_ns();
        Time::from_ns(self.in_free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(extra: &str) -> Nic {
        let text = format!("name = \"n\"\ngbit_s = 1\nmtu = 1500\n{extra}");
        Nic::new(&toml::from_str(&text).unwrap())
    }

    /// Large packet of 45 frames with 1538 bytes each, which take 12.304 µs each at 1 Gbit/s.
    const FULL: Transfer = Transfer { packets: 1, frames: 45, bytes: 65_700 };

    #[test]
    fn the_wire_limits_the_rate_if_the_engine_is_faster() {
        let mut nic = nic("fifo_frames = 32\ncut_ns = 20000\nframe_ns = 1000");
        let first = nic.send(Time::ZERO, FULL).as_ns();
        assert_eq!(first, 21_000 + 45 * 12_304);
        let second = nic.send(Time::ZERO, FULL).as_ns();
        assert_eq!(second - first, 45 * 12_304, "what the engine takes is hidden");
    }

    #[test]
    fn the_wire_is_idle_while_a_short_fifo_runs_dry() {
        let mut nic = nic("fifo_frames = 1\ncut_ns = 20000\nframe_ns = 1000");
        let first = nic.send(Time::ZERO, FULL).as_ns();
        let second = nic.send(Time::ZERO, FULL).as_ns();
        let but_the_first = 44 * 13_304;
        assert_eq!(second - first, 21_000 + but_the_first, "only behind the last frame before");
        let mut slow = self::nic("fifo_frames = 32\nbyte_ps = 10000");
        let first = slow.send(Time::ZERO, FULL).as_ns();
        assert!(first > 45 * 14_600, "a slow bus is the limit: {first}");
    }

    #[test]
    fn received_frames_queue_behind_earlier_ones() {
        let mut nic = nic("fifo_frames = 1");
        assert_eq!(nic.receive(Time::ZERO, FULL).as_ns(), 45 * 12_304);
        assert_eq!(nic.receive(Time::from_ns(1), FULL).as_ns(), 90 * 12_304);
    }
}
