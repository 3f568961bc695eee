//! Commands `nic capture` and `uplink capture`: capture frames to a pcapng file.

use core::marker::PhantomData;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use clap::Args;
use suimon_client::{CapturablePort, CaptureOptions};
use suimon_contract::Name;
use suimon_tables::units;

use crate::exit::Failure;
use crate::output::{Context, is_stdout_terminal};
use crate::resource_help::{ResourceHelp, name_help};

/// Time limit for the daemon to end a capture whose connection is closed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Arguments of `capture`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CaptureFlags<R: ResourceHelp> {
    #[arg(skip)]
    of: PhantomData<fn() -> R>,
    #[arg(help = name_help(R::NOUN))]
    name: Name,
    /// File (pcapng) to write, replaced if it exists; `-` writes to standard output.
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    file: String,
    /// Bytes captured of each frame, 64 to 65 600; whole frames if absent.
    #[arg(long, value_name = "BYTES")]
    snaplen: Option<u32>,
    /// Number of frames after which the capture ends; no limit if absent.
    #[arg(long, value_name = "FRAMES")]
    count: Option<u64>,
    /// Number of bytes of frames after which the capture ends; no limit if absent.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
}

impl<R: ResourceHelp + CapturablePort> CaptureFlags<R> {
    /// Captures until a limit is reached, the user interrupts, the operation is cancelled, or the
    /// reader of standard output closes it.
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        if self.file == "-" && is_stdout_terminal() {
            let hint = "a capture is binary data; write it to a file, or pipe it into a program such as tshark";
            return Err(Failure::Usage(hint.to_owned()));
        }
        let options = CaptureOptions {
            snaplen: self.snaplen,
            frames_max: self.count,
            bytes_max: self.max_bytes,
        };
        let mut capture = context.client.capture::<R>(&self.name, options).await?;
        let mut file = open(&self.file)?;
        let to_failure = |source| Failure::File { path: self.file.clone(), source };
        let mut written = 0u64;
        loop {
            let chunk = tokio::select! {
                chunk = capture.next_chunk() => chunk?,
                interrupt = tokio::signal::ctrl_c() => { interrupt?; None }
            };
            let Some(chunk) = chunk else { break };
            match file.write_all(&chunk).and_then(|()| file.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                result => result.map_err(to_failure)?,
            }
            written = written.saturating_add(chunk.len() as u64);
        }
        // The command returns after the capture has ended in the daemon, so that the next one can
        // start.
        if let Some(operation) = capture.operation_id() {
            drop(capture);
            let _ = context.client.wait_operation(operation, END_TIMEOUT).await;
        }
        eprintln!("{}: {} written to {}", self.name, units::decimal_bytes(written), self.file);
        Ok(())
    }
}

/// Opens the output. A new file is accessible to its owner only, since frames contain private data.
fn open(path: &str) -> Result<Box<dyn Write + Send>, Failure> {
    if path == "-" {
        return Ok(Box::new(io::stdout()));
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map(|file| Box::new(file) as Box<dyn Write + Send>)
        .map_err(|source| Failure::File { path: path.to_owned(), source })
}
