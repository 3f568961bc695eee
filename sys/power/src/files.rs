//! Single files of sysfs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// What a file of sysfs has at most: a page.
const BYTES_MAX: u64 = 4096;
/// Longest word that means something: governors, drivers and states have short names.
const WORD_BYTES_MAX: usize = 64;

/// What a file says, without space around it; `None` if there is no such file, or it cannot
/// be read or understood.
pub(crate) fn text(path: &Path) -> Option<String> {
    let file = open(path, OpenOptions::new().read(true)).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim().to_owned())
}

/// A single short word without anything that could drive a terminal.
pub(crate) fn word(path: &Path) -> Option<String> {
    text(path).filter(|text| is_word(text))
}

/// The name of something, which may have spaces.
pub(crate) fn name(path: &Path) -> Option<String> {
    let is_name = |text: &String| {
        (1..=WORD_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
    };
    text(path).filter(is_name)
}

/// Words with space between them; those that are none are left out.
pub(crate) fn words(path: &Path) -> Vec<String> {
    let all = text(path).unwrap_or_default();
    all.split_whitespace().filter(|text| is_word(text)).map(str::to_owned).collect()
}

fn is_word(text: &str) -> bool {
    (1..=WORD_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A whole number.
pub(crate) fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// 0 or 1.
pub(crate) fn flag(path: &Path) -> Option<bool> {
    match text(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Writes all of `value` in one go, as sysfs wants it, and with what a shell opens it with.
///
/// # Errors
/// The system's.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = open(path, OpenOptions::new().write(true).truncate(true))?;
    match file.write(value.as_bytes())? {
        written if written == value.len() => Ok(()),
        written => {
            let text = format!("{written} of {} bytes were taken", value.len());
            Err(io::Error::other(text))
        }
    }
}

/// Opens a regular file that is there, and waits for nobody.
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

/// Names in a folder that are `prefix` and a number, with that number, ascending and no more
/// than `most`.
pub(crate) fn numbered<T>(folder: &Path, prefix: &str, most: usize) -> Vec<T>
where
    T: std::str::FromStr + Ord + ToString,
{
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut numbers: Vec<T> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let digits = name.to_str()?.strip_prefix(prefix)?;
            let number = digits.parse::<T>().ok()?;
            // `cpu007` is another folder than `cpu7`.
            (number.to_string() == digits).then_some(number)
        })
        .take(most)
        .collect();
    numbers.sort_unstable();
    numbers
}
