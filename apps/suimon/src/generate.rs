//! `completions`, `man` and `docs`: pages made from the one definition of the
//! command line.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::exit::Failure;
use crate::reference;

/// A shell.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CompletionsFlags {
    /// The shell.
    shell: Shell,
}

/// Where to write manual pages.
#[derive(Clone, Debug, Args)]
pub(crate) struct ManFlags {
    /// Write the pages of all commands into this directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Where to write the reference pages.
#[derive(Clone, Debug, Args)]
pub(crate) struct DocsFlags {
    /// The directory.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

impl CompletionsFlags {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut cli::command(), "suimon", &mut script);
        Ok(io::stdout().lock().write_all(&script)?)
    }
}

impl ManFlags {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.dir {
            Some(dir) => {
                make_directory(&dir)?;
                clap_mangen::generate_to(cli::command(), &dir)
                    .map_err(|source| Failure::File { path: dir.display().to_string(), source })
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(cli::command()).render(&mut page)?;
                Ok(io::stdout().lock().write_all(&page)?)
            }
        }
    }
}

impl DocsFlags {
    pub(crate) fn run(self) -> Result<(), Failure> {
        make_directory(&self.dir)?;
        for (name, text) in reference::pages() {
            let path = self.dir.join(name);
            fs::write(&path, text)
                .map_err(|source| Failure::File { path: path.display().to_string(), source })?;
        }
        Ok(())
    }
}

fn make_directory(dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir)
        .map_err(|source| Failure::File { path: dir.display().to_string(), source })
}
