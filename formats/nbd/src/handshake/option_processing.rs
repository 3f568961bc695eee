//! Processing of the options that a client sends.

use super::error::HandshakeError;
use super::info::InfoRequest;
use super::meta_context;
use super::option_code::OptionCode;
use super::option_data_reader::OptionDataReader;
use super::option_error::OptionError;
use super::option_reply;
use super::{ServerHandshake, ServerStep, State, TlsMode};
use crate::export::Export;
use crate::export_list::ExportList;
use crate::framing::Framing;
use crate::handshake::export_lookup::{check_block_sizes, find};
use crate::handshake::negotiated::NegotiatedParameters;

/// Padding after an export's flags in the reply to `NBD_OPT_EXPORT_NAME`, unless the client set
/// `NBD_FLAG_C_NO_ZEROES`.
const ZEROES: [u8; 124] = [0; 124];

impl ServerHandshake {
    /// Processes an option for which the protocol has an error reply, and appends the replies to
    /// `output`.
    pub(crate) fn process_option(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        option: OptionCode,
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ServerStep, OptionError> {
        if option == OptionCode::ABORT {
            self.state = State::Ended;
            option_reply::append_ack(output, option);
            return Ok(ServerStep::Aborted);
        }
        if option != OptionCode::STARTTLS && self.tls_is_missing() {
            return Err(OptionError::TlsRequired { option });
        }
        if self.shutting_down {
            return Err(OptionError::ShuttingDown { option });
        }
        match option {
            OptionCode::STARTTLS => return self.start_tls(data, output),
            OptionCode::INFO | OptionCode::GO => {
                return self.inform(exports, option, data, output);
            }
            OptionCode::LIST => {
                no_data(option, data)?;
                for export in exports.exports() {
                    list(output, export);
                }
            }
            OptionCode::STRUCTURED_REPLY if self.framing_max >= Framing::Structured => {
                no_data(option, data)?;
                if self.agreed.framing.is_extended() {
                    return Err(OptionError::ExtendedHeadersAlreadyEnabled);
                }
                self.agreed.framing = Framing::Structured;
            }
            OptionCode::EXTENDED_HEADERS if self.framing_max >= Framing::Extended => {
                no_data(option, data)?;
                self.agreed.framing = Framing::Extended;
            }
            OptionCode::LIST_META_CONTEXT => {
                meta_context::list_contexts(self.agreed.framing, exports, data, output)?;
            }
            OptionCode::SET_META_CONTEXT => {
                // A rejected option also deselects contexts that were selected before.
                self.agreed.allocation_export = None;
                self.agreed.allocation_export =
                    meta_context::select_contexts(self.agreed.framing, exports, data, output)?;
            }
            _ => return Err(OptionError::Unsupported { option }),
        }
        option_reply::append_ack(output, option);
        Ok(ServerStep::OptionAcknowledged)
    }

    /// Processes `NBD_OPT_EXPORT_NAME`. The only reply is the export's size and flags.
    ///
    /// # Errors
    ///
    /// The export does not exist or cannot be used; the connection must be closed.
    pub(crate) fn process_export_name(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<NegotiatedParameters, HandshakeError> {
        let option = OptionCode::EXPORT_NAME;
        if self.tls_is_missing() {
            return Err(HandshakeError::ExportUnavailable(OptionError::TlsRequired { option }));
        }
        if self.shutting_down {
            return Err(HandshakeError::ExportUnavailable(OptionError::ShuttingDown { option }));
        }
        if self.agreed.framing.is_extended() {
            return Err(HandshakeError::NameWithExtendedHeaders);
        }
        let export = OptionDataReader::new(option, data)
            .last_string("export name")
            .and_then(|name| find(exports, option, name))
            .and_then(|export| check_block_sizes(option, export, false))
            .map_err(HandshakeError::ExportUnavailable)?;
        let negotiated = self.negotiated(export);
        output.extend_from_slice(&export.size().to_be_bytes());
        output.extend_from_slice(&negotiated.flags.bits().to_be_bytes());
        if self.sends_zeroes {
            output.extend_from_slice(&ZEROES);
        }
        self.state = State::Ended;
        Ok(negotiated)
    }

    fn tls_is_missing(&self) -> bool {
        self.tls_mode == TlsMode::Required && !self.tls
    }

    fn start_tls(&mut self, data: &[u8], output: &mut Vec<u8>) -> Result<ServerStep, OptionError> {
        let option = OptionCode::STARTTLS;
        if self.tls_mode == TlsMode::Off {
            return Err(OptionError::TlsOff);
        }
        if self.tls {
            return Err(OptionError::TlsStarted);
        }
        no_data(option, data)?;
        option_reply::append_ack(output, option);
        self.state = State::AwaitsTls;
        Ok(ServerStep::StartTls)
    }

    fn inform(
        &mut self,
        exports: &(impl ExportList + ?Sized),
        option: OptionCode,
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<ServerStep, OptionError> {
        let request = InfoRequest::read(option, data)?;
        let export = find(exports, option, request.name)?;
        let negotiated = self.negotiated(export);
        request.append_replies(option, &negotiated, output);
        if option == OptionCode::INFO {
            option_reply::append_ack(output, option);
            return Ok(ServerStep::OptionAcknowledged);
        }
        check_block_sizes(option, export, request.requests_block_sizes)?;
        option_reply::append_ack(output, option);
        self.state = State::Ended;
        Ok(ServerStep::Negotiated(Box::new(negotiated)))
    }

    fn negotiated(&self, export: &Export) -> NegotiatedParameters {
        let framing = self.agreed.framing;
        let selected = self.agreed.allocation_export.as_deref() == Some(export.name());
        let base_allocation = selected && export.features().allocation_status;
        NegotiatedParameters {
            export: export.clone(),
            flags: export.flags(framing, base_allocation),
            framing,
            base_allocation,
            tls: self.tls,
        }
    }
}

fn no_data(option: OptionCode, data: &[u8]) -> Result<(), OptionError> {
    match data.len() {
        0 => Ok(()),
        bytes => Err(OptionError::UnexpectedData { option, bytes }),
    }
}

/// Appends one reply to `NBD_OPT_LIST`: name and description of an export.
fn list(output: &mut Vec<u8>, export: &Export) {
    let (name, description) = (export.name().as_bytes(), export.description().as_bytes());
    let parts = [&option_reply::encode_length(name.len()), name, description];
    option_reply::append_reply(output, OptionCode::LIST, option_reply::REP_SERVER, &parts);
}
