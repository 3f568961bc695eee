//! Queues of negligible cost, for measurements of the switch itself.

use suimon_frame::{BATCH_FRAMES_MAX, Frame, FrameBatch, Offloads, Sum, VnetHeader};
use suimon_ports::{FrameSink, QueueFault, TransmitResult};

use crate::supply::Supply;

/// Frame source that always has another batch of the same frames.
pub struct EndlessSource {
    frames: Vec<Vec<u8>>,
    header: VnetHeader,
    /// Largest number of frames per poll.
    batch_frames: usize,
}

impl EndlessSource {
    /// Returns a source of one frame.
    pub fn new(bytes: [u8; 64]) -> Self {
        Self::from_frames(vec![bytes.to_vec()], VnetHeader::default())
    }

    /// Returns a source of batches of `segments` consecutive segments of a TCP/IPv4 stream with the
    /// MAC addresses `macs` (destination, source). The checksums are partial, as a guest sends
    /// them.
    pub fn stream(macs: [[u8; 6]; 2], segments: u32, payload_bytes: u16) -> Self {
        let segment = |nth: u32| {
            let mut bytes = [&macs.concat()[..], &[0x08, 0x00, 0x45, 0]].concat();
            bytes.extend((40 + payload_bytes).to_be_bytes());
            bytes.extend((nth as u16).to_be_bytes());
            bytes.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let checksum = Sum::from_bytes(&bytes[14..]).checksum();
            bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
            bytes.extend([0x10, 0x10, 0, 80]);
            bytes.extend((nth * u32::from(payload_bytes)).to_be_bytes());
            bytes.extend([0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff]);
            let pseudo = Sum::pseudo_ipv4([10, 0, 0, 1], [10, 0, 0, 2], 6, 20 + payload_bytes);
            bytes.extend(pseudo.word().to_be_bytes());
            bytes.resize(bytes.len() + 2 + usize::from(payload_bytes), 0);
            bytes
        };
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            csum_start: 34,
            csum_offset: 16,
            ..VnetHeader::default()
        };
        Self::from_frames((0..segments).map(segment).collect(), header)
    }

    fn from_frames(frames: Vec<Vec<u8>>, header: VnetHeader) -> Self {
        Self { frames, header, batch_frames: BATCH_FRAMES_MAX }
    }

    /// Returns the same source with at most `frames` frames per poll.
    pub fn in_batches_of(self, frames: usize) -> Self {
        Self { batch_frames: frames, ..self }
    }
}

impl Supply for EndlessSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let before = batch.len();
        for bytes in self.frames.iter().cycle().take(self.batch_frames) {
            let Some(frame) = batch.next_free_frame() else { break };
            frame.space_mut()[..bytes.len()].copy_from_slice(bytes);
            frame.set_len(bytes.len());
            if frame.validate_ingress(&self.header, Offloads::TCP).is_ok() {
                batch.commit();
            }
        }
        Ok(batch.len() - before)
    }
}

/// Sink that accepts every frame and reports these offloads.
#[derive(Clone, Copy, Default)]
pub struct NullSink(pub Offloads);

impl FrameSink for NullSink {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        std::hint::black_box(frame.wire_format());
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        self.0
    }
}
