//! `suimon lab advise`: configuration changes derived from results.
//!
//! Rules read the last completed run on real hardware of each plan, and recommend values for keys
//! of a host file with reasons. The output is a host file for `suimon apply`, and its difference
//! from the current one.

mod advice;
mod host_file;
mod rules;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use similar::TextDiff;
use suimon_lab_run::{LocalizedText, Run, RunOrigin};

use crate::output::print;
use crate::plan::SHIPPED_PLANS;
use crate::results::{ResultsFolder, is_run_of};
use crate::shared_flags::{OutputFlags, ResultsFlags};
use advice::Advice;
use host_file::HostFile;

/// Arguments of `advise`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdviseFlags {
    /// Host file to start from; the desired state of the daemon (`suimon export`) if absent.
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
    /// File to write the changed host file to; the recommendations are only printed if absent.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    form: OutputFlags,
    #[command(flatten)]
    results: ResultsFlags,
}

impl AdviseFlags {
    pub(crate) fn run(self) -> Result<()> {
        let runs = last_runs(&self.results.folder())?;
        ensure!(
            !runs.is_empty(),
            "there is no run to derive advice from (quick and incomplete runs do not count); \
             start with `suimon lab run vmq-teaming`"
        );
        let advice: Vec<Advice> = runs.iter().flat_map(rules::recommendations).collect();
        let before = self.host_text()?;
        let mut file = HostFile::parse(&before)?;
        let changed: Vec<usize> = advice
            .iter()
            .map(|advice| advice.target.as_ref().map_or(0, |target| file.set(target)))
            .collect();
        let after = file.text();
        let diff = TextDiff::from_lines(&before, &after)
            .unified_diff()
            .header("host.toml", "advised.toml")
            .to_string();
        if let Some(path) = &self.output {
            std::fs::write(path, &after).with_context(|| path.display().to_string())?;
        }
        if self.form.json {
            return print(&format!(
                "{:#}\n",
                json!({ "advice": advice, "changed": changed, "diff": diff })
            ));
        }
        print(&self.text(&advice, &changed, &diff))
    }

    fn text(&self, advice: &[Advice], changed: &[usize], diff: &str) -> String {
        let language = self.form.language;
        let mut text = String::new();
        for (advice, changed) in advice.iter().zip(changed) {
            let action = match (&advice.target, changed) {
                (None, _) => LocalizedText::default(),
                (Some(target), 0) => LocalizedText::new(
                    format!(
                        " No change required: {} in [{}] already has this value.",
                        target.key, target.table
                    ),
                    format!(
                        " 変更不要です ([{}] の {} は既にこの値です)。",
                        target.table, target.key
                    ),
                ),
                (Some(target), count) => LocalizedText::new(
                    format!(" {count} × {} in [{}] changed.", target.key, target.table),
                    format!(" [{}] の {} を {count} 箇所変更します。", target.table, target.key),
                ),
            };
            text += &format!(
                "- {}{} ({})\n",
                advice.reason.in_language(language),
                action.in_language(language),
                advice.run_id
            );
        }
        if diff.is_empty() {
            return text;
        }
        let next = match &self.output {
            Some(path) => format!("suimon apply --dry-run -f {}", path.display()),
            None => "suimon lab advise -o advised.toml".to_owned(),
        };
        text + &format!("\n{diff}\n{next}\n")
    }

    /// Returns the text of the host file to start from: the given file, or the desired state of the
    /// daemon.
    fn host_text(&self) -> Result<String> {
        if let Some(path) = &self.host {
            return std::fs::read_to_string(path).with_context(|| path.display().to_string());
        }
        let output = Command::new(suimon_rig::program("suimon")?).arg("export").output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} (or name a host file with --host)", stderr.trim());
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Returns the last completed real run of each shipped plan, except quick runs, which verify only
/// that a plan works.
fn last_runs(results: &ResultsFolder) -> Result<Vec<Run>> {
    let ids = results.ids()?;
    let mut runs = Vec::new();
    for (plan, _) in SHIPPED_PLANS {
        for id in ids.iter().rev().filter(|id| is_run_of(id, plan)) {
            let folder = results.find(id)?;
            let Some(run) = folder.load().ok().filter(|_| folder.is_complete()) else { continue };
            if run.origin == RunOrigin::Real && run.scale != "quick" {
                runs.push(run);
                break;
            }
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests;
