//! Exports, client connections and results of handshakes for tests.

use suimon_nbd::{
    BlockSizes, Export, ExportSpec, Features, Framing, GREETING, HandshakeError,
    NegotiatedParameters, RequestParser, ServerHandshake, ServerProgress, ServerStep, TlsMode,
};

use crate::nbd_client::{OptionReply, option_replies};

pub(crate) const MIB: u64 = 1 << 20;

/// Every feature except read-only and rotational.
pub(crate) const ALL: Features = Features {
    read_only: false,
    flush: true,
    fua: true,
    rotational: false,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    multi_conn: true,
    cache: true,
    allocation_status: true,
};

pub(crate) fn spec(name: &str) -> ExportSpec {
    ExportSpec {
        name: name.to_owned(),
        description: format!("about {name}"),
        size: MIB,
        block_sizes: BlockSizes::default(),
        features: ALL,
    }
}

pub(crate) fn export(spec: ExportSpec) -> Export {
    Export::new(spec).unwrap()
}

/// Returns the result of a handshake in which a client selects `export` and this message format.
pub(crate) fn negotiated(export: Export, framing: Framing) -> NegotiatedParameters {
    let base_allocation = framing.has_chunks() && export.features().allocation_status;
    let flags = export.flags(framing, base_allocation);
    NegotiatedParameters { export, flags, framing, base_allocation, tls: false }
}

pub(crate) fn transmission(
    features: Features,
    block_sizes: BlockSizes,
    f: Framing,
) -> RequestParser {
    RequestParser::new(&negotiated(export(ExportSpec { features, block_sizes, ..spec("a") }), f))
}

/// Server side of a connection, with several exports.
pub(crate) struct Connection {
    exports: Vec<Export>,
    pub(crate) handshake: ServerHandshake,
}

/// Result of [`Connection::send`]: last step and complete output.
#[derive(Debug, PartialEq)]
pub(crate) struct HandshakeResult {
    pub(crate) result: Result<ServerStep, HandshakeError>,
    pub(crate) output: Vec<u8>,
    /// Number of bytes that the handshake did not consume.
    pub(crate) left: usize,
}

impl HandshakeResult {
    pub(crate) fn replies(&self) -> Vec<OptionReply> {
        option_replies(&self.output)
    }

    /// Returns the types of the option replies in the output.
    pub(crate) fn kinds(&self) -> Vec<u32> {
        self.replies().iter().map(|reply| reply.kind).collect()
    }

    pub(crate) fn negotiated(&self) -> &NegotiatedParameters {
        match &self.result {
            Ok(ServerStep::Negotiated(negotiated)) => negotiated,
            other => panic!("{other:?}"),
        }
    }
}

impl Connection {
    /// Starts a connection of a client that sends these client flags.
    pub(crate) fn with_flags(exports: Vec<Export>, mode: TlsMode, flags: u32) -> Self {
        assert_eq!(GREETING.len(), 18);
        let mut connection = Self { exports, handshake: ServerHandshake::new(mode) };
        let outcome = connection.send(&flags.to_be_bytes());
        assert_eq!(
            outcome,
            HandshakeResult { result: Ok(ServerStep::NeedsBytes), output: Vec::new(), left: 0 }
        );
        connection
    }

    pub(crate) fn new(exports: Vec<Export>, mode: TlsMode) -> Self {
        Self::with_flags(exports, mode, 3)
    }

    /// Starts a connection to a single export, `a`, without TLS.
    pub(crate) fn plain() -> Self {
        Self::new(vec![export(spec("a"))], TlsMode::Off)
    }

    /// Passes bytes to the handshake until they are consumed or it ends or fails.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> HandshakeResult {
        let (mut rest, mut output) = (bytes, Vec::new());
        loop {
            let result = self.handshake.handle_bytes(&self.exports[..], rest, &mut output);
            let ServerProgress { consumed, step } = match result {
                Ok(progress) => progress,
                Err(error) => {
                    return HandshakeResult { result: Err(error), output, left: rest.len() };
                }
            };
            rest = &rest[consumed..];
            if !matches!(step, ServerStep::OptionAcknowledged | ServerStep::OptionRejected(_))
                || rest.is_empty()
            {
                return HandshakeResult { result: Ok(step), output, left: rest.len() };
            }
        }
    }
}
