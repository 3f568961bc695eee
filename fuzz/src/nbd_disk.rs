//! A disk of a known pattern, exported: requests are carried out on it, and the replies
//! read as a client reads them.

use suimon_nbd::{
    ChunkKind, ExtentState, Framing, NbdCommand, REPLY_BYTES_MAX, Request, RequestParser,
    StatusExtent,
};

use super::nbd_client::{Answer, Ask, BLOCK_STATUS, DF, READ, REQ_ONE, answer};

/// Bytes of the disk, and of its pieces that are alike.
pub const DISK_BYTES: u64 = 1 << 20;
const PIECE_BYTES: u64 = 4096;
/// Bytes of buffers for extents: some do not have room for all.
const STATUS_BYTES: usize = 1024;

/// How a piece of the disk is allocated: data, a hole, zeroes that are allocated.
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

/// The disk from here on, piece by piece.
fn extents_from(offset: u64) -> impl Iterator<Item = StatusExtent> {
    let mut position = offset;
    std::iter::from_fn(move || {
        let length = PIECE_BYTES - position % PIECE_BYTES;
        let extent = StatusExtent { length, state: state_at(position) };
        position += length;
        Some(extent)
    })
}

/// Answers a request from the disk, and reads the answer.
///
/// # Panics
/// The answer is not the disk's.
pub fn carry_out(transmission: &RequestParser, framing: Framing, ask: &Ask, request: Request) {
    let mut output = Vec::new();
    let mut head = [0; REPLY_BYTES_MAX];
    let mut covered = 0;
    match request.command {
        NbdCommand::Read { range, dont_fragment } => {
            assert_eq!((range.offset, range.length), (ask.offset, ask.length));
            let extents = extents_from(range.offset);
            let chunks = transmission.read_chunks(request.reply_to, range, dont_fragment, extents);
            for chunk in chunks {
                let used = chunk.encode_head(&mut head).expect("there is room");
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
            let reply = transmission.block_status(request.reply_to, range, first_only, &mut out);
            let mut reply = reply.expect("there is room");
            for extent in extents_from(range.offset) {
                if !reply.push(extent) {
                    break;
                }
            }
            let used = reply.finish();
            output.extend_from_slice(&out[..used]);
        }
        _ => {
            let used = request.reply_to.done(&mut head).expect("there is room");
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

/// All of the range is there, once, and as the disk has it.
fn judge_read(ask: &Ask, answer: &Answer) {
    let mut read = vec![None; ask.length as usize];
    let parts = answer.data.iter().map(|(offset, data)| (*offset, data.clone()));
    let holes = answer.holes.iter().map(|(offset, length)| (*offset, vec![0; *length as usize]));
    for (offset, data) in parts.chain(holes) {
        for (position, byte) in (offset..).zip(data) {
            let slot = &mut read[usize::try_from(position - ask.offset).expect("it is inside")];
            assert_eq!(slot.replace(byte), None, "a byte twice");
        }
    }
    for (position, byte) in (ask.offset..).zip(read) {
        assert_eq!(byte, Some(byte_at(position)), "at {position}");
    }
    assert!(ask.flags & DF == 0 || answer.data.len() == 1 && answer.holes.is_empty());
}

/// Extents are the disk's, differ from their neighbours, and do not exceed the range.
fn judge_extents(ask: &Ask, covered: u64, answer: &Answer) {
    let mut offset = ask.offset;
    let mut before = None;
    for (length, state) in &answer.extents {
        assert_ne!(before.replace(*state), Some(*state), "neighbours of one state");
        let end = offset + length;
        // Within a piece nothing changes.
        while offset < end {
            assert_eq!(u64::from(state_at(offset).bits()), *state, "at {offset}");
            offset = end.min((offset / PIECE_BYTES + 1) * PIECE_BYTES);
        }
    }
    assert!(offset <= ask.offset + covered);
    assert!(ask.flags & REQ_ONE == 0 || answer.extents.len() == 1);
}
