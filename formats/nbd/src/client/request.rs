//! Encoding of a client's requests (NBD specification, section "Request message").

use crate::command::ExportRange;
use crate::header::{MAGIC, REQUEST_BYTES, kind};

/// Command that a client sends. Ranges must be within the export, aligned to its blocks, and
/// shorter than 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCommand {
    /// `NBD_CMD_READ`: reads a range.
    Read(ExportRange),
    /// `NBD_CMD_WRITE`. The data follows the header.
    Write(ExportRange),
    /// `NBD_CMD_WRITE_ZEROES`: zeroes a range, which the server may deallocate.
    WriteZeroes(ExportRange),
    /// `NBD_CMD_FLUSH`: makes all writes with a reply durable.
    Flush,
    /// `NBD_CMD_BLOCK_STATUS`: queries the allocation status of a range.
    BlockStatus(ExportRange),
    /// `NBD_CMD_DISC`: ends the connection, without reply.
    Disconnect,
}

/// Request that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRequest {
    /// Identifier that the replies repeat; unique among the client's requests in flight.
    pub cookie: u64,
    /// Command to send to the server.
    pub command: ClientCommand,
}

impl ClientRequest {
    /// Encodes the request header; `None` if the range has 4 GiB or more.
    pub fn encode(&self) -> Option<[u8; REQUEST_BYTES]> {
        let empty = ExportRange { offset: 0, length: 0 };
        let (kind, range) = match self.command {
            ClientCommand::Read(range) => (kind::READ, range),
            ClientCommand::Write(range) => (kind::WRITE, range),
            ClientCommand::WriteZeroes(range) => (kind::WRITE_ZEROES, range),
            ClientCommand::Flush => (kind::FLUSH, empty),
            ClientCommand::BlockStatus(range) => (kind::BLOCK_STATUS, range),
            ClientCommand::Disconnect => (kind::DISC, empty),
        };
        let length = u32::try_from(range.length).ok()?;
        let mut bytes = [0; REQUEST_BYTES];
        let mut fields = crate::field_codec::FieldWriter::new(&mut bytes, REQUEST_BYTES).ok()?;
        fields.put_u32(MAGIC);
        fields.put_u16(0);
        fields.put_u16(kind);
        fields.put_u64(self.cookie);
        fields.put_u64(range.offset);
        fields.put_u32(length);
        Some(bytes)
    }
}
