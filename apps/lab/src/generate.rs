//! `completions`, `man` and `docs`: pages made from the one definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::{command, print};

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

/// Where to write the reference page.
#[derive(Clone, Debug, Args)]
pub(crate) struct DocsFlags {
    /// The directory.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

impl CompletionsFlags {
    pub(crate) fn run(self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "suimon-lab", &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(())
    }
}

impl ManFlags {
    pub(crate) fn run(self) -> Result<()> {
        match self.dir {
            Some(dir) => {
                make(&dir)?;
                clap_mangen::generate_to(command(), &dir)?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command()).render(&mut page)?;
                print(&String::from_utf8_lossy(&page))?;
            }
        }
        Ok(())
    }
}

impl DocsFlags {
    pub(crate) fn run(self) -> Result<()> {
        make(&self.dir)?;
        let mut text = String::from(
            "<!-- Made by `suimon-lab docs`. Change the source, not this page. -->\n\n# The command line \
             of the lab\n\n",
        );
        let mut command = command().term_width(96);
        command.build();
        section(&mut text, &mut command, 2);
        let path = self.dir.join("lab.md");
        fs::write(&path, text).with_context(|| format!("{}", path.display()))?;
        Ok(())
    }
}

fn section(text: &mut String, command: &mut Command, level: usize) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let marks = "#".repeat(level);
    text.push_str(&format!("{marks} {name}\n\n```text\n{}\n```\n\n", help.trim_end()));
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set()) {
        section(text, sub, level + 1);
    }
}

fn make(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("{}", dir.display()))
}
