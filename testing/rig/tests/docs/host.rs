//! The file system in which a page is executed: the machine's, with directories of the page's own
//! where an administrator of Suimon writes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use suimon_rig::{Rig, guest_files, program, run};

/// Variable set by `scripts/isolated`, which starts the test in a mount namespace.
const TEST_FOLDER: &str = "SUIMON_TEST_FOLDER";
/// Root of the repository that contains this file.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Variable with the root of another checkout whose pages are executed instead. Pages get this
/// variable too.
const SOURCE: &str = "SUIMON_SOURCE";
/// Folder of the rig in which pages are executed.
pub(crate) const WORK: &str = "work";
/// Programs of this repository that pages call.
const PROGRAMS: [&str; 4] = ["suimond", "suimon", "suimon-lab", "sim"];
/// Directories whose content stays visible, and in which pages write.
const OVERLAID: [&str; 2] = ["/etc", "/var/lib"];
/// Directories of pages' data. They are empty at the start and on the disk of the temporary folder.
const DATA: [&str; 2] = ["/srv", "/mnt"];

/// Variables of the environment of a page, with their values.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// Returns the root of the checkout whose pages are executed.
pub(crate) fn root() -> PathBuf {
    std::env::var_os(SOURCE).map_or_else(|| PathBuf::from(ROOT), PathBuf::from)
}

/// Prepares the file system and returns the variables of the environment that pages have.
///
/// # Errors
/// The test does not run in namespaces of its own, or a mount fails.
pub(crate) fn prepare(rig: &Rig, page: &str) -> Result<Environment> {
    ensure!(
        std::env::var_os(TEST_FOLDER).is_some(),
        "pages write to /etc and /var/lib: run this test with cargo-nextest, which isolates it"
    );
    // VMs run as other users.
    fs::set_permissions(rig.folder(), PermissionsExt::from_mode(0o755))?;
    for name in [WORK, "overlay", "bin"] {
        fs::create_dir(rig.file(name))?;
    }
    // Overlays do not lie on overlays, which the temporary folder of a container is in.
    run(&["mount", "-t", "tmpfs", "tmpfs", &rig.path("overlay")])?;
    for folder in OVERLAID {
        let name = folder.replace('/', "-");
        let [upper, work] =
            ["upper", "work"].map(|kind| rig.path(&format!("overlay/{kind}{name}")));
        fs::create_dir(&upper)?;
        fs::create_dir(&work)?;
        let options = format!("lowerdir={folder},upperdir={upper},workdir={work}");
        run(&["mount", "-t", "overlay", "overlay", "-o", &options, folder])?;
    }
    let data = DATA.iter().copied().chain(["/etc/suimon", "/var/lib/suimon"]);
    for folder in data {
        let data_folder = rig.path(&format!("data{}", folder.replace('/', "-")));
        fs::create_dir_all(&data_folder)?;
        fs::create_dir_all(folder)?;
        run(&["mount", "--bind", &data_folder, folder])?;
    }
    for name in PROGRAMS {
        // Programs that the page does not call need not be built.
        if let Ok(path) = program(name) {
            symlink(path, rig.file(&format!("bin/{name}")))?;
        }
    }
    let mut environment = vec![
        (
            "PATH",
            format!(
                "{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                rig.path("bin")
            ),
        ),
        ("HOME", rig.path(WORK)),
        ("LC_ALL", "C.UTF-8".to_owned()),
        (SOURCE, fs::canonicalize(root())?.to_string_lossy().into_owned()),
    ];
    if page.contains("GUEST_KERNEL") {
        let files = guest_files()?;
        for (key, from) in [("GUEST_KERNEL", files.kernel), ("GUEST_INITRD", files.initramfs)] {
            let to = rig.file(&key.to_lowercase());
            fs::copy(&from, &to).with_context(|| from.display().to_string())?;
            fs::set_permissions(&to, PermissionsExt::from_mode(0o644))?;
            environment.push((key, to.to_string_lossy().into_owned()));
        }
    }
    Ok(environment)
}
