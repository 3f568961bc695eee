//! Kernel and initramfs that guests boot, created once and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};

use crate::command::run;
use crate::guest::archive::Archive;
use crate::guest::kernel::{self, Flavour, Kernel, Module};
use crate::programs::system_program;
use crate::rig::Rig;

/// Version of the initramfs, incremented when its contents change.
const FORMAT: &str = "9";

/// Programs of the host that the guest gets, with their libraries.
const PROGRAMS: &[&str] = &["iperf3", "ethtool"];

/// Library that the C library loads when a thread is cancelled, and that no program lists; without
/// it iperf3 with threads, as in Debian 13, aborts at its end.
const UNWINDER: &str = "libgcc_s.so.1";

/// Files that a guest boots.
#[derive(Clone, Debug)]
pub struct GuestFiles {
    /// Kernel image.
    pub kernel: PathBuf,
    /// Initramfs, the root file system.
    pub initramfs: PathBuf,
}

/// Returns the files, created on first use below the workspace's `target/guest`.
///
/// # Errors
/// The kernel package cannot be downloaded, or a program is not installed.
pub fn guest_files() -> Result<GuestFiles> {
    static FILES: Files = OnceLock::new();
    files_of(Flavour::Cloud, &FILES)
}

/// Returns the files of a guest that does not use virtio: its kernel has drivers for QEMU's
/// emulated devices.
///
/// # Errors
/// As [`guest_files`].
pub(crate) fn machine_files() -> Result<GuestFiles> {
    static FILES: Files = OnceLock::new();
    files_of(Flavour::Machine, &FILES)
}

type Files = OnceLock<Result<GuestFiles, String>>;

fn files_of(flavour: Flavour, files: &'static Files) -> Result<GuestFiles> {
    files
        .get_or_init(|| make(flavour).map_err(|error| format!("{error:#}")))
        .clone()
        .map_err(|error| anyhow!("cannot make the guest's files: {error}"))
}

fn make(flavour: Flavour) -> Result<GuestFiles> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
    let folder = match flavour {
        Flavour::Cloud => target.join(FORMAT),
        Flavour::Machine => target.join(format!("{FORMAT}-machine")),
    };
    let files =
        GuestFiles { kernel: folder.join("vmlinuz"), initramfs: folder.join("initramfs.cpio") };
    if files.kernel.is_file() && files.initramfs.is_file() {
        return Ok(files);
    }
    fs::create_dir_all(&target)?;
    // Created under a temporary name and renamed, so that an incomplete folder is never used.
    let work = tempfile::Builder::new().prefix("making-").tempdir_in(&target)?;
    let kernel = kernel::unpack(flavour, work.path())?;
    let target_dir = work.path().join("made");
    fs::create_dir(&target_dir)?;
    fs::copy(&kernel.image, target_dir.join("vmlinuz"))?;
    fs::write(target_dir.join("initramfs.cpio"), initramfs(&kernel)?)?;
    if fs::rename(&target_dir, &folder).is_err() && !files.initramfs.is_file() {
        // Removes an incomplete folder.
        fs::remove_dir_all(&folder)?;
        fs::rename(&target_dir, &folder)?;
    }
    Ok(files)
}

fn initramfs(kernel: &Kernel) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.file("/init", include_bytes!("init.sh"));
    archive.file("/bin/busybox", &fs::read(system_program("busybox")?)?);
    let mut list = String::new();
    for (name, content) in &kernel.modules {
        archive.file(&format!("/modules/{name}"), content);
        list.push_str(name);
        list.push('\n');
    }
    archive.file("/modules/list", list.as_bytes());
    for modules in &kernel.on_demand {
        add_on_demand(&mut archive, modules);
    }
    let programs: Vec<PathBuf> =
        PROGRAMS.iter().map(|program| system_program(program)).collect::<Result<_>>()?;
    for (path, content) in with_libraries(&programs)? {
        archive.file(&path, &content);
    }
    archive.link("/var/run", "/run");
    archive.folder("/root");
    Ok(archive.finish())
}

/// Returns the initramfs with additional programs and their libraries.
///
/// # Errors
/// A program does not exist.
pub(crate) fn initramfs_with(rig: &Rig, plain: PathBuf, programs: &[PathBuf]) -> Result<PathBuf> {
    if programs.is_empty() {
        return Ok(plain);
    }
    let mut archive = Archive::default();
    for (path, content) in with_libraries(programs)? {
        archive.file(&path, &content);
    }
    // The kernel unpacks concatenated archives.
    let mut bytes = fs::read(plain)?;
    bytes.extend(archive.finish());
    let path = rig.file(&rig.unique("initramfs"));
    fs::write(&path, bytes)?;
    Ok(path)
}

/// Returns programs in `/usr/bin` and their libraries at their own paths, as paths in the guest
/// with contents.
pub(crate) fn with_libraries(programs: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut libraries = Vec::new();
    for path in programs {
        let content = fs::read(path).with_context(|| format!("{} is missing", path.display()))?;
        let name = path.file_name().and_then(|name| name.to_str()).context("a program's name")?;
        files.push((format!("/usr/bin/{name}"), content));
        libraries.extend(libraries_of(path)?);
    }
    let unwinders: Vec<String> = libraries
        .iter()
        .filter(|library| library.ends_with("/libc.so.6"))
        .map(|library| library.replace("libc.so.6", UNWINDER))
        .filter(|library| Path::new(library).is_file())
        .collect();
    libraries.extend(unwinders);
    libraries.sort();
    libraries.dedup();
    for library in libraries {
        let content = fs::read(&library)?;
        files.push((library, content));
    }
    Ok(files)
}

/// Adds a module that may be loaded later, its dependencies, and a list of those.
fn add_on_demand(archive: &mut Archive, modules: &[Module]) {
    let Some(((module, _), needs)) = modules.split_last() else { return };
    let list: Vec<&str> = needs.iter().map(|(name, _)| name.as_str()).collect();
    let name = module.trim_end_matches(".ko");
    archive.file(&format!("/modules/{name}.needs"), list.join("\n").as_bytes());
    for (name, content) in modules {
        archive.file(&format!("/modules/{name}"), content);
    }
}

/// Returns the shared libraries of a program and their loader, as reported by `ldd`.
fn libraries_of(program: &Path) -> Result<Vec<String>> {
    let text = run(&["ldd", program.to_str().context("the path is not UTF-8")?])?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_whitespace().find(|path| path.starts_with('/')))
        .map(str::to_owned)
        .collect())
}
