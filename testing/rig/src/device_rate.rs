//! A real device that does so many bytes a second and no more, for one process: by the
//! kernel's throttle of control groups, version 1 (`blkio`) or 2 (`io`).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::leftovers;
use crate::rig::Rig;

/// The throttle; taken away when this is dropped.
///
/// The kernel lets what a tenth of a second allows go at once and then holds the rest
/// (block/blk-throttle.c, `throtl_slice`), so such a device is exact over a second and
/// lumpy within one.
#[derive(Debug)]
pub struct DeviceRate {
    group: PathBuf,
    root: PathBuf,
}

impl DeviceRate {
    /// From now on process `pid` reads and writes so many bytes a second each at most on
    /// the device that `folder` is on. What it had begun before, and what the page cache
    /// writes for it, goes as it did.
    ///
    /// # Errors
    /// The folder is not on a block device, or the kernel has no such throttle.
    pub fn limit(rig: &Rig, pid: u32, folder: &Path, bytes_per_s: u64) -> Result<Self> {
        let device = device_of(folder)?;
        let mounts = fs::read_to_string("/proc/mounts")?;
        let hierarchy = hierarchy(&mounts).context(
            "no control groups that throttle devices are mounted (blkio, or io of version 2)",
        )?;
        leftovers::sweep_groups(hierarchy.root());
        let own = rig.folder().file_name().context("a rig's folder has a name")?;
        let name = rig.unique(&own.to_string_lossy());
        let throttle =
            Self { group: hierarchy.root().join(name), root: hierarchy.root().to_owned() };
        let write = |path: PathBuf, text: &str| {
            fs::write(&path, text).with_context(|| format!("{}: {text}", path.display()))
        };
        if let Hierarchy::Unified(root) = &hierarchy {
            write(root.join("cgroup.subtree_control"), "+io")?;
        }
        fs::create_dir(&throttle.group).with_context(|| throttle.group.display().to_string())?;
        for (file, text) in hierarchy.settings(&device, bytes_per_s) {
            write(throttle.group.join(file), &text)?;
        }
        write(throttle.group.join(PROCESSES), &pid.to_string())?;
        Ok(throttle)
    }
}

impl Drop for DeviceRate {
    fn drop(&mut self) {
        let processes = fs::read_to_string(self.group.join(PROCESSES)).unwrap_or_default();
        for pid in processes.lines() {
            let _ = fs::write(self.root.join(PROCESSES), pid);
        }
        let _ = fs::remove_dir(&self.group);
    }
}

const PROCESSES: &str = "cgroup.procs";

/// Where control groups that throttle devices are.
#[derive(Debug, PartialEq)]
enum Hierarchy {
    /// Version 1.
    Blkio(PathBuf),
    /// Version 2.
    Unified(PathBuf),
}

impl Hierarchy {
    fn root(&self) -> &Path {
        match self {
            Self::Blkio(root) | Self::Unified(root) => root,
        }
    }

    /// The files to write, and what.
    fn settings(&self, device: &str, bytes_per_s: u64) -> Vec<(&'static str, String)> {
        match self {
            Self::Blkio(_) => ["blkio.throttle.write_bps_device", "blkio.throttle.read_bps_device"]
                .map(|file| (file, format!("{device} {bytes_per_s}")))
                .to_vec(),
            Self::Unified(_) => {
                vec![("io.max", format!("{device} rbps={bytes_per_s} wbps={bytes_per_s}"))]
            }
        }
    }
}

/// Finds it in the text of `/proc/mounts`. Where both versions are mounted the first has
/// the controller.
fn hierarchy(mounts: &str) -> Option<Hierarchy> {
    let mut unified = None;
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, path, kind, options, ..] = fields[..] else { continue };
        match kind {
            "cgroup" if options.split(',').any(|option| option == "blkio") => {
                return Some(Hierarchy::Blkio(path.into()));
            }
            "cgroup2" => unified = Some(Hierarchy::Unified(path.into())),
            _ => {}
        }
    }
    unified
}

/// The whole block device that a folder's file system is on, as `MAJOR:MINOR`.
fn device_of(folder: &Path) -> Result<String> {
    let number = fs::metadata(folder).with_context(|| folder.display().to_string())?.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    ensure!(
        major != 0,
        "{}: its file system is on no block device, so nothing can throttle it; name a folder \
         that is on a disk",
        folder.display()
    );
    let entry = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    if !entry.exists() {
        bail!("{}: the kernel shows no device {major}:{minor}", folder.display());
    }
    // Only whole devices are throttled.
    let whole = if entry.join("partition").exists() {
        fs::canonicalize(&entry)?.parent().context("a partition is of a device")?.to_owned()
    } else {
        entry
    };
    let number = fs::read_to_string(whole.join("dev"))?;
    Ok(number.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_has_the_controller_is_found() {
        let both = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                    cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
                    cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                    cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n";
        let blkio = Hierarchy::Blkio("/sys/fs/cgroup/blkio".into());
        assert_eq!(hierarchy(both), Some(blkio));
        let unified = Hierarchy::Unified("/sys/fs/cgroup".into());
        assert_eq!(hierarchy("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"), Some(unified));
        assert_eq!(hierarchy("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"), None);
    }

    #[test]
    fn both_versions_get_both_directions() {
        let settings = Hierarchy::Blkio("/x".into()).settings("8:0", 1000);
        assert_eq!(settings[0], ("blkio.throttle.write_bps_device", "8:0 1000".to_owned()));
        assert_eq!(settings.len(), 2);
        let settings = Hierarchy::Unified("/x".into()).settings("8:0", 1000);
        assert_eq!(settings, [("io.max", "8:0 rbps=1000 wbps=1000".to_owned())]);
    }

    #[test]
    fn memory_cannot_be_throttled() {
        let error = device_of(Path::new("/proc")).unwrap_err();
        assert!(error.to_string().contains("name a folder that is on a disk"), "{error}");
    }
}
