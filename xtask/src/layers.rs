//! Check that every crate depends on lower layers only, and that the sources of each layer contain
//! the required attributes and do not import each other in cycles.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cycles;
use crate::layer_rules::{layer_of_crate, violation};
use crate::metadata::{self, Metadata};
use crate::sources;

/// Checks the workspace in `root`; the error lists every violation.
pub(crate) fn check(root: &Path) -> Result<()> {
    let metadata = metadata::read(root)?;
    let mut violations = edges(&metadata)?;
    violations.extend(sources::violations(&metadata)?);
    violations.extend(cycles::violations(&metadata)?);
    if violations.is_empty() {
        println!("layers: {} crates, no wrong edge", metadata.packages.len());
        return Ok(());
    }
    bail!("{} violation(s) of the layer rules:\n  {}", violations.len(), violations.join("\n  "))
}

/// Returns every forbidden dependency, naming both crates.
pub(crate) fn edges(metadata: &Metadata) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for package in &metadata.packages {
        let from = layer_of_crate(metadata, package)?;
        for dependency in &package.dependencies {
            // A crate of the workspace is referred to by path, or by name if the manifest bypasses
            // the workspace.
            let target = metadata.packages.iter().find(|other| {
                dependency.path.as_deref() == Some(other.folder())
                    || (dependency.path.is_none() && dependency.name == other.name)
            });
            let Some(target) = target else { continue };
            let to = layer_of_crate(metadata, target)?;
            let is_for_tests = dependency.kind.as_deref() == Some("dev");
            let objection = violation((&package.name, from), (&target.name, to), is_for_tests);
            if let Some(reason) = objection {
                let kind = dependency.kind.as_deref().map_or(String::new(), |k| format!("{k}-"));
                violations.push(format!(
                    "{} ({}) has a {kind}dependency on {} ({}): {reason}",
                    package.name,
                    from.name(),
                    target.name,
                    to.name(),
                ));
            }
        }
    }
    Ok(violations)
}

#[cfg(test)]
mod tests;
