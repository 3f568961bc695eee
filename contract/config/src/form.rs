//! Forms of values: the syntax and range that a key's value must have, with the description used in
//! error messages.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use serde_json::Value;
use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::PciAddress;

use crate::{ByteSize, Name, ResourceKind, StoreFile, TrunkVlans};

/// Largest number of workers of a host.
pub(crate) const WORKERS_MAX: usize = 64;
/// Largest number of host addresses on an AF_XDP uplink. Received packets are compared with each
/// address in turn.
pub(crate) const HOST_ADDRESSES_MAX: usize = 16;
/// Largest length of a Unix socket's path in bytes: `sun_path` of `sockaddr_un` holds 108 bytes
/// including the terminating zero (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Largest length of a network device's name in bytes: `IFNAMSIZ` is 16, including the terminating
/// zero (netdevice(7)).
const DEVICE_BYTES_MAX: usize = 15;
const ADAPTER: &str =
    "the name of a network device, like eth0, or a PCI address, like 0000:03:00.0";
/// Largest length of a user or group name in bytes: `LOGIN_NAME_MAX` of Linux is 256, including the
/// terminating zero (limits.h).
const ACCOUNT_BYTES_MAX: usize = 255;
/// Largest length of a DNS name in bytes, in textual form without the trailing dot (RFC 1035,
/// section 2.3.4).
const DNS_NAME_BYTES_MAX: usize = 253;
const DEVICE: &str = "a device name of 1 to 15 bytes without `/`, `:`, `%` and spaces, like eth0, \
                      and not `all` or `default`";
const HOST_NAME: &str = "a host name of 1 to 63 letters, digits and `-` that starts and ends with \
                         a letter or a digit";
const HOST_AND_PORT: &str = "a host name or IP address and a port, like node2.example.net:8443, \
                             192.0.2.2:8443 or [2001:db8::2]:8443";
const FILE_NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4095;

/// Form of a value: syntax, type and range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Name of a resource, as defined by [`Name`].
    Name,
    /// List of one or more names of resources.
    Names {
        /// Largest number of names.
        max: usize,
    },
    /// Host name (RFC 1123, section 2.1; one label).
    HostName,
    /// Name of a network device.
    NetworkDevice,
    /// Network adapter: device name or PCI address.
    Adapter,
    /// Name of a network namespace.
    NetworkNamespace,
    /// Absolute path of a Unix socket.
    UnixSocketPath,
    /// Absolute path of a file.
    FilePath,
    /// IP address and TCP port.
    SocketAddress,
    /// Loopback IP address and TCP port other than 0.
    LoopbackAddress,
    /// IP address or host name, and a TCP port.
    HostAndPort,
    /// List of one or more distinct URLs with a host and a port.
    Urls {
        /// Largest number of URLs.
        max: usize,
    },
    /// List of one or more distinct unicast IP addresses.
    UnicastIps {
        /// Largest number of addresses.
        max: usize,
    },
    /// List of one or more users or groups of this host, by name or number.
    Accounts {
        /// Largest number of accounts.
        max: usize,
    },
    /// List of one or more distinct DNS names.
    DnsNames {
        /// Largest number of names.
        max: usize,
    },
    /// DNS name of a host (RFC 1123, section 2.1).
    DnsName,
    /// List of one or more distinct IP addresses and networks.
    IpNetworks {
        /// Largest number of entries.
        max: usize,
    },
    /// MAC address of a station: unicast, not all zero.
    UnicastMac,
    /// VLAN id, 1 to 4094.
    Vlan,
    /// List of VLAN ids and ranges.
    Vlans,
    /// List of logical CPU numbers.
    Cpus,
    /// Integer within a range.
    Number {
        /// Smallest accepted value.
        min: u64,
        /// Largest accepted value.
        max: u64,
    },
    /// Integer within a range, or a keyword.
    NumberOrKeyword {
        /// Smallest accepted value.
        min: u64,
        /// Largest accepted value.
        max: u64,
        /// Keyword accepted in place of a number.
        keyword: &'static str,
    },
    /// Number of bytes, or a text that consists of a number and a unit, such as `10 GiB`.
    Bytes {
        /// Smallest accepted value.
        min: u64,
        /// Largest accepted value.
        max: u64,
        /// Unit of the value in bytes: the value is a multiple of it.
        step: u64,
    },
    /// One of the listed numbers.
    OneOfNumbers(&'static [u64]),
    /// Path of a file, relative to its store's path.
    StoreFile,
    /// Serial number of a disk: printable ASCII characters.
    Serial {
        /// Largest number of characters.
        max: usize,
    },
    /// One line of text without control characters.
    SingleLineText {
        /// Largest length in bytes.
        max: usize,
    },
    /// Boolean: `true` or `false`.
    Flag,
    /// One of the listed keywords.
    OneOfKeywords(&'static [&'static str]),
    /// Table with the keys of this kind.
    Table(ResourceKind),
    /// Array of tables with the keys of this kind.
    Tables(ResourceKind),
}

impl Form {
    /// Returns the description that follows "must be" in error messages.
    pub fn describe(self) -> String {
        match self {
            Self::Name => "a name of 1 to 63 letters, digits, `-`, `_` and `.` that starts with \
                           a letter or a digit"
                .into(),
            Self::Names { max } => {
                format!("a list of 1 to {max} names, like [\"left\", \"right\"]")
            }
            Self::HostName => HOST_NAME.into(),
            Self::NetworkDevice => DEVICE.into(),
            Self::Adapter => ADAPTER.into(),
            Self::NetworkNamespace => {
                "the name of a network namespace, as `ip netns list` shows it".into()
            }
            Self::UnixSocketPath => "an absolute path of at most 107 bytes".into(),
            Self::FilePath => "an absolute path".into(),
            Self::SocketAddress => "an IP address and a port, like 192.0.2.1:8443".into(),
            Self::LoopbackAddress => "a loopback address and a port, like 127.0.0.1:7446".into(),
            Self::HostAndPort => HOST_AND_PORT.into(),
            Self::Urls { max } => describe_urls(max),
            Self::DnsName => "a DNS name, like node2.example.net".into(),
            Self::UnicastIps { max } => describe_stations(max),
            Self::Accounts { max } => describe_accounts(max),
            Self::DnsNames { max } => {
                format!("a list of 1 to {max} different DNS names, like [\"vm1.example.org\"]")
            }
            Self::IpNetworks { max } => describe_networks(max),
            Self::UnicastMac => {
                "a unicast MAC address of six pairs of hex digits like 52:54:00:12:34:56, not a \
                 group address and not all zero"
                    .into()
            }
            Self::Vlan => "a number from 1 to 4094".into(),
            Self::Vlans => {
                "a non-empty list of VLANs (1 to 4094) and ranges, like [10, \"20-29\"]".into()
            }
            Self::Cpus => {
                format!("a list of 1 to {WORKERS_MAX} different CPU numbers, like [2, 3]")
            }
            Self::Number { min, max } => {
                format!("a whole number from {min} to {max}")
            }
            Self::NumberOrKeyword { min, max, keyword } => {
                format!("a whole number from {min} to {max}, or `{keyword}`")
            }
            Self::Bytes { min, max, step } => describe_bytes(min, max, step),
            Self::OneOfNumbers(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                format!("one of {}", numbers.join(", "))
            }
            Self::StoreFile => {
                "a path relative to the store's directory, like vms/web.vhdx, without `/` at its \
                 start, `.` and `..`"
                    .into()
            }
            Self::Serial { max } => {
                format!("1 to {max} printable ASCII characters without spaces at the ends")
            }
            Self::SingleLineText { max } => {
                format!("1 to {max} bytes without control characters")
            }
            Self::Flag => "true or false".into(),
            Self::OneOfKeywords(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Table(kind) => format!("a table with the keys of `{}`", kind.noun()),
            Self::Tables(kind) => {
                format!("a list of tables; start each with [[{}]]", kind.noun())
            }
        }
    }

    /// Returns true if `value` has this form. The content of tables is checked separately.
    pub fn accepts(self, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            Self::Name => text.is_some_and(|text| text.parse::<Name>().is_ok()),
            Self::Names { max } => is_name_list(value, max),
            Self::HostName => text.is_some_and(is_host_name),
            Self::NetworkDevice => text.is_some_and(is_device_name),
            Self::Adapter => text.is_some_and(is_adapter),
            Self::NetworkNamespace => text.is_some_and(is_namespace_name),
            Self::UnixSocketPath => text.is_some_and(|text| {
                is_absolute_path(text)
                    && text.len() <= SOCKET_PATH_BYTES_MAX
                    && !text.ends_with('/')
            }),
            Self::FilePath => text.is_some_and(is_absolute_path),
            Self::SocketAddress => text.is_some_and(|text| text.parse::<SocketAddr>().is_ok()),
            Self::LoopbackAddress => text.is_some_and(|text| {
                text.parse::<SocketAddr>()
                    .is_ok_and(|address| address.ip().is_loopback() && address.port() != 0)
            }),
            Self::HostAndPort => text.is_some_and(is_host_and_port),
            Self::DnsName => text.is_some_and(is_dns_name),
            Self::Urls { max } => is_list_of(value, max, is_url),
            Self::UnicastIps { max } => is_station_ip_list(value, max),
            Self::Accounts { max } => is_list_of(value, max, is_account),
            Self::DnsNames { max } => is_list_of(value, max, is_dns_name),
            Self::IpNetworks { max } => is_list_of(value, max, is_network),
            Self::UnicastMac => {
                text.and_then(|text| text.parse::<MacAddr>().ok()).is_some_and(MacAddr::is_station)
            }
            Self::Vlan => {
                value.as_u64().and_then(|id| u16::try_from(id).ok()).and_then(VlanId::new).is_some()
            }
            Self::Vlans => serde_json::from_value::<TrunkVlans>(value.clone())
                .is_ok_and(|trunk| !trunk.0.is_empty()),
            Self::Cpus => is_cpu_list(value),
            Self::Number { min, max } => {
                value.as_u64().is_some_and(|number| (min..=max).contains(&number))
            }
            Self::NumberOrKeyword { min, max, keyword } => {
                text == Some(keyword) || Self::Number { min, max }.accepts(value)
            }
            Self::Bytes { min, max, step } => {
                serde_json::from_value(value.clone()).map(ByteSize::bytes).is_ok_and(|bytes| {
                    (min..=max).contains(&bytes) && bytes.checked_rem(step) == Some(0)
                })
            }
            Self::OneOfNumbers(numbers) => {
                value.as_u64().is_some_and(|number| numbers.contains(&number))
            }
            Self::StoreFile => text.is_some_and(|text| text.parse::<StoreFile>().is_ok()),
            Self::Serial { max } => text.is_some_and(|text| is_serial(text, max)),
            Self::SingleLineText { max } => text.is_some_and(|text| is_line(text, max)),
            Self::Flag => value.is_boolean(),
            Self::OneOfKeywords(words) => text.is_some_and(|text| words.contains(&text)),
            Self::Table(_) => value.is_object(),
            Self::Tables(_) => {
                value.as_array().is_some_and(|tables| tables.iter().all(Value::is_object))
            }
        }
    }

    /// Returns true if `value` has the right type, even if it is out of range.
    pub fn is_right_type(self, value: &Value) -> bool {
        match self {
            Self::Name
            | Self::HostName
            | Self::NetworkDevice
            | Self::Adapter
            | Self::NetworkNamespace
            | Self::UnixSocketPath
            | Self::FilePath
            | Self::SocketAddress
            | Self::LoopbackAddress
            | Self::HostAndPort
            | Self::DnsName
            | Self::UnicastMac
            | Self::StoreFile
            | Self::Serial { .. }
            | Self::SingleLineText { .. }
            | Self::OneOfKeywords(_) => value.is_string(),
            Self::Vlan | Self::Number { .. } | Self::OneOfNumbers(_) => {
                value.is_i64() || value.is_u64()
            }
            Self::Bytes { .. } | Self::NumberOrKeyword { .. } => {
                value.is_i64() || value.is_u64() || value.is_string()
            }
            Self::Flag => value.is_boolean(),
            Self::Vlans
            | Self::Cpus
            | Self::Names { .. }
            | Self::Urls { .. }
            | Self::UnicastIps { .. }
            | Self::Accounts { .. }
            | Self::DnsNames { .. }
            | Self::IpNetworks { .. }
            | Self::Tables(_) => value.is_array(),
            Self::Table(_) => value.is_object(),
        }
    }
}

fn is_name_list(value: &Value, max: usize) -> bool {
    value.as_array().is_some_and(|list| {
        (1..=max).contains(&list.len()) && list.iter().all(|name| Form::Name.accepts(name))
    })
}

/// Returns true for a list of one to `max` distinct texts that satisfy `is_one`.
fn is_list_of(value: &Value, max: usize, is_one: fn(&str) -> bool) -> bool {
    let Some(list) = value.as_array() else { return false };
    let texts: BTreeSet<&str> =
        list.iter().filter_map(Value::as_str).filter(|text| is_one(text)).collect();
    (1..=max).contains(&list.len()) && texts.len() == list.len()
}

/// Returns true if `/etc/passwd` or `/etc/group` may contain the account (passwd(5)), or if it is a
/// number.
fn is_account(text: &str) -> bool {
    (1..=ACCOUNT_BYTES_MAX).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b':' | b',' | b'/'))
}

/// Returns true for a DNS name (RFC 1123, section 2.1).
fn is_dns_name(text: &str) -> bool {
    text.len() <= DNS_NAME_BYTES_MAX && text.split('.').all(is_host_name)
}

/// Returns true for a `SocketAddr` or a DNS name with a port. Port 0 and unspecified addresses are
/// not valid destinations.
fn is_host_and_port(text: &str) -> bool {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return address.port() != 0 && !address.ip().is_unspecified();
    }
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    // Digits and dots without a letter are a mistyped address, not a name.
    let is_name = is_dns_name(host) && host.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_name
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse() != Ok(0_u16)
        && port.parse::<u16>().is_ok()
}

/// Returns true for an HTTP or HTTPS URL that consists of scheme, host and port.
fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(is_host_and_port)
}

fn is_network(text: &str) -> bool {
    text.parse::<IpNet>().is_ok() || text.parse::<IpAddr>().is_ok()
}

fn is_station_ip_list(value: &Value, max: usize) -> bool {
    let Some(list) = value.as_array() else { return false };
    let addresses: BTreeSet<IpAddr> = list
        .iter()
        .filter_map(|address| address.as_str()?.parse().ok())
        .filter(|address| is_station_ip(*address))
        .collect();
    (1..=max).contains(&list.len()) && addresses.len() == list.len()
}

fn is_station_ip(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(is_broadcast
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_loopback()
        || address.to_canonical() != address)
}

fn is_host_name(text: &str) -> bool {
    let edge = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric());
    (1..=63).contains(&text.len())
        && edge(text.bytes().next())
        && edge(text.bytes().last())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Returns true for a valid device name: the kernel's rule (`dev_valid_name`), without `%`, which
/// the kernel expands as a number template, and without `all` and `default`, which are not devices
/// in `/proc/sys/net/ipv4/conf`.
fn is_device_name(text: &str) -> bool {
    (1..=DEVICE_BYTES_MAX).contains(&text.len())
        && !matches!(text, "." | ".." | "all" | "default")
        && text
            .chars()
            .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '/' | ':' | '%'))
}

fn is_adapter(text: &str) -> bool {
    is_device_name(text) || text.parse::<PciAddress>().is_ok()
}

fn is_namespace_name(text: &str) -> bool {
    (1..=FILE_NAME_BYTES_MAX).contains(&text.len())
        && text != "."
        && text != ".."
        && text.chars().all(|c| c != '/' && !c.is_control())
}

fn is_absolute_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= PATH_BYTES_MAX && !text.contains('\0')
}

fn describe_stations(max: usize) -> String {
    format!(
        "a list of 1 to {max} different unicast IP addresses, like [\"192.0.2.7\", \
         \"2001:db8::7\"]"
    )
}

/// Describes a list of names or numbers of users.
fn describe_accounts(max: usize) -> String {
    format!("a list of 1 to {max} names or numbers, like [\"qemu\", \"107\"]")
}

fn describe_urls(max: usize) -> String {
    format!(
        "a list of 1 to {max} different URLs, each http:// or https:// with a host and a port, \
         like [\"https://192.0.2.10:2379\"]"
    )
}

fn describe_networks(max: usize) -> String {
    format!(
        "a list of 1 to {max} different IP addresses and networks, like [\"192.0.2.7\", \
         \"2001:db8::/64\"]"
    )
}

fn describe_bytes(min: u64, max: u64, step: u64) -> String {
    let (min, max) = (ByteSize::new(min), ByteSize::new(max));
    let multiple = match step {
        1 => String::new(),
        _ => format!(", a multiple of {}", ByteSize::new(step)),
    };
    format!(
        "a size from {min} to {max}{multiple}, as a number of bytes or like \"10 GiB\" (B, \
         KiB, MiB, GiB, TiB)"
    )
}

fn is_serial(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
}

fn is_line(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn is_cpu_list(value: &Value) -> bool {
    let Some(list) = value.as_array() else { return false };
    let cpus: BTreeSet<_> =
        list.iter().filter_map(Value::as_u64).filter_map(|cpu| u16::try_from(cpu).ok()).collect();
    (1..=WORKERS_MAX).contains(&list.len()) && cpus.len() == list.len()
}
