//! Exported disk with known contents: executes requests, and checks the encoded replies as a client
//! parses them.

use suimon_nbd::{
    ChunkKind, ExtentState, Framing, NbdCommand, REPLY_BYTES_MAX, Request, RequestParser,
    StatusExtent,
};

use super::nbd_client::{Answer, Ask, BLOCK_STATUS, DF, READ, REQ_ONE, answer};

/// Size of the disk in bytes. Within each [`PIECE_BYTES`] the allocation state is constant.
pub const DISK_BYTES: u64 = 1 << 20;
const PIECE_BYTES: u64 = 4096;
/// Size of the buffer for a block status reply in bytes. Some replies do not fit completely.
const STATUS_BYTES: usize = 1024;

/// Returns the allocation state at `offset`: data, a hole, or allocated zeroes.
fn state_at(offset: u64) -> ExtentState {
    match offset / PIECE_BYTES % 5 {
        1 => ExtentState::HOLE | ExtentState::ZERO,
        2 => ExtentState::ZERO,
        _ => ExtentState::DATA,
    }
}

fn byte_at(offset: u64) -> u8 {
    if state_at(offset).has(ExtentState::ZERO) { 0 } else { (offset % 251) as u8 | 1 }
}

/// Returns the extents from `offset` without end, one per [`PIECE_BYTES`].
fn extents_from(offset: u64) -> impl Iterator<Item = StatusExtent> {
    let mut position = offset;
    std::iter::from_fn(move || {
        let length = PIECE_BYTES - position % PIECE_BYTES;
        let extent = StatusExtent { length, state: state_at(position) };
        position += length;
        Some(extent)
    })
}

/// Executes a request, encodes the reply and checks it as a client parses it.
///
/// # Panics
///
/// The reply differs from the disk's contents or violates the protocol.
pub fn carry_out(transmission: &RequestParser, framing: Framing, ask: &Ask, request: Request) {
    let mut output = Vec::new();
    let mut head = [0; REPLY_BYTES_MAX];
    let mut covered = 0;
    match request.command {
        NbdCommand::Read { range, dont_fragment } => {
            assert_eq!((range.offset, range.length), (ask.offset, ask.length));
            let extents = extents_from(range.offset);
            let chunks =
                transmission.split_read_reply(request.reply_to, range, dont_fragment, extents);
            for chunk in chunks {
                let used = chunk.encode_head(&mut head).expect("the buffer is large enough");
                output.extend_from_slice(&head[..used]);
                if chunk.kind() == ChunkKind::Data {
                    let end = chunk.offset() + u64::from(chunk.length());
                    output.extend((chunk.offset()..end).map(byte_at));
                }
            }
        }
        NbdCommand::BlockStatus { range, first_only } => {
            covered = range.length;
            let mut out = [0xff; STATUS_BYTES];
            let reply = transmission.begin_block_status_reply(
                request.reply_to,
                range,
                first_only,
                &mut out,
            );
            let mut reply = reply.expect("the buffer is large enough");
            for extent in extents_from(range.offset) {
                if !reply.push(extent) {
                    break;
                }
            }
            let used = reply.finish();
            output.extend_from_slice(&out[..used]);
        }
        _ => {
            let used =
                request.reply_to.encode_success(&mut head).expect("the buffer is large enough");
            output.extend_from_slice(&head[..used]);
        }
    }
    let mut bytes = &output[..];
    let answer = answer(framing, ask, &mut bytes);
    assert!(bytes.is_empty(), "bytes after the reply");
    assert_eq!(answer.error, None);
    match ask.kind {
        READ => judge_read(ask, &answer),
        BLOCK_STATUS => judge_extents(ask, covered, &answer),
        _ => assert!(answer.data.is_empty() && answer.extents.is_empty()),
    }
}

/// Checks that a read reply contains each byte of the range once, with the disk's contents.
fn judge_read(ask: &Ask, answer: &Answer) {
    let mut read = vec![None; ask.length as usize];
    let parts = answer.data.iter().map(|(offset, data)| (*offset, data.clone()));
    let holes = answer.holes.iter().map(|(offset, length)| (*offset, vec![0; *length as usize]));
    for (offset, data) in parts.chain(holes) {
        for (position, byte) in (offset..).zip(data) {
            let slot = &mut read
                [usize::try_from(position - ask.offset).expect("the offset is in the range")];
            assert_eq!(slot.replace(byte), None, "a byte was returned twice");
        }
    }
    for (position, byte) in (ask.offset..).zip(read) {
        assert_eq!(byte, Some(byte_at(position)), "at {position}");
    }
    assert!(ask.flags & DF == 0 || answer.data.len() == 1 && answer.holes.is_empty());
}

/// Checks that the extents match the disk, that adjacent ones differ, and that they end within
/// `covered` bytes.
fn judge_extents(ask: &Ask, covered: u64, answer: &Answer) {
    let mut offset = ask.offset;
    let mut before = None;
    for (length, state) in &answer.extents {
        assert_ne!(before.replace(*state), Some(*state), "adjacent extents with the same state");
        let end = offset + length;
        // The state is constant within a piece.
        while offset < end {
            assert_eq!(u64::from(state_at(offset).bits()), *state, "at {offset}");
            offset = end.min((offset / PIECE_BYTES + 1) * PIECE_BYTES);
        }
    }
    assert!(offset <= ask.offset + covered);
    assert!(ask.flags & REQ_ONE == 0 || answer.extents.len() == 1);
}
