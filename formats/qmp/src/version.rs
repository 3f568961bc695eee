//! Versions of QEMU.

use core::fmt;

use serde_json::Value;

/// A version of QEMU; later ones are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Its first number.
    pub major: u32,
    /// Its second number.
    pub minor: u32,
    /// Its third number.
    pub micro: u32,
}

impl Version {
    /// A version of these numbers.
    pub const fn new(major: u32, minor: u32, micro: u32) -> Self {
        Self { major, minor, micro }
    }

    /// What `VersionInfo` of `qapi/control.json` says; nothing if it is no such thing.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let qemu = value.get("qemu")?;
        let number = |name| u32::try_from(qemu.get(name)?.as_u64()?).ok();
        Some(Self { major: number("major")?, minor: number("minor")?, micro: number("micro")? })
    }

    /// What the first line of `qemu-system-x86_64 --version` says, like
    /// `QEMU emulator version 7.2.22 (Debian …)`; nothing if it says none.
    pub fn from_program(text: &str) -> Option<Self> {
        let line = text.lines().next()?;
        let mut words = line.split_whitespace().skip_while(|word| *word != "version").skip(1);
        Self::from_text(words.next()?)
    }

    /// A version as it is displayed, like `7.2.22`; nothing if it is none.
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
    fn what_the_program_says_is_read() {
        let said = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright";
        assert_eq!(Version::from_program(said), Some(Version::new(7, 2, 22)));
        assert_eq!(
            Version::from_program("QEMU emulator version 10.0"),
            Some(Version::new(10, 0, 0))
        );
        assert_eq!(Version::from_program("QEMU emulator version"), None);
        assert_eq!(Version::from_program("version seven.2"), None);
        assert_eq!(Version::from_program(""), None);
        assert!(Version::new(9, 2, 0) > Version::new(9, 1, 9));
        assert_eq!(Version::new(7, 2, 22).to_string(), "7.2.22");
    }
}
