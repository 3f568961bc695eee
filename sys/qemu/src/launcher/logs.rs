//! Logs of VMs with bounded size. A guest can write to its console, and cause messages of QEMU,
//! without limit.

use std::io::{self, Read, Seek, SeekFrom};

use super::folder::Folder;

/// Name of the file with messages of QEMU, in the VM's folder.
pub(crate) const QEMU_LOG: &str = "qemu.log";
/// Name of the file with the output of the guest's serial console, in the VM's folder.
pub(crate) const CONSOLE_LOG: &str = "console.log";
/// Size in bytes above which a log is truncated.
const BYTES_MAX: u64 = 1 << 20;
/// Number of bytes at the end of a log that a truncation keeps.
const KEPT: u64 = 128 << 10;
/// Maximum number of bytes of a log that are quoted in an error.
const TAIL_BYTES: u64 = 2048;
/// Maximum number of lines of a log that are quoted in an error.
const TAIL_LINES: usize = 10;

/// If a log exceeds the limit, removes all but its end. Data written at the same time may be lost.
pub(crate) fn cut(folder: &Folder, name: &str) -> io::Result<()> {
    let mut file = folder.open_file(name)?;
    if file.metadata()?.len() <= BYTES_MAX {
        return Ok(());
    }
    let end = read_end(&mut file, KEPT)?;
    // Writers use `O_APPEND`, so they continue at the new end of the file.
    file.set_len(0)?;
    file.rewind()?;
    io::Write::write_all(&mut file, &end)
}

/// Returns the last lines of QEMU's log, without control characters, for an error.
pub(crate) fn tail(folder: &Folder) -> String {
    let read = || read_end(&mut folder.open_file(QEMU_LOG)?, TAIL_BYTES);
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    let lines = lines.get(first..).unwrap_or_default().join("; ");
    lines.chars().filter(|character| !character.is_control()).collect()
}

fn read_end(file: &mut std::fs::File, bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut end = Vec::new();
    file.by_ref().take(bytes).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, KEPT, QEMU_LOG, cut, tail};
    use crate::launcher::folder::Root;
    use crate::launcher::user::LauncherUser;

    #[test]
    fn a_truncated_log_keeps_its_end_and_writers_continue() {
        let root_folder = tempfile::tempdir().unwrap();
        let root = Root::open(root_folder.path(), LauncherUser::Own).unwrap();
        let path = root_folder.path().join("vm");
        root.prepare(&path, 0).unwrap();
        let folder = root.find(&path).unwrap();
        let log = std::fs::File::from(folder.log(QEMU_LOG).unwrap());
        let write = |text: &str| std::io::Write::write_all(&mut &log, text.as_bytes()).unwrap();
        write(&"x\n".repeat(BYTES_MAX as usize / 2));
        cut(&folder, QEMU_LOG).unwrap();
        assert_eq!(log.metadata().unwrap().len(), BYTES_MAX);
        write("an \u{1b}[31mend\n");
        cut(&folder, QEMU_LOG).unwrap();
        assert_eq!(log.metadata().unwrap().len(), KEPT);
        write("the end\n");
        assert_eq!(log.metadata().unwrap().len(), KEPT + 8);
        assert!(tail(&folder).ends_with("x; x; an [31mend; the end"), "{}", tail(&folder));
    }
}
