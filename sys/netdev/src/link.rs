//! Settings of a network device, by name, in the calling thread's namespace.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use suimon_frame::MacAddr;
use suimon_netif::ethtool::link_speed;
use suimon_netif::ioctl::{self, IfRequest, IfRequestOp};
use suimon_netif::netlink::LinkState;
use suimon_ports::{DeviceError, DeviceErrorKind, LinkSpeed};

use crate::errors::{device_error, host_error};

/// Maximum length of a device name in bytes.
const NAME_BYTES_MAX: usize = 15;

/// Name of a device, and a socket for requests about it. The device need not exist.
pub(crate) struct Link {
    socket: OwnedFd,
    name: String,
}

impl Link {
    /// Creates a handle for the device of this name.
    ///
    /// # Errors
    /// The name is not a valid device name, or no socket could be created.
    pub(crate) fn new(name: &str) -> Result<Self, DeviceError> {
        // The kernel treats `%d` as a template and `:` as an alias.
        let is_invalid = |letter: char| {
            letter.is_whitespace() || letter.is_control() || matches!(letter, '/' | ':' | '%')
        };
        if name.is_empty()
            || name.len() > NAME_BYTES_MAX
            || name == "."
            || name == ".."
            || name.contains(is_invalid)
        {
            let detail = format!(
                "`{}` is not a valid name of a network device; use 1 to {NAME_BYTES_MAX} bytes \
                 without space, `/`, `:` and `%`",
                name.escape_default()
            );
            return Err(device_error(DeviceErrorKind::Unsupported, "device", detail));
        }
        let socket =
            socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                .map_err(|errno| host_error("device", "opening a socket", &errno.into()))?;
        Ok(Self { socket, name: name.to_owned() })
    }

    /// Creates another socket of the same namespace, for requests about devices.
    pub(crate) fn socket(&self) -> Result<OwnedFd, DeviceError> {
        self.socket.try_clone().map_err(|cause| host_error("device", "opening a socket", &cause))
    }

    /// Returns the request socket and the device's name.
    pub(crate) fn request_socket(&self) -> (BorrowedFd<'_>, &str) {
        (self.socket.as_fd(), &self.name)
    }

    pub(crate) fn exists(&self) -> bool {
        self.index().is_ok()
    }

    /// Returns the interface index of the device.
    ///
    /// # Errors
    /// Usually `Missing`.
    pub(crate) fn index(&self) -> Result<u32, DeviceError> {
        let bytes = self.send_request(ioctl::GET_INDEX, "looking for")?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// Returns the interface index of the device, which must be an Ethernet device.
    ///
    /// # Errors
    /// Usually `Missing`; `Unsupported` if it is not an Ethernet device.
    pub(crate) fn ethernet_index(&self) -> Result<u32, DeviceError> {
        let index = self.index()?;
        if self.address()?.is_some() {
            return Ok(index);
        }
        let detail =
            format!("device {} is not an Ethernet device; choose another uplink", self.name);
        Err(device_error(DeviceErrorKind::Unsupported, "device", detail))
    }

    /// Returns the maximum size of an IP packet in bytes.
    pub(crate) fn mtu(&self) -> Result<u16, DeviceError> {
        let bytes = self.send_request(ioctl::GET_MTU, "reading the MTU of")?;
        Ok(u16::try_from(i32::from_ne_bytes(bytes)).unwrap_or(u16::MAX))
    }

    pub(crate) fn set_mtu(&self, mtu: u16) -> Result<(), DeviceError> {
        let set = self.request(ioctl::SET_MTU, i32::from(mtu).to_ne_bytes());
        set.map(drop).map_err(|cause| {
            let operation = format!("setting the MTU of device {} to {mtu}", self.name);
            if cause.raw_os_error() == Some(Errno::INVAL.raw_os_error()) {
                let detail = format!(
                    "{operation}: the device does not support this MTU; `ip -d link show {}` shows its \
                     range",
                    self.name
                );
                device_error(DeviceErrorKind::Unsupported, "mtu", detail)
            } else {
                host_error("mtu", &operation, &cause)
            }
        })
    }

    /// Returns the MAC address; `None` if it is not an Ethernet device.
    pub(crate) fn address(&self) -> Result<Option<MacAddr>, DeviceError> {
        let [low, high, a, b, c, d, e, f] =
            self.send_request(ioctl::GET_ADDRESS, "reading the address of")?;
        let ethernet = u16::from_ne_bytes([low, high]) == libc::ARPHRD_ETHER;
        Ok(ethernet.then(|| MacAddr::new([a, b, c, d, e, f])))
    }

    /// Sets the MAC address, unless the device has it: the kernel would discard the device's
    /// neighbour entries.
    pub(crate) fn set_address(&self, mac: MacAddr) -> Result<(), DeviceError> {
        if self.address()? == Some(mac) {
            return Ok(());
        }
        let [low, high] = libc::ARPHRD_ETHER.to_ne_bytes();
        let [a, b, c, d, e, f] = mac.octets();
        let set = self.request(ioctl::SET_ADDRESS, [low, high, a, b, c, d, e, f]);
        let operation = || format!("setting the address of device {} to {mac}", self.name);
        set.map(drop).map_err(|cause| host_error("mac", &operation(), &cause))
    }

    /// Sets the maximum number of packets that the device queues for its reader.
    pub(crate) fn set_queue_length(&self, packets: u16) -> Result<(), DeviceError> {
        let set = self.request(ioctl::SET_QUEUE_LENGTH, i32::from(packets).to_ne_bytes());
        let operation = || format!("setting the queue length of device {}", self.name);
        set.map(drop).map_err(|cause| host_error("device", &operation(), &cause))
    }

    /// Returns the current link state of the device.
    pub(crate) fn state(&self) -> Result<LinkState, DeviceError> {
        let flags = self.flags()?;
        Ok(LinkState {
            is_up: flags & libc::IFF_UP != 0,
            has_carrier: flags & libc::IFF_RUNNING != 0,
            mtu: Some(self.mtu()?),
            mac: self.address()?,
        })
    }

    pub(crate) fn bring_up(&self) -> Result<(), DeviceError> {
        let flags = self.flags()?;
        if flags & libc::IFF_UP != 0 {
            return Ok(());
        }
        // The request contains only the lower 16 flags, by the kernel's ABI.
        let bytes = ((flags | libc::IFF_UP) as u16).to_ne_bytes();
        let set = self.request(ioctl::SET_FLAGS, bytes);
        let operation = || format!("bringing device {} up", self.name);
        set.map(drop).map_err(|cause| host_error("device", &operation(), &cause))
    }

    /// Returns the link speed that the driver reports, by ioctl instead of netlink.
    pub(crate) fn speed(&self) -> Result<LinkSpeed, DeviceError> {
        match ioctl::speed_and_duplex(self.socket.as_fd(), &self.name) {
            Ok((mbps, duplex)) => Ok(link_speed(mbps, duplex)),
            Err(cause) if cause.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
                Ok(LinkSpeed::default())
            }
            Err(cause) => Err(self.explain("reading the speed of", &cause)),
        }
    }

    /// Returns the numbers of receive and of transmit queues, in this order; `None` if the driver
    /// reports none.
    pub(crate) fn queue_counts(&self) -> Result<Option<(u32, u32)>, DeviceError> {
        match ioctl::queue_counts(self.socket.as_fd(), &self.name) {
            Ok(queues) => Ok(Some(queues)),
            Err(cause) if cause.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Ok(None),
            Err(cause) => Err(self.explain("reading the queues of", &cause)),
        }
    }

    /// Returns true if the device removes VLAN tags from received frames.
    pub(crate) fn rx_vlan_offload(&self) -> Result<bool, DeviceError> {
        ioctl::has_feature(self.socket.as_fd(), &self.name, ioctl::RX_VLAN_OFFLOAD)
            .map_err(|cause| self.explain("reading the features of", &cause))
    }

    /// Enables or disables the removal of VLAN tags from received frames.
    pub(crate) fn set_rx_vlan_offload(&self, enabled: bool) -> Result<(), DeviceError> {
        ioctl::set_feature(self.socket.as_fd(), &self.name, ioctl::RX_VLAN_OFFLOAD, enabled)
            .map_err(|cause| self.explain("switching rx-vlan-offload of", &cause))
    }

    /// Returns true if the device is a TAP.
    pub(crate) fn is_tap(&self) -> Result<bool, DeviceError> {
        match ioctl::driver_and_bus(self.socket.as_fd(), &self.name) {
            Ok((driver, bus)) => Ok(driver == "tun" && bus == "tap"),
            Err(cause) if cause.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
                Ok(false)
            }
            Err(cause) => Err(self.explain("reading the driver of", &cause)),
        }
    }

    fn flags(&self) -> Result<i32, DeviceError> {
        let bytes = self.send_request(ioctl::GET_FLAGS, "reading the flags of")?;
        Ok(i32::from(u16::from_ne_bytes(bytes)))
    }

    fn send_request<const N: usize>(
        &self,
        op: IfRequestOp,
        doing: &str,
    ) -> Result<[u8; N], DeviceError> {
        let answer = self.request(op, []).map_err(|cause| self.explain(doing, &cause))?;
        Ok(answer.data())
    }

    fn request<const N: usize>(&self, op: IfRequestOp, data: [u8; N]) -> io::Result<IfRequest> {
        let mut request = IfRequest::new(&self.name).with_data(data);
        ioctl::execute_interface_op(self.socket.as_fd(), op, &mut request)?;
        Ok(request)
    }

    fn explain(&self, doing: &str, cause: &io::Error) -> DeviceError {
        if cause.raw_os_error() == Some(Errno::NODEV.raw_os_error()) {
            let detail = format!("device {} does not exist{}", self.name, self.similar());
            return device_error(DeviceErrorKind::Missing, "device", detail);
        }
        host_error("device", &format!("{doing} device {}", self.name), cause)
    }

    /// Returns a text like `; there are: eth0, eth1` for errors, with the most similar names first,
    /// to reveal a misspelling.
    fn similar(&self) -> String {
        let mut names = names();
        let common =
            |name: &String| name.bytes().zip(self.name.bytes()).take_while(|(a, b)| a == b).count();
        names.sort_by_key(|name| (core::cmp::Reverse(common(name)), name.clone()));
        names.truncate(8);
        if names.is_empty() {
            "; the host has no such devices".to_owned()
        } else {
            format!("; existing devices: {}", names.join(", "))
        }
    }
}

/// Returns the names of the devices in the calling thread's namespace, without loopback.
fn names() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = table.lines().skip(2).filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).filter(|name| name != "lo").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use crate::testing::TestNetns;

    #[test]
    fn settings_are_read_and_written_where_the_thread_is() {
        let netns = TestNetns::new();
        netns.run("ip link add upstream0 type veth peer name upstream1");
        let namespace = Namespace::open(Some(netns.name())).unwrap();
        let mac: MacAddr = "02:00:00:00:12:34".parse().unwrap();
        namespace
            .run(|| {
                let link = Link::new("upstream0")?;
                assert!(link.exists() && !link.state()?.is_up && !link.is_tap()?);
                link.set_mtu(4321)?;
                link.set_address(mac)?;
                link.set_queue_length(77)?;
                link.bring_up()?;
                Link::new("upstream1")?.bring_up()?;
                assert!(link.state()?.is_up);
                // The kernel updates the carrier with a delay.
                let mut samples = (0..100).map(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    link.state().unwrap().has_carrier
                });
                assert!(samples.any(|carrier| carrier));
                assert_eq!((link.mtu()?, link.address()?), (4321, Some(mac)));
                let error = link.set_mtu(10).unwrap_err();
                assert_eq!((error.kind, error.field), (DeviceErrorKind::Unsupported, "mtu"));
                let error = Link::new("upstrem0")?.index().unwrap_err();
                assert_eq!((error.kind, error.field), (DeviceErrorKind::Missing, "device"));
                assert!(
                    error.detail.contains("existing devices: upstream0, upstream1"),
                    "{}",
                    error.detail
                );
                Ok(())
            })
            .unwrap();
        assert!(netns.run("ip link show upstream0").contains("mtu 4321"));
        assert!(!Link::new("upstream0").unwrap().exists());
    }

    #[test]
    fn names_that_no_device_can_have_are_refused() {
        for name in ["", ".", "..", "a b", "a/b", "a:b", "tap%d", "sixteen-bytes-xx", "a\0b"] {
            assert_eq!(Link::new(name).err().unwrap().field, "device", "{name}");
        }
    }
}
