//! Executes a page and reports the first step whose result is not the one in the page.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use suimon_rig::Rig;

use crate::expectation;
use crate::host::{self, Environment};
use crate::page::{Action, Step, parse};
use crate::shell::{Done, Shell};

/// Time that a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
/// Time until a condition of an `until` comment must hold.
const UNTIL_LIMIT: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(200);

/// Executes the page of this path, which is relative to the root of the repository.
///
/// # Panics
/// The page violates the format, or a step failed. The message names page, line, command, expected
/// and actual output.
pub(crate) fn execute(page: &str) {
    let text = fs::read_to_string(host::root().join(page))
        .unwrap_or_else(|error| panic!("{page}: {error}"));
    Rig::run(|rig| execute_text(rig, page, &text, &host::prepare(rig, &text)?));
}

fn execute_text(rig: &Rig, page: &str, text: &str, environment: &Environment) -> Result<()> {
    let steps = parse(text).with_context(|| page.to_owned())?;
    let mut shell = Shell::start(rig, environment)?;
    for step in &steps {
        take(rig, &mut shell, step).with_context(|| format!("{page}:{}", step.line))?;
    }
    Ok(())
}

fn take(rig: &Rig, shell: &mut Shell, step: &Step) -> Result<()> {
    match &step.action {
        Action::File { name, content } => {
            // An absolute name replaces the folder.
            let path = rig.file(host::WORK).join(name);
            fs::create_dir_all(path.parent().context("the file has no directory")?)?;
            Ok(fs::write(path, content)?)
        }
        Action::Command { text, output, status } => {
            let result = run(shell, text)?;
            if result.status != *status {
                bail!(
                    "`{text}` has exit status {}, not {status}{}",
                    result.status,
                    output_text(&result.output)
                );
            }
            if output.is_empty() || expectation::matches(output, &result.output) {
                return Ok(());
            }
            bail!(
                "the output of `{text}` differs\nexpected:\n  {}\nactual:\n  {}",
                output.join("\n  "),
                result.output.join("\n  ")
            )
        }
        Action::Hidden(text) => {
            let result = run(shell, text)?;
            if result.status != 0 {
                bail!("`{text}` has exit status {}{}", result.status, output_text(&result.output));
            }
            Ok(())
        }
        Action::Until(text) => {
            let deadline = Instant::now() + UNTIL_LIMIT;
            loop {
                let result = run(shell, text)?;
                if result.status == 0 {
                    return Ok(());
                }
                if Instant::now() >= deadline {
                    bail!(
                        "`{text}` did not succeed within {UNTIL_LIMIT:?}{}",
                        output_text(&result.output)
                    );
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn run(shell: &mut Shell, text: &str) -> Result<Done> {
    shell.run(text, COMMAND_LIMIT).with_context(|| format!("`{text}`"))
}

fn output_text(output: &[String]) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; its output:\n  {}", output.join("\n  "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error of a page, or an empty string.
    fn error_of(text: &str) -> String {
        let rig = Rig::new().unwrap();
        std::fs::create_dir(rig.file(host::WORK)).unwrap();
        let path = ("PATH", std::env::var("PATH").unwrap());
        execute_text(&rig, "page.md", text, &vec![path])
            .err()
            .map_or_else(String::new, |e| format!("{e:#}"))
    }

    #[test]
    fn variables_files_and_background_processes_last() {
        let page = "<!-- file: a/b.txt -->\n```text\n7 words\n```\n```console\n$ x=$(cat a/b.txt)\n\
                    $ sleep 600 &\n$ echo $x; kill -0 $!\n9 words\n$ cd a\n$ ls; false\nb.txt\n\
                    [exit status: 1]\n```\n<!-- run: test -e b.txt -->\n\
                    <!-- until: test \"$x\" = \"7 words\" -->\n";
        assert_eq!(error_of(page), "");
    }

    #[test]
    fn a_difference_is_reported_with_page_line_command_and_both_outputs() {
        let error = error_of("Text\n\n```console\n$ true\n$ echo one; echo two\none\nthree\n```\n");
        let expected = "page.md:5: the output of `echo one; echo two` differs\n\
                        expected:\n  one\n  three\nactual:\n  one\n  two";
        assert_eq!(error, expected);
    }

    #[test]
    fn failed_commands_are_reported_with_their_output() {
        for (page, message) in [
            (
                "```console\n$ echo why; false\n```\n",
                "has exit status 1, not 0; its output:\n  why",
            ),
            ("```console\n$ true\n[exit status: 3]\n```\n", "has exit status 0, not 3"),
            ("<!-- run: no-such-program -->\n", "page.md:1: `no-such-program` has exit status 127"),
            ("```console\n$ exit 5\n```\n", "it has ended bash"),
            ("```console\n$ (\n```\n", "syntax error"),
            ("text\n```console\n", "page.md: line 2: the block has no end"),
        ] {
            let error = error_of(page);
            assert!(error.contains(message), "{page}: {error}");
        }
    }
}
