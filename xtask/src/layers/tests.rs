//! Tests of the check with copies of the real manifests and one added dependency.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::workspace;

/// Copies all manifests, with empty sources: sufficient for cargo to read them.
fn copy_of_the_manifests() -> TempDir {
    let root = workspace::root().unwrap();
    let copy = TempDir::new().unwrap();
    fs::copy(root.join("Cargo.toml"), copy.path().join("Cargo.toml")).unwrap();
    for package in metadata::read(&root).unwrap().packages {
        let folder = package.folder().strip_prefix(&root).unwrap();
        let target = copy.path().join(folder);
        fs::create_dir_all(target.join("src")).unwrap();
        fs::copy(&package.manifest_path, target.join("Cargo.toml")).unwrap();
        for target in &package.targets {
            let source = copy.path().join(target.src_path.strip_prefix(&root).unwrap());
            fs::create_dir_all(source.parent().unwrap()).unwrap();
            fs::write(source, "").unwrap();
        }
    }
    copy
}

fn add(copy: &Path, manifest: &str, section: &str, dependency: &str) {
    let path = copy.join(manifest).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap();
    let header = format!("[{section}]");
    let line = format!("{dependency}.workspace = true\n");
    let text = if text.contains(&header) {
        text.replace(&header, &format!("{header}\n{line}"))
    } else {
        format!("{text}\n{header}\n{line}")
    };
    fs::write(path, text).unwrap();
}

fn edges_with(manifest: &str, section: &str, dependency: &str) -> Vec<String> {
    let copy = copy_of_the_manifests();
    add(copy.path(), manifest, section, dependency);
    edges(&metadata::read(copy.path()).unwrap()).unwrap()
}

#[test]
fn the_workspace_as_it_is_has_no_wrong_edge() {
    let copy = copy_of_the_manifests();
    assert_eq!(edges(&metadata::read(copy.path()).unwrap()).unwrap(), Vec::<String>::new());
}

#[test]
fn a_wrong_edge_is_refused_and_both_crates_are_named() {
    // (crate, section, dependency, part of the reason)
    let invalid = [
        ("base/quantity", "dependencies", "suimon-ports", "lower layers"),
        ("base/quantity", "dependencies", "suimon-frame", "within one layer"),
        ("policy/forwarding", "dependencies", "suimon-offload", "within one layer"),
        ("policy/forwarding", "dev-dependencies", "suimon-switch", "lower layers"),
        ("formats/nbd", "dependencies", "suimon-vmq", "within one layer"),
        ("formats/nbd", "dependencies", "suimon-netdev", "lower layers"),
        ("contract/types", "dependencies", "suimon-client", "within one layer"),
        ("sys/netdev", "dependencies", "suimon-ring", "within one layer"),
        ("sys/ring", "dependencies", "suimon-vhost-user", "within one layer"),
        ("plane/switch", "dependencies", "suimon-netdev", "through ports"),
        ("plane/node", "dev-dependencies", "suimon-store", "through ports"),
        ("apps/suimon", "dependencies", "suimon-ports", "may use only"),
        ("ports", "dev-dependencies", "suimon-rig", "no crate may depend"),
        ("ports", "dependencies", "suimon-test-programs", "no crate may depend"),
    ];
    for (package, section, dependency, reason) in invalid {
        let violations = edges_with(package, section, dependency);
        assert_eq!(violations.len(), 1, "{package} -> {dependency}: {violations:?}");
        let violation = &violations[0];
        let name = match package {
            "ports" => "suimon-ports",
            "apps/suimon" => "suimon",
            "contract/types" => "suimon-contract",
            _ => package.rsplit('/').next().unwrap(),
        };
        assert!(violation.contains(name), "{violation}");
        assert!(violation.contains(dependency), "{violation}");
        assert!(violation.contains(reason), "{violation}");
        assert_eq!(violation.contains("dev-dependency"), section == "dev-dependencies");
    }
}

#[test]
fn a_crate_outside_every_layer_is_rejected_by_name() {
    let copy = copy_of_the_manifests();
    fs::create_dir_all(copy.path().join("misc/src")).unwrap();
    fs::write(copy.path().join("misc/src/lib.rs"), "").unwrap();
    fs::write(copy.path().join("misc/Cargo.toml"), "[package]\nname = \"suimon-misc\"\n").unwrap();
    let root = copy.path().join("Cargo.toml");
    let text = fs::read_to_string(&root).unwrap();
    fs::write(&root, text.replace("members = [", "members = [\n\"misc\",")).unwrap();
    let error = edges(&metadata::read(copy.path()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("suimon-misc") && error.contains("no layer"), "{error}");
}
