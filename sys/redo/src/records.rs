//! The records of a host.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};
use suimon_image::{MetadataChange, OpenedImage, Redo};
use suimon_ports::{RedoRecord, RedoRecords};

use crate::entry::{ENTRY, Entry};
use crate::header::{HEADER, Header, REDONE_AS_AT};
use crate::record::{FileRecord, place};

/// Entries of a record.
const ROOM: u32 = 1024;
/// Of a record's name, and of one that is being made.
const ENDING: &str = "redo";
const NEW_ENDING: &str = "new";
/// The kernel's name for this boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Records as files of a directory.
#[derive(Clone, Debug)]
pub struct FileRecords {
    folder: PathBuf,
    boot_id: [u8; 16],
}

impl FileRecords {
    /// Records in a directory, which is made for its owner only if it is not there.
    ///
    /// # Errors
    /// The directory cannot be made, or the kernel does not name its boot.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let text = fs::read_to_string(BOOT_ID)?;
        let records = Self { folder: folder.to_owned(), boot_id: parse_uuid(text.trim())? };
        records.sweep()?;
        Ok(records)
    }

    /// Removes records of earlier boots, and what a killed process has left of one that it began.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            let is_stale = match ending {
                Some(NEW_ENDING) => true,
                Some(ENDING) => self.is_of_another_boot(&path),
                _ => false,
            };
            if is_stale {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// What cannot be read is told when its image is opened.
    fn is_of_another_boot(&self, path: &Path) -> bool {
        let mut header = [0; HEADER];
        let read = File::open(path).and_then(|file| file.read_exact_at(&mut header, 0));
        let header = read.ok().and_then(|()| Header::decode(&header));
        header.is_some_and(|header| header.boot_id != self.boot_id)
    }

    /// Makes a record with room for all its entries.
    fn make(&self, path: &Path, opened: OpenedImage) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let OpenedImage { write_id, file_len } = opened;
        let (boot_id, redone_as) = (self.boot_id, [0; 16]);
        let header = Header { room: ROOM, boot_id, write_id, redone_as, first: 0, file_len };
        file.write_all_at(&header.encode(), 0)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, place(ROOM.into()))?;
        Ok(file)
    }

    /// The same records as after another boot.
    #[cfg(test)]
    fn after_a_boot(&self) -> Self {
        Self { folder: self.folder.clone(), boot_id: [0xb0; 16] }
    }

    fn path(&self, key: &str) -> io::Result<PathBuf> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if key.is_empty() || key.len() > 100 || !key.chars().all(is_plain) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a key of a record"));
        }
        Ok(self.folder.join(format!("{key}.{ENDING}")))
    }
}

impl RedoRecords for FileRecords {
    fn load(&self, key: &str) -> io::Result<Option<Redo>> {
        let path = self.path(key)?;
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)?;
        let header = Header::decode(&header)
            .filter(|header| (1..=ROOM).contains(&header.room))
            .ok_or_else(|| damaged(&path))?;
        if header.boot_id != self.boot_id {
            fs::remove_file(&path)?;
            return Ok(None);
        }
        let (changes, file_len) = read_entries(&file, &header)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let redone_as = match header.redone_as {
            [0, ..] if header.redone_as == [0; 16] => name_redoing(&file)?,
            known => known,
        };
        let opened = OpenedImage { write_id: header.write_id, file_len };
        Ok(Some(Redo { opened, changes, redone_as }))
    }

    fn discard(&self, key: &str) -> io::Result<()> {
        remove(&self.path(key)?)
    }

    fn place(&self, key: &str) -> String {
        self.path(key).map_or_else(|_| key.to_owned(), |path| path.display().to_string())
    }

    fn begin(&self, key: &str, opened: OpenedImage) -> io::Result<Box<dyn RedoRecord>> {
        let path = self.path(key)?;
        let new = path.with_extension(NEW_ENDING);
        let made = self.make(&new, opened).and_then(|file| fs::rename(&new, &path).map(|()| file));
        match made {
            Ok(file) => Ok(Box::new(FileRecord::new(file, path, ROOM))),
            Err(error) => {
                let _ = remove(&new);
                Err(error)
            }
        }
    }
}

/// Removes a file that may be gone.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Entries that are kept, and how long the file must be for them.
fn read_entries(file: &File, header: &Header) -> io::Result<(Vec<MetadataChange>, u64)> {
    let room = u64::from(header.room);
    let mut bytes = vec![0; header.room as usize * ENTRY];
    file.read_exact_at(&mut bytes, place(0))?;
    let mut changes = Vec::new();
    let mut file_len = header.file_len;
    for number in header.first..header.first.saturating_add(room) {
        let at = (number % room) as usize * ENTRY;
        let entry = bytes.get(at..at + ENTRY).and_then(Entry::decode);
        // What follows was kept in an earlier round, or was being written.
        let Some(entry) = entry.filter(|entry| entry.number == number) else { break };
        file_len = file_len.max(entry.file_len);
        changes.push(entry.change);
    }
    Ok((changes, file_len))
}

/// Chooses the identity that whoever redoes gives the image, once for all tries.
fn name_redoing(file: &File) -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    getrandom(&mut id, GetRandomFlags::empty())?;
    file.write_all_at(&id, REDONE_AS_AT)?;
    Ok(id)
}

fn damaged(path: &Path) -> io::Error {
    let text = format!("{} is no record of this version: remove it", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn parse_uuid(text: &str) -> io::Result<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16);
    number.map(u128::to_be_bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests;
