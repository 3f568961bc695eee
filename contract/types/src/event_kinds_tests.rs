//! Tests of the catalogue of events.

use super::{EventKind, Severity};

#[test]
fn numbers_and_names_are_unique() {
    let ids: Vec<u32> = EventKind::ALL.iter().map(|kind| kind.id()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b));
    let mut names: Vec<_> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), EventKind::ALL.len());
}

/// Fails if a warning or error names no next step.
#[test]
fn warnings_and_errors_name_the_next_step() {
    const VERBS: [&str; 24] = [
        "Add", "Check", "Close", "Enlarge", "Find", "Follow", "Free", "Look", "Lower", "Make",
        "Raise", "Reduce", "Remove", "Reset", "Run", "Set", "Start", "Stop", "Update", "run",
        "check", "create", "merge", "save",
    ];
    let has_step = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '`');
        words.any(|word| VERBS.contains(&word)) || text.contains("`suimon ")
    };
    let kinds = EventKind::ALL.iter().filter(|kind| kind.severity() != Severity::Info);
    let missing: Vec<_> = kinds.filter(|kind| !has_step(kind.meaning())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Fails if a published number changes its meaning.
#[test]
fn the_catalogue_is_as_published() {
    let lines: Vec<_> = EventKind::ALL
        .iter()
        .map(|kind| format!("{} {} {:?}", kind.id(), kind.name(), kind.severity()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
