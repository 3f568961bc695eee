//! Check that the source files of a crate do not import each other in a cycle.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};

use crate::imports::Imports;
use crate::metadata::{self, Metadata, Package};

/// Prints the import cycles between files of one crate, or of all crates, and the imported names
/// that cause them.
///
/// # Errors
/// Fails if there is a cycle, if the crate does not exist, or if a file cannot be read.
pub(crate) fn check(root: &Path, name: Option<&str>) -> Result<()> {
    let metadata = metadata::read(root)?;
    let chosen: Vec<&Package> = metadata
        .packages
        .iter()
        .filter(|package| name.is_none_or(|name| package.name == name))
        .collect();
    if chosen.is_empty() {
        bail!("there is no crate {}", name.unwrap_or_default());
    }
    let mut total = 0;
    for package in chosen {
        for cycle in cycles_of(&metadata, package)? {
            total += 1;
            println!("{}: {} files import each other", package.name, cycle.files);
            for line in &cycle.lines {
                println!("  {line}");
            }
        }
    }
    if total > 0 {
        bail!("{total} import cycles: move what the files share into a file below both");
    }
    println!("cycles: none");
    Ok(())
}

/// Returns the cycles of all crates.
pub(crate) fn violations(metadata: &Metadata) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for package in &metadata.packages {
        let cycles = cycles_of(metadata, package)?;
        let name = package.name.as_str();
        violations.extend(cycles.iter().map(|cycle| {
            format!(
                "{name}: files import each other; move what they share into a file below them:\n    \
                 {}",
                cycle.lines.join("\n    ")
            )
        }));
    }
    Ok(violations)
}

/// Cycle of imports between files of one crate.
struct Cycle {
    files: usize,
    /// Imports between the files: importing file, imported file, names.
    lines: Vec<String>,
}

/// Returns the cycles of a crate's library and programs.
fn cycles_of(metadata: &Metadata, package: &Package) -> Result<Vec<Cycle>> {
    let mut violations = Vec::new();
    for target in &package.targets {
        if target.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "bin")) {
            let imports = Imports::read(&target.src_path)?;
            let targets: Vec<Vec<usize>> =
                imports.edges.iter().map(|edges| edges.keys().copied().collect()).collect();
            let groups = strongly_connected(&targets);
            violations.extend(
                groups.iter().map(|group| describe(&metadata.workspace_root, &imports, group)),
            );
        }
    }
    Ok(violations)
}

fn describe(root: &Path, imports: &Imports, group: &[usize]) -> Cycle {
    let name = |file: usize| {
        let path = &imports.files[file];
        path.strip_prefix(root).unwrap_or(path).display().to_string()
    };
    let mut lines = Vec::new();
    for &from in group {
        for (&to, names) in &imports.edges[from] {
            if group.contains(&to) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines.push(format!("{} -> {}: {}", name(from), name(to), names.join(", ")));
            }
        }
    }
    Cycle { files: group.len(), lines }
}

/// Returns the sets of at least two nodes that reach each other.
fn strongly_connected(targets: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let reach: Vec<Vec<bool>> = (0..targets.len()).map(|node| reached(targets, node)).collect();
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, reached) in reach.iter().enumerate() {
        let first = reach.iter().enumerate().find(|(other, row)| reached[*other] && row[node]);
        if let Some((first, _)) = first {
            groups.entry(first).or_default().push(node);
        }
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

/// Returns which nodes can be reached from `start` by at least one edge.
fn reached(targets: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut visited = vec![false; targets.len()];
    let mut open = targets[start].clone();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut visited[node], true) {
            open.extend(&targets[node]);
        }
    }
    visited
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes a crate and returns its cycles, as lines.
    fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let imports = Imports::read(&folder.path().join("lib.rs")).unwrap();
        let targets: Vec<Vec<usize>> =
            imports.edges.iter().map(|edges| edges.keys().copied().collect()).collect();
        strongly_connected(&targets)
            .iter()
            .map(|group| describe(folder.path(), &imports, group).lines)
            .collect()
    }

    #[test]
    fn files_that_import_each_other_are_found_with_the_names() {
        let result = cycles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::B;\npub struct A(B);\n"),
            ("b.rs", "pub struct B;\nfn f() -> Option<super::a::A> { None }\n"),
            ("c.rs", "use crate::a::A;\nstruct C(A);\n"),
        ]);
        assert_eq!(result, [["a.rs -> b.rs: B", "b.rs -> a.rs: A"]]);
    }

    #[test]
    fn an_import_through_a_re_export_counts_for_the_defining_file() {
        let result = cycles(&[
            ("lib.rs", "mod a;\npub use a::*;\n"),
            ("a/mod.rs", "mod b;\nmod c;\npub use self::b::B;\n"),
            ("a/b.rs", "use crate::a::c::C;\npub struct B(C);\n"),
            ("a/c.rs", "use crate::B;\npub struct C;\nfn f(_: B) {}\n"),
        ]);
        assert_eq!(result, [["a/b.rs -> a/c.rs: C", "a/c.rs -> a/b.rs: B"]]);
    }

    #[test]
    fn paths_in_macros_count() {
        let result = cycles(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "pub const A: u8 = 1;\nfn f() { println!(\"{}\", crate::b::B) }\n"),
            ("b.rs", "pub const B: u8 = super::a::A;\n"),
        ]);
        assert_eq!(result, [["a.rs -> b.rs: B", "b.rs -> a.rs: A"]]);
    }

    #[test]
    fn declarations_re_exports_and_tests_are_no_imports() {
        let result = cycles(&[
            ("lib.rs", "mod a;\npub use a::A;\npub struct Root;\n"),
            ("a.rs", "use crate::Root;\npub struct A(Root);\n#[cfg(test)]\nmod tests;\n"),
            ("a/tests.rs", "use super::*;\n"),
        ]);
        assert_eq!(result, Vec::<Vec<String>>::new());
    }
}
