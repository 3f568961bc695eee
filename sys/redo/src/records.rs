//! Redo records of all images of a host, one file per image in one directory.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use suimon_image::{ImageIdentity, MetadataChange, RedoChanges};
use suimon_ports::{RedoRecord, RedoRecords};

use crate::entry::{ENTRY_BYTES, Entry};
use crate::header::{HEADER_BYTES, Header, REPLAYED_ID_AT, VERSION, version};
use crate::record::{FileRecord, entry_offset};

/// Capacity of a new record: maximum number of entries.
const ROOM: u32 = 1024;
/// File name extension of records.
const ENDING: &str = "redo";
/// File name extension of records that are being created.
const NEW_ENDING: &str = "new";
/// File with the kernel's random identifier of the current boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Redo records stored as files of a directory.
#[derive(Clone, Debug)]
pub struct FileRecords {
    folder: PathBuf,
    boot_id: [u8; 16],
}

impl FileRecords {
    /// Opens a directory of records. Creates it with access for its owner only if it does not
    /// exist.
    ///
    /// # Errors
    /// The directory cannot be created, others could write to it, or the kernel does not report a
    /// boot id.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let metadata = fs::symlink_metadata(folder)?;
        let owner = rustix::process::geteuid().as_raw();
        if !metadata.is_dir() || metadata.uid() != owner || metadata.mode() & 0o077 != 0 {
            let text = format!(
                "{0} must be a directory owned by {owner} with mode 700; it holds completed \
                 writes that are not in their images yet: keep it, and run `chown {owner} {0} && \
                 chmod 700 {0}`",
                folder.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(Self { folder: folder.to_owned(), boot_id: boot_id()? })
    }

    /// Returns the path of the image's record if it contains changes that must be applied;
    /// otherwise `None`. `key` identifies the image. The directory may belong to any user. Writes,
    /// creates and removes nothing.
    ///
    /// # Errors
    /// The directory or the record exists and cannot be read, or the record is damaged.
    pub fn find_pending(folder: &Path, key: &str) -> io::Result<Option<PathBuf>> {
        let metadata = match fs::symlink_metadata(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let records = Self { folder: folder.to_owned(), boot_id: boot_id()? };
        let path = records.path(key)?;
        let file = match open_record(&path, OpenOptions::new().read(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let header = read_header(&file, &path)?;
        if header.boot_id != records.boot_id || read_entries(&file, &header)?.0.is_empty() {
            return Ok(None);
        }
        Ok(Some(path))
    }

    /// Removes records of earlier boots, records without entries, and incomplete files of records
    /// whose creation was interrupted. No image may be open.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed. All other files were removed.
    pub fn remove_stale_records(&self) -> io::Result<()> {
        let mut swept = Ok(());
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            let is_stale = match ending {
                Some(NEW_ENDING) => true,
                Some(ENDING) => self.is_void(&path),
                _ => false,
            };
            if is_stale {
                swept = remove(&path).and(swept);
            }
        }
        swept
    }

    /// Returns true if the record is of an earlier boot or has no entries. Returns false if it
    /// cannot be read, which is reported when its image is opened.
    fn is_void(&self, path: &Path) -> bool {
        let Ok(file) = open_record(path, OpenOptions::new().read(true)) else { return false };
        let header = read_header(&file, path);
        header.is_ok_and(|header| {
            header.boot_id != self.boot_id
                || read_entries(&file, &header).is_ok_and(|(changes, _)| changes.is_empty())
        })
    }

    /// Creates the file of a record, writes its header and allocates space for all entries.
    ///
    /// # Errors
    /// The file cannot be created or the space cannot be allocated; the file may remain.
    fn make(&self, path: &Path, opened: ImageIdentity) -> io::Result<File> {
        let mut options = OpenOptions::new();
        remove(path)?;
        let file = open_record(path, options.write(true).create_new(true).mode(0o600))?;
        let ImageIdentity { write_id, file_len } = opened;
        let (boot_id, redone_as) = (self.boot_id, [0; 16]);
        let header = Header {
            capacity: ROOM,
            boot_id,
            write_id,
            replayed_id: redone_as,
            first_entry: 0,
            file_len,
        };
        file.write_all_at(&header.encode(), 0)?;
        rustix::fs::fallocate(
            &file,
            rustix::fs::FallocateFlags::empty(),
            0,
            entry_offset(ROOM.into()),
        )?;
        Ok(file)
    }

    /// Returns the same directory of records with the boot id of another boot.
    #[cfg(test)]
    fn after_a_boot(&self) -> Self {
        Self { folder: self.folder.clone(), boot_id: [0xb0; 16] }
    }

    fn path(&self, key: &str) -> io::Result<PathBuf> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if key.is_empty() || key.len() > 100 || !key.chars().all(is_plain) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a key of a redo record"));
        }
        Ok(self.folder.join(format!("{key}.{ENDING}")))
    }
}

impl RedoRecords for FileRecords {
    fn load(&self, key: &str) -> io::Result<Option<RedoChanges>> {
        let path = self.path(key)?;
        let file = match open_record(&path, OpenOptions::new().read(true).write(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let header = read_header(&file, &path)?;
        if header.boot_id != self.boot_id {
            fs::remove_file(&path)?;
            return Ok(None);
        }
        let (changes, file_len) = read_entries(&file, &header)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let redone_as = match header.replayed_id {
            [0, ..] if header.replayed_id == [0; 16] => name_redoing(&file)?,
            replayed_id => replayed_id,
        };
        let opened = ImageIdentity { write_id: header.write_id, file_len };
        Ok(Some(RedoChanges { identity_at_open: opened, changes, new_write_id: redone_as }))
    }

    fn discard(&self, key: &str) -> io::Result<()> {
        remove(&self.path(key)?)
    }

    fn location(&self, key: &str) -> String {
        self.path(key).map_or_else(|_| key.to_owned(), |path| path.display().to_string())
    }

    fn create(&self, key: &str, opened: ImageIdentity) -> io::Result<Box<dyn RedoRecord>> {
        let path = self.path(key)?;
        let new = path.with_extension(NEW_ENDING);
        let result =
            self.make(&new, opened).and_then(|file| fs::rename(&new, &path).map(|()| file));
        match result {
            Ok(file) => Ok(Box::new(FileRecord::new(file, path, ROOM))),
            Err(error) => {
                let _ = remove(&new);
                Err(error)
            }
        }
    }
}

/// Removes a file; succeeds if it does not exist.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Opens a record without following a symbolic link.
///
/// # Errors
/// The file cannot be opened, or is not a regular file.
fn open_record(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Opening a FIFO must not block.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(damaged(path)) }
}

fn read_header(file: &File, path: &Path) -> io::Result<Header> {
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact_at(&mut bytes, 0)?;
    if let Some(version) = version(&bytes).filter(|version| *version != VERSION) {
        let text = format!(
            "{} has version {version} of the format, and this version of suimond reads version \
             {VERSION}; install the version of suimond that wrote it",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let header = Header::decode(&bytes).filter(|header| (1..=ROOM).contains(&header.capacity));
    header.ok_or_else(|| damaged(path))
}

/// Reads all valid entries that are not truncated. Returns their changes, and the minimum length of
/// the image file in bytes.
///
/// # Errors
/// The record cannot be read, a valid entry has contents that this version cannot decode, or an
/// invalid entry is followed by a valid one.
fn read_entries(file: &File, header: &Header) -> io::Result<(Vec<MetadataChange>, u64)> {
    let capacity = u64::from(header.capacity);
    let mut bytes = vec![0; header.capacity as usize * ENTRY_BYTES];
    file.read_exact_at(&mut bytes, entry_offset(0))?;
    let mut changes = Vec::new();
    let mut file_len = header.file_len;
    let mut is_end = false;
    for number in header.first_entry..header.first_entry.saturating_add(capacity) {
        let offset = (number % capacity) as usize * ENTRY_BYTES;
        let entry_bytes = bytes.get(offset..offset + ENTRY_BYTES).unwrap_or_default();
        let entry = Entry::decode(entry_bytes);
        // Not the end of the record: the changes of a completed write would be lost.
        if entry.is_none() && Entry::number_of(entry_bytes) == Some(number) {
            let text = "an entry of the redo record has contents that this version of suimond does \
                        not have; install the version of suimond that wrote it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        // Entries after the end have lower numbers, or are incomplete.
        let Some(entry) = entry.filter(|entry| entry.number == number) else {
            is_end = true;
            continue;
        };
        if is_end {
            let text = "an entry of the redo record is damaged";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        file_len = file_len.max(entry.file_len);
        changes.push(entry.change);
    }
    Ok((changes, file_len))
}

/// Generates the identifier that applying the record assigns to the image, and stores it in the
/// header, so that a repeated attempt uses the same one.
fn name_redoing(file: &File) -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    getrandom(&mut id, GetRandomFlags::empty())?;
    file.write_all_at(&id, REPLAYED_ID_AT)?;
    Ok(id)
}

fn damaged(path: &Path) -> io::Error {
    let text = format!("{} is not a redo record, or is damaged", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn boot_id() -> io::Result<[u8; 16]> {
    parse_uuid(fs::read_to_string(BOOT_ID)?.trim())
}

fn parse_uuid(text: &str) -> io::Result<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16);
    number.map(u128::to_be_bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests;
