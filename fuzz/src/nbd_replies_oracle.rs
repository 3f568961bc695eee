//! Fuzz oracle of the client side of NBD: the parser's results must not depend on how the server's
//! bytes are split, and each reply must have the length that the protocol specifies
//! (`doc/proto.md`, sections "Simple reply message" and "Structured reply chunk message").

use suimon_nbd::{
    ClientHandshake, ClientStep, ParsedReply, RemoteExport, ReplyContent, ReplyReader,
};

/// Result of a client's handshake.
#[derive(Debug, PartialEq)]
pub enum Shaken {
    /// The client needs more bytes.
    Waits,
    /// An export was negotiated; the number counts the remaining bytes.
    Agreed(RemoteExport, usize),
    /// The client rejected the server, with this error.
    Refused(String),
}

/// Feeds the bytes to a client's handshake in chunks of at most `piece` bytes. Returns the client's
/// output and the result.
fn shake(bytes: &[u8], piece: usize) -> (Vec<u8>, Shaken) {
    let mut client = ClientHandshake::new("disk").expect("the name is short");
    let (mut output, mut received, mut rest) = (Vec::new(), Vec::new(), bytes);
    loop {
        let progress = match client.handle_bytes(&received, &mut output) {
            Ok(progress) => progress,
            Err(error) => return (output, Shaken::Refused(error.to_string())),
        };
        assert!(progress.consumed <= received.len(), "more bytes were consumed than received");
        received.drain(..progress.consumed);
        match progress.step {
            ClientStep::Continue => assert!(progress.consumed > 0, "no byte was consumed"),
            ClientStep::Negotiated(export) => {
                return (output, Shaken::Agreed(export, received.len() + rest.len()));
            }
            ClientStep::NeedsBytes if rest.is_empty() => return (output, Shaken::Waits),
            ClientStep::NeedsBytes => {
                let (next, behind) = rest.split_at(piece.min(rest.len()));
                received.extend_from_slice(next);
                rest = behind;
            }
        }
    }
}

/// Returns the length of a reply without read data, according to the protocol.
fn head_bytes(bytes: &[u8]) -> usize {
    match bytes[..4] {
        [0x67, 0x44, 0x66, 0x98] => 16,
        _ if bytes[6..8] == [0, 1] => 28,
        _ => 20 + u32::from_be_bytes(bytes[16..20].try_into().expect("four bytes")) as usize,
    }
}

fn replies(mut bytes: &[u8]) {
    while let Ok(reply) = ReplyReader.read(bytes) {
        let ParsedReply::Chunk { consumed, content, .. } = &reply else {
            let ParsedReply::Incomplete { required } = reply else { return };
            assert!(required > bytes.len(), "a complete reply was reported as incomplete");
            return;
        };
        assert_eq!(*consumed, head_bytes(bytes));
        for cut in 0..*consumed {
            let part = ReplyReader.read(&bytes[..cut]);
            assert!(
                matches!(part, Ok(ParsedReply::Incomplete { required }) if required > cut),
                "{part:?}"
            );
        }
        assert_eq!(ReplyReader.read(&bytes[..*consumed]).as_ref(), Ok(&reply));
        let data = match content {
            ReplyContent::Data { length, .. } => *length as usize,
            ReplyContent::Extents { extents, .. } => {
                assert_eq!(extents.count() * 8, consumed - 24);
                0
            }
            ReplyContent::Empty | ReplyContent::Error(_) | ReplyContent::Hole { .. } => 0,
        };
        bytes = bytes.get(consumed + data..).unwrap_or_default();
    }
}

/// Checks the parser of the server's bytes. The first byte selects replies (0), or a handshake and
/// its chunk size. Returns the result of the handshake.
///
/// # Panics
///
/// The results depend on how the bytes are split, or a length is wrong.
pub fn check(input: &[u8]) -> Option<Shaken> {
    let (first, bytes) = input.split_first()?;
    if *first == 0 {
        replies(bytes);
        return None;
    }
    let complete = shake(bytes, bytes.len().max(1));
    assert_eq!(
        shake(bytes, usize::from(*first)),
        complete,
        "the result depends on how the bytes are split"
    );
    Some(complete.1)
}
