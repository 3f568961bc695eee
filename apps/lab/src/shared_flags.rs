//! Command-line arguments that several commands have in common.

use std::path::{Path, PathBuf};

use clap::Args;
use suimon_contract::LAB_RESULTS_DEFAULT;
use suimon_lab_run::Language;

use crate::results::ResultsFolder;

/// Default folder of disks and other large files.
pub(crate) const WORK_FOLDER_DEFAULT: &str = "/var/tmp";

/// Arguments that select the form of the output.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputFlags {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Language of the output.
    #[arg(long, value_name = "en|ja", default_value = "en")]
    pub(crate) language: Language,
}

/// Arguments that locate the results.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultsFlags {
    /// Folder in which results of runs are stored.
    #[arg(long, value_name = "DIR", env = "SUIMON_LAB_RESULTS", default_value = LAB_RESULTS_DEFAULT)]
    results: PathBuf,
}

impl ResultsFlags {
    #[cfg(test)]
    pub(crate) fn of(path: &Path) -> Self {
        Self { results: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.results
    }

    pub(crate) fn folder(&self) -> ResultsFolder {
        ResultsFolder::new(self.results.clone())
    }
}
