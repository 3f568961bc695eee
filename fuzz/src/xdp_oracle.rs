//! Fuzz oracle of AF_XDP queues whose rings the kernel changes arbitrarily.
//!
//! The input is a script of steps of eight bytes: changes of the rings by the kernel, valid or
//! invalid, and calls of the switch. The oracle checks that the queue neither hangs nor panics;
//! that a received frame has the bytes at the ring's addresses; that the queue writes only its own
//! indices, entries and chunks; and that the addresses it passes to the kernel are in its chunks.
//! While the kernel follows the protocol, each chunk also has only one owner at a time, and frames
//! are sent as submitted and in order.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use suimon_frame::{Frame, FrameBatch, VlanTag};
use suimon_netdev::XdpOnFile as Layout;
use suimon_ports::TransmitResult;

/// Kinds of steps: lower three bits of a step's first byte.
pub mod step {
    /// The switch receives frames.
    pub const RECEIVE: u8 = 0;
    /// The switch sends a frame. Bytes 1 and 2: length; byte 3: VLAN tag if odd.
    pub const SEND: u8 = 1;
    /// The switch flushes the queue.
    pub const FLUSH: u8 = 2;
    /// The switch arms notifications and disarms them.
    pub const ARM: u8 = 3;
    /// The kernel receives into a chunk. Bytes 1 and 2: length; 3: options; 4: whether the frame
    /// continues; 5 and 6: offset in the chunk. If byte 7 is even, the kernel uses a chunk from the
    /// fill ring; otherwise bytes 3, 5 and 6 are an arbitrary address.
    pub const ARRIVE: u8 = 4;
    /// The kernel completes the oldest transmission, or, if byte 7 is odd, the address in bytes 1
    /// to 3.
    pub const COMPLETE: u8 = 5;
    /// The kernel overwrites a ring index: which one (byte 1), and the value (bytes 2 to 5).
    pub const INDEX: u8 = 6;
    /// The kernel sets or clears the need-wakeup flag of each of the four rings.
    pub const FLAGS: u8 = 7;
}

const STEPS_MAX: usize = 96;
const CHUNKS: usize = Layout::CHUNKS as usize;
const RECEIVE_BYTES: usize = CHUNKS * Layout::CHUNK_BYTES;
const UMEM_BYTES: usize = 2 * RECEIVE_BYTES;
const CONTINUED: u32 = 1;

thread_local! {
    /// Batch shared by all runs of a thread, because its buffers are large.
    static BATCH: RefCell<FrameBatch> = RefCell::new(FrameBatch::new());
}

/// Statistics of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Frames that the switch received.
    pub received: usize,
    /// Frames that the queue rejected because they are not in chunks, or are too short for a frame.
    pub malformed: u64,
    /// Frames that the queue accepted for transmission.
    pub sent: usize,
    /// True if the kernel followed the protocol in all steps.
    pub is_honest: bool,
}

/// Runs a script. The first byte selects the MTU.
///
/// # Panics
///
/// The queue violates a rule above.
pub fn check(input: &[u8]) -> Outcome {
    let Some((choice, script)) = input.split_first() else { return Outcome::default() };
    let mtu = if choice & 1 == 0 { 1500 } else { 9000 };
    let file = memfd();
    let umem: Vec<u8> = (0..UMEM_BYTES).map(|index| (index * 7 + index / 251) as u8).collect();
    file.write_all_at(&umem, Layout::CHUNKS_AT).unwrap();
    let fd: OwnedFd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
    let queue = Layout::open(file.as_fd(), fd, mtu).unwrap();
    let mut bench = Bench {
        file,
        queue,
        outcome: Outcome { is_honest: true, ..Outcome::default() },
        filled: VecDeque::new(),
        taken: Taken::default(),
        next: 0,
        unsent: VecDeque::new(),
        written: 0,
        before: Vec::new(),
    };
    bench.check_fill_ring();
    for step in script.chunks_exact(8).take(STEPS_MAX) {
        bench.run(step.try_into().unwrap());
    }
    bench.outcome.malformed = bench.queue.source.malformed_frames();
    bench.outcome
}

/// Consumer indices of the rings that the kernel consumes.
#[derive(Default)]
struct Taken {
    fill: u32,
    tx: u32,
}

struct Bench {
    file: File,
    queue: Layout,
    outcome: Outcome,
    /// Chunks that the kernel may receive into; valid while it follows the protocol.
    filled: VecDeque<u64>,
    taken: Taken,
    /// RX ring index of the next entry that the switch reads.
    next: u32,
    /// Wire format of the frames submitted and not completely sent, oldest first.
    unsent: VecDeque<Vec<u8>>,
    /// Bytes of the oldest unsent frame that were sent.
    written: usize,
    /// Contents of the file before the switch's call.
    before: Vec<u8>,
}

impl Bench {
    fn run(&mut self, [kind, a, b, c, d, e, f, g]: [u8; 8]) {
        match kind & 7 {
            step::RECEIVE => self.receive(),
            step::SEND => self.send(usize::from(u16::from_le_bytes([a, b])) % 9100, c),
            step::FLUSH => self.watched(|queue| {
                let _ = queue.sink.flush();
            }),
            step::ARM => self.watched(|queue| {
                let _ = queue.source.arm();
                queue.source.disarm();
            }),
            step::ARRIVE => self.arrive([a, b], c, d, [e, f], g),
            step::COMPLETE => self.complete([a, b, c], g),
            step::INDEX => self.set_index(a, u32::from_le_bytes([b, c, d, e])),
            _ => self.set_flags([a, b, c, d]),
        }
    }

    fn word(&self, ring: u64, offset: u64) -> u32 {
        let mut word = [0; 4];
        self.file.read_exact_at(&mut word, ring + offset).unwrap();
        u32::from_ne_bytes(word)
    }

    fn set_word(&self, ring: u64, offset: u64, value: u32) {
        self.file.write_all_at(&value.to_ne_bytes(), ring + offset).unwrap();
    }

    fn entry<const N: usize>(&self, ring: u64, index: u32) -> [u8; N] {
        let mut entry = [0; N];
        self.file.read_exact_at(&mut entry, entry_at(ring, index, N)).unwrap();
        entry
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut bytes = vec![0; Layout::BYTES as usize];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Calls the switch's side, and checks what it wrote to the file.
    fn watched<T>(&mut self, act: impl FnOnce(&mut Layout) -> T) -> T {
        self.before = self.snapshot();
        let result = act(&mut self.queue);
        self.check_written();
        self.check_fill_ring();
        self.check_tx_ring();
        result
    }

    /// Checks that only the switch's indices, the entries of the rings that it fills, and the
    /// chunks for transmission changed.
    fn check_written(&self) {
        let after = self.snapshot();
        let entries = |ring: u64, bytes: u64| {
            let first = ring + Layout::ENTRIES_AT;
            first..first + u64::from(Layout::CHUNKS) * bytes
        };
        let word = |ring: u64, offset: u64| ring + offset..ring + offset + 4;
        // In ascending order of offset.
        let may_change = [
            word(Layout::RX_AT, Layout::CONSUMER_AT),
            word(Layout::FILL_AT, Layout::PRODUCER_AT),
            entries(Layout::FILL_AT, 8),
            word(Layout::TX_AT, Layout::PRODUCER_AT),
            entries(Layout::TX_AT, 16),
            word(Layout::COMPLETION_AT, Layout::CONSUMER_AT),
            Layout::CHUNKS_AT + RECEIVE_BYTES as u64..Layout::BYTES,
        ];
        let mut offset = 0;
        for range in may_change {
            let unchanged = offset..range.start as usize;
            assert!(
                self.before[unchanged.clone()] == after[unchanged.clone()],
                "changed within {unchanged:#x?}"
            );
            offset = range.end as usize;
        }
        assert_eq!(offset, after.len());
    }

    /// Checks that the fill ring contains only chunks for reception, each once.
    fn check_fill_ring(&mut self) {
        for index in 0..Layout::CHUNKS {
            let chunk = u64::from_ne_bytes(self.entry(Layout::FILL_AT, index));
            assert!(chunk < RECEIVE_BYTES as u64, "{chunk:#x} is not a chunk for reception");
            assert_eq!(chunk % Layout::CHUNK_BYTES as u64, 0);
        }
        let end = self.word(Layout::FILL_AT, Layout::PRODUCER_AT);
        if self.outcome.is_honest {
            let count = end.wrapping_sub(self.taken.fill);
            assert!(count <= Layout::CHUNKS, "the fill ring holds {count}");
            for index in 0..count {
                let index = self.taken.fill.wrapping_add(index);
                self.filled.push_back(u64::from_ne_bytes(self.entry(Layout::FILL_AT, index)));
            }
            let distinct: BTreeSet<u64> = self.filled.iter().copied().collect();
            assert_eq!(distinct.len(), self.filled.len(), "a chunk is in the fill ring twice");
        }
        // The simulated kernel consumes all entries at once.
        self.taken.fill = end;
        self.set_word(Layout::FILL_AT, Layout::CONSUMER_AT, end);
    }

    /// Checks that each TX ring entry is within one chunk for transmission.
    fn check_tx_ring(&mut self) {
        for index in 0..Layout::CHUNKS {
            let (address, len, options) = self.piece(Layout::TX_AT, index);
            if (address, len, options) == (0, 0, 0) {
                // The entry was never written.
                continue;
            }
            let is_inside = (RECEIVE_BYTES as u64..UMEM_BYTES as u64).contains(&address);
            assert!(is_inside, "{address:#x} is not in a chunk for transmission");
            let offset = address as usize % Layout::CHUNK_BYTES;
            assert!(offset + len <= Layout::CHUNK_BYTES, "{len} bytes exceed a chunk");
        }
        if self.outcome.is_honest {
            let end = self.word(Layout::TX_AT, Layout::PRODUCER_AT);
            let count = end.wrapping_sub(self.taken.tx);
            assert!(count <= Layout::CHUNKS, "the TX ring holds {count}");
        }
    }

    fn piece(&self, ring: u64, index: u32) -> (u64, usize, u32) {
        let entry = u128::from_le_bytes(self.entry(ring, index));
        (entry as u64, (entry >> 64) as u32 as usize, (entry >> 96) as u32)
    }

    fn receive(&mut self) {
        let (expected, descriptors) = self.expected();
        let mut received = Vec::new();
        BATCH.with_borrow_mut(|batch| {
            batch.clear();
            let malformed_frames = self.queue.source.malformed_frames();
            let count = self.watched(|queue| queue.source.receive(batch)).unwrap();
            assert_eq!(count, batch.len());
            let refused = self.queue.source.malformed_frames() - malformed_frames;
            assert_eq!(expected.len(), count + refused as usize);
            received.extend(batch.frames().iter().map(wire));
        });
        self.next = self.next.wrapping_add(descriptors);
        self.outcome.received += received.len();
        // The queue drops invalid frames.
        let mut valid = expected.into_iter().flatten().filter(|bytes| is_frame(bytes));
        for bytes in received {
            assert_eq!(Some(bytes), valid.next());
        }
        assert_eq!(valid.next(), None, "a valid frame was not received");
    }

    /// Returns the complete frames in the RX ring according to the kernel's documentation, `None`
    /// for a frame outside of chunks, and the number of their entries.
    fn expected(&self) -> (Vec<Option<Vec<u8>>>, u32) {
        let end = self.word(Layout::RX_AT, Layout::PRODUCER_AT);
        let available = end.wrapping_sub(self.next).min(Layout::CHUNKS);
        let (mut frames, mut frame, mut descriptors) = (Vec::new(), Some(Vec::new()), 0);
        for index in 0..available {
            let (address, len, options) = self.piece(Layout::RX_AT, self.next.wrapping_add(index));
            let offset = address % Layout::CHUNK_BYTES as u64;
            let is_valid =
                address < RECEIVE_BYTES as u64 && offset + len as u64 <= Layout::CHUNK_BYTES as u64;
            frame = frame.filter(|_| is_valid).map(|mut frame: Vec<u8>| {
                let begin = frame.len();
                frame.resize(begin + len, 0);
                let file_offset = Layout::CHUNKS_AT + address;
                self.file.read_exact_at(&mut frame[begin..], file_offset).unwrap();
                frame
            });
            if options & CONTINUED == 0 {
                frames.push(frame.replace(Vec::new()));
                descriptors = index + 1;
            }
        }
        (frames, descriptors)
    }

    fn send(&mut self, len: usize, tag: u8) {
        let len = len.max(14);
        let mut frame = Frame::new(0);
        let bytes: Vec<u8> = (0..len).map(|index| (index * 13 + len) as u8).collect();
        frame.set_bytes(&bytes);
        if tag & 1 != 0 {
            frame.meta.tag = Some(VlanTag::from_tci(u16::from(tag)));
        }
        let discarded_frames = self.queue.sink.discarded_frames();
        let sent = self.watched(|queue| queue.sink.transmit(&frame));
        let is_kept = self.queue.sink.discarded_frames() == discarded_frames;
        if matches!(sent, Ok(TransmitResult::Accepted)) && is_kept {
            self.outcome.sent += 1;
            self.unsent.push_back(wire(&frame));
        }
    }

    fn arrive(&mut self, len: [u8; 2], options: u8, continues: u8, offset: [u8; 2], mode: u8) {
        let len = u32::from(u16::from_le_bytes(len));
        let (address, len, options) = if mode & 1 == 0 {
            // A valid kernel needs a free entry and a chunk.
            let waiting = self
                .word(Layout::RX_AT, Layout::PRODUCER_AT)
                .wrapping_sub(self.word(Layout::RX_AT, Layout::CONSUMER_AT));
            let is_full = self.outcome.is_honest && waiting >= Layout::CHUNKS;
            let Some(chunk) = self.filled.pop_front().filter(|_| !is_full) else { return };
            let offset = u32::from(u16::from_le_bytes(offset)) % 300;
            let capacity = Layout::CHUNK_BYTES as u32 - offset;
            (chunk + u64::from(offset), len % (capacity + 1), u32::from(continues & 1))
        } else {
            self.outcome.is_honest = false;
            let [low, high] = offset;
            let address = u32::from_le_bytes([low, high, options & 3, 0]);
            (address.into(), len, u32::from(options) << 8 | u32::from(continues & 1))
        };
        let index = self.word(Layout::RX_AT, Layout::PRODUCER_AT);
        let entry =
            [address.to_ne_bytes(), (u64::from(len) | u64::from(options) << 32).to_ne_bytes()];
        let file_offset = entry_at(Layout::RX_AT, index, 16);
        self.file.write_all_at(entry.as_flattened(), file_offset).unwrap();
        self.set_word(Layout::RX_AT, Layout::PRODUCER_AT, index.wrapping_add(1));
    }

    fn complete(&mut self, address: [u8; 3], mode: u8) {
        let address = if mode & 1 == 0 {
            let end = self.word(Layout::TX_AT, Layout::PRODUCER_AT);
            if self.taken.tx == end {
                return;
            }
            let (address, len, options) = self.piece(Layout::TX_AT, self.taken.tx);
            self.taken.tx = self.taken.tx.wrapping_add(1);
            self.set_word(Layout::TX_AT, Layout::CONSUMER_AT, self.taken.tx);
            self.check_sent(address, len, options);
            address
        } else {
            self.outcome.is_honest = false;
            let [a, b, c] = address;
            u32::from_le_bytes([a, b, c & 3, 0]).into()
        };
        let index = self.word(Layout::COMPLETION_AT, Layout::PRODUCER_AT);
        let offset = entry_at(Layout::COMPLETION_AT, index, 8);
        self.file.write_all_at(&address.to_ne_bytes(), offset).unwrap();
        self.set_word(Layout::COMPLETION_AT, Layout::PRODUCER_AT, index.wrapping_add(1));
    }

    /// Checks that the sent bytes are those of the oldest submitted frame.
    fn check_sent(&mut self, address: u64, len: usize, options: u32) {
        if !self.outcome.is_honest || address >= UMEM_BYTES as u64 {
            return;
        }
        let mut content = vec![0; len];
        self.file.read_exact_at(&mut content, Layout::CHUNKS_AT + address).unwrap();
        let oldest = self.unsent.front().expect("nothing was sent");
        let expected = oldest.get(self.written..self.written + len);
        assert_eq!(expected, Some(&content[..]));
        self.written += len;
        if options & CONTINUED == 0 {
            assert_eq!(self.written, oldest.len());
            self.written = 0;
            self.unsent.pop_front();
        }
    }

    fn set_index(&mut self, selector: u8, value: u32) {
        self.outcome.is_honest = false;
        let rings = [Layout::RX_AT, Layout::FILL_AT, Layout::TX_AT, Layout::COMPLETION_AT];
        let ring = rings[usize::from(selector & 3)];
        let words = [Layout::PRODUCER_AT, Layout::CONSUMER_AT];
        self.set_word(ring, words[usize::from(selector >> 2 & 1)], value);
    }

    fn set_flags(&mut self, flags: [u8; 4]) {
        let rings = [Layout::RX_AT, Layout::FILL_AT, Layout::TX_AT, Layout::COMPLETION_AT];
        for (ring, flags) in rings.into_iter().zip(flags) {
            self.set_word(ring, Layout::FLAGS_AT, u32::from(flags & 1));
        }
    }
}

fn entry_at(ring: u64, index: u32, bytes: usize) -> u64 {
    ring + Layout::ENTRIES_AT + u64::from(index % Layout::CHUNKS) * bytes as u64
}

fn wire(frame: &Frame) -> Vec<u8> {
    let wire = frame.wire_format();
    [wire.before_tag, wire.tag.as_ref().map_or(&[], |tag| &tag[..]), wire.after_tag].concat()
}

/// Returns true if the bytes contain an Ethernet header, and after an 802.1Q tag another type
/// field.
fn is_frame(bytes: &[u8]) -> bool {
    bytes.len() >= if bytes.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 }
}

fn memfd() -> File {
    let fd = memfd_create("umem", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, Layout::BYTES).unwrap();
    fd.into()
}
