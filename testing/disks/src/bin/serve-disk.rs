//! Serves a file as a disk to NBD clients and over vhost-user to a VM, until standard input ends.
//!
//!     serve-disk FILE [--nbd SOCKET] [--vhost-user SOCKET] [--queues N] [--serial TEXT]
//!                [--read-only] [--bytes N] [--sector N] [--state FILE] [--count]
//!                [--fault KIND:N] [--null]
//!
//! A file that ends in `.vhd` or `.vhdx` is opened as such an image, others as raw. `--bytes` is
//! the size that a VM sees, until a line `resize N` on standard input increases it. `--state` is a
//! file that stores the negotiated features for the next process. With `--count`, a line `count`
//! makes the program print the number of writes that were durable on completion. `--fault` is for
//! tests of tests: see [`suimon_disk_tests::Fault`]. With `--null` nothing is read or written.
//!
//! Example: `fio --name=reads --ioengine=nbd --uri='nbd+unix:///disk?socket=SOCKET' --rw=randread
//! --bs=4k --iodepth=64 --size=1g --time_based --runtime=10`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use suimon_disk_tests::{DiskExports, DiskWorker, Fault, FaultyIo, NegotiatedFeaturesFile, NullIo};
use suimon_nbd_server::{NbdServer, UnixAccess};
use suimon_ports::{CpuAffinity, FileIo, VhostUserDiskSpec, VhostUserMode};
use suimon_test_programs::end_program;
use suimon_uring::UringFileIo;
use suimon_vhost_user::{VhostUserDisk, VhostUserThreads};

/// Options of the command line.
#[derive(Default)]
struct Options {
    file: Option<PathBuf>,
    nbd: Option<PathBuf>,
    vhost_user: Option<PathBuf>,
    queues: Option<u16>,
    serial: String,
    is_read_only: bool,
    bytes: Option<u64>,
    sector: Option<u32>,
    state: Option<PathBuf>,
    fault: Option<Fault>,
    is_null: bool,
    counts: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--nbd" => options.nbd = Some(value()?.into()),
                "--vhost-user" => options.vhost_user = Some(value()?.into()),
                "--queues" => options.queues = Some(value()?.parse()?),
                "--serial" => options.serial = value()?,
                "--read-only" => options.is_read_only = true,
                "--bytes" => options.bytes = Some(value()?.parse()?),
                "--sector" => options.sector = Some(value()?.parse()?),
                "--state" => options.state = Some(value()?.into()),
                "--count" => options.counts = true,
                "--null" => options.is_null = true,
                "--fault" => options.fault = Some(value()?.parse()?),
                other if other.starts_with("--") => bail!("{other} is no option"),
                _ => options.file = Some(argument.into()),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    end_program("serve-disk", serve())
}

fn serve() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let file = options.file.as_deref().context("usage: serve-disk FILE [OPTION…]")?;
    let (io, durable_writes) = files(&options)?;
    let exports = DiskExports::new(DiskWorker::start_on(CpuAffinity::Floating, io)?)?;
    let is_image = file.extension().is_some_and(|ending| ending == "vhd" || ending == "vhdx");
    let added = if is_image {
        exports.add_image("disk", file)
    } else {
        exports.add_raw_of("disk", file, options.is_read_only, options.sector.unwrap_or(512))
    };
    let disk = added.with_context(|| file.display().to_string())?;
    let nbd = match &options.nbd {
        Some(socket) => Some(NbdServer::listen(socket, UnixAccess::default(), exports.nbd())?),
        None => None,
    };
    let device = match &options.vhost_user {
        Some(socket) => {
            let shape = exports.shape(disk).context("it was just added")?;
            let promises = Arc::new(NegotiatedFeaturesFile::kept_in(options.state.as_deref())?);
            let spec = VhostUserDiskSpec {
                socket: socket.clone(),
                mode: VhostUserMode::Server,
                queues: options.queues.unwrap_or(1),
                size_bytes: options.bytes.unwrap_or(shape.size_bytes),
                sector_bytes: shape.logical_sector_bytes,
                physical_sector_bytes: shape.physical_sector_bytes,
                serial: options.serial.clone(),
                is_read_only: options.is_read_only,
                negotiated: promises.last(),
            };
            let threads = VhostUserThreads::unconfined()?;
            Some(VhostUserDisk::open(disk.id(), &spec, exports.host(), promises, &threads)?)
        }
        None => None,
    };
    println!("serving {}", Path::new(file).display());
    execute_commands(device.as_ref(), &durable_writes)?;
    drop((nbd, device));
    exports.worker().close_disk(disk)
}

/// Opens the I/O backend, and returns it with the counter of durable writes, which only a counting
/// backend increments.
fn files(options: &Options) -> Result<(Box<dyn FileIo>, Arc<AtomicU64>)> {
    if options.is_null {
        return Ok((Box::new(NullIo::new()?), Arc::default()));
    }
    let io = Box::new(UringFileIo::new(1024, 64).context("io_uring")?);
    if !options.counts && options.fault.is_none() {
        return Ok((io, Arc::default()));
    }
    let io = FaultyIo::new(io, options.fault);
    let durable_writes = io.durable_writes();
    Ok((Box::new(io), durable_writes))
}

/// Executes the commands on standard input until it ends.
fn execute_commands(device: Option<&VhostUserDisk>, durable_writes: &AtomicU64) -> Result<()> {
    for line in std::io::stdin().lines() {
        let line = line?;
        match (line.split_once(' '), device) {
            (Some(("resize", bytes)), Some(device)) => {
                device.resize(bytes.trim().parse()?)?;
                println!("resized to {bytes}");
            }
            _ if line == "count" => {
                println!("durable writes: {}.", durable_writes.load(Ordering::Relaxed));
            }
            _ if line.is_empty() => break,
            _ => println!("{line}: not understood"),
        }
    }
    Ok(())
}
