//! Commands `apply`, `check` and `export` for host files.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use clap::Args;
use suimon_client::{ChangeOptions, ClientError};
use suimon_contract::{
    ApplyRequest, CountedNoun, TOML_BYTES_MAX, locate_errors, old_names_in_file, parse_toml,
};

use crate::atomic_write::write_atomically;
use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::{Context, json_text, print, print_json};
use crate::progress::print_outcome;

/// Arguments of `apply`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ApplyFlags {
    /// Host file (TOML); `-` reads standard input.
    #[arg(short, long, value_name = "FILE")]
    file: String,
    /// Accept minimums that exceed 90 % of the capacity of a store, or on a store of unknown
    /// capacity. Also permit removing `shared` from stores with disks, and leaving the cluster
    /// with disks on shared stores: the cluster then does not limit the IOPS of these disks.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

/// Arguments of `export`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExportFlags {
    /// File to write instead of standard output; replaced only if the export succeeds.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Arguments of `check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckFlags {
    /// Host file (TOML); `-` reads standard input.
    #[arg(short, long, value_name = "FILE")]
    file: String,
}

impl ApplyFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let (text, name) = read(&self.file)?;
        // Errors of the file itself are reported without a daemon.
        parse_toml(&text, Some(&name)).map_err(Failure::Refused)?;
        let request =
            ApplyRequest { toml: Some(text.clone()), file: Some(name.clone()), config: None };
        let options = ChangeOptions { force: self.force, ..self.change.options() };
        let result = match context.client.apply(&request, options).await {
            Ok(outcome) => print_outcome(context, outcome, self.change).await,
            Err(error) => Err(error.into()),
        };
        result.map_err(|failure| located(failure, &text, &name))
    }
}

/// Adds the lines of the host file to errors that the daemon found when it checked the host.
fn located(mut failure: Failure, text: &str, name: &str) -> Failure {
    match &mut failure {
        Failure::Client(ClientError::Refused { errors, .. }) => {
            locate_errors(text, Some(name), errors);
        }
        Failure::Operation(operation) => {
            let error = operation.error.as_mut().map(core::slice::from_mut);
            locate_errors(text, Some(name), error.unwrap_or_default());
        }
        _ => {}
    }
    failure
}

impl CheckFlags {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let (text, name) = read(&self.file)?;
        let config = parse_toml(&text, Some(&name)).map_err(Failure::Refused)?;
        let old_names = old_names_in_file(&text, Some(&name));
        let warnings: Vec<String> = old_names.iter().map(ToString::to_string).collect();
        crate::old_names::print_warnings(context.prints_json, &warnings);
        if context.prints_json {
            return Ok(print_json(&config)?);
        }
        let counts = [
            CountedNoun::with_plural(config.switches.len(), "switch", "switches"),
            CountedNoun::new(config.uplinks.len(), "uplink"),
            CountedNoun::new(config.teams.len(), "team"),
            CountedNoun::new(config.nics.len(), "NIC"),
            CountedNoun::new(config.stores.len(), "store"),
            CountedNoun::with_plural(config.qos_policies.len(), "QoS policy", "QoS policies"),
            CountedNoun::new(config.disks.len(), "disk"),
            CountedNoun::new(config.vms.len(), "VM"),
        ];
        eprintln!("{name}: valid: {}", counts.map(|count| count.to_string()).join(", "));
        Ok(())
    }
}

impl ExportFlags {
    /// Prints the desired state, or writes it to a file once it is received completely.
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let text = if context.prints_json {
            json_text(&context.client.config().await?)?
        } else {
            context.client.config_toml().await?
        };
        let Some(path) = self.output else { return Ok(print(&text)?) };
        let path_text = path.display().to_string();
        write_atomically(&path, text.as_bytes())
            .map_err(|source| Failure::File { path: path_text, source })
    }
}

/// Reads a file and returns its text and its name for errors. Reads at most one byte more than the
/// largest host file.
fn read(path: &str) -> Result<(String, String), Failure> {
    let name = if path == "-" { "<stdin>" } else { path };
    let to_failure = |source| Failure::File { path: name.to_owned(), source };
    let limit = TOML_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    if path == "-" {
        io::stdin().take(limit).read_to_end(&mut bytes).map_err(to_failure)?;
    } else {
        File::open(path).and_then(|f| f.take(limit).read_to_end(&mut bytes)).map_err(to_failure)?;
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = line.filter(|byte| **byte == b'\n').count() + 1;
        let code = suimon_contract::ErrorCode::Malformed;
        let message = "the host file is not UTF-8 text; save it in UTF-8";
        let mut error = suimon_contract::ApiError::new(code, message);
        error.file = Some(name.to_owned());
        error.line = Some(line);
        Failure::Refused(vec![error])
    })?;
    Ok((text, name.to_owned()))
}
