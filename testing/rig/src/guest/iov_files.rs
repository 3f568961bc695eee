//! QEMU that emulates an adapter with SR-IOV, and a kernel with its drivers, prepared once and
//! kept.
//!
//! QEMU has `igb` since version 8. If the system's QEMU lacks it, as on Debian 12, both come from
//! the backports suite of the release, on the mirror of the system's packages, and are unpacked
//! without installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::run;
use crate::guest::archive::Archive;
use crate::guest::files::with_libraries;
use crate::guest::kernel::{kernel_of, unpack_from};
use crate::programs::{program, system_program};
use crate::rig::Rig;

/// Version of the kept files, incremented when their contents change.
const FORMAT: &str = "iov-5";
const QEMU: &str = "qemu-system-x86_64";
/// Packages of QEMU, without their further dependencies.
const QEMU_PACKAGES: &[&str] =
    &["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"];
const KERNEL_PACKAGE: &str = "linux-image-amd64";
/// Drivers of the adapter and of a VM inside the machine, which boots the same files.
const MODULES: &[&str] =
    &["igb", "igbvf", "vfio-pci", "vfio_iommu_type1", "virtio_pci", "virtio_net", "tun", "kvm-amd"];
const PROGRAMS: &[&str] = &["ip", "iperf3"];
/// Files that the system's QEMU needs to start a VM with a kernel.
const QEMU_FILES: &[&str] = &[
    "/usr/share/seabios/bios-256k.bin",
    "/usr/share/qemu/linuxboot_dma.bin",
    "/usr/share/qemu/kvmvapic.bin",
];
/// TCG of that QEMU, where it is a module.
const QEMU_TCG: &str = "/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so";
/// Option for the system's apt and the one of this folder.
const SANDBOX: [&str; 2] = ["-o", "APT::Sandbox::User=root"];

/// Files that such a machine is started from.
#[derive(Clone, Debug)]
pub(crate) struct IovFiles {
    /// Command of QEMU with the path of its firmware.
    pub(crate) qemu: Vec<String>,
    pub(crate) kernel: PathBuf,
    /// Drivers and busybox; [`suimon_inside`] adds Suimon's programs.
    initramfs: PathBuf,
}

/// Returns the files, created on first use below the workspace's `target/guest`.
///
/// # Errors
/// Packages cannot be downloaded, with the suite that was tried.
pub(crate) fn iov_files() -> Result<IovFiles> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
    let folder = target.join(FORMAT);
    if !folder.join("complete").is_file() {
        fs::create_dir_all(&target)?;
        let work = tempfile::Builder::new().prefix("making-").tempdir_in(&target)?;
        let files = work.path().join("made");
        fs::create_dir(&files)?;
        make(work.path(), &files)?;
        fs::write(files.join("complete"), "")?;
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&files, &folder)?;
    }
    Ok(IovFiles {
        qemu: qemu_in(&folder.join("qemu"))?,
        kernel: folder.join("vmlinuz"),
        initramfs: folder.join("initramfs.cpio"),
    })
}

fn make(work: &Path, files: &Path) -> Result<()> {
    let is_enough = has_igb(&[QEMU.to_owned()]);
    let apt = if is_enough { None } else { Some(backports(work)?) };
    let apt = apt.as_deref();
    let package_text =
        apt_get(apt, "apt-cache", &["show", "--no-all-versions", KERNEL_PACKAGE], work)?;
    let kernel = kernel_of(&package_text).context("the kernel's package depends on no kernel")?;
    let downloads = work.join("kernel-package");
    fs::create_dir(&downloads)?;
    apt_get(apt, "apt-get", &["-qq", "download", &kernel], &downloads)?;
    let kernel = unpack_from(&downloads, MODULES, &[])?;
    fs::copy(&kernel.image, files.join("vmlinuz"))?;
    let mut archive = Archive::default();
    archive.file("/init", include_bytes!("init.sh"));
    archive.file("/bin/busybox", &fs::read(system_program("busybox")?)?);
    let names: Vec<&str> = kernel.modules.iter().map(|(name, _)| name.as_str()).collect();
    archive.file("/modules/list", format!("{}\n", names.join("\n")).as_bytes());
    for (name, content) in &kernel.modules {
        archive.file(&format!("/modules/{name}"), content);
    }
    archive.file("/nested", include_bytes!("nested.sh"));
    let real = |name: &&str| Ok(fs::canonicalize(system_program(name)?)?);
    let programs: Vec<PathBuf> = PROGRAMS.iter().map(real).collect::<Result<_>>()?;
    for (path, content) in with_libraries(&programs)? {
        archive.file(&path, &content);
    }
    fs::write(files.join("initramfs.cpio"), archive.finish())?;
    if apt.is_some() {
        let packages = work.join("qemu-packages");
        fs::create_dir(&packages)?;
        apt_get(apt, "apt-get", &[&["-qq", "download"], QEMU_PACKAGES].concat(), &packages)?;
        for package in fs::read_dir(&packages)? {
            let package = package?.path();
            run(&["dpkg-deb", "--extract", text(&package)?, text(&files.join("qemu"))?])?;
        }
    }
    Ok(())
}

/// Returns the first arguments of the QEMU in this folder, or of the system's if there is none.
fn qemu_in(folder: &Path) -> Result<Vec<String>> {
    let mut command = vec![QEMU.to_owned()];
    let unpacked = folder.join("usr/bin").join(QEMU);
    if unpacked.is_file() {
        command = vec![text(&unpacked)?.to_owned()];
        let firmware = ["usr/share/qemu", "usr/share/seabios"].map(|path| folder.join(path));
        let system = ["/usr/lib/ipxe/qemu", "/usr/share/seabios"].map(PathBuf::from);
        for folder in firmware.iter().chain(&system) {
            command.extend(["-L".to_owned(), text(folder)?.to_owned()]);
        }
    }
    ensure!(
        has_igb(&command),
        "{} has no `igb`; a library that it needs may be missing (`ldd` tells)",
        command[0]
    );
    Ok(command)
}

fn has_igb(qemu: &[String]) -> bool {
    let Some((program, arguments)) = qemu.split_first() else { return false };
    let options = ["-machine", "q35", "-device", "igb,help"];
    let answer = Command::new(program).args(arguments).args(options).output();
    // A QEMU without the device succeeds too, with empty output.
    answer.is_ok_and(|answer| answer.status.success() && !answer.stdout.is_empty())
}

/// Writes an apt configuration with only the backports suite of this release, from the mirror of
/// the system's packages.
fn backports(work: &Path) -> Result<PathBuf> {
    let release = fs::read_to_string("/etc/os-release")?;
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .context("this release of the system has no code name")?;
    let format = "$(CODENAME) $(REPO_URI)";
    let targets = run(&["apt-get", "indextargets", "--format", format, "Created-By: Packages"])?;
    let mirror = targets
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{codename} ")))
        .with_context(|| format!("no source of apt has the suite {codename}"))?;
    let folder = work.join("apt");
    for part in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(folder.join(part))?;
    }
    let suite = format!("{codename}-backports");
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let source = format!("deb [signed-by={keys}] {mirror} {suite} main\n");
    fs::write(folder.join("sources.list"), source)?;
    let folder_text = text(&folder)?;
    let config = folder.join("apt.conf");
    let lines = [
        format!("Dir::Etc::sourcelist \"{folder_text}/sources.list\";"),
        "Dir::Etc::sourceparts \"-\";".to_owned(),
        format!("Dir::State::lists \"{folder_text}/lists\";"),
        format!("Dir::Cache::archives \"{folder_text}/archives\";"),
        "Dir::Cache::pkgcache \"\";".to_owned(),
        "Dir::Cache::srcpkgcache \"\";".to_owned(),
    ];
    fs::write(&config, lines.join("\n") + "\n")?;
    apt_get(Some(&config), "apt-get", &["-qq", "update"], work)
        .with_context(|| format!("the suite {suite} cannot be had from this system's mirror"))?;
    Ok(config)
}

/// Runs a program of apt in a folder, with the system's configuration or this one.
fn apt_get(
    config: Option<&Path>,
    program: &str,
    arguments: &[&str],
    folder: &Path,
) -> Result<String> {
    let mut command = Command::new("timeout");
    command.arg("300").arg(program).args(SANDBOX).args(arguments).current_dir(folder);
    if let Some(config) = config {
        command.env("APT_CONFIG", config);
    }
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", arguments.join(" "), stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the initramfs with Suimon's programs of this build, without debug information.
///
/// With `hosts_vms` it also contains the system's QEMU, and in `/boot` its own kernel and
/// initramfs.
pub(crate) fn suimon_inside(rig: &Rig, files: &IovFiles, hosts_vms: bool) -> Result<PathBuf> {
    let mut small = Vec::new();
    for name in ["suimond", "suimon"] {
        let (from, to) = (program(name)?, rig.file(name));
        run(&["objcopy", "--strip-debug", &from, text(&to)?])?;
        small.push(to);
    }
    let mut archive = Archive::default();
    for (path, content) in with_libraries(&small)? {
        archive.file(&path, &content);
    }
    if hosts_vms {
        let mut programs = vec![system_program(QEMU)?];
        if Path::new(QEMU_TCG).is_file() {
            programs.push(QEMU_TCG.into());
        }
        for (path, content) in with_libraries(&programs)? {
            // A file that is not a program keeps its path.
            let is_module = QEMU_TCG.ends_with(path.rsplit('/').next().unwrap_or(&path));
            archive.file(if is_module { QEMU_TCG } else { &path }, &content);
        }
        for path in QEMU_FILES {
            archive.file(path, &fs::read(path).with_context(|| format!("{path} is missing"))?);
        }
        archive.file("/boot/vmlinuz", &fs::read(&files.kernel)?);
        archive.file("/boot/initrd", &fs::read(&files.initramfs)?);
    }
    for folder in ["/var/lib/suimon", "/run/netns"] {
        archive.folder(folder);
    }
    let mut bytes = fs::read(&files.initramfs)?;
    bytes.extend(archive.finish());
    let path = rig.file(&rig.unique("initramfs"));
    fs::write(&path, bytes)?;
    Ok(path)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the path is not UTF-8")
}
