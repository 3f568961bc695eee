//! Disks that a VM boots from.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::files::with_libraries;
use crate::command::run;
use crate::programs::system_program;
use crate::rig::Rig;

/// Sector size of the firmware in bytes.
const SECTOR: usize = 512;

/// Creates an ext4 file system of `bytes` bytes for [`Boot::RootDisk`](crate::Boot), as a raw
/// image. It contains the guest's script, its shell, and these programs.
///
/// # Errors
/// `mkfs.ext4` is not installed, or the files do not fit.
pub fn make_root_disk(rig: &Rig, image: &Path, bytes: u64, programs: &[PathBuf]) -> Result<()> {
    let root = rig.file(&rig.unique("root"));
    for folder in ["bin", "modules", "run", "root", "var"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let mut files = with_libraries(programs)?;
    files.push(("/bin/busybox".to_owned(), fs::read(system_program("busybox")?)?));
    files.push(("/init".to_owned(), include_bytes!("init.sh").to_vec()));
    for (path, content) in files {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(&path, content)?;
        run(&["chmod", "755", path.to_str().context("the path is not UTF-8")?])?;
    }
    // The drivers were loaded before.
    fs::write(root.join("modules/list"), "")?;
    fs::write(root.join("on-disk"), "")?;
    fs::File::create(image)?.set_len(bytes)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let arguments = ["mkfs.ext4", "-q", "-F", "-d", &text(&root), &text(image)].map(str::to_owned);
    run(&arguments)?;
    fs::remove_dir_all(&root)?;
    Ok(())
}

/// Writes a boot sector to a raw image, and a message to the next sector. The firmware executes the
/// first sector, which reads the second and prints it on the serial line.
///
/// # Errors
/// The image cannot be written, or the message is longer than a sector.
pub fn make_boot_sector(image: &Path, message: &str) -> Result<()> {
    // 16-bit code at 0x7c00, encoded by hand because it is short.
    let code: [u8; 44] = [
        0xfa, // cli
        0x31, 0xc0, // xor ax, ax
        0x8e, 0xd8, // mov ds, ax
        0x8e, 0xd0, // mov ss, ax
        0xbc, 0x00, 0x7c, // mov sp, 0x7c00
        0xfb, // sti
        0xbe, 0x00, 0x7d, // mov si, 0x7d00: the packet below
        0xb4, 0x42, // mov ah, 0x42: extended read from drive dl
        0xcd, 0x13, // int 0x13
        0x72, 0x1a, // jc halt
        0xbe, 0x00, 0x7e, // mov si, 0x7e00
        0xac, // next: lodsb
        0x84, 0xc0, // test al, al
        0x74, 0x12, // jz halt
        0x88, 0xc3, // mov bl, al
        0xba, 0xfd, 0x03, // mov dx, 0x3fd: line status of the serial port
        0xec, // wait: in al, dx
        0xa8, 0x20, // test al, 0x20
        0x74, 0xfb, // jz wait
        0xba, 0xf8, 0x03, // mov dx, 0x3f8
        0x88, 0xd8, // mov al, bl
        0xee, // out dx, al
    ];
    let after: [u8; 5] = [0xeb, 0xe9, 0xf4, 0xeb, 0xfd]; // jmp next; halt: hlt; jmp halt
    let mut sector = [0; SECTOR];
    sector[..code.len()].copy_from_slice(&code);
    sector[code.len()..code.len() + after.len()].copy_from_slice(&after);
    // Disk address packet: 1 sector to 0000:7e00, from sector 1.
    let packet: [u8; 16] = [16, 0, 1, 0, 0x00, 0x7e, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    sector[0x100..0x110].copy_from_slice(&packet);
    sector[SECTOR - 2..].copy_from_slice(&[0x55, 0xaa]);
    let mut text = [0; SECTOR];
    // Terminated by a zero.
    let target = text[..SECTOR - 1].get_mut(..message.len()).context("the message is too long")?;
    target.copy_from_slice(message.as_bytes());
    let file = fs::OpenOptions::new().write(true).open(image)?;
    file.write_all_at(&sector, 0)?;
    file.write_all_at(&text, SECTOR as u64)?;
    Ok(())
}
