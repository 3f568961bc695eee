//! Reference page of the tables of status.

use suimon_contract::{QosLimitingFactor, WorkerStages};

use crate::columns::{Columns, QOS_DELIVERY, TABLES, TOP_STAGES};
use crate::details::{DETAILS, Details};

/// Returns the page as Markdown.
pub fn page() -> String {
    let mut text = "# Tables of status\n\n".to_owned();
    text.push_str(
        "Columns of the tables that `suimon` prints, in the order of the commands `switch`, `nic`, `uplink`, \
         `team`, `offload`, `vmq`, `queue`, `worker`, `pf`, `vf`, `store`, `disk`, `qos`, `cluster`, `vm`, \
         `node`, `operation`, `power` and `top`. Lines of `show` that are no columns are under [Detail \
         views](#detail-views). Types of the API are schemas of the OpenAPI document, which `suimon openapi` \
         prints (`.components.schemas`).\n\n\
         *JSON field* is the field of the row with `--json`; *rows* names the place of the rows in the \
         output. *Unit* is the unit of the JSON field. Tables show the same value with a prefix: powers of \
         1000 for rates, counts and bytes of ports (`k`, `M`, `G`), powers of 1024 for bytes of disks and \
         memory (`KiB`, `MiB`, `GiB`). `–` stands for an unknown or absent value; JSON omits the field or has \
         `null`.\n\n\
         *Normalised IOPS* are operations per second in units of `normalization_bytes` of the store (8 KiB \
         by default): a read or write counts as its size divided by this size, rounded up; its offset does not matter. A write of \
         zeros that does not become a hole in the file counts like a write. Any other request counts as one.\n\n",
    );
    for columns in TABLES {
        table(&mut text, columns);
        if columns.row_object == QOS_DELIVERY.row_object {
            factors(&mut text);
        }
        if columns.row_object == TOP_STAGES.row_object {
            stages(&mut text);
        }
    }
    text.push_str(
        "## Detail views\n\n\
         `show` prints the keys of the configuration of an object ([host file](config.md)), its state, and \
         tables that are described above. These lines are the state:\n\n",
    );
    for details in DETAILS {
        detail_lines(&mut text, details);
    }
    text
}

fn detail_lines(text: &mut String, details: &Details) {
    text.push_str(&format!("### Lines of `suimon {}`\n\n", details.command));
    text.push_str("| line | JSON field | meaning |\n|---|---|---|\n");
    for line in details.lines {
        let fields: Vec<String> =
            line.fields.split(", ").map(|field| format!("`{field}`")).collect();
        let title = line.title.replace(", ", "`, `");
        text.push_str(&format!("| `{title}` | {} | {} |\n", fields.join(", "), line.meaning));
    }
    text.push('\n');
}

/// Returns the commands that print tables, each without `suimon`.
pub fn commands() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|columns| columns.commands.iter().copied())
}

fn table(text: &mut String, columns: &Columns) {
    let commands: Vec<String> =
        columns.commands.iter().map(|command| format!("`suimon {command}`")).collect();
    text.push_str(&format!("## {}\n\n", commands.join(", ")));
    let schema = columns.schema.map(|name| format!(", type `{name}` of the API"));
    let schema = schema.unwrap_or_default();
    text.push_str(&format!(
        "One row per {}. Rows: `{}`{schema}.\n\n",
        columns.row_object, columns.json_path
    ));
    text.push_str("| column | JSON field | unit | meaning |\n|---|---|---|---|\n");
    for column in columns.columns {
        let fields: Vec<String> = column
            .json_fields
            .split(", ")
            .filter(|field| !field.is_empty())
            .map(|field| format!("`{field}`"))
            .collect();
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            column.title,
            or_dash(&fields.join(", ")),
            or_dash(column.unit),
            column.meaning.replace('|', "\\|"),
        ));
    }
    text.push('\n');
}

fn factors(text: &mut String) {
    text.push_str(
        "### Limiting factors\n\n\
         The time of a window is divided by what limited the disk. Factors are in descending order of their \
         shares, except that `device` is last. JSON and the metric `suimon_disk_limited_ratio` have the word.\n\n\
         | word | in tables | time that counts | remedy |\n|---|---|---|---|\n",
    );
    for factor in QosLimitingFactor::ALL {
        text.push_str(&format!(
            "| `{factor}` | {} | {} | {} |\n",
            factor.text(),
            factor.meaning(),
            factor.remedy()
        ));
    }
    text.push('\n');
}

fn stages(text: &mut String) {
    text.push_str(
        "### Stages\n\n\
         The stages of a worker add up to all of its time. The metric `suimon_worker_stage_seconds_total` \
         has the name in its label `stage`.\n\n| stage | work |\n|---|---|\n",
    );
    for (stage, meaning) in WorkerStages::MEANINGS {
        text.push_str(&format!("| `{stage}` | {meaning} |\n"));
    }
    text.push('\n');
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_column_factor_and_stage() {
        let page = page();
        for columns in TABLES {
            for column in columns.columns {
                assert!(page.contains(&format!("\n| {} | ", column.title)), "{}", column.title);
            }
        }
        for factor in QosLimitingFactor::ALL {
            assert!(page.contains(&format!("\n| `{factor}` | ")), "{factor}");
        }
        for line in DETAILS.iter().flat_map(|details| details.lines) {
            assert!(page.contains(line.meaning), "{}", line.title);
        }
        let stages = WorkerStages::default().named_durations().map(|(stage, _)| stage);
        assert_eq!(stages, WorkerStages::MEANINGS.map(|(stage, _)| stage));
    }
}
