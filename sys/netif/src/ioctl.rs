//! ioctls of network interfaces and TAP devices, each bound to its argument type.
#![allow(unsafe_code, reason = "ioctl has no safe form for these requests")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{Ioctl, c_int, c_ulong};

const NAME_ROOM: usize = libc::IFNAMSIZ;
const DATA_ROOM: usize = 24;

/// `struct ifreq` (netdevice(7)): a device's name and 24 bytes whose meaning depends on the
/// request.
#[repr(C, align(8))]
pub struct IfRequest {
    name: [u8; NAME_ROOM],
    data: [u8; DATA_ROOM],
}

impl IfRequest {
    /// Creates a request for `device`, whose name was checked to be at most 15 bytes.
    pub fn new(device: &str) -> Self {
        let mut name = [0; NAME_ROOM];
        let target = name.iter_mut().take(NAME_ROOM - 1);
        target.zip(device.bytes()).for_each(|(to, from)| *to = from);
        Self { name, data: [0; DATA_ROOM] }
    }

    /// Returns the request with its first `N` bytes of data set to `bytes`.
    pub fn with_data<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.data.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        self
    }

    /// Returns the first `N` bytes of the data; `N` is at most 24.
    pub fn data<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.iter_mut().zip(self.data).for_each(|(to, from)| *to = from);
        bytes
    }
}

/// ioctl whose argument is a `struct ifreq` without a pointer in its data.
#[derive(Clone, Copy)]
pub struct IfRequestOp(Ioctl);

/// Reads the flags of an interface: `short ifr_flags`.
pub const GET_FLAGS: IfRequestOp = IfRequestOp(libc::SIOCGIFFLAGS);
/// Sets the flags of an interface: `short ifr_flags`.
pub const SET_FLAGS: IfRequestOp = IfRequestOp(libc::SIOCSIFFLAGS);
/// Reads the MTU in bytes: `int ifr_mtu`.
pub const GET_MTU: IfRequestOp = IfRequestOp(libc::SIOCGIFMTU);
/// Sets the MTU in bytes: `int ifr_mtu`.
pub const SET_MTU: IfRequestOp = IfRequestOp(libc::SIOCSIFMTU);
/// Reads the hardware address: `struct sockaddr ifr_hwaddr`.
pub const GET_ADDRESS: IfRequestOp = IfRequestOp(libc::SIOCGIFHWADDR);
/// Sets the hardware address: `struct sockaddr ifr_hwaddr`.
pub const SET_ADDRESS: IfRequestOp = IfRequestOp(libc::SIOCSIFHWADDR);
/// Reads the interface index: `int ifr_ifindex`.
pub const GET_INDEX: IfRequestOp = IfRequestOp(libc::SIOCGIFINDEX);
/// Sets the transmit queue length in packets: `int ifr_qlen`.
pub const SET_QUEUE_LENGTH: IfRequestOp = IfRequestOp(libc::SIOCSIFTXQLEN);
/// Creates a TAP device, or attaches the descriptor to an existing one: `short ifr_flags`
/// (`IFF_*`).
pub const TAP_ATTACH: IfRequestOp = IfRequestOp(libc::TUNSETIFF);

/// Executes an ioctl on the interface named in `request`, which receives the result.
///
/// # Errors
/// The errno of the call.
pub fn execute_interface_op(
    fd: BorrowedFd<'_>,
    op: IfRequestOp,
    request: &mut IfRequest,
) -> io::Result<()> {
    // SAFETY: every `IfRequestOp` reads and writes one `struct ifreq` without
    // pointers in it; `IfRequest` has its layout and is at least as large.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), op.0, core::ptr::from_mut(request)) })
}

/// ioctl of a TAP device whose argument is a number.
#[derive(Clone, Copy)]
pub struct TapValueOp(Ioctl);

/// Sets the offloads that the TAP's user accepts: flags `TUN_F_*`.
pub const TAP_OFFLOAD: TapValueOp = TapValueOp(libc::TUNSETOFFLOAD);
/// Sets whether the TAP outlives its descriptor: 0 or 1.
pub const TAP_PERSIST: TapValueOp = TapValueOp(libc::TUNSETPERSIST);

/// Executes an ioctl on the TAP device of `fd`.
///
/// # Errors
/// The errno of the call.
pub fn execute_tap_op(fd: BorrowedFd<'_>, op: TapValueOp, value: u32) -> io::Result<()> {
    // SAFETY: every `TapValueOp` takes its argument by value.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), op.0, c_ulong::from(value)) })
}

/// Sets the length in bytes of the virtio-net header before each frame of a TAP.
///
/// # Errors
/// The errno of the call.
pub fn set_tap_header_bytes(fd: BorrowedFd<'_>, bytes: u8) -> io::Result<()> {
    let bytes = c_int::from(bytes);
    // SAFETY: TUNSETVNETHDRSZ reads one int.
    checked(unsafe {
        libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, core::ptr::from_ref(&bytes))
    })
}

const ETHTOOL_GDRVINFO: u32 = 3;
const TEXT_ROOM: usize = 32;

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    cmd: u32,
    driver: [u8; TEXT_ROOM],
    version: [u8; TEXT_ROOM],
    firmware: [u8; TEXT_ROOM],
    bus: [u8; TEXT_ROOM],
    unused: [u8; TEXT_ROOM + 12 + 20],
}

/// Returns the driver and the bus that a device reports: `("tun", "tap")` for a TAP.
///
/// # Errors
/// The errno of the call; `EOPNOTSUPP` if the driver reports none.
pub fn driver_and_bus(fd: BorrowedFd<'_>, device: &str) -> io::Result<(String, String)> {
    let text = [0; TEXT_ROOM];
    let mut info = DriverInfo {
        cmd: ETHTOOL_GDRVINFO,
        driver: text,
        version: text,
        firmware: text,
        bus: text,
        unused: [0; TEXT_ROOM + 12 + 20],
    };
    // SAFETY: ETHTOOL_GDRVINFO writes a DriverInfo.
    unsafe { ethtool(fd, device, &mut info) }?;
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
    };
    Ok((text(&info.driver), text(&info.bus)))
}

const ETHTOOL_GSET: u32 = 1;

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct LinkSettings {
    cmd: u32,
    modes: [u32; 2],
    speed: u16,
    duplex: u8,
    port: [u8; 5],
    packets: [u32; 2],
    speed_high: u16,
    crossover: [u8; 2],
    partner_modes: u32,
    reserved: [u32; 2],
}

/// Returns speed (Mbit/s) and duplex mode as a device's driver reports them;
/// [`link_speed`](crate::ethtool::link_speed) converts them.
///
/// # Errors
/// The errno of the call; `EOPNOTSUPP` if the driver reports none.
pub fn speed_and_duplex(fd: BorrowedFd<'_>, device: &str) -> io::Result<(u32, u8)> {
    let mut settings = LinkSettings { cmd: ETHTOOL_GSET, ..LinkSettings::default() };
    // SAFETY: ETHTOOL_GSET writes a LinkSettings.
    unsafe { ethtool(fd, device, &mut settings) }?;
    Ok((u32::from(settings.speed_high) << 16 | u32::from(settings.speed), settings.duplex))
}

const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    cmd: u32,
    maxima: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// Returns the numbers of receive and of transmit queues of a device.
///
/// # Errors
/// The errno of the call; `EOPNOTSUPP` if the driver reports none.
pub fn queue_counts(fd: BorrowedFd<'_>, device: &str) -> io::Result<(u32, u32)> {
    let mut channels = Channels { cmd: ETHTOOL_GCHANNELS, ..Channels::default() };
    // SAFETY: ETHTOOL_GCHANNELS writes a Channels.
    unsafe { ethtool(fd, device, &mut channels) }?;
    let total = |separate: u32| separate.saturating_add(channels.combined);
    Ok((total(channels.rx), total(channels.tx)))
}

const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;

/// Device feature that `ETHTOOL_SFLAGS` enables and disables.
#[derive(Clone, Copy)]
pub struct Feature(u32);

/// `rx-vlan-offload`, `ETH_FLAG_RXVLAN`: the device removes VLAN tags from received frames.
pub const RX_VLAN_OFFLOAD: Feature = Feature(1 << 8);
/// `ntuple-filters`, `ETH_FLAG_NTUPLE`: the device applies flow rules.
pub const NTUPLE_FILTERS: Feature = Feature(1 << 27);

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    cmd: u32,
    data: u32,
}

/// Returns true if a feature of a device is enabled.
///
/// # Errors
/// The errno of the call.
pub fn has_feature(fd: BorrowedFd<'_>, device: &str, feature: Feature) -> io::Result<bool> {
    Ok(flags(fd, device)? & feature.0 != 0)
}

/// Enables or disables a feature of a device.
///
/// # Errors
/// The errno of the call; `EINVAL` or `EOPNOTSUPP` if it cannot be changed.
pub fn set_feature(
    fd: BorrowedFd<'_>,
    device: &str,
    feature: Feature,
    enabled: bool,
) -> io::Result<()> {
    let other_flags = flags(fd, device)? & !feature.0;
    let data = if enabled { other_flags | feature.0 } else { other_flags };
    let mut value = EthtoolValue { cmd: ETHTOOL_SFLAGS, data };
    // SAFETY: ETHTOOL_SFLAGS reads an EthtoolValue.
    unsafe { ethtool(fd, device, &mut value) }
}

fn flags(fd: BorrowedFd<'_>, device: &str) -> io::Result<u32> {
    let mut value = EthtoolValue { cmd: ETHTOOL_GFLAGS, data: 0 };
    // SAFETY: ETHTOOL_GFLAGS writes an EthtoolValue.
    unsafe { ethtool(fd, device, &mut value) }?;
    Ok(value.data)
}

/// Executes an ethtool command on `device`.
///
/// # Safety
/// `command` must be the structure that the command in its first four bytes reads and writes.
pub unsafe fn ethtool<T: ?Sized>(
    fd: BorrowedFd<'_>,
    device: &str,
    command: &mut T,
) -> io::Result<()> {
    let address = core::ptr::from_mut(command).cast::<u8>().expose_provenance();
    let mut request = IfRequest::new(device).with_data(address.to_ne_bytes());
    // SAFETY: the request's data begins with a pointer to `command`, which the caller ensures to
    // have the command's type, and which outlives the call.
    checked(unsafe {
        libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL as Ioctl, core::ptr::from_mut(&mut request))
    })
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
