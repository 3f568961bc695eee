//! Documents that programs generate about their command line: shell completions, manual pages, and
//! the reference page in docs. They are derived from the definition with which the program parses
//! its arguments.
//!
//! This crate is independent of the programs: a program names its command and adds the verbs
//! `completions`, `man` and `docs` with the arguments defined here.
//!
//! Invariants: nothing is written outside of the given directory; the same command yields the same
//! pages.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

/// Width in columns to which help is wrapped on a reference page.
const COLUMNS: usize = 96;

/// Arguments of the verb `completions`.
#[derive(Clone, Copy, Debug, Args)]
pub struct CompletionsFlags {
    /// Shell for which the script is printed.
    shell: Shell,
}

/// Arguments of the verb `man`.
#[derive(Clone, Debug, Args)]
pub struct ManFlags {
    /// Directory to write the pages of all commands into; it is created if it does not exist. If
    /// absent, the page of the program is printed.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Arguments of the verb `docs`.
#[derive(Clone, Debug, Args)]
pub struct DocsFlags {
    /// Directory to write the reference pages into.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

impl CompletionsFlags {
    /// Writes the completions of `command`, which is started as `program`, to standard output.
    pub fn write(self, mut command: Command, program: &str) -> io::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, program, &mut script);
        print(&script)
    }
}

impl ManFlags {
    /// Writes the pages of `command` and all its verbs to the directory. Without a directory,
    /// writes the page of the command itself to standard output.
    pub fn write(&self, command: Command) -> io::Result<()> {
        let Some(dir) = &self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            return print(&page);
        };
        make(dir)?;
        clap_mangen::generate_to(command, dir).map_err(|source| with_path(dir, &source))
    }
}

impl DocsFlags {
    /// Writes pages, given as file name and text, to the directory.
    pub fn write<'p>(&self, pages: impl IntoIterator<Item = (&'p str, String)>) -> io::Result<()> {
        make(&self.dir)?;
        for (name, text) in pages {
            let path = self.dir.join(name);
            fs::write(&path, text).map_err(|source| with_path(&path, &source))?;
        }
        Ok(())
    }
}

/// Returns the command and all its verbs as Markdown, with headings from the second level on.
#[must_use]
pub fn command_reference(command: Command) -> String {
    let mut text = String::new();
    let mut command = command.term_width(COLUMNS);
    command.build();
    section(&mut text, &mut command, 2);
    text
}

fn section(text: &mut String, command: &mut Command, level: usize) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let marks = "#".repeat(level);
    text.push_str(&format!("{marks} {name}\n\n```text\n{}\n```\n\n", help.trim_end()));
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set()) {
        section(text, sub, (level + 1).min(4));
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    io::stdout().lock().write_all(bytes)
}

fn make(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir).map_err(|source| with_path(dir, &source))
}

/// Puts the path before the text of an I/O error.
fn with_path(path: &Path, source: &io::Error) -> io::Error {
    io::Error::new(source.kind(), format!("{}: {source}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let hidden = Command::new("inner").hide(true);
        let deep = Command::new("c").subcommand(Command::new("d").about("The deepest"));
        let verb = Command::new("b").about("Does it").subcommand(deep);
        Command::new("a").subcommands([verb, hidden])
    }

    #[test]
    fn a_reference_page_has_every_verb_that_is_not_hidden() {
        let text = command_reference(program());
        let heads = text.lines().filter(|line| line.starts_with('#'));
        let heads: Vec<_> = heads.filter(|head| !head.contains("help")).collect();
        assert_eq!(heads, ["## a", "### a b", "#### a b c", "#### a b c d"]);
        assert!(text.contains("The deepest"));
    }

    #[test]
    fn pages_are_written_into_the_directory_and_errors_name_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("new");
        ManFlags { dir: Some(dir.clone()) }.write(program()).unwrap();
        assert!(dir.join("a.1").is_file() && dir.join("a-b.1").is_file());
        DocsFlags { dir: dir.clone() }.write([("a.md", "text".to_owned())]).unwrap();
        assert_eq!(fs::read_to_string(dir.join("a.md")).unwrap(), "text");
        let write_error = DocsFlags { dir: dir.join("a.md") }.write([]).unwrap_err();
        assert!(write_error.to_string().starts_with(&format!("{}: ", dir.join("a.md").display())));
    }
}
