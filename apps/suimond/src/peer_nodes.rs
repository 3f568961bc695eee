//! Connections to other nodes through their APIs over TCP with TLS.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt;
use suimon_client::{Client, ClientError, MigrationStreamKind, TlsEndpoint, TlsError};
use suimon_contract::{
    ApiError, DrainPlan, DrainRequest, ErrorCode, HostStatus, IncomingMigration,
    IncomingMigrationRequest, NodeConfig, Operation, Plan,
};
use suimon_node::{PeerError, PeerNode, PeerNodes, PeerStream};
use suimond_api::byte_relay::{copy_bidirectional, register_local_socket};
use tokio::runtime::{Handle, Runtime};

/// Threads that copy bytes of connections to other nodes: one for memory of VMs, one for the rest.
const LINE_THREADS: usize = 2;
/// Time limit for a node to report its state.
const HOST_TIME: Duration = Duration::from_secs(4);
/// Time limit for a node's response to a request other than that for its state.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest time for which one request to a node waits for the end of an operation.
const OPERATION_TIME: Duration = Duration::from_secs(5);
/// Maximum size of a node's response in bytes.
const RESPONSE_BYTES_MAX: usize = 8 << 20;
/// Maximum length of a node's text in characters; longer ones are truncated. They become parts of
/// events and operations, which are stored.
const TEXT_CHARS_MAX: usize = 1000;
/// Maximum number of errors, and of lines of a report, of a node.
const TEXTS_MAX: usize = 1000;
/// Socket buffer size of a connection that carries bytes, in bytes. The kernel may limit it to
/// less.
const SOCKET_BYTES: usize = 1 << 20;

/// Nodes configured in the host file. Calls block and must not run on async runtime threads.
#[derive(Default)]
pub struct HostPeerNodes {
    lines: Lines,
}

/// Async runtime of calls to other nodes and of connections that carry bytes. It is started by the
/// first call.
#[derive(Default)]
struct Lines(Mutex<Option<Runtime>>);

impl Lines {
    fn handle(&self) -> io::Result<Handle> {
        let mut runtime = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if runtime.is_none() {
            let started = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(LINE_THREADS)
                .thread_name("suimond-nodes")
                .enable_all()
                .build()?;
            *runtime = Some(started);
        }
        runtime
            .as_ref()
            .map(|runtime| runtime.handle().clone())
            .ok_or_else(|| io::Error::other("the daemon has no runtime for connections"))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let runtime = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

impl PeerNodes for HostPeerNodes {
    fn node(&self, config: &NodeConfig) -> Result<Arc<dyn PeerNode>, ApiError> {
        let reach = TlsEndpoint {
            address: config.address.clone(),
            server_name: config.effective_server_name(),
            ca_certificate: config.ca_certificate.clone(),
            token_file: config.token_file.clone(),
        };
        let node_error = |code, field, text: String| {
            ApiError::new(code, text)
                .with_resource(format!("node/{}", config.name))
                .with_field(field)
        };
        let client = Client::tls(&reach).map_err(|error| {
            let field = match &error {
                TlsError::ServerName(_) => "server_name",
                TlsError::CaCertificate(_) => "authority",
                TlsError::Token(_) => "token_file",
            };
            node_error(ErrorCode::DeviceMissing, field, error.to_string())
        })?;
        let runtime = self.lines.handle().map_err(|error| {
            let text = format!("cannot start a thread for the connection: {error}");
            node_error(ErrorCode::HostError, "address", text)
        })?;
        let client = client
            .with_response_timeout(RESPONSE_TIMEOUT)
            .with_response_bytes_max(RESPONSE_BYTES_MAX);
        Ok(Arc::new(HostPeerNode { config: config.clone(), client, runtime }))
    }
}

struct HostPeerNode {
    config: NodeConfig,
    client: Client,
    runtime: Handle,
}

impl HostPeerNode {
    fn request<T>(
        &self,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, PeerError> {
        self.runtime.block_on(answer).map_err(|error| self.report(error))
    }

    fn report(&self, error: ClientError) -> PeerError {
        match error {
            ClientError::Refused { status: 401, .. } => {
                let text = format!(
                    "{} at {} rejected the token in {}; put the token of its `[api] token_file` \
                     there",
                    self.config.name,
                    self.config.address,
                    self.config.token_file.display()
                );
                let error = ApiError::new(ErrorCode::Unauthorized, text);
                let subject = format!("node/{}", self.config.name);
                PeerError::Rejected(vec![error.with_resource(subject).with_field("token_file")])
            }
            ClientError::Refused { errors, .. } => {
                PeerError::Rejected(errors.into_iter().take(TEXTS_MAX).map(limited_error).collect())
            }
            error => {
                let mut text = error.to_string();
                limit(&mut text);
                PeerError::Unreachable(text)
            }
        }
    }
}

impl PeerNode for HostPeerNode {
    fn host(&self) -> Result<HostStatus, PeerError> {
        let client = self.client.clone().with_response_timeout(HOST_TIME);
        let result = async { tokio::time::timeout(HOST_TIME, client.host()).await };
        match self.runtime.block_on(result) {
            Ok(answer) => answer.map_err(|error| self.report(error)),
            Err(_) => Err(PeerError::Unreachable(format!(
                "{} did not respond within {} s; check the address of its API, that the host \
                 runs, and that firewalls permit the connection",
                self.config.address,
                HOST_TIME.as_secs()
            ))),
        }
    }

    fn check_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Plan, PeerError> {
        self.request(self.client.check_incoming_migration(request))
    }

    fn prepare_incoming_migration(
        &self,
        request: &IncomingMigrationRequest,
    ) -> Result<Operation, PeerError> {
        self.request(self.client.prepare_incoming_migration(request)).map(limited_operation)
    }

    fn operation(&self, id: u64) -> Result<Operation, PeerError> {
        self.request(self.client.wait_operation(id, OPERATION_TIME)).map(limited_operation)
    }

    fn cancel_operation(&self, id: u64) -> Result<Operation, PeerError> {
        self.request(self.client.cancel_operation(id)).map(limited_operation)
    }

    fn incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError> {
        self.request(self.client.incoming_migration(id))
    }

    fn open_incoming_connection(&self, id: &str, line: &PeerStream) -> Result<OwnedFd, PeerError> {
        let target = match line {
            PeerStream::Memory => MigrationStreamKind::Memory,
            PeerStream::Disk(disk) => MigrationStreamKind::Disk(disk),
        };
        let far = self.request(self.client.open_migration_stream(id, target))?;
        let no_socket = |error: io::Error| {
            PeerError::Unreachable(format!("cannot create a socket for the connection: {error}"))
        };
        let (local_end, remote_end) = UnixStream::pair().map_err(no_socket)?;
        for end in [&local_end, &remote_end] {
            // Smaller buffers work too.
            let _ = sockopt::set_socket_send_buffer_size(end, SOCKET_BYTES);
            let _ = sockopt::set_socket_recv_buffer_size(end, SOCKET_BYTES);
        }
        let _context = self.runtime.enter();
        let local_end = register_local_socket(local_end.into()).map_err(no_socket)?;
        let node = self.config.name.clone();
        self.runtime.spawn(async move {
            if let Err(error) = copy_bidirectional(far, local_end).await {
                tracing::debug!(%node, %error, "a connection of a migration ended early");
            }
        });
        Ok(remote_end.into())
    }

    fn activate_incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError> {
        self.request(self.client.activate_incoming_migration(id))
    }

    fn abandon_incoming_migration(&self, id: &str) -> Result<IncomingMigration, PeerError> {
        self.request(self.client.abandon_incoming_migration(id))
    }

    fn check_drain(&self, request: &DrainRequest) -> Result<DrainPlan, PeerError> {
        let own_name = self.host()?.name;
        self.request(self.client.check_drain(&own_name, request))
    }

    fn drain(&self, request: &DrainRequest) -> Result<Operation, PeerError> {
        let own_name = self.host()?.name;
        self.request(self.client.drain_node(&own_name, request)).map(limited_operation)
    }

    fn undrain(&self) -> Result<(), PeerError> {
        let own_name = self.host()?.name;
        self.request(self.client.undrain_node(&own_name))
    }
}

/// Truncates a text of a node to [`TEXT_CHARS_MAX`] and replaces terminal control characters.
fn limit(text: &mut String) {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    *text = text.chars().take(TEXT_CHARS_MAX).map(clean).collect();
}

fn limited_error(mut error: ApiError) -> ApiError {
    limit(&mut error.message);
    let names = [&mut error.resource, &mut error.field, &mut error.file];
    names.into_iter().flatten().for_each(limit);
    error
}

fn limited_operation(mut operation: Operation) -> Operation {
    operation.report.truncate(TEXTS_MAX);
    [&mut operation.kind, &mut operation.subject].into_iter().for_each(limit);
    operation.current_step.iter_mut().chain(&mut operation.report).for_each(limit);
    operation.error = operation.error.map(limited_error);
    operation
}
