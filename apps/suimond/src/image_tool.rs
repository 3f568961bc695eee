//! `suimond image-tool`: operations on image files outside of stores, with the caller's permissions
//! and without a running daemon. `suimon image` executes it; the result is JSON on standard output.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use suimon_image_files::inspect::{self, ImageTarget};
use suimon_image_files::{DiskError, DiskFormat, HostInputs, RemainingRecordPolicy};
use suimon_ports::{FileLockMode, FileName, StoreFiles};
use suimon_redo::FileRecords;
use suimon_uring::HostStore;

use crate::disk_factory::{random_bytes, redo_folder};

/// Exit code of a check that could not be carried out, as in `qemu-img check`.
const FAILED: u8 = 1;

/// Tools of `suimond` that run instead of the daemon.
#[derive(Clone, Debug, Subcommand)]
pub enum Tool {
    /// Inspect and repair image files with the permissions of the caller; prints JSON.
    ///
    /// `suimon image` runs this command and formats its output. No daemon is required.
    #[command(
        subcommand,
        after_long_help = "Example:\n  suimond image-tool check /srv/suimon/web.vhdx"
    )]
    ImageTool(ImageVerb),
}

/// Operation on an image file.
#[derive(Clone, Debug, Subcommand)]
pub enum ImageVerb {
    /// Print format, size, ids and parent of an image file.
    Info(ImageFlags),
    /// Check the metadata of an image file.
    ///
    /// Exit codes as of `qemu-img check`: 0 no errors, 1 not checked, 2 errors, 3 leaked space
    /// only, 63 the format has no metadata.
    Check(ImageFlags),
    /// Repair metadata of an image file from its second copy and its log, after a backup.
    Repair {
        /// Image file to repair.
        #[command(flatten)]
        image: ImageFlags,
        /// Print the changes without writing.
        #[arg(long)]
        dry_run: bool,
        /// Write back the metadata of this backup file instead. Fails if the image was written to
        /// since the backup.
        #[arg(long, value_name = "BACKUP")]
        undo: Option<PathBuf>,
    },
    /// Record the new path of the parent in a differencing image, after a backup.
    Relink {
        /// Image file to change.
        #[command(flatten)]
        image: ImageFlags,
        /// Path of the parent file.
        parent: PathBuf,
        /// Print the changes without writing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// Arguments that select an image file.
#[derive(Clone, Debug, Args)]
pub struct ImageFlags {
    /// Path of the image file.
    file: PathBuf,
    /// Image format of the file; detected if absent.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// API socket of the daemon that used the image. The redo records of that daemon, which contain
    /// completed writes, are taken into account.
    #[arg(long, value_name = "PATH", default_value = "/run/suimon/suimon.sock")]
    daemon: PathBuf,
}

/// Image format of a file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Raw image, which has no metadata.
    Raw,
    /// VHD image (Virtual Hard Disk).
    Vhd,
    /// VHDX image (Virtual Hard Disk v2).
    Vhdx,
}

/// Runs the tool and returns its exit code.
pub(crate) fn run(tool: &Tool) -> ExitCode {
    let Tool::ImageTool(verb) = tool;
    match execute(verb) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// Image file, opened relative to the root directory, so that its parents can be opened as well.
struct Found {
    files: Arc<dyn StoreFiles>,
    name: FileName,
    format: Option<DiskFormat>,
}

impl Found {
    fn new(flags: &ImageFlags) -> Result<Self> {
        let files = HostStore::open(Path::new("/"))
            .context("cannot open the root directory of the host")?;
        let format = flags.format.map(|format| match format {
            Format::Raw => DiskFormat::Raw,
            Format::Vhd => DiskFormat::Vhd,
            Format::Vhdx => DiskFormat::Vhdx,
        });
        Ok(Self { files: Arc::new(files), name: name_of(&flags.file)?, format })
    }

    fn target(&self) -> ImageTarget<'_> {
        ImageTarget {
            files: &self.files,
            name: &self.name,
            format: self.format,
            display_prefix: "/",
        }
    }

    /// Fails if the image lacks acknowledged writes that a killed daemon left in its redo records,
    /// since a change of the image would make the records unusable. Also fails if the caller may
    /// not read the records.
    fn refuse_left_writes(&self, daemon: &Path) -> Result<()> {
        let folder = redo_folder(daemon);
        let file = self.files.open(&self.name, FileLockMode::Read, 1)?;
        let Some(id) = file.properties().id else { return Ok(()) };
        match FileRecords::find_pending(&folder, &id.to_string()) {
            Ok(None) => Ok(()),
            Ok(Some(record)) => bail!(
                "/{}: completed writes of a killed daemon are not in the image yet ({}); start \
                 suimond with the disk, or use --store",
                self.name,
                record.display()
            ),
            Err(error) => bail!(
                "/{}: cannot check whether completed writes of a killed daemon are missing in the \
                 image ({}: {error}); run as the daemon's user, or use --store",
                self.name,
                folder.display()
            ),
        }
    }
}

fn execute(verb: &ImageVerb) -> Result<u8> {
    with_seeds(|seeds| match verb {
        ImageVerb::Info(flags) => {
            print(&plain(inspect::info(Found::new(flags)?.target(), seeds))?)?;
            Ok(0)
        }
        ImageVerb::Check(flags) => {
            let check = plain(inspect::check(Found::new(flags)?.target()))?;
            print(&check)?;
            Ok(check.verdict.exit_code())
        }
        ImageVerb::Repair { image, dry_run, undo } => {
            let target_image = Found::new(image)?;
            target_image.refuse_left_writes(&image.daemon)?;
            let changes = plain(match undo {
                Some(backup) => inspect::undo(target_image.target(), &name_of(backup)?, *dry_run),
                None => inspect::repair(target_image.target(), *dry_run, seeds),
            })?;
            print(&changes)?;
            Ok(if undo.is_some() { 0 } else { changes.check.verdict.exit_code() })
        }
        ImageVerb::Relink { image, parent, dry_run } => {
            let target_image = Found::new(image)?;
            target_image.refuse_left_writes(&image.daemon)?;
            let parent = name_of(parent)?;
            print(&plain(inspect::set_parent(target_image.target(), &parent, *dry_run, seeds))?)?;
            Ok(0)
        }
    })
}

/// Adds the file's path to an error. The error's text already contains its cause.
fn plain<T>(result: Result<T, DiskError>) -> Result<T> {
    result.map_err(|error| anyhow!("/{}: {}", error.file.trim_start_matches('/'), error.fault))
}

/// Returns the path of a file relative to the root directory, with symbolic links resolved.
fn name_of(path: &Path) -> Result<FileName> {
    let canonical = path.canonicalize().with_context(|| path.display().to_string())?;
    let text = canonical.to_str().with_context(|| format!("{}: not UTF-8", canonical.display()))?;
    FileName::new(text.trim_start_matches('/')).with_context(|| path.display().to_string())
}

fn with_seeds<T>(run: impl FnOnce(&mut HostInputs<'_>) -> T) -> T {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let remaining = RemainingRecordPolicy::Redo;
    run(&mut HostInputs {
        random: &mut random_bytes,
        now_unix_s: now.as_secs(),
        redo_records: None,
        remaining_redo_records: remaining,
    })
}

fn print<T: Serialize>(report: &T) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(report)?);
    Ok(())
}
