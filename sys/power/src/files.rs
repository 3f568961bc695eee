//! Access to single files of sysfs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Maximum size of a file in bytes: sysfs files have at most a page.
const BYTES_MAX: u64 = 4096;
/// Maximum length in bytes of a value: names of governors, drivers and states are short.
const VALUE_BYTES_MAX: usize = 64;

/// Returns the trimmed contents of a file; `None` if it does not exist, cannot be read or is not
/// UTF-8.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let file = open(path, OpenOptions::new().read(true)).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim().to_owned())
}

/// Returns a file's contents if they are one word of printable ASCII characters, of at most
/// [`VALUE_BYTES_MAX`] bytes; otherwise `None`.
pub(crate) fn read_value(path: &Path) -> Option<String> {
    read_text(path).filter(|text| is_value(text))
}

/// Returns a file's contents if they are a name of at most [`VALUE_BYTES_MAX`] bytes, which may
/// contain spaces; otherwise `None`.
pub(crate) fn read_name(path: &Path) -> Option<String> {
    let is_name = |text: &String| {
        (1..=VALUE_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
    };
    read_text(path).filter(is_name)
}

/// Returns the words of a file that are separated by whitespace, without invalid ones.
pub(crate) fn read_values(path: &Path) -> Vec<String> {
    let content = read_text(path).unwrap_or_default();
    content.split_whitespace().filter(|text| is_value(text)).map(str::to_owned).collect()
}

fn is_value(text: &str) -> bool {
    (1..=VALUE_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns a file's contents as an integer; `None` if they are none or cannot be read.
pub(crate) fn read_number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    read_text(path)?.parse().ok()
}

/// Returns a file's contents as a flag, 0 or 1; `None` for other contents or if they cannot be
/// read.
pub(crate) fn read_flag(path: &Path) -> Option<bool> {
    match read_text(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Writes `value` to an existing file in one call, as sysfs requires, and truncates the file.
///
/// # Errors
/// The error of the system call.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = open(path, OpenOptions::new().write(true).truncate(true))?;
    match file.write(value.as_bytes())? {
        written if written == value.len() => Ok(()),
        written => {
            let text = format!("{written} of {} bytes were written", value.len());
            Err(io::Error::other(text))
        }
    }
}

/// Opens an existing file without blocking.
///
/// # Errors
/// The error of the system call, or the file is not a regular file.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}

/// Returns the numbers of a folder's entries named `prefix` and a number, in ascending order. Reads
/// at most `max` of them.
pub(crate) fn list_numbered<T>(folder: &Path, prefix: &str, max: usize) -> Vec<T>
where
    T: std::str::FromStr + Ord + ToString,
{
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut numbers: Vec<T> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let digits = name.to_str()?.strip_prefix(prefix)?;
            let number = digits.parse::<T>().ok()?;
            // `cpu007` is a different folder from `cpu7`.
            (number.to_string() == digits).then_some(number)
        })
        .take(max)
        .collect();
    numbers.sort_unstable();
    numbers
}
