//! Fuzz oracle of the reader of frames in a stream of an emulated NIC.
//!
//! The input is the byte stream of QEMU. It is read as a whole, byte by byte, and in chunks of odd
//! length; the frames are compared with a separate parser of the length prefixes.

use suimon_stream_nic::framing::{FrameReader, FramingError};

/// Maximum length of a frame in bytes, as QEMU's `net/net.h` defines it.
const NET_BUFSIZE: usize = 4096 + 65_536;

/// Statistics of an input, with which tests verify that seeds reach the intended states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Complete frames.
    pub frames: usize,
    /// True if an invalid length ended the stream.
    pub was_cut: bool,
}

/// Reads the input and checks the frames.
///
/// # Panics
///
/// The frames differ from the separate parser's, or depend on how the bytes are split.
pub fn check(input: &[u8]) -> Outcome {
    let (expected, was_cut) = walk(input);
    for chunk_bytes in [usize::MAX, 1, 7, 1500] {
        let (frames, error) = read(input, chunk_bytes);
        assert!(frames == expected, "frames in pieces of {chunk_bytes}");
        assert_eq!(error.is_some(), was_cut, "in pieces of {chunk_bytes}");
    }
    Outcome { frames: expected.len(), was_cut }
}

fn walk(input: &[u8]) -> (Vec<&[u8]>, bool) {
    let (mut frames, mut offset) = (Vec::new(), 0);
    while offset + 4 <= input.len() {
        let length =
            input[offset..offset + 4].iter().fold(0_usize, |sum, byte| sum * 256 + *byte as usize);
        if length == 0 || length > NET_BUFSIZE {
            return (frames, true);
        }
        if offset + 4 + length > input.len() {
            break;
        }
        frames.push(&input[offset + 4..offset + 4 + length]);
        offset += 4 + length;
    }
    (frames, false)
}

fn read(input: &[u8], chunk_bytes: usize) -> (Vec<Vec<u8>>, Option<FramingError>) {
    let mut reader = FrameReader::new();
    let (mut frames, mut remaining) = (Vec::new(), input);
    loop {
        let is_ready = reader.is_ready();
        let frame = reader.next_frame().map(|frame| frame.map(<[u8]>::to_vec));
        assert_eq!(is_ready, !matches!(frame, Ok(None)), "a complete frame is reported as ready");
        match frame {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => {
                let space = reader.space_mut();
                assert!(!space.is_empty(), "there is room for what is missing");
                let bytes = chunk_bytes.min(space.len()).min(remaining.len());
                if bytes == 0 {
                    return (frames, None);
                }
                let (now, rest) = remaining.split_at(bytes);
                space[..bytes].copy_from_slice(now);
                reader.advance(bytes);
                remaining = rest;
            }
            Err(error) => {
                assert_eq!(reader.next_frame(), Err(error), "an error stays");
                return (frames, Some(error));
            }
        }
    }
}
