//! What a client asks (section "Request message").

use crate::command::ByteRange;
use crate::header::{MAGIC, REQUEST_BYTES, kind};

/// What a client asks of a disk. Ranges are within it, on its blocks, and shorter than 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCommand {
    /// `NBD_CMD_READ`.
    Read(ByteRange),
    /// `NBD_CMD_WRITE`; as many bytes follow the header.
    Write(ByteRange),
    /// `NBD_CMD_WRITE_ZEROES`; the space may be given back.
    WriteZeroes(ByteRange),
    /// `NBD_CMD_FLUSH`.
    Flush,
    /// `NBD_CMD_BLOCK_STATUS`.
    BlockStatus(ByteRange),
    /// `NBD_CMD_DISC`: goodbye. There is no reply.
    Disconnect,
}

/// A request, by the client's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRequest {
    /// What its replies name. No other request under way has the same.
    pub cookie: u64,
    /// What is asked.
    pub command: ClientCommand,
}

impl ClientRequest {
    /// Its header, as it is sent. `None`: the range has 4 GiB or more.
    pub fn encode(&self) -> Option<[u8; REQUEST_BYTES]> {
        let nothing = ByteRange { offset: 0, length: 0 };
        let (kind, range) = match self.command {
            ClientCommand::Read(range) => (kind::READ, range),
            ClientCommand::Write(range) => (kind::WRITE, range),
            ClientCommand::WriteZeroes(range) => (kind::WRITE_ZEROES, range),
            ClientCommand::Flush => (kind::FLUSH, nothing),
            ClientCommand::BlockStatus(range) => (kind::BLOCK_STATUS, range),
            ClientCommand::Disconnect => (kind::DISC, nothing),
        };
        let length = u32::try_from(range.length).ok()?;
        let mut bytes = [0; REQUEST_BYTES];
        let mut fields = crate::octets::Writer::new(&mut bytes, REQUEST_BYTES).ok()?;
        fields.u32(MAGIC);
        fields.u16(0);
        fields.u16(kind);
        fields.u64(self.cookie);
        fields.u64(range.offset);
        fields.u32(length);
        Some(bytes)
    }
}
