//! Commands of `image`: image files in a store through its daemon, and elsewhere with the caller's
//! permissions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde::de::DeserializeOwned;
use suimon_contract::{
    DiskFormat, ImageChanges, ImageCheck, ImageInfo, ImageRequest, Name, StoreFile,
};
use suimon_tables::image_tables::{changes_text, check_text, info_text};
use suimon_tables::serialized_name;

use crate::choices::one_of_parser;
use crate::exit::Failure;
use crate::output::Context;

/// Program that opens image files, in the directory of this program or in `PATH`.
const TOOL: &str = "suimond";

/// Verbs of `image`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ImageVerb {
    /// Show format, size, disk id, content id and parent of an image file.
    Info(ImageFlags),
    /// Check the metadata of an image file.
    Check(ImageFlags),
    /// Repair the metadata of an image file, after a backup of the metadata.
    Repair(RepairFlags),
    /// Record the new path of the parent in a differencing image.
    Relink(RelinkFlags),
}

/// Arguments that select an image file.
#[derive(Clone, Debug, Args)]
pub(crate) struct ImageFlags {
    /// Image file: a path, or with `--store` a path relative to that of the store.
    file: String,
    /// Store that contains the file, which the daemon then opens. If absent, the file is opened
    /// with the permissions of the caller.
    #[arg(long, value_name = "NAME")]
    store: Option<Name>,
    /// Image format of the file; detected if absent.
    #[arg(long, value_name = "FORMAT", value_parser = one_of_parser::<DiskFormat>(&["raw", "vhd", "vhdx"]))]
    format: Option<DiskFormat>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RepairFlags {
    #[command(flatten)]
    image: ImageFlags,
    /// Print the changes without writing.
    #[arg(long)]
    dry_run: bool,
    /// Write back the metadata of this backup file instead. Fails if the image was written to since
    /// the backup.
    #[arg(long, value_name = "BACKUP")]
    undo: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RelinkFlags {
    #[command(flatten)]
    image: ImageFlags,
    /// Parent file: a path, or with `--store` a path relative to that of the store.
    parent: String,
    /// Print the changes without writing.
    #[arg(long)]
    dry_run: bool,
}

impl ImageVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Info(image) => {
                let info: ImageInfo = image.request(context, "info", &Change::default()).await?;
                Ok(context.show(&info, info_text)?)
            }
            Self::Check(image) => {
                let result = image.request(context, "check", &Change::default()).await;
                let check: ImageCheck = result.map_err(not_checked)?;
                context.show(&check, check_text)?;
                report_result(check.verdict.exit_code())
            }
            Self::Repair(RepairFlags { image, dry_run, undo }) => {
                let is_undo = undo.is_some();
                let change = Change { dry_run, undo, parent: None };
                let result = image.request(context, "repair", &change).await;
                let changes: ImageChanges = result.map_err(not_checked)?;
                context.show(&changes, changes_text)?;
                report_result(if is_undo { 0 } else { changes.check.verdict.exit_code() })
            }
            Self::Relink(RelinkFlags { image, parent, dry_run }) => {
                let change = Change { dry_run, undo: None, parent: Some(parent) };
                let changes: ImageChanges = image.request(context, "relink", &change).await?;
                Ok(context.show(&changes, changes_text)?)
            }
        }
    }
}

/// Requested change of an image.
#[derive(Clone, Debug, Default)]
struct Change {
    dry_run: bool,
    undo: Option<String>,
    parent: Option<String>,
}

impl ImageFlags {
    /// Carries out `verb` through the daemon or the tool, and returns the report.
    async fn request<T: Serialize + DeserializeOwned>(
        &self,
        context: &Context,
        verb: &str,
        change: &Change,
    ) -> Result<T, Failure> {
        let Some(store) = &self.store else { return self.run_tool(context, verb, change) };
        let file = |text: &String| {
            text.parse::<StoreFile>().map_err(|error| Failure::Usage(format!("{text}: {error}")))
        };
        let request = ImageRequest {
            file: file(&self.file)?,
            format: self.format,
            parent: change.parent.as_ref().map(file).transpose()?,
            undo_backup: change.undo.as_ref().map(file).transpose()?,
            dry_run: change.dry_run,
        };
        Ok(context.client.request_image_operation(store, verb, &request).await?)
    }

    /// Executes `suimond image-tool` with the caller's permissions and parses its report.
    fn run_tool<T: DeserializeOwned>(
        &self,
        context: &Context,
        verb: &str,
        change: &Change,
    ) -> Result<T, Failure> {
        let tool = tool();
        let mut command = Command::new(&tool);
        command.args(["image-tool", verb]).stdin(Stdio::null());
        if let Some(format) = self.format {
            command.args(["--format", &serialized_name(&format)]);
        }
        command.arg("--daemon").arg(&context.socket);
        if change.dry_run {
            command.arg("--dry-run");
        }
        if let Some(backup) = &change.undo {
            command.arg("--undo").arg(backup);
        }
        command.arg("--").arg(&self.file).args(&change.parent);
        let output = command.output().map_err(|source| {
            if source.kind() != std::io::ErrorKind::NotFound {
                return Failure::File { path: tool.display().to_string(), source };
            }
            let message = format!(
                "the program {TOOL}, which opens images, is neither in the directory of suimon nor \
                 in PATH: install it, or use --store"
            );
            Failure::CannotOpenImage { message }
        })?;
        serde_json::from_slice(&output.stdout).map_err(|error| Failure::CannotOpenImage {
            message: without_report(&tool, &output, &error),
        })
    }
}

/// Marks a failure as one without a report, for which `qemu-img check` has a separate exit code.
fn not_checked(failure: Failure) -> Failure {
    Failure::ImageNotChecked(Box::new(failure))
}

/// Returns the reason why `suimond image-tool` printed no report.
fn without_report(tool: &Path, output: &Output, error: &serde_json::Error) -> String {
    let message = String::from_utf8_lossy(&output.stderr);
    let message = message.trim_end();
    let tool = tool.display();
    match (output.status.code(), message) {
        // The tool reported the error itself.
        (Some(1), message) if !message.is_empty() => message.to_owned(),
        (Some(0 | 2 | 3 | 63), "") => format!(
            "{tool} printed an invalid report ({error}): install suimon and suimond of the same \
             version"
        ),
        (_, "") => format!("{tool} ended without a report: {}", output.status),
        (_, message) => format!("{tool} ended without a report: {}: {message}", output.status),
    }
}

fn tool() -> PathBuf {
    let sibling = std::env::current_exe().ok().map(|program| program.with_file_name(TOOL));
    sibling.filter(|program| program.is_file()).unwrap_or_else(|| PathBuf::from(TOOL))
}

/// Returns the failure for the exit code of a printed report; success for 0.
const fn report_result(code: u8) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure::ReportWithErrors { exit_code: code }) }
}
