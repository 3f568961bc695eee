//! Command `suimon lab show`.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::output::print;
use crate::plan::{Plan, Scale};
use crate::shared_flags::OutputFlags;

/// Arguments of `show`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShowFlags {
    /// Name of a shipped plan (`suimon lab list`), or path of a plan file.
    plan: String,
    /// Scale whose setup is printed.
    #[arg(long, value_enum, default_value_t)]
    scale: Scale,
    #[command(flatten)]
    form: OutputFlags,
}

impl ShowFlags {
    pub(crate) fn run(self) -> Result<()> {
        let plan = Plan::find(&self.plan)?;
        let experiment = plan.experiment(self.scale)?;
        let (setup, cases) = (experiment.setup(), experiment.cases());
        if self.form.json {
            let head = &plan.header;
            return print(&format!(
                "{:#}\n",
                json!({
                    "id": head.id, "kind": head.kind, "document": head.document, "title": head.title,
                    "question": head.question, "published": head.published, "simulation": head.simulation,
                    "setup": setup, "cases": cases, "measures": experiment.measures(),
                    "figures": head.figures, "charts": head.charts,
                })
            ));
        }
        let language = self.form.language;
        let mut text = format!("{}\n\n", plan.header.title.in_language(language));
        text += &format!("{}\n\n", plan.header.question.in_language(language));
        text += &format!(
            "{} {}\n\n",
            plan.header.document,
            plan.header.published.in_language(language)
        );
        for words in setup {
            text += &format!("{}\n", words.in_language(language));
        }
        text += "\n";
        for case in cases {
            text += &format!(
                "  {:<40} {:>6.0} s\n",
                case.description.in_language(language),
                case.seconds
            );
        }
        print(&text)
    }
}
