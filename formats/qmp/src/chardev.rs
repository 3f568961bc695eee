//! Client sockets that QEMU opens, and their reconnection.

use serde_json::{Map, Value, json};

use crate::version::Version;

/// First QEMU version with the option `reconnect-ms`; `reconnect` has been deprecated since.
const IN_MILLISECONDS: Version = Version::new(9, 2, 0);
/// First QEMU version with reconnection of `-netdev stream`.
const STREAMS_RECONNECT: Version = Version::new(8, 0, 0);

/// Option by which a client socket of QEMU reconnects after its connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconnectOption {
    /// No option: the socket does not reconnect (`-netdev stream` before QEMU 8.0).
    Never,
    /// Option `reconnect`, set to one second (before QEMU 9.2).
    SecondsKey,
    /// Option `reconnect-ms`, set to one second (QEMU 9.2 and later).
    MillisecondsKey,
}

impl ReconnectOption {
    /// Returns the reconnection option for socket chardevs of this QEMU version.
    pub fn for_chardev(version: Version) -> Self {
        if version >= IN_MILLISECONDS { Self::MillisecondsKey } else { Self::SecondsKey }
    }

    /// Returns the reconnection option for stream netdevs of this QEMU version; none before 8.0.
    pub fn for_stream(version: Version) -> Self {
        if version >= STREAMS_RECONNECT { Self::for_chardev(version) } else { Self::Never }
    }

    const fn option(self) -> Option<(&'static str, u32)> {
        match self {
            Self::Never => None,
            Self::SecondsKey => Some(("reconnect", 1)),
            Self::MillisecondsKey => Some(("reconnect-ms", 1000)),
        }
    }

    pub(crate) fn add_to(self, object: &mut Map<String, Value>) {
        if let Some((name, value)) = self.option() {
            object.insert(name.to_owned(), json!(value));
        }
    }
}

/// Returns the value of `-chardev` for a client socket; QEMU does not accept JSON there.
pub fn chardev_option(id: &str, path: &str, reconnect: ReconnectOption) -> String {
    // QEMU's option lists escape a comma by doubling it.
    let mut option = format!("socket,id={id},path={}", path.replace(',', ",,"));
    if let Some((name, value)) = reconnect.option() {
        option.push_str(&format!(",{name}={value}"));
    }
    option
}

#[cfg(test)]
mod tests {
    use super::{ReconnectOption, chardev_option};
    use crate::version::Version;

    #[test]
    fn paths_with_commas_are_escaped() {
        let option = chardev_option("nic-a", "/run/a,server=on,b", ReconnectOption::SecondsKey);
        assert_eq!(option, "socket,id=nic-a,path=/run/a,,server=on,,b,reconnect=1");
    }

    #[test]
    fn reconnect_option_depends_on_version() {
        let old = Version::new(7, 2, 22);
        assert_eq!(ReconnectOption::for_chardev(old), ReconnectOption::SecondsKey);
        assert_eq!(ReconnectOption::for_stream(old), ReconnectOption::Never);
        assert_eq!(ReconnectOption::for_stream(Version::new(8, 0, 0)), ReconnectOption::SecondsKey);
        assert_eq!(
            ReconnectOption::for_chardev(Version::new(10, 0, 0)),
            ReconnectOption::MillisecondsKey
        );
        assert_eq!(
            ReconnectOption::for_stream(Version::new(9, 2, 0)),
            ReconnectOption::MillisecondsKey
        );
    }
}
