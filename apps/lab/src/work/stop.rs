//! Command `suimon lab stop`.

use std::fs::File;

use anyhow::{Context, Result, bail};
use clap::Args;
use suimon_lab_run::folder::{REQUESTS_FOLDER, check_id};

use super::requests::files_with_extension;
use crate::shared_flags::ResultsFlags;

/// Arguments of `stop`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StopFlags {
    /// Id of the request, as shown by `suimon lab list --runs`; all requests if absent.
    request: Option<String>,
    #[command(flatten)]
    results: ResultsFlags,
}

impl StopFlags {
    pub(crate) fn run(self) -> Result<()> {
        let requests = self.results.path().join(REQUESTS_FOLDER);
        if let Some(id) = &self.request {
            check_id("request", id)?;
        }
        let mut open =
            if requests.is_dir() { files_with_extension(&requests, "json")? } else { Vec::new() };
        open.retain(|path| {
            self.request.as_deref().is_none_or(|id| path.file_stem().is_some_and(|stem| stem == id))
        });
        match (&self.request, open.is_empty()) {
            (Some(id), true) => {
                bail!("no queued or running request in {} has the id `{id}`", requests.display())
            }
            (None, true) => bail!("no request is queued or running in {}", requests.display()),
            _ => {}
        }
        for path in open {
            let stop = path.with_extension("stop");
            File::create(&stop).with_context(|| stop.display().to_string())?;
        }
        Ok(())
    }
}
