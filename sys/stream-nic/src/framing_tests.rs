use proptest::prelude::*;

use super::*;

/// Encodes frames as a stream.
fn stream(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        bytes.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(frame);
    }
    bytes
}

/// Feeds a stream to a reader in chunks of the given sizes. Returns the frames, and the error that
/// ended it.
fn read(stream: &[u8], sizes: &[usize]) -> (Vec<Vec<u8>>, Option<FramingError>) {
    let mut reader = FrameReader::new();
    let (mut frames, mut remaining) = (Vec::new(), stream);
    let mut sizes = sizes.iter().copied().cycle();
    loop {
        let is_ready = reader.is_ready();
        match reader.next_frame() {
            Ok(Some(frame)) => {
                assert!(is_ready);
                frames.push(frame.to_vec());
                continue;
            }
            Ok(None) => assert!(!is_ready),
            Err(error) => {
                assert!(is_ready);
                assert_eq!(reader.next_frame(), Err(error), "an error stays");
                return (frames, Some(error));
            }
        }
        let space = reader.space_mut();
        assert!(!space.is_empty(), "there is no space for the missing bytes");
        let size = sizes.next().unwrap_or(1).clamp(1, space.len()).min(remaining.len());
        if size == 0 {
            return (frames, None);
        }
        let (now, rest) = remaining.split_at(size);
        space[..size].copy_from_slice(now);
        reader.advance(size);
        remaining = rest;
    }
}

proptest! {
    #[test]
    fn frames_of_a_fragmented_stream_are_returned_unchanged(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..3000), 0..40),
        pieces in prop::collection::vec(1_usize..5000, 1..20),
    ) {
        prop_assert_eq!(read(&stream(&frames), &pieces), (frames, None));
    }
}

#[test]
fn the_longest_frame_is_taken_and_one_byte_more_is_none() {
    let longest = vec![7; STREAM_FRAME_BYTES_MAX];
    let frames = vec![vec![1; 60], longest, vec![2; 60]];
    for sizes in [1000, usize::MAX] {
        assert_eq!(read(&stream(&frames), &[sizes]), (frames.clone(), None));
    }
    let mut bytes = stream(&[vec![1; 60]]);
    bytes.extend_from_slice(&(STREAM_FRAME_BYTES_MAX as u32 + 1).to_be_bytes());
    let error = FramingError::TooLong { bytes: STREAM_FRAME_BYTES_MAX as u32 + 1 };
    assert_eq!(read(&bytes, &[7]), (vec![vec![1; 60]], Some(error)));
    bytes.truncate(64);
    bytes.extend_from_slice(&[0; 4]);
    assert_eq!(read(&bytes, &[7]), (vec![vec![1; 60]], Some(FramingError::Empty)));
}
