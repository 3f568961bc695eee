//! Reference page of metrics, generated from the definitions of the families.

use suimon_contract::WorkerStages;
use suimon_forwarding::DropReason;

use crate::family::{Family, FamilyKind};
use crate::{disks, host, minimums, nbd, ports, power, sriov, stores, teams, vmq, vms, workers};

/// Sections of the page: title and families.
fn sections() -> [(&'static str, Vec<Family>); 12] {
    [
        ("Daemon and configuration", host::families()),
        ("Workers", workers::families()),
        ("Ports", ports::families()),
        ("Teams", teams::families()),
        ("Queues and VMQ", vmq::families()),
        ("SR-IOV", sriov::families()),
        ("Stores", stores::families()),
        ("Disks", disks::families()),
        ("Minimums", minimums::families()),
        ("NBD clients", nbd::families()),
        ("VMs", vms::families()),
        ("Power", power::families()),
    ]
}

/// Returns all families in the order of the page.
#[cfg(test)]
pub(super) fn families() -> Vec<Family> {
    sections().into_iter().flat_map(|(_, families)| families).collect()
}

/// Returns the tables of the page as Markdown.
pub fn page() -> String {
    let mut text = String::new();
    for (title, families) in sections() {
        text.push_str(&format!("## {title}\n\n"));
        text.push_str("| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n");
        for family in families {
            let kind = match family.kind {
                FamilyKind::Counter => "counter",
                FamilyKind::Gauge => "gauge",
            };
            let labels: Vec<String> =
                family.labels.iter().map(|label| format!("`{label}`")).collect();
            text.push_str(&format!(
                "| `{}` | {kind} | {} | {} | {} |\n",
                family.sample_name(),
                or_dash(family.unit),
                or_dash(&labels.join(", ")),
                family.help_text(),
            ));
        }
        text.push('\n');
    }
    let reasons = DropReason::ALL.iter().map(|reason| (reason.as_str(), reason.meaning()));
    value_section(
        &mut text,
        "Reasons of dropped frames",
        "`reason` of `suimon_*_dropped_frames_total`",
        reasons,
    );
    let stages = WorkerStages::MEANINGS.into_iter();
    value_section(
        &mut text,
        "Stages of workers",
        "`stage` of `suimon_worker_stage_seconds_total`",
        stages,
    );
    text
}

/// Appends a section that lists the values of a label with their meanings.
fn value_section(
    text: &mut String,
    title: &str,
    label: &str,
    values: impl Iterator<Item = (&'static str, &'static str)>,
) {
    text.push_str(&format!("## {title}\n\nValues of the label {label}.\n\n"));
    text.push_str("| value | meaning |\n|---|---|\n");
    for (value, meaning) in values {
        text.push_str(&format!("| `{value}` | {meaning} |\n"));
    }
    text.push('\n');
}

const fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}
