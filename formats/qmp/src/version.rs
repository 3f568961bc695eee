//! QEMU versions.

use core::fmt;

use serde_json::Value;

/// Version of QEMU, ordered by release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major version number, as `7` in `7.2.22`.
    pub major: u32,
    /// Minor version number, as `2` in `7.2.22`.
    pub minor: u32,
    /// Micro version number, as `22` in `7.2.22`.
    pub micro: u32,
}

impl Version {
    /// Creates a version from its numbers.
    pub const fn new(major: u32, minor: u32, micro: u32) -> Self {
        Self { major, minor, micro }
    }

    /// Decodes `VersionInfo` of `qapi/control.json`; `None` if malformed.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let qemu = value.get("qemu")?;
        let number = |name| u32::try_from(qemu.get(name)?.as_u64()?).ok();
        Some(Self { major: number("major")?, minor: number("minor")?, micro: number("micro")? })
    }

    /// Parses the first line of `qemu-system-x86_64 --version`, such as `QEMU emulator version
    /// 7.2.22 (Debian …)`; `None` if it contains no version.
    pub fn parse_program_output(text: &str) -> Option<Self> {
        let line = text.lines().next()?;
        let mut words = line.split_whitespace().skip_while(|word| *word != "version").skip(1);
        Self::from_text(words.next()?)
    }

    /// Parses a version in display format, such as `7.2.22`; `None` if malformed.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        Some(Self { major, minor, micro: numbers.next().flatten().unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn version_output_is_parsed() {
        let output = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright";
        assert_eq!(Version::parse_program_output(output), Some(Version::new(7, 2, 22)));
        assert_eq!(
            Version::parse_program_output("QEMU emulator version 10.0"),
            Some(Version::new(10, 0, 0))
        );
        assert_eq!(Version::parse_program_output("QEMU emulator version"), None);
        assert_eq!(Version::parse_program_output("version seven.2"), None);
        assert_eq!(Version::parse_program_output(""), None);
        assert!(Version::new(9, 2, 0) > Version::new(9, 1, 9));
        assert_eq!(Version::new(7, 2, 22).to_string(), "7.2.22");
    }
}
