//! Rules for the sources and configuration of a crate, by layer: `unsafe` is forbidden everywhere
//! except in `sys`, panicking functions where untrusted input is handled, and clippy's bans apply
//! to the pure layers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::layer_rules::{Layer, layer_of_crate};
use crate::metadata::{Metadata, Package};

/// Functions and types that the strict configuration must ban.
const BANNED: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::thread::Builder::spawn",
    "std::thread::sleep",
    "std::hash::RandomState::new",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

const NO_PANIC: &[&str] =
    &["clippy::unwrap_used", "clippy::expect_used", "clippy::indexing_slicing"];

/// Returns every rule that a crate's sources or configuration violate.
pub(crate) fn violations(metadata: &Metadata) -> Result<Vec<String>> {
    let mut violations = strict_configuration(&metadata.workspace_root)?;
    for package in &metadata.packages {
        let layer = layer_of_crate(metadata, package)?;
        violations.extend(manifest(package)?);
        if layer == Layer::Outside {
            continue;
        }
        for target in &package.targets {
            if target.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "bin" | "proc-macro"))
            {
                let text = read(&target.src_path)?;
                violations.extend(attributes(&package.name, &target.src_path, layer, &text));
            }
        }
        if layer.is_pure() {
            violations.extend(strict_bans_apply(metadata, package)?);
        }
    }
    Ok(violations)
}

/// Checks that a crate's manifest enables the workspace's lints.
fn manifest(package: &Package) -> Result<Vec<String>> {
    let text: String = read(&package.manifest_path)?.split_whitespace().collect();
    let bound = text.contains("[lints]workspace=true") || text.contains("lints.workspace=true");
    Ok(if bound {
        Vec::new()
    } else {
        vec![format!("{}: its Cargo.toml lacks [lints] workspace = true", package.name)]
    })
}

fn attributes(crate_name: &str, path: &Path, layer: Layer, text: &str) -> Vec<String> {
    let levels = inner_attributes(text);
    let has_level = |level: &[&str], lint: &str| {
        levels
            .iter()
            .any(|(l, lints)| level.contains(&l.as_str()) && lints.iter().any(|x| x == lint))
    };
    let file = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let mut violations = Vec::new();
    if layer == Layer::Sys {
        if !has_level(&["deny", "forbid"], "unsafe_code") {
            violations.push(format!("{crate_name}: {file} lacks #![deny(unsafe_code)] or forbid"));
        }
    } else if !has_level(&["forbid"], "unsafe_code") {
        violations.push(format!("{crate_name}: {file} lacks #![forbid(unsafe_code)]"));
    }
    if layer.must_not_panic() {
        for lint in NO_PANIC {
            if !has_level(&["deny", "forbid"], lint) {
                violations.push(format!("{crate_name}: {file} lacks #![deny({lint})]"));
            }
        }
    }
    violations
}

/// Parses `#![level(lint, lint, …)]` of a source file, without comments.
fn inner_attributes(text: &str) -> Vec<(String, Vec<String>)> {
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<String>();
    let code: String = code.split_whitespace().collect();
    code.split("#![")
        .skip(1)
        .filter_map(|rest| {
            let (level, rest) = rest.split_once('(')?;
            let (lints, _) = rest.split_once(")]")?;
            Some((level.to_owned(), lints.split(',').map(str::to_owned).collect()))
        })
        .collect()
}

fn strict_configuration(root: &Path) -> Result<Vec<String>> {
    let text = read(&root.join("clippy.toml"))?;
    Ok(BANNED
        .iter()
        .filter(|path| !text.contains(&format!("\"{path}\"")))
        .map(|path| format!("clippy.toml at the root no longer bans {path}"))
        .collect())
}

/// Checks that the root's clippy configuration applies. Clippy uses the first configuration between
/// the crate and the root: for a pure crate that must be the root's, and no source may disable the
/// bans.
fn strict_bans_apply(metadata: &Metadata, package: &Package) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for folder in package.folder().ancestors() {
        if folder == metadata.workspace_root {
            break;
        }
        for name in ["clippy.toml", ".clippy.toml"] {
            if folder.join(name).exists() {
                violations.push(format!(
                    "{}: {} hides the strict configuration at the root",
                    package.name,
                    folder.join(name).display()
                ));
            }
        }
    }
    for path in rust_files(&package.folder().join("src"))? {
        let text: String = read(&path)?.split_whitespace().collect();
        let switched_off =
            ["allow(clippy::disallowed", "warn(clippy::disallowed", "expect(clippy::disallowed"];
        if switched_off.iter().any(|attribute| text.contains(attribute)) {
            violations.push(format!(
                "{}: {} disables a ban of its layer",
                package.name,
                path.display()
            ));
        }
    }
    Ok(violations)
}

/// Returns all Rust files below `folder`, sorted.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "//! Doc.\n#![forbid(unsafe_code)]\n\
        #![deny(clippy::unwrap_used, clippy::expect_used,\n  clippy::indexing_slicing)]\n";

    fn check(layer: Layer, text: &str) -> Vec<String> {
        attributes("suimon-x", Path::new("src/lib.rs"), layer, text)
    }

    #[test]
    fn each_layer_requires_its_attributes() {
        assert!(check(Layer::Base, GOOD).is_empty());
        assert!(check(Layer::Apps, "#![forbid(unsafe_code)]").is_empty());
        assert_eq!(check(Layer::Pure, "#![forbid(unsafe_code)]").len(), 3);
        assert_eq!(check(Layer::Plane, "#![deny(unsafe_code)]").len(), 1);
        assert!(check(Layer::Sys, GOOD).is_empty(), "a crate of sys may do without unsafe");
        assert!(check(Layer::Sys, &GOOD.replace("forbid", "deny")).is_empty());
        assert_eq!(check(Layer::Sys, &GOOD.replace("forbid", "allow")).len(), 1);
    }

    #[test]
    fn an_attribute_in_a_comment_does_not_count() {
        assert_eq!(check(Layer::Apps, "// #![forbid(unsafe_code)]\n").len(), 1);
        assert_eq!(check(Layer::Apps, "//! #![forbid(unsafe_code)]\n").len(), 1);
    }

    #[test]
    fn the_root_configuration_is_strict() {
        let root = crate::workspace::root().unwrap();
        assert_eq!(strict_configuration(&root).unwrap(), Vec::<String>::new());
    }
}
