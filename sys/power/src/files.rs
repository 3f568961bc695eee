//! Access to single files of sysfs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Maximum size of a file in bytes: sysfs files have at most a page.
const BYTES_MAX: u64 = 4096;
/// Maximum length of a word in bytes: names of governors, drivers and states are short.
const VALUE_BYTES_MAX: usize = 64;

/// Returns the trimmed contents of a file; `None` if it does not exist, cannot be read or is not
/// UTF-8.
pub(crate) fn text(path: &Path) -> Option<String> {
    let file = open(path, OpenOptions::new().read(true)).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim().to_owned())
}

/// Returns a file's contents if they are a single short word without control characters.
pub(crate) fn read_value(path: &Path) -> Option<String> {
    text(path).filter(|text| is_value(text))
}

/// Returns a file's contents if they are a short name, which may contain spaces.
pub(crate) fn name(path: &Path) -> Option<String> {
    let is_name = |text: &String| {
        (1..=VALUE_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
    };
    text(path).filter(is_name)
}

/// Returns the words of a file that are separated by space; invalid ones are omitted.
pub(crate) fn read_values(path: &Path) -> Vec<String> {
    let content = text(path).unwrap_or_default();
    content.split_whitespace().filter(|text| is_value(text)).map(str::to_owned).collect()
}

fn is_value(text: &str) -> bool {
    (1..=VALUE_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns a file's contents as an integer.
pub(crate) fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// Returns a file's contents as a flag: 0 or 1.
pub(crate) fn flag(path: &Path) -> Option<bool> {
    match text(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Writes `value` in one call, as sysfs requires, with the flags that a shell uses.
///
/// # Errors
/// The error of the system.
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

/// Opens an existing regular file without blocking.
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
pub(crate) fn numbered<T>(folder: &Path, prefix: &str, max: usize) -> Vec<T>
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
