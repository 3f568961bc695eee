//! Debian's kernel, extracted from its package without installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::run;

/// Kernel flavour of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// For VMs: with virtio drivers, and few others.
    Cloud,
    /// For machines, including those that QEMU emulates.
    Machine,
}

impl Flavour {
    /// Returns the package that always depends on the newest kernel.
    const fn meta_package(self) -> &'static str {
        match self {
            Self::Cloud => "linux-image-cloud-amd64",
            Self::Machine => "linux-image-amd64",
        }
    }

    /// Returns the additional modules that a guest with this kernel may load later.
    const fn modules_on_demand(self) -> &'static [&'static str] {
        match self {
            Self::Cloud => &[],
            Self::Machine => &["e1000e", "ahci"],
        }
    }
}

/// Modules that every guest needs, without their dependencies.
const MODULES: &[&str] = &["virtio_pci", "virtio_net", "virtio-rng", "8021q"];

/// Modules that a guest may load later, each with its dependencies.
const MODULES_ON_DEMAND: &[&str] =
    &["bonding", "virtio_blk", "virtio_console", "ata_piix", "sd_mod", "nbd", "button", "evdev"];

/// File name of a module and its uncompressed contents.
pub(crate) type Module = (String, Vec<u8>);

/// Kernel with its modules.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) image: PathBuf,
    /// Modules loaded at boot, in order.
    pub(crate) modules: Vec<Module>,
    /// Modules that may be loaded later: each list contains the dependencies of a module and the
    /// module itself, in order.
    pub(crate) on_demand: Vec<Vec<Module>>,
}

/// Downloads the kernel package with apt and unpacks it below `folder`.
pub(crate) fn unpack(flavour: Flavour, folder: &Path) -> Result<Kernel> {
    let package = newest_package(flavour)?;
    let output = Command::new("timeout")
        .args(["300", "apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", &package])
        .current_dir(folder)
        .env("LC_ALL", "C")
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "apt-get cannot download {package} ({}); connect this machine or correct its apt sources, run \
         `apt-get update` and try again",
        errors.lines().find_map(|line| line.strip_prefix("E: ")).unwrap_or("no reason given")
    );
    let on_demand = [MODULES_ON_DEMAND, flavour.modules_on_demand()].concat();
    unpack_from(folder, MODULES, &on_demand)
}

/// Unpacks the only kernel package in `folder`.
pub(crate) fn unpack_from(
    folder: &Path,
    module_names: &[&str],
    wanted_on_demand: &[&str],
) -> Result<Kernel> {
    let archive = find(folder, |name| {
        Path::new(name).extension().is_some_and(|extension| extension == "deb")
    })?;
    let root = folder.join("kernel");
    run(&["dpkg-deb", "--extract", text(&archive)?, text(&root)?])?;
    fs::remove_file(&archive)?;
    let image = find(&root.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    let release = image
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix("vmlinuz-").map(str::to_owned))
        .context("a kernel without a release")?;
    // Debian 13 keeps modules below /usr.
    let base = [root.clone(), root.join("usr")]
        .into_iter()
        .find(|base| base.join("lib/modules").join(&release).is_dir())
        .context("the kernel package has no modules")?;
    run(&["depmod", "--basedir", text(&base)?, &release])?;
    let folder = base.join("lib/modules").join(&release);
    let modules = modules_in_order(&folder, module_names)?;
    let on_demand = wanted_on_demand
        .iter()
        .map(|module| modules_in_order(&folder, &[module]))
        .collect::<Result<_>>()?;
    Ok(Kernel { image, modules, on_demand })
}

/// Returns the package that the meta-package depends on.
fn newest_package(flavour: Flavour) -> Result<String> {
    let meta_package = flavour.meta_package();
    let package_text = run(&["apt-cache", "show", "--no-all-versions", meta_package])
        .context("no kernel in the package lists; run `apt-get update` and try again")?;
    kernel_of(&package_text).with_context(|| format!("{meta_package} depends on no kernel"))
}

/// Returns the kernel package that a package of this description depends on.
pub(crate) fn kernel_of(package_text: &str) -> Option<String> {
    package_text
        .lines()
        .filter_map(|line| line.strip_prefix("Depends: "))
        .flat_map(|depends| depends.split([',', '|']))
        .filter_map(|dependency| dependency.split_whitespace().next())
        .find(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
}

/// Returns modules with their dependencies in load order, from the output of `depmod`: `PATH:
/// NEEDED NEEDED …`, each list last to first. Built-in modules, like `virtio_pci` of Debian 13,
/// need no loading.
fn modules_in_order(folder: &Path, modules: &[&str]) -> Result<Vec<Module>> {
    let table = fs::read_to_string(folder.join("modules.dep"))?;
    let built_in = fs::read_to_string(folder.join("modules.builtin"))?;
    let mut paths: Vec<&str> = Vec::new();
    for module in modules {
        if built_in.lines().any(|path| module_name(path) == *module) {
            continue;
        }
        let (path, needs) = table
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(path, _)| module_name(path) == *module)
            .with_context(|| format!("the kernel has no module {module}"))?;
        for path in needs.split_whitespace().rev().chain([path]) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
        .into_iter()
        .map(|path| Ok((format!("{}.ko", module_name(path)), plain(&folder.join(path))?)))
        .collect()
}

fn module_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file)
}

/// Returns the uncompressed contents of a module.
fn plain(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "ko") {
        return Ok(fs::read(path)?);
    }
    let output = Command::new("xz").arg("-dc").arg(path).output()?;
    if !output.status.success() {
        bail!("xz cannot unpack {}", path.display());
    }
    Ok(output.stdout)
}

fn find(folder: &Path, is_match: impl Fn(&str) -> bool) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&is_match) {
            return Ok(entry.path());
        }
    }
    bail!("the kernel package is not as expected: nothing of the kind in {}", folder.display())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the path is not UTF-8")
}
