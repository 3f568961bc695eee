//! Queries of a network device's features and link speed by ethtool netlink.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use suimon_netif::ethtool::{self, ReplyError};
use suimon_ports::{DeviceError, DeviceErrorKind, DeviceFeatures, LinkSpeed};

use crate::errors::{device_error, host_error};
use crate::link::Link;

/// Time limit for a reply, which normally is available before `send` returns.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of datagrams read per query, including late replies to earlier queries.
const DATAGRAMS_MAX: usize = 8;
/// Receive buffer size in bytes. The features of a device, four bit sets of about seventy bits,
/// take about 5 KB.
const DATAGRAM_BYTES: usize = 64 << 10;

/// Queries of devices in this process's namespace, which contains all uplinks. Any thread may call
/// it. A query blocks on the kernel's lock of network settings.
#[derive(Default)]
pub(crate) struct DeviceQuery {
    /// Socket; `None` before the first query and after a failure.
    connection: Mutex<Option<QuerySocket>>,
}

struct QuerySocket {
    /// Netlink socket that receives messages of the kernel only.
    socket: OwnedFd,
    family: u16,
    /// Multicast group of notifications of changes; `None` if the kernel has none.
    monitor: Option<u32>,
    sequence: u32,
}

/// Numbers of the ethtool family and of the multicast group of its notifications of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EthtoolMonitorIds {
    pub(crate) family: u16,
    pub(crate) group: u32,
}

/// Reason why a query of a device failed.
enum QueryError {
    /// The query socket could not be opened.
    Unable(Box<Self>),
    Socket(Errno),
    Reply(ReplyError),
}

impl QueryError {
    fn into_open_error(self) -> Self {
        Self::Unable(Box::new(self))
    }
}

impl DeviceQuery {
    /// Returns the features of `device`.
    ///
    /// # Errors
    /// The device does not exist (`Missing`), or the kernel does not support the query
    /// (`Unsupported`: before 5.6, or built without `CONFIG_ETHTOOL_NETLINK`).
    pub(crate) fn features(&self, device: &str) -> Result<DeviceFeatures, DeviceError> {
        self.request(|connection| connection.features(device))
            .map_err(|cause| explain(device, &cause))
    }

    /// Returns the link speed that the kernel reports for a device, whether or not the link is up.
    ///
    /// # Errors
    /// The device does not exist, or the kernel does not reply.
    pub(crate) fn speed(&self, index: u32, device: &str) -> Result<LinkSpeed, DeviceError> {
        match self.request(|connection| connection.speed(index)) {
            Ok(speed) => Ok(speed),
            Err(QueryError::Reply(ReplyError::Refused(Errno::OPNOTSUPP))) => {
                Ok(LinkSpeed::default())
            }
            // The kernel is older or has no ethtool netlink.
            Err(_) => Link::new(device)?.speed(),
        }
    }

    /// Returns the numbers of the ethtool family and of its multicast group; `None` if the kernel
    /// has none.
    pub(crate) fn monitor_ids(&self) -> Option<EthtoolMonitorIds> {
        let result = self.request(|connection| Ok((connection.family, connection.monitor)));
        let (family, group) = result.ok()?;
        Some(EthtoolMonitorIds { family, group: group? })
    }

    fn request<T>(
        &self,
        question: impl FnOnce(&mut QuerySocket) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match connection.take() {
            Some(open) => open,
            None => QuerySocket::open().map_err(QueryError::into_open_error)?,
        };
        let answer = question(connection.insert(open));
        if matches!(answer, Err(QueryError::Socket(_))) {
            *connection = None;
        }
        answer
    }
}

impl QuerySocket {
    fn open() -> Result<Self, QueryError> {
        let protocol = Some(netlink::GENERIC);
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)
            .map_err(QueryError::Socket)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0)).map_err(QueryError::Socket)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(RECEIVE_TIMEOUT))
            .map_err(QueryError::Socket)?;
        let mut connection = Self { socket, family: 0, monitor: None, sequence: 0 };
        let read = |datagram: &[u8], sequence| {
            let monitor = ethtool::decode_monitor_group(datagram, sequence).ok();
            Ok((ethtool::decode_family(datagram, sequence)?, monitor))
        };
        (connection.family, connection.monitor) =
            connection.request(ethtool::family_request, read)?;
        Ok(connection)
    }

    fn speed(&mut self, index: u32) -> Result<LinkSpeed, QueryError> {
        let family = self.family;
        self.request(
            |sequence| ethtool::speed_request(family, sequence, index),
            |datagram, sequence| ethtool::decode_speed(datagram, sequence, family),
        )
    }

    fn features(&mut self, device: &str) -> Result<DeviceFeatures, QueryError> {
        let family = self.family;
        self.request(
            |sequence| ethtool::features_request(family, sequence, device),
            |datagram, sequence| ethtool::decode_features(datagram, sequence, family),
        )
    }

    fn request<T>(
        &mut self,
        request: impl Fn(u32) -> Vec<u8>,
        read: impl Fn(&[u8], u32) -> Result<T, ReplyError>,
    ) -> Result<T, QueryError> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &request(self.sequence), SendFlags::empty())
            .map_err(QueryError::Socket)?;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS_MAX {
            let (len, _) = match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                received => received.map_err(QueryError::Socket)?,
            };
            match read(buffer.get(..len).unwrap_or_default(), self.sequence) {
                // The message may be the reply to an earlier query.
                Err(ReplyError::NoReply) => {}
                answer => return answer.map_err(QueryError::Reply),
            }
        }
        Err(QueryError::Reply(ReplyError::NoReply))
    }
}

fn explain_open(cause: &QueryError) -> DeviceError {
    match cause {
        QueryError::Reply(ReplyError::Refused(Errno::NOENT)) => device_error(
            DeviceErrorKind::Unsupported,
            "device",
            "this kernel has no ethtool interface over netlink: it is older than 5.6 or lacks \
             ETHTOOL_NETLINK",
        ),
        QueryError::Reply(cause) => device_error(
            DeviceErrorKind::Host,
            "device",
            format!("looking up the ethtool netlink family: {cause}"),
        ),
        QueryError::Socket(errno) => {
            host_error("device", "opening a generic netlink socket", &(*errno).into())
        }
        QueryError::Unable(cause) => explain_open(cause),
    }
}

fn explain(device: &str, cause: &QueryError) -> DeviceError {
    let operation = format!("reading the features of device {device}");
    match cause {
        QueryError::Unable(cause) => explain_open(cause),
        QueryError::Socket(errno) | QueryError::Reply(ReplyError::Refused(errno)) => {
            host_error("device", &operation, &(*errno).into())
        }
        QueryError::Reply(cause) => {
            device_error(DeviceErrorKind::Host, "device", format!("{operation}: {cause}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use suimon_ports::DeviceFeature;

    use super::*;
    use crate::namespace::Namespace;
    use crate::testing::TestNetns;

    #[test]
    fn the_kernel_reports_features_changed_by_ethtool() {
        let netns = TestNetns::new();
        netns.run("ip link add upstream0 type veth peer name upstream1");
        let namespace = Namespace::open(Some(netns.name())).unwrap();
        // The socket belongs to the namespace in which it is created.
        let query = DeviceQuery::default();
        let read_features = || namespace.run(|| query.features("upstream0")).unwrap();
        let state = |features: &DeviceFeatures, feature| features.state(feature).ethtool_state();

        let before = read_features();
        assert_eq!(before.iter().count(), DeviceFeature::ALL.len(), "{before:?}");
        assert_eq!(state(&before, DeviceFeature::TxTcp4Segmentation), "on");
        assert_eq!(state(&before, DeviceFeature::TxTcp6Segmentation), "on");
        assert_eq!(state(&before, DeviceFeature::RxLro), "off [fixed]");
        netns.run("ethtool -K upstream0 tx-tcp-segmentation off gro on");
        let after = read_features();
        assert_eq!(state(&after, DeviceFeature::TxTcp4Segmentation), "off");
        assert_eq!(state(&after, DeviceFeature::TxTcp6Segmentation), "on");
        assert_eq!(state(&after, DeviceFeature::RxGro), "on");

        // Segmentation without checksums is requested but not active.
        netns.run("ethtool -K upstream0 tx-tcp-segmentation on tx off");
        let starved = read_features();
        assert_eq!(state(&starved, DeviceFeature::TxChecksum), "off");
        assert_eq!(state(&starved, DeviceFeature::TxTcp4Segmentation), "off [requested on]");
    }

    #[test]
    fn an_absent_device_is_missing_and_others_are_still_queried() {
        let netns = TestNetns::new();
        netns.run("ip link add upstream0 type veth peer name upstream1");
        let namespace = Namespace::open(Some(netns.name())).unwrap();
        let query = DeviceQuery::default();
        let error = namespace.run(|| query.features("upstream7")).unwrap_err();
        assert_eq!((error.kind, error.field), (DeviceErrorKind::Missing, "device"));
        assert!(error.detail.contains("upstream7"), "{}", error.detail);
        assert!(namespace.run(|| query.features("upstream1")).is_ok());
    }
}
