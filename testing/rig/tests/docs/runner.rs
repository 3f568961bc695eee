//! Executes a page and reports the first step whose result is not the one in the page.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use suimon_rig::Rig;

use crate::expectation;
use crate::host;
use crate::page::{Action, Step, parse};
use crate::shell::{Done, Shell};

/// Time that a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
/// Time until a condition of an `until` comment must hold.
const UNTIL_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

/// Executes the page of this path, which is relative to the root of the repository.
///
/// # Panics
/// A step failed. The message names page, line, command, expected and actual output.
pub(crate) fn execute(page: &str) {
    let text = fs::read_to_string(Path::new(host::ROOT).join(page))
        .unwrap_or_else(|error| panic!("{page}: {error}"));
    let steps = parse(&text).unwrap_or_else(|error| panic!("{page}: {error:#}"));
    if steps.is_empty() {
        return;
    }
    Rig::run(|rig| {
        let environment = host::prepare(rig, &text)?;
        let mut shell = Shell::start(rig, &environment)?;
        for step in &steps {
            take(rig, &mut shell, step).with_context(|| format!("{page}:{}", step.line))?;
        }
        Ok(())
    });
}

fn take(rig: &Rig, shell: &mut Shell, step: &Step) -> Result<()> {
    match &step.action {
        Action::File { name, content } => {
            // An absolute name replaces the folder.
            let path = rig.file("work").join(name);
            fs::create_dir_all(path.parent().context("the file has no directory")?)?;
            Ok(fs::write(path, content)?)
        }
        Action::Command { text, output, status } => {
            let done = run(shell, text)?;
            if done.status != *status {
                bail!(
                    "`{text}` has exit status {}, not {status}{}",
                    done.status,
                    shown(&done.output)
                );
            }
            if output.is_empty() || expectation::matches(output, &done.output) {
                return Ok(());
            }
            bail!(
                "the output of `{text}` differs\nexpected:\n  {}\nactual:\n  {}",
                output.join("\n  "),
                done.output.join("\n  ")
            )
        }
        Action::Hidden(text) => {
            let done = run(shell, text)?;
            if done.status != 0 {
                bail!("`{text}` has exit status {}{}", done.status, shown(&done.output));
            }
            Ok(())
        }
        Action::Until(text) => {
            let deadline = Instant::now() + UNTIL_LIMIT;
            loop {
                let done = run(shell, text)?;
                if done.status == 0 {
                    return Ok(());
                }
                if Instant::now() >= deadline {
                    bail!("`{text}` did not succeed within {UNTIL_LIMIT:?}{}", shown(&done.output));
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn run(shell: &mut Shell, text: &str) -> Result<Done> {
    shell.run(text, COMMAND_LIMIT).with_context(|| format!("`{text}`"))
}

fn shown(output: &[String]) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; its output:\n  {}", output.join("\n  "))
    }
}
